/*
 * cross.c - synchronisation between cores. u.sync.src_pipe is the pipe the instruction runs on.
 *
 *   CROSS_SET, CROSS_WAIT   u.sync.mode, u.sync.event_id (flag)
 *   SYNC_ALL                hard: n_operands 0. Soft: [0] GM, [1] UB workspace, mask[0] = cores (0 = all).
 *                           u.sync.mode: 1 = vector cores only, 0 = cube and vector cores
 *   IB_SET, IB_WAIT         [0] GM, [1] UB workspace, mask[0] = block, mask[1] = event, u.sync.mode as above
 *   ORDER_*                 [0] GM, [1] UB workspace
 *   GROUP_ARRIVE, _WAIT     [0] GM workspace, mask[0] = index, mask[1] = arriving members, scalar_bits = waiting
 * members
 *
 * Workspaces in GM hold int32 counters; other blocks of the launch read and write them while this one runs. The copy
 * the chip keeps of them in the UB workspace is written too, so that a kernel that still needs those bytes notices.
 */
#include "device/launch_sync.h"
#include "device/runs.h"

#include <inttypes.h>
#include <stdio.h>

enum { SLOT_BYTES = 32, SLOT_WORDS = 8, GROUP_LINE_BYTES = 512, GROUP_MAX = GROUP_LINE_BYTES / 4, MODE_MIXED = 0 };

/* --- waiting --- */

typedef struct flag_wait {
    dp_launch_sync *sync;
    const dp_core *core;
    unsigned mode, flag;
    const char *what;
} flag_wait;

/* Waits until `holds` is true of count counters: counter i is the int32 at first + i * stride_bytes. */
typedef struct counter_wait {
    const uint8_t *first;
    size_t stride_bytes;
    uint32_t count, first_index;
    int32_t target;
    bool exact; /* counter == target instead of >= */
    const dp_core *core;
    const char *what, *member;
} counter_wait;

static bool flag_ready(void *context) {
    const flag_wait *w = context;
    return dp_launch_sync_ready(w->sync, w->core, w->flag);
}

static int describe_self(const dp_core *core, char *text, size_t text_bytes) {
    if (core->kind == DP_CORE_AIC)
        return snprintf(text, text_bytes, "the cube core of block %" PRIu32, core->block_idx);
    if (core->sub_block_num > 1)
        return snprintf(text, text_bytes, "vector core %" PRIu32 " of block %" PRIu32, core->sub_block_idx,
                        core->block_idx);
    return snprintf(text, text_bytes, "block %" PRIu32, core->block_idx);
}

static void describe_flag(void *context, char *text, size_t text_bytes) {
    const flag_wait *w = context;
    char self[64], missing[256];
    describe_self(w->core, self, sizeof self);
    dp_launch_sync_missing(w->sync, w->core, w->mode, w->flag, missing, sizeof missing);
    if (w->what)
        snprintf(text, text_bytes, "%s waits in %s for %s", self, w->what, missing);
    else
        snprintf(text, text_bytes, "%s waits for flag %u (mode %u), which is not raised by %s", self, w->flag, w->mode,
                 missing[0] ? missing : "anyone it can still come from");
}

static int32_t counter_at(const counter_wait *w, uint32_t i) {
    return __atomic_load_n((const int32_t *)(w->first + i * w->stride_bytes), __ATOMIC_SEQ_CST);
}

static bool counter_holds(const counter_wait *w, uint32_t i) {
    int32_t value = counter_at(w, i);
    return w->exact ? value == w->target : value >= w->target;
}

static bool counters_ready(void *context) {
    const counter_wait *w = context;
    for (uint32_t i = 0; i < w->count; i++)
        if (!counter_holds(w, i))
            return false;
    return true;
}

