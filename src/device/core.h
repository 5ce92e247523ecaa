/*
 * core.h - one AI core: its memories, registers and flags, and the block it is running.
 *
 * A core belongs to one worker thread at a time. Kernel code reaches it through dp_core_current().
 */
#ifndef DOPPEL_DEVICE_CORE_H
#define DOPPEL_DEVICE_CORE_H

#include "base/status.h"
#include "device/chip.h"
#include "device/observer.h"
#include "doppel/insn.h"

typedef struct dp_core_memory {
    uint8_t *base; /* 512-byte aligned */
    uint32_t size_bytes;
} dp_core_memory;

/* A reason to be parked: the block goes on once ready(context) is true. describe() writes who waits for what. */
typedef struct dp_wait {
    bool (*ready)(void *context);
    void (*describe)(void *context, char *text, size_t text_bytes);
    void *context;
    dp_loc loc;
} dp_wait;

/* What the launch scheduler (floor 4) gives a core. */
typedef struct dp_core_host {
    /* Parks the block until wait->ready. Returns false if it can never be (deadlock): the device then faults. */
    bool (*park)(dp_core *core, const dp_wait *wait);
    /* Ends the block at once without returning to the kernel. */
    void (*abandon)(dp_core *core) __attribute__((noreturn));
    /* Told of a fault just before abandon(), to mark the launch; sentence as printed, without context. May be NULL. */
    void (*fault)(dp_core *core, dp_loc loc, const char *sentence);
} dp_core_host;

/* The GM ranges a core used last, so that most accesses need no look into the registry. Valid while epoch is current. */
enum { DP_GM_CACHE = 4 };
typedef struct dp_gm_cache {
    uint64_t epoch;
    uintptr_t begin[DP_GM_CACHE], end[DP_GM_CACHE];
    unsigned next;
} dp_gm_cache;

/* See ahead.h. */
enum { DP_AHEAD_STREAMS = 4 };
typedef struct dp_ahead_stream {
    const uint8_t *expected; /* where the next copy of the stream would begin */
    const uint8_t *next;     /* the first line not yet asked for */
    uint32_t lines;          /* how many */
    bool writes;
} dp_ahead_stream;
typedef struct dp_ahead {
    uint32_t waiting; /* one bit for each stream with lines not yet asked for */
    uint8_t turn, oldest;
    dp_ahead_stream stream[DP_AHEAD_STREAMS];
} dp_ahead;

struct dp_math;
struct dp_launch_sync; /* cross-core flags of one launch, see sync.h */
struct dp_queue_state; /* TPipe and queues of the running block, see queue.h */
typedef struct dp_print_text dp_print_text; /* what the running block printed, see print.h */

/* C++ tests look at cores that nobody else has. */
#ifdef __cplusplus
#define DP_ATOMIC(type) type
#else
#define DP_ATOMIC(type) _Atomic(type)
#endif

struct dp_core {
    /* hot: read by every instruction */
    DP_ATOMIC(const dp_observer *) observer; /* NULL = nobody looks; another thread may put one there that stops the block */
    uint64_t mask[2];            /* vector mask register */
    uint8_t counter_mode;        /* mask mode: 0 normal, 1 counter (mask[0] = elements) */
    uint8_t kind;                /* dp_core_kind */
    uint8_t atomic_op;           /* 0 none, else see state.c */
    uint8_t atomic_dtype;
    uint8_t store_atomic;        /* scalar stores to GM add: their dtype + 1, 0 off */
    const struct dp_math *math;  /* loops of the rung in force; tests put another rung's table here */
    dp_core_memory memory[DP_SPACE_COUNT];
    dp_gm_cache gm_cache;
    dp_ahead ahead;

    /* registers */
    uint64_t cmp_mask[2];
    uint64_t ctrl;
    uint64_t deq_scale;        /* SetDeqScale word: float scale bits 31..0, offset 45..37, sign flag 46 */
    uint64_t deq_table[16];    /* SetDeqScale(tensor): such a word for each of the 16 lanes of a block */
    uint64_t pad_value;
    uint64_t acc_value;        /* GetAccVal */
    uint64_t reduce_value[2];  /* GetReduceMaxMinCount: value bits, index */
    uint64_t mrg_result;       /* GetMrgSortResult, 4 x 16 bits */
    uint64_t kept_count;       /* GatherMask */
    uint8_t flags[DP_PIPE_COUNT][DP_PIPE_COUNT]; /* one bit per event id: raised, not yet waited for */
    uint64_t issued;           /* instructions since block_begin: time stamp of observers */

