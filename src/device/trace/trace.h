/*
 * trace.h - recorded instructions of a launch and the estimate of when the chip would have run them.
 *
 * dp_trace_install() makes the trace the process's observer. Files go to DOPPEL_TRACE_DIR (default ".") when the process ends:
 * summary.txt, trace.json, timeline.svg.
 */
#ifndef DOPPEL_DEVICE_TRACE_TRACE_H
#define DOPPEL_DEVICE_TRACE_TRACE_H

#include "device/observer.h"
#include "device/chip.h"

/* One recorded instruction; the model fills in the cycles. */
typedef struct dp_trace_event {
    uint16_t op;
    uint8_t pipe;
    uint8_t dst_space, src_space;
    uint8_t sync_src, sync_dst, sync_id; /* flags and barriers */
    uint8_t cross_mode;
    uint8_t dtype;
    uint8_t implied; /* issued by a queue */
    uint8_t head;    /* model: paid the fixed part */
    uint8_t conflict; /* both sources start in the same UB bank group: reads take turns */
    uint32_t repeats;
    uint32_t bytes;
    uint32_t line;
    const char *file;
    uint64_t start, end;   /* model: cycles since the launch began */
    uint64_t waited;       /* model: cycles its pipe stood idle before it because of `cause` */
    uint32_t cause;        /* model: index + 1 of the event that held it back, 0 = the scalar unit had not issued it yet */
    uint32_t reserved;
} dp_trace_event;

/* One core of a launch. Grown by the recorder, one thread at a time. */
typedef struct dp_trace_core {
    dp_trace_event *events;
    uint32_t count, capacity;
    uint32_t block_idx, core_index;
    uint8_t kind;    /* dp_core_kind */
    uint8_t faulted; /* ended by a fault */
    uint32_t dropped;
    uint64_t end;                     /* model: cycle of the last instruction's end */
    uint64_t busy[DP_PIPE_COUNT];     /* model */
    struct dp_trace_core *next;       /* recorder's list */
} dp_trace_core;

typedef struct dp_trace_launch {
    uint64_t id;
    char name[128];
    dp_loc definition, launch;
    uint32_t blocks, stream_id, device_id;
    uint64_t begin_ns, end_ns; /* host clock: first and last block here */
    dp_trace_core **cores;     /* sorted by core_index */
    uint32_t core_count;
    const dp_chip *chip;
    uint64_t cycles;           /* model: the launch's length */
    struct dp_trace_launch *next;
} dp_trace_launch;

typedef struct dp_trace_host_call {
    const char *name;
    uint64_t begin_ns, end_ns;
    uint64_t thread;
    uint32_t stream_id;
    int status;
} dp_trace_host_call;

typedef struct dp_trace_record {
    dp_trace_launch *launches; /* in order of launch */
    uint32_t launch_count;
    dp_trace_host_call *calls;
    uint32_t call_count;
    uint64_t dropped;    /* events beyond the limit */
    uint64_t start_ns;
} dp_trace_record;

void dp_trace_install(void);

/* Cost of one kind of instruction, cycles. */
typedef struct dp_cost {
    double fixed;      /* paid when the pipe was empty */
    double per_repeat; /* each 256 bytes */
} dp_cost;

/* Row by its name in cost.tsv; falls back to the row "vadd,vsub". dtype picks between rows of one name. */
dp_cost dp_cost_find(const char *row, unsigned dtype);
/* Bytes per cycle and fixed cycles of a copy between two spaces on this chip, before sharing. */
void dp_cost_copy(const dp_chip *chip, unsigned dst_space, unsigned src_space, double *out_bytes_per_cycle, double *out_latency);

/* Fills the model's fields of every event, core and of the launch. */
void dp_trace_model(dp_trace_launch *launch);

/* Time of a number of cycles on the launch's chip, microseconds. */
double dp_trace_us(const dp_trace_launch *launch, uint64_t cycles);

/* All return false when the file cannot be written (reason on stderr). */
bool dp_trace_write_text(const dp_trace_record *record, const char *path);
bool dp_trace_write_json(const dp_trace_record *record, const char *path);
bool dp_trace_write_svg(const dp_trace_record *record, const char *path);

#endif