static void describe_counters(void *context, char *text, size_t text_bytes) {
    enum { NAMED = 4 };
    const counter_wait *w = context;
    int used = describe_self(w->core, text, text_bytes);
    used += snprintf(text + used, text_bytes - (size_t)used, " waits in %s for", w->what);
    uint32_t missing = 0;
    for (uint32_t i = 0; i < w->count && (size_t)used < text_bytes; i++) {
        if (counter_holds(w, i))
            continue;
        if (missing++ < NAMED)
            used += snprintf(text + used, text_bytes - (size_t)used,
                             "%s %s %" PRIu32 " (its counter is %" PRId32 ", not %" PRId32 ")", missing > 1 ? "," : "",
                             w->member, w->first_index + i, counter_at(w, i), w->target);
    }
    if (missing > NAMED && (size_t)used < text_bytes)
        snprintf(text + used, text_bytes - (size_t)used, " and %" PRIu32 " more", missing - NAMED);
}

/* Parks the block until the wait is over; a wait that can never end is a fault. */
static void wait_for(dp_core *core, const dp_insn *insn, dp_wait wait) {
    while (!wait.ready(wait.context)) {
        wait.loc = insn->loc;
        if (core->host->park(core, &wait))
            continue;
        char text[512];
        wait.describe(wait.context, text, sizeof text);
        dp_fault(core, insn, insn->loc, "deadlock between cores: %s", text);
    }
}

static void wait_counters(dp_core *core, const dp_insn *insn, counter_wait *counters) {
    counters->core = core;
    counters->what = dp_insn_name(insn->op);
    wait_for(core, insn, (dp_wait){counters_ready, describe_counters, counters, insn->loc});
}

/* --- hardware flags --- */

static dp_launch_sync *shared_of(dp_core *core, const dp_insn *insn) {
    if (!core->sync || !core->host || !core->host->park)
        dp_fault(core, insn, insn->loc, "this launch was started without cross-core flags");
    return core->sync;
}

static void raise_flag(dp_core *core, const dp_insn *insn, unsigned mode, unsigned flag) {
    if (!dp_launch_sync_raise(shared_of(core, insn), core, mode, flag))
        dp_fault(
            core, insn, insn->loc,
            "flag %u (mode %u) is raised for the %dth time and nobody has waited for it: a flag counts to %d; pair "
            "every CrossCoreSetFlag with a CrossCoreWaitFlag",
            flag, mode, DP_CROSS_MAX_PENDING + 1, DP_CROSS_MAX_PENDING);
}

static void await_flag(dp_core *core, const dp_insn *insn, unsigned mode, unsigned flag, const char *what) {
    flag_wait w = {shared_of(core, insn), core, mode, flag, what};
    wait_for(core, insn, (dp_wait){flag_ready, describe_flag, &w, insn->loc});
    dp_launch_sync_take(w.sync, core, flag);
}

static void check_flag(dp_core *core, const dp_insn *insn) {
    const dp_sync_params *s = &insn->u.sync;
    if (s->mode >= DP_CROSS_MODES)
        dp_fault(core, insn, insn->loc,
                 "mode %u does not exist: 0 meets all cores of a kind, 1 the vector cores of a "
                 "block, 2 a cube core and its vector cores",
                 s->mode);
    if (s->event_id >= DP_CROSS_FLAGS)
        dp_fault(core, insn, insn->loc, "flag %u does not exist: there are flags 0 to %d, users have 0 to 10",
                 s->event_id, DP_CROSS_FLAGS - 1);
    if (s->src_pipe >= DP_PIPE_COUNT)
        dp_fault(core, insn, insn->loc, "pipe %u cannot carry a cross-core flag: name one pipe, not PIPE_ALL",
                 s->src_pipe);
}

static void meet(dp_core *core, const dp_insn *insn, unsigned flag) {
    raise_flag(core, insn, 0, flag);
    await_flag(core, insn, 0, flag, dp_insn_name(insn->op));
}