    /* identity */
    uint32_t block_idx, block_num; /* logical block of the launch, and how many */
    uint32_t sub_block_idx, sub_block_num;
    uint32_t core_index;           /* running number of the core among all of the launch: block * cores_per_block + k */
    uint32_t task_ration;
    dp_launch_info *launch;
    struct dp_launch_sync *sync;
    struct dp_queue_state *queues;
    dp_print_text *print;
    const dp_chip *chip;
    const dp_core_host *host;
    void *host_state;     /* the scheduler's */
    void *observer_state; /* the observer's, between block_begin and block_end */
    uint8_t *dynamic_ub;  /* kernel.dynamic_ub_bytes of the launch, NULL if it asked for none */
    dp_loc fault_loc;   /* place of the fault the observer is being told of */
    bool over_time;     /* the fault is that the kernel ran too long */
    dp_loc fault_other; /* a second place it is about, set just before dp_fault() by code that knows one; line 0: none */
    uint32_t local_top[DP_SPACE_COUNT]; /* lowest byte taken by address-space variables and dynamic UB */
    uint32_t local_low[DP_SPACE_COUNT]; /* one past the highest byte a TPipe has handed out */
};

/* Memories of `chip` are reserved (not touched). NULL with a sentence when memory is exhausted. */
dp_core *dp_core_create(const dp_chip *chip);
void dp_core_destroy(dp_core *core); /* NULL and half-built cores allowed */

/* Resets registers, flags, mask and queues to their state at kernel start; tells the observer. */
void dp_core_block_begin(dp_core *core);
/* Part of it: frees all address-space variables and lays out the launch's dynamic UB. */
void dp_local_block_begin(dp_core *core);
/* Releases what the block left (queues); tells the observer. */
void dp_core_block_end(dp_core *core, bool faulted);

/* The core whose block runs on this thread, NULL outside kernels. */
extern __thread dp_core *dp_thread_core; /* GCC's word: C++ testers include this */
static inline dp_core *dp_core_current(void) { return dp_thread_core; }
/* Set by the scheduler around each (re)entry into a block. */
static inline void dp_core_set_current(dp_core *core) { dp_thread_core = core; }

/*
 * A kernel error: prints "<file>:<line>: error: <instruction>: <sentence>" with kernel, block and core, tells the
 * observer, marks the launch and ends the block. insn may be NULL, then loc says where.
 */
void dp_fault(dp_core *core, const dp_insn *insn, dp_loc loc, const char *format, ...) DP_PRINTF(4, 5)
    __attribute__((noreturn));

/* Pipe an instruction runs on: the row's, or for copies and flags what the operands say. */
dp_pipe dp_insn_pipe(const dp_insn *insn);
const char *dp_insn_name(unsigned op);
const char *dp_insn_cost_row(unsigned op);
const char *dp_pipe_name(unsigned pipe);   /* "MTE2" */
const char *dp_space_name(unsigned space); /* "UB" */
const char *dp_dtype_name(unsigned dtype); /* "half" */

/*
 * Every contiguous run of bytes the instruction reads or writes, in no particular order: masked lanes are left out,
 * neighbouring runs are merged. The one description of footprints, used by bounds checks and by the checker.
 * mode: 1 read, 2 write, 3 both.
 */
typedef void (*dp_access_fn)(void *context, unsigned operand, unsigned mode, const void *addr, size_t size_bytes);
void dp_insn_visit(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context);
/*
 * The same bytes in far fewer calls for an instruction that works lane by lane under a mask: of each of `blocks` blocks of
 * 32 bytes from addr on, which starts one, the bytes `bits` (one bit each, not 0). False, and nothing is visited: it is no such
 * instruction, or an operand is not where it must be.
 */
typedef void (*dp_lanes_fn)(void *context, unsigned operand, unsigned mode, const uint8_t *addr, uint32_t blocks, uint32_t bits);
bool dp_insn_visit_lanes(const dp_core *core, const dp_insn *insn, dp_lanes_fn visit, void *context);

#endif
