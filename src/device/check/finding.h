/*
 * finding.h - what the checker reports: one record per (kind, place, other place), counted.
 */
#ifndef DOPPEL_DEVICE_CHECK_FINDING_H
#define DOPPEL_DEVICE_CHECK_FINDING_H

#include "device/core.h"

/* Kinds: enumerator, name in reports and JSON. */
#define DP_CHECK_KINDS(X)                                                                                              \
    X(OUT_OF_BOUNDS, "out-of-bounds")                                                                                  \
    X(MISALIGNED, "misaligned")                                                                                        \
    X(OUTSIDE_TENSOR, "outside-tensor")                                                                                \
    X(UNINITIALIZED, "uninitialized-read")                                                                             \
    X(OVERLAP, "overlap")                                                                                              \
    X(RACE_RAW, "race-raw")                                                                                            \
    X(RACE_WAR, "race-war")                                                                                            \
    X(RACE_WAW, "race-waw")                                                                                            \
    X(BLOCK_WAW, "blocks-write-same")                                                                                  \
    X(BLOCK_RAW, "blocks-read-write")                                                                                  \
    X(HOST_RACE, "host-race")                                                                                          \
    X(STREAM_RACE, "stream-race")                                                                                      \
    X(LEAKED_MEMORY, "leaked-memory")                                                                                  \
    X(LEAKED_HANDLE, "leaked-handle")                                                                                  \
    X(FLAG_TWICE, "flag-set-twice")                                                                                    \
    X(FLAG_LEFT, "flag-never-waited")                                                                                  \
    X(FLAG_NEVER_SET, "flag-never-set")                                                                                \
    X(QUEUE, "queue-misuse")                                                                                           \
    X(USE_AFTER_FREE, "use-after-free")                                                                                \
    X(OVER_ALLOCATION, "over-allocation")                                                                              \
    X(LEAKED_TENSOR, "leaked-tensor")                                                                                  \
    X(LEAKED_STATE, "leaked-state")                                                                                    \
    X(DEADLOCK, "deadlock")                                                                                            \
    X(TIME_LIMIT, "time-limit")                                                                                        \
    X(STALE_CACHE, "stale-cache")                                                                                      \
    X(NAN_BORN, "nan")                                                                                                 \
    X(INF_BORN, "infinity")                                                                                            \
    X(HALF_OVERFLOW, "half-overflow")                                                                                  \
    X(ILLEGAL, "illegal-instruction")                                                                                  \
    X(HOST, "host-fault")

typedef enum dp_check_kind {
#define X(id, name) DP_CHECK_##id,
    DP_CHECK_KINDS(X)
#undef X
        DP_CHECK_KIND_COUNT
} dp_check_kind;

const char *dp_check_kind_name(dp_check_kind kind);

/* Where something happened. what is a clause that starts with the instruction: "DataCopy on MTE3 reads it". */
typedef struct dp_check_place {
    dp_loc loc; /* file NULL: unknown */
    int pipe;   /* -1: none */
    int op;     /* -1: not an instruction */
    char what[160];
} dp_check_place;

typedef struct dp_finding {
    dp_check_kind kind;
    bool has_other;
    dp_check_place place, other;
    char kernel[96];  /* empty: on the host */
    uint64_t launch;
    dp_loc launch_loc;
    uint32_t block, core;
    bool on_cube; /* core kind */
    char sentence[512];
    char memory[224]; /* empty: no address is involved */
    char cure[320];
    uint64_t count;       /* times seen */
    uint32_t other_blocks; /* further blocks it was seen in (approximate above 64) */
    uint64_t block_bits;   /* blocks 0..63 it was seen in */
} dp_finding;

/* Keeps a copy, or counts it when (kind, place, other) is known; tells the report (dp_check_report_touch). Thread-safe. */
void dp_finding_add(const dp_finding *finding);
unsigned dp_finding_count(void);
/* Copies finding i (order of appearance); false past the end. */
bool dp_finding_at(unsigned index, dp_finding *out_finding);
/* Findings that did not fit under DOPPEL_CHECK_LIMIT. */
uint64_t dp_finding_dropped(void);
void dp_finding_set_limit(unsigned limit);

/* Fills kernel, launch, block and core of a finding. */
void dp_finding_context(dp_finding *finding, const dp_core *core);

#endif