/* Flags and their order: kernel-semantics section 13. Cores a launch does not have are not waited for. */
static void sync_all_hard(dp_core *core, const dp_insn *insn) {
    dp_launch_sync *sync = shared_of(core, insn);
    const char *what = dp_insn_name(insn->op);
    bool mixed = insn->u.sync.mode == MODE_MIXED && dp_launch_sync_aic_count(sync) && dp_launch_sync_aiv_count(sync);
    if (core->kind == DP_CORE_AIV) {
        if (!mixed) {
            meet(core, insn, DP_CROSS_AIV_MEET);
            return;
        }
        raise_flag(core, insn, 2, DP_CROSS_AIV_TO_AIC);
        await_flag(core, insn, 2, DP_CROSS_AIC_TO_AIV, what);
        return;
    }
    if (insn->u.sync.mode != MODE_MIXED) /* the vector cores' affair */
        return;
    if (mixed)
        await_flag(core, insn, 2, DP_CROSS_AIV_TO_AIC, what);
    meet(core, insn, DP_CROSS_AIC_MEET);
    if (mixed)
        raise_flag(core, insn, 2, DP_CROSS_AIC_TO_AIV);
}

/* --- counters in GM --- */

static uint32_t vector_index(const dp_core *core) {
    return core->block_idx * core->sub_block_num + core->sub_block_idx;
}
static uint32_t vector_count(const dp_core *core) {
    return core->block_num * core->sub_block_num;
}

static int32_t *slot_at(const dp_insn *insn, uint64_t slot) {
    return (int32_t *)((uint8_t *)insn->operand[0].addr + slot * SLOT_BYTES);
}

/* Workspaces of gm_slots counters in GM and ub_slots in UB. */
static void check_workspaces(dp_core *core, const dp_insn *insn, uint64_t gm_slots, uint64_t ub_slots) {
    if (!core->host || !core->host->park)
        dp_fault(core, insn, insn->loc, "this launch was started without a scheduler that can make blocks wait");
    dp_operand_in_space(core, insn, 0, DP_SPACE_GM);
    dp_operand_in_space(core, insn, 1, DP_SPACE_UB);
    dp_operand_check(core, insn, 0, gm_slots * SLOT_BYTES, sizeof(int32_t));
    dp_operand_check(core, insn, 1, ub_slots * SLOT_BYTES, DP_BLOCK_BYTES);
}

static void mirror_slots(const dp_insn *insn, uint64_t first, uint64_t count) {
    int32_t *ub = insn->operand[1].addr;
    for (uint64_t i = 0; i < count; i++)
        for (unsigned word = 0; word < SLOT_WORDS; word++)
            ub[i * SLOT_WORDS + word] = __atomic_load_n(slot_at(insn, first + i) + word, __ATOMIC_SEQ_CST);
}

static uint32_t soft_cores(const dp_core *core, const dp_insn *insn) {
    return insn->mask[0] ? (uint32_t)insn->mask[0] : vector_count(core);
}

static void sync_all_soft(dp_core *core, const dp_insn *insn) {
    uint32_t used = soft_cores(core, insn), self = vector_index(core);
    if (core->kind != DP_CORE_AIV)
        dp_fault(core, insn, insn->loc,
                 "the form with workspaces is for vector cores: use SyncAll<false>() on a cube core");
    if (used > vector_count(core))
        dp_fault(core, insn, insn->loc, "usedCores is %" PRIu32 ", but the launch has %" PRIu32 " vector cores", used,
                 vector_count(core));
    if (self >= used)
        dp_fault(core, insn, insn->loc,
                 "core %" PRIu32 " calls it, but usedCores is %" PRIu32 ": only cores 0 to %" PRIu32 " may", self, used,
                 used - 1);
    check_workspaces(core, insn, used, used);
    int32_t round = __atomic_add_fetch(slot_at(insn, self), 1, __ATOMIC_SEQ_CST);
    counter_wait w = {
        .first = insn->operand[0].addr, .stride_bytes = SLOT_BYTES, .count = used, .target = round, .member = "core"};
    wait_counters(core, insn, &w);
    mirror_slots(insn, 0, used);
}

