/*
 * state.h - what the checker keeps for one core, and the steps its files share. Private to this folder.
 */
#ifndef DOPPEL_DEVICE_CHECK_STATE_H
#define DOPPEL_DEVICE_CHECK_STATE_H

#include "device/check/blocks.h"
#include "device/check/finding.h"
#include "device/check/gm.h"
#include "device/check/shadow.h"
#include "device/check/sites.h"

#include <setjmp.h>
#include <stdio.h>

typedef struct dp_check_options {
    bool strict, nan, overflow;
} dp_check_options;

extern dp_check_options dp_check_option; /* written once, before the first launch */

/* One run of an instruction's footprint. */
typedef struct dp_check_run {
    const uint8_t *addr;
    size_t bytes;
    uint8_t operand;
    uint8_t mode; /* 1 read, 2 write, 3 both */
    uint8_t space;
    uint32_t bits; /* 0: every byte; else the run is whole blocks, and these bytes of each count (on-chip only) */
} dp_check_run;

typedef struct dp_check_flag {
    dp_check_clock clock; /* what the wait will learn */
    uint32_t set_site, wait_site; /* the last ones */
    bool implied;
} dp_check_flag;

/* A device-memory access of this block that other pipes may not know to be finished: rows of row_bytes, pitch apart. */
typedef struct dp_gm_access {
    uintptr_t begin, end;
    size_t pitch, row_bytes;
    dp_stamp stamp;
    bool atomic;
} dp_gm_access;

enum { DP_GM_RECENT = 128, DP_LANES_MAX = 1 << 18 };

typedef struct dp_gm_recent {
    dp_gm_access list[DP_GM_RECENT];
    unsigned count, oldest;
} dp_gm_recent;

/* Device memory the scalar unit stored to and did not clean. */
typedef struct dp_dirty {
    uintptr_t begin, end;
    uint32_t site, epoch; /* of the newest store */
} dp_dirty;

enum { DP_DIRTY_MAX = 64 };

typedef struct dp_check_core dp_check_core;
struct dp_check_core {
    dp_check_clocks clocks;
    dp_shadow shadow[DP_SPACE_COUNT]; /* writer NULL: not in use */
    dp_check_flag flag[DP_PIPE_COUNT][DP_PIPE_COUNT][DP_EVENT_IDS];
    dp_site_cache sites;
    dp_gm_shadow_cache gm;
    dp_gm_recent gm_reads, gm_writes;
    dp_spans spans;
    dp_dirty dirty[DP_DIRTY_MAX];
    unsigned dirty_count;
    dp_check_run *runs;
    uint32_t run_count, run_room;
    jmp_buf enough;            /* where collecting runs ends early: the executor will refuse the instruction */
    dp_gm_cache ranges;        /* device memory ranges looked up last */
    struct {
        const uint8_t *begin, *end; /* of all runs of the operand; NULL: none */
        uint8_t mode;               /* of any of them */
    } box[4];
    uint32_t epoch;
    /* explicit settings that are still in force: their places */
    uint32_t mask_site, mode_site, atomic_site, store_atomic_site;
    uint64_t instructions;
    /* the instruction being looked at */
    dp_core *core;
    const dp_insn *insn;
    uint32_t site;
    unsigned pipe, space;
    dp_stamp reported; /* earlier access this instruction was reported with */
    bool in_fault;     /* a fault is being explained: looking at the footprint may find another one */
    uint32_t scratch_nonfinite; /* number.c: NaN and infinity among its sources */
    uint64_t bad_lane[DP_LANES_MAX / 64]; /* data.c */
    dp_check_core *next;
};

/* State of one launch. */
typedef struct dp_check_launch {
    dp_blocks *blocks;
    dp_launch_info *info;
} dp_check_launch;

static inline dp_check_launch *dp_check_launch_of(const dp_core *core) {
    return core->launch ? core->launch->observer_state : NULL;
}

/* Shadow of a memory, made when first needed; NULL when host memory is exhausted. */
dp_shadow *dp_check_shadow(dp_check_core *state, unsigned space);

/* flow.c: flags, barriers, cross-core operations, settings. True: the instruction touches no memory. */
bool dp_check_flow(dp_check_core *state);
void dp_check_flow_after(dp_check_core *state);
/* Pipe p now knows what q knows and that q's work up to `time` is finished. */
void dp_check_learn(dp_check_core *state, unsigned p, unsigned q, uint32_t time);

/* rules.c: what runs here and yet is a mistake. */
void dp_check_rules(dp_check_core *state);

/* race.c: order of accesses inside the block. */
void dp_check_local_accesses(dp_check_core *state, bool write);
void dp_check_gm_accesses(dp_check_core *state);

/* cache.c: what the scalar unit stores to device memory and does not clean. */
void dp_check_cache(dp_check_core *state);
void dp_check_cache_end(dp_check_core *state);

/* data.c: bytes without data; overlap of operands. */
void dp_check_data(dp_check_core *state);
void dp_check_overlap(dp_check_core *state);

/* number.c: options nan and overflow. */
void dp_check_number_before(dp_check_core *state);
void dp_check_number_after(dp_check_core *state);

/* end.c: what the block leaves behind. */
void dp_check_block_end(dp_check_core *state);

/* fault.c: a fault of the device as a finding. */
void dp_check_fault(dp_check_core *state, const dp_insn *insn, const char *sentence);
/* What follows the last semicolon of the sentence becomes the cure, unless there is one already. */
void dp_check_split_advice(dp_finding *f);

/* describe.c: words for reports. */
void dp_describe_local(const dp_core *core, unsigned space, const void *addr, size_t bytes, char *text, size_t text_bytes);
void dp_describe_gm(const void *addr, size_t bytes, char *text, size_t text_bytes);
/* "65,536" */
const char *dp_describe_count(uint64_t value, char text[32]);
/* Place of a site: pipe -1 if not known. The clause is "<instruction> on <pipe> <verb>". */
dp_check_place dp_place_of_site(uint32_t site, int pipe, const char *verb);
dp_check_place dp_place_of_insn(const dp_insn *insn, int pipe, const char *verb);
dp_check_place dp_place_of_loc(dp_loc loc, const char *what);

/* source_line.c: file and line of a return address in the program. False: text names function or module and offset. */
bool dp_source_line(const void *return_address, dp_loc *out_loc, char *text, size_t text_bytes);
dp_check_place dp_place_of_caller(const void *return_address, const char *what);

typedef struct dp_check_totals {
    uint64_t launches, instructions;
    uint64_t lost_spans; /* device-memory accesses that were not compared between blocks */
    bool no_memory;      /* part of the run was not looked at */
} dp_check_totals;

dp_check_totals dp_check_total(void);

/* report.c */
void dp_check_report_start(void);
/* Something new to tell: the report file is written again, at once or soon. */
void dp_check_report_touch(void);

/* report_json.c: the findings of this process as one JSON object. */
void dp_check_report_json(FILE *out);
/* Path as shown: relative when it lies below the working directory. */
const char *dp_check_report_path(const char *file);
/* The same for paths inside a sentence. Returns text. */
const char *dp_check_report_text(const char *sentence, char *text, size_t text_bytes);

#endif