static uint64_t ib_slot(const dp_core *core, const dp_insn *insn) {
    uint64_t blocks = (uint64_t)core->block_num * (insn->u.sync.mode == MODE_MIXED ? 2 : 1);
    return blocks * insn->mask[1] + insn->mask[0];
}

/* IBSet: own slot 0 -> 1. IBWait: the named block's slot 1 -> 0. */
static void ib(dp_core *core, const dp_insn *insn, int32_t from, int32_t to) {
    uint64_t blocks = (uint64_t)core->block_num * (insn->u.sync.mode == MODE_MIXED ? 2 : 1);
    if (insn->mask[0] >= blocks)
        dp_fault(core, insn, insn->loc, "blockIdx is %" PRId64 ": the launch has blocks 0 to %" PRIu64,
                 (int64_t)insn->mask[0], blocks - 1);
    if (insn->mask[1] > INT32_MAX)
        dp_fault(core, insn, insn->loc, "eventID is %" PRId64 ": it must not be negative", (int64_t)insn->mask[1]);
    uint64_t slot = ib_slot(core, insn);
    check_workspaces(core, insn, slot + 1, 1);
    counter_wait w = {.first = (const uint8_t *)slot_at(insn, slot),
                      .count = 1,
                      .first_index = (uint32_t)insn->mask[0],
                      .target = from,
                      .exact = true,
                      .member = "block"};
    int32_t expected;
    do {
        wait_counters(core, insn, &w);
        expected = from;
    } while (
        !__atomic_compare_exchange_n(slot_at(insn, slot), &expected, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    mirror_slots(insn, slot, 1);
}

/* --- blocks in order: GM slot b = rounds block b has finished; UB word blockNum * 8 = rounds this block has finished
 * --- */

static int32_t *round_of(const dp_core *core, const dp_insn *insn) {
    return (int32_t *)insn->operand[1].addr + (size_t)vector_count(core) * SLOT_WORDS;
}

static void order(dp_core *core, const dp_insn *insn) {
    uint32_t blocks = vector_count(core), self = vector_index(core);
    if (core->kind != DP_CORE_AIV)
        dp_fault(core, insn, insn->loc, "blocks are put in order on vector cores only");
    check_workspaces(core, insn, blocks, (uint64_t)blocks + 1);
    int32_t *round = round_of(core, insn);
    switch (insn->op) {
    case DP_OP_ORDER_INIT: /* nobody may look before all have cleared their slot */
        for (unsigned word = 0; word < SLOT_WORDS; word++)
            __atomic_store_n(slot_at(insn, self) + word, 0, __ATOMIC_SEQ_CST);
        *round = 0;
        meet(core, insn, DP_CROSS_AIV_MEET);
        break;
    case DP_OP_ORDER_NOTIFY:
        __atomic_store_n(slot_at(insn, self), ++*round, __ATOMIC_SEQ_CST);
        break;
    default: { /* the first block of a round follows the last one of the round before */
        uint32_t before = self ? self - 1 : blocks - 1;
        counter_wait w = {.first = (const uint8_t *)slot_at(insn, before),
                          .count = 1,
                          .first_index = before,
                          .target = *round + (self ? 1 : 0),
                          .member = "block"};
        wait_counters(core, insn, &w);
        break;
    }
    }
}

/* --- GroupBarrier: waiting member w owns 512 bytes; int32 i of them counts the arrivals of member i it has not seen
 * --- */

static int32_t *group_counter(const dp_insn *insn, uint64_t waiter, uint64_t arriver) {
    return (int32_t *)((uint8_t *)insn->operand[0].addr + waiter * GROUP_LINE_BYTES) + arriver;
}

static void group(dp_core *core, const dp_insn *insn) {
    uint64_t index = insn->mask[0], arriving = insn->mask[1], waiting = insn->scalar_bits;
    bool arrive = insn->op == DP_OP_GROUP_ARRIVE;
    if (!arriving || arriving > GROUP_MAX || !waiting || waiting > UINT16_MAX)
        dp_fault(core, insn, insn->loc,
                 "the groups have %" PRIu64 " arriving and %" PRIu64 " waiting members: 1 to %d and "
                 "1 to %d are possible",
                 arriving, waiting, GROUP_MAX, UINT16_MAX);
    if (index >= (arrive ? arriving : waiting))
        dp_fault(core, insn, insn->loc, "member %" PRIu64 " does not exist: the group has members 0 to %" PRIu64, index,
                 (arrive ? arriving : waiting) - 1);
    if (!core->host || !core->host->park)
        dp_fault(core, insn, insn->loc, "this launch was started without a scheduler that can make blocks wait");
    dp_operand_in_space(core, insn, 0, DP_SPACE_GM);
    dp_operand_check(core, insn, 0, waiting * GROUP_LINE_BYTES, GROUP_LINE_BYTES);
    if (arrive) {
        for (uint64_t w = 0; w < waiting; w++)
            __atomic_add_fetch(group_counter(insn, w, index), 1, __ATOMIC_SEQ_CST);
        return;
    }
    counter_wait w = {.first = (const uint8_t *)group_counter(insn, index, 0),
                      .stride_bytes = sizeof(int32_t),
                      .count = (uint32_t)arriving,
                      .target = 1,
                      .member = "member"};
    wait_counters(core, insn, &w);
    for (uint64_t i = 0; i < arriving; i++)
        __atomic_sub_fetch(group_counter(insn, index, i), 1, __ATOMIC_SEQ_CST);
}

void dp_exec_cross(dp_core *core, dp_insn *insn) {
    core->math->stream_fence();
    switch (insn->op) {
    case DP_OP_CROSS_SET:
        check_flag(core, insn);
        raise_flag(core, insn, insn->u.sync.mode, insn->u.sync.event_id);
        break;
    case DP_OP_CROSS_WAIT:
        check_flag(core, insn);
        await_flag(core, insn, insn->u.sync.mode, insn->u.sync.event_id, NULL);
        break;
    case DP_OP_SYNC_ALL:
        if (insn->n_operands)
            sync_all_soft(core, insn);
        else
            sync_all_hard(core, insn);
        break;
    case DP_OP_IB_SET:
        ib(core, insn, 0, 1);
        break;
    case DP_OP_IB_WAIT:
        ib(core, insn, 1, 0);
        break;
    case DP_OP_GROUP_ARRIVE:
    case DP_OP_GROUP_WAIT:
        group(core, insn);
        break;
    default:
        order(core, insn);
        break;
    }
}

/* Counters in GM belong to all blocks at once, so only what one block alone may touch is shown: the UB workspace. */
void dp_visit_cross(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    const void *ub = insn->operand[1].addr;
    switch (insn->op) {
    case DP_OP_SYNC_ALL:
        if (insn->n_operands)
            visit(context, 1, DP_WRITE, ub, (size_t)soft_cores(core, insn) * SLOT_BYTES);
        break;
    case DP_OP_IB_SET:
    case DP_OP_IB_WAIT:
        visit(context, 1, DP_WRITE, ub, SLOT_BYTES);
        break;
    case DP_OP_ORDER_INIT:
        visit(context, 1, DP_WRITE, round_of(core, insn), sizeof(int32_t));
        break;
    case DP_OP_ORDER_NOTIFY:
        visit(context, 1, DP_READ_WRITE, round_of(core, insn), sizeof(int32_t));
        break;
    case DP_OP_ORDER_WAIT:
        visit(context, 1, DP_READ, round_of(core, insn), sizeof(int32_t));
        break;
    default:
        break;
    }
}
