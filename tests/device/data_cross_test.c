/*
 * Synchronisation between cores, one thread per core. The test's scheduler parks a thread by polling; when every live
 * thread is parked and no wait is over, all of them are told that it is a deadlock.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "data_host.h"
#include "device/sync.h"

enum { MAX_CORES = 24, WORKSPACE_BYTES = 64 * 1024 };

typedef struct world world;
typedef struct seat {
    world *w;
    dp_core *core;
    pthread_t thread;
    const dp_wait *wait;
    jmp_buf escape;
    char sentence[1024];
    bool faulted;
} seat;

struct world {
    pthread_mutex_t lock;
    unsigned cores, live, parked;
    seat seats[MAX_CORES];
    dp_launch_sync *sync;
    int32_t *gm; /* zeroed workspace, registered device memory */
    void (*body)(seat *s);
    _Atomic int stage[MAX_CORES], log_length;
    int log[256];
};

static bool anyone_ready(world *w) {
    for (unsigned i = 0; i < w->cores; i++)
        if (w->seats[i].wait && w->seats[i].wait->ready(w->seats[i].wait->context))
            return true;
    return false;
}

static bool park(dp_core *core, const dp_wait *wait) {
    seat *s = core->host_state;
    world *w = s->w;
    bool over = true;
    pthread_mutex_lock(&w->lock);
    s->wait = wait;
    w->parked++;
    while (!wait->ready(wait->context)) {
        if (w->parked == w->live && !anyone_ready(w)) {
            over = false;
            break;
        }
        pthread_mutex_unlock(&w->lock);
        sched_yield();
        pthread_mutex_lock(&w->lock);
    }
    s->wait = NULL;
    w->parked--;
    pthread_mutex_unlock(&w->lock);
    return over;
}
static void __attribute__((noreturn)) abandon(dp_core *core) {
    longjmp(((seat *)core->host_state)->escape, 1);
}
static void fault(dp_core *core, dp_loc loc, const char *sentence) {
    seat *s = core->host_state;
    (void)loc;
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
}

static void *run_seat(void *arg) {
    seat *s = arg;
    dp_core_set_current(s->core);
    dp_core_block_begin(s->core);
    if (!setjmp(s->escape))
        s->w->body(s);
    else
        s->faulted = true;
    dp_core_block_end(s->core, s->faulted);
    dp_core_set_current(NULL);
    pthread_mutex_lock(&s->w->lock);
    dp_launch_sync_core_ended(s->w->sync, s->core);
    s->w->live--;
    pthread_mutex_unlock(&s->w->lock);
    return NULL;
}

static world *run(unsigned blocks, unsigned mix, void (*body)(seat *s)) {
    static const dp_core_host host = {park, abandon, fault};
    unsigned aic = mix != DP_MIX_AIV, aiv = mix == DP_MIX_AIC ? 0 : mix == DP_MIX_AIC_1_2 ? 2 : 1;
    world *w = calloc(1, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    w->body = body;
    w->sync = dp_launch_sync_create(blocks, mix);
    assert_non_null(w->sync);
    w->gm = aligned_alloc(512, WORKSPACE_BYTES);
    memset(w->gm, 0, WORKSPACE_BYTES);
    assert_int_equal(dp_gm_add(w->gm, WORKSPACE_BYTES, 0, NULL), DP_OK);
    for (unsigned b = 0; b < blocks; b++) {
        for (unsigned k = 0; k < aic + aiv; k++) {
            seat *s = &w->seats[w->cores++];
            s->w = w;
            s->core = dp_core_create(dp_chip_find("Ascend910B3"));
            s->core->host = &host;
            s->core->host_state = s;
            s->core->sync = w->sync;
            s->core->kind = k < aic ? DP_CORE_AIC : DP_CORE_AIV;
            s->core->block_idx = b;
            s->core->block_num = blocks;
            s->core->sub_block_idx = k < aic ? 0 : k - aic;
            s->core->sub_block_num = k < aic ? 1 : aiv;
        }
    }
    w->live = w->cores;
    for (unsigned i = 0; i < w->cores; i++)
        assert_int_equal(pthread_create(&w->seats[i].thread, NULL, run_seat, &w->seats[i]), 0);
    for (unsigned i = 0; i < w->cores; i++)
        pthread_join(w->seats[i].thread, NULL);
    return w;
}

/* Same, without the reports on stderr, which are expected. */
static world *run_quietly(unsigned blocks, unsigned mix, void (*body)(seat *s)) {
    int keep = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    world *w = run(blocks, mix, body);
    dup2(keep, 2);
    close(keep);
    close(null);
    return w;
}

static void end_world(world *w) {
    for (unsigned i = 0; i < w->cores; i++)
        dp_core_destroy(w->seats[i].core);
    dp_launch_sync_destroy(w->sync);
    dp_gm_remove(w->gm);
    free(w->gm);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void expect_clean(world *w) {
    for (unsigned i = 0; i < w->cores; i++)
        if (w->seats[i].faulted)
            fail_msg("core %u faulted: %s", i, w->seats[i].sentence);
    end_world(w);
}

static void expect_sentence(world *w, unsigned core, const char *part) {
    if (!w->seats[core].faulted || !strstr(w->seats[core].sentence, part))
        fail_msg("core %u: expected \"%s\", got \"%s\"", core, part, w->seats[core].sentence);
}

static void cross(unsigned op, unsigned mode, unsigned flag) {
    dp_insn insn = {.op = (uint16_t)op, .loc = DP_HERE};
    insn.u.sync.mode = (uint8_t)mode;
    insn.u.sync.event_id = (uint8_t)flag;
    dp_issue(&insn);
}
static dp_insn workspace(seat *s, unsigned op, uint64_t first, uint64_t second) {
    dp_insn insn = {.op = (uint16_t)op, .n_operands = 2, .mask = {first, second}, .loc = DP_HERE};
    insn.operand[0] = (dp_operand){.addr = s->w->gm, .dtype = DP_I32, .space = DP_SPACE_GM};
    insn.operand[1] = (dp_operand){.addr = s->core->memory[DP_SPACE_UB].base, .dtype = DP_I32, .space = DP_SPACE_UB};
    insn.u.sync.mode = 1;
    return insn;
}
static void issue_workspace(seat *s, unsigned op, uint64_t first, uint64_t second) {
    dp_insn insn = workspace(s, op, first, second);
    dp_issue(&insn);
}

static unsigned number(const seat *s) {
    return (unsigned)(s - s->w->seats);
}

/* Every core announces a stage; after the barrier all must have announced it. */
static void stages(seat *s, void (*barrier)(seat *s)) {
    for (int stage = 1; stage <= 30; stage++) {
        atomic_store(&s->w->stage[number(s)], stage);
        barrier(s);
        for (unsigned i = 0; i < s->w->cores; i++)
            if (atomic_load(&s->w->stage[i]) < stage)
                dp_fault(s->core, NULL, DP_HERE, "core %u has not reached stage %d", i, stage);
    }
}

static void hard_barrier(seat *s) {
    (void)s, cross(DP_OP_SYNC_ALL, 1, 0);
}
static void mixed_barrier(seat *s) {
    (void)s, cross(DP_OP_SYNC_ALL, 0, 0);
}
static void soft_barrier(seat *s) {
    issue_workspace(s, DP_OP_SYNC_ALL, 0, 0);
}
static void meet_barrier(seat *s) {
    (void)s, cross(DP_OP_CROSS_SET, 0, 3), cross(DP_OP_CROSS_WAIT, 0, 3);
}
static void hard_body(seat *s) {
    stages(s, hard_barrier);
}
static void mixed_body(seat *s) {
    stages(s, mixed_barrier);
}
static void soft_body(seat *s) {
    stages(s, soft_barrier);
}
static void meet_body(seat *s) {
    stages(s, meet_barrier);
}

static void all_cores_meet(void **state) {
    (void)state;
    expect_clean(run(8, DP_MIX_AIV, hard_body));
    expect_clean(run(8, DP_MIX_AIV, soft_body));
    expect_clean(run(8, DP_MIX_AIV, meet_body));
    expect_clean(run(1, DP_MIX_AIV, hard_body));
    expect_clean(run(4, DP_MIX_AIC_1_2, mixed_body));
    expect_clean(run(4, DP_MIX_AIC_1_1, mixed_body));
    expect_clean(run(4, DP_MIX_AIC, mixed_body));
    expect_clean(run(4, DP_MIX_AIV, mixed_body));
}

static void subset_body(seat *s) {
    if (s->core->block_idx >= 5)
        return;
    atomic_fetch_add(&s->w->stage[0], 1);
    issue_workspace(s, DP_OP_SYNC_ALL, 5, 0);
    if (atomic_load(&s->w->stage[0]) != 5)
        dp_fault(s->core, NULL, DP_HERE, "only %d of 5 have arrived", atomic_load(&s->w->stage[0]));
}
static void some_cores_meet(void **state) {
    (void)state;
    expect_clean(run(8, DP_MIX_AIV, subset_body));
}

/* Cube core and its vector cores hand a token to and fro; vector cores of a block meet among themselves (mode 1). */
static void group_body(seat *s) {
    _Atomic int *token = &s->w->stage[s->core->block_idx];
    for (int round = 0; round < ROUNDS(20); round++) {
        if (s->core->kind == DP_CORE_AIC) {
            atomic_store(token, round * 10);
            cross(DP_OP_CROSS_SET, 2, 4);
            cross(DP_OP_CROSS_WAIT, 2, 5);
            if (atomic_load(token) != round * 10 + 2)
                dp_fault(s->core, NULL, DP_HERE, "token %d in round %d", atomic_load(token), round);
            continue;
        }
        cross(DP_OP_CROSS_WAIT, 2, 4);
        atomic_fetch_add(token, 1);
        cross(DP_OP_CROSS_SET, 1, 6);
        cross(DP_OP_CROSS_WAIT, 1, 6);
        if (atomic_load(token) != round * 10 + 2)
            dp_fault(s->core, NULL, DP_HERE, "token %d in round %d after mode 1", atomic_load(token), round);
        cross(DP_OP_CROSS_SET, 2, 5);
    }
}
static void cube_and_vector_cores_take_turns(void **state) {
    (void)state;
    expect_clean(run(4, DP_MIX_AIC_1_2, group_body));
}

static void append(seat *s) {
    s->w->log[atomic_fetch_add(&s->w->log_length, 1)] = (int)s->core->block_idx;
}

/* Block b goes after block b - 1, by IBSet and IBWait. */
static void chain_body(seat *s) {
    uint32_t b = s->core->block_idx;
    for (unsigned event = 0; event < 3; event++) {
        if (b)
            issue_workspace(s, DP_OP_IB_WAIT, b - 1, event);
        else if (event)
            issue_workspace(s, DP_OP_IB_WAIT, s->core->block_num - 1, event - 1);
        append(s);
        issue_workspace(s, DP_OP_IB_SET, b, event);
    }
}
static void order_body(seat *s) {
    issue_workspace(s, DP_OP_ORDER_INIT, 0, 0);
    for (unsigned round = 0; round < 3; round++) {
        issue_workspace(s, DP_OP_ORDER_WAIT, 0, 0);
        append(s);
        issue_workspace(s, DP_OP_ORDER_NOTIFY, 0, 0);
    }
}
static void expect_order(world *w) {
    assert_int_equal(w->log_length, 3 * w->cores);
    for (int i = 0; i < w->log_length; i++)
        assert_int_equal(w->log[i], i % (int)w->cores);
    expect_clean(w);
}
static void blocks_run_in_order(void **state) {
    (void)state;
    expect_order(run(6, DP_MIX_AIV, chain_body));
    expect_order(run(6, DP_MIX_AIV, order_body));
    expect_order(run(1, DP_MIX_AIV, order_body));
}

/* Blocks 0..2 arrive, 3..8 wait; after the barrier the waiters see what all arrivers did, in every round. */
static void barrier_body(seat *s) {
    uint32_t b = s->core->block_idx;
    for (int round = 1; round <= 10; round++) {
        dp_insn insn = {.op = b < 3 ? DP_OP_GROUP_ARRIVE : DP_OP_GROUP_WAIT,
                        .n_operands = 1,
                        .mask = {b < 3 ? b : b - 3, 3},
                        .scalar_bits = 6,
                        .loc = DP_HERE};
        insn.operand[0] = (dp_operand){.addr = s->w->gm, .dtype = DP_I32, .space = DP_SPACE_GM};
        if (b < 3)
            atomic_store(&s->w->stage[b], round);
        dp_issue(&insn);
        for (int i = 0; b >= 3 && i < 3; i++)
            if (atomic_load(&s->w->stage[i]) < round)
                dp_fault(s->core, NULL, DP_HERE, "member %d has not arrived in round %d", i, round);
    }
}
static void groups_meet(void **state) {
    (void)state;
    expect_clean(run(9, DP_MIX_AIV, barrier_body));
}

static void early_return_body(seat *s) {
    if (s->core->block_idx != 2)
        cross(DP_OP_SYNC_ALL, 1, 0);
}
static void early_return_soft_body(seat *s) {
    if (s->core->block_idx != 2)
        soft_barrier(s);
}
static void unset_flag_body(seat *s) {
    if (s->core->block_idx == 1)
        cross(DP_OP_CROSS_WAIT, 0, 3);
    else
        cross(DP_OP_CROSS_SET, 0, 3);
}
static void unset_event_body(seat *s) {
    if (s->core->block_idx)
        issue_workspace(s, DP_OP_IB_WAIT, 0, 1);
    else
        issue_workspace(s, DP_OP_IB_SET, 0, 0);
}
static void lonely_cube_body(seat *s) {
    if (s->core->kind == DP_CORE_AIC || s->core->sub_block_idx == 0)
        cross(s->core->kind == DP_CORE_AIC ? DP_OP_CROSS_WAIT : DP_OP_CROSS_SET, 2, 7);
}
static void deadlocks_say_who_is_missing(void **state) {
    (void)state;
    world *w = run_quietly(4, DP_MIX_AIV, early_return_body);
    expect_sentence(w, 0, "SyncAll: deadlock between cores: block 0 waits in SyncAll for block 2 (has ended)");
    assert_false(w->seats[2].faulted);
    expect_sentence(w, 3, "block 3 waits in SyncAll");
    end_world(w);
    w = run_quietly(4, DP_MIX_AIV, early_return_soft_body);
    expect_sentence(w, 1, "block 1 waits in SyncAll for core 2 (its counter is 0, not 1)");
    end_world(w);
    w = run_quietly(3, DP_MIX_AIV, unset_flag_body);
    expect_sentence(w, 1, "block 1 waits for flag 3 (mode 0), which is not raised by block 1");
    end_world(w);
    w = run_quietly(2, DP_MIX_AIV, unset_event_body);
    expect_sentence(w, 1, "block 1 waits in IBWait for block 0 (its counter is 0, not 1)");
    end_world(w);
    w = run_quietly(1, DP_MIX_AIC_1_2, lonely_cube_body);
    expect_sentence(w, 0,
                    "the cube core of block 0 waits for flag 7 (mode 2), which is not raised by vector core 1 of block "
                    "0 (has ended)");
    end_world(w);
}

static void too_many_sets_body(seat *s) {
    for (int i = 0; i < 16; i++)
        cross(DP_OP_CROSS_SET, s->core->block_num > 1 ? 0 : 1, 2);
}
static void bad_flag_body(seat *s) {
    (void)s, cross(DP_OP_CROSS_SET, 0, 16);
}
static void bad_mode_body(seat *s) {
    (void)s, cross(DP_OP_CROSS_WAIT, 3, 1);
}
static void bad_used_body(seat *s) {
    issue_workspace(s, DP_OP_SYNC_ALL, 9, 0);
}
static void bad_block_body(seat *s) {
    issue_workspace(s, DP_OP_IB_SET, 2, 0);
}
static void negative_block_body(seat *s) {
    issue_workspace(s, DP_OP_IB_SET, (uint64_t)-1, 0);
}
static void small_workspace_body(seat *s) {
    dp_insn insn = workspace(s, DP_OP_SYNC_ALL, 0, 0);
    insn.operand[0].addr = (uint8_t *)s->w->gm + WORKSPACE_BYTES - 32;
    dp_issue(&insn);
}
static void no_launch_body(seat *s) {
    s->core->sync = NULL;
    cross(DP_OP_SYNC_ALL, 1, 0);
}
static void expect_refusal(unsigned blocks, void (*body)(seat *), const char *part) {
    world *w = run_quietly(blocks, DP_MIX_AIV, body);
    expect_sentence(w, 0, part);
    end_world(w);
}
static void misuse_is_refused(void **state) {
    (void)state;
    expect_refusal(1, too_many_sets_body, "raised for the 16th time");
    expect_refusal(2, bad_flag_body, "flag 16 does not exist");
    expect_refusal(2, bad_mode_body, "mode 3 does not exist");
    expect_refusal(2, bad_used_body, "usedCores is 9, but the launch has 2 vector cores");
    expect_refusal(2, bad_block_body, "blockIdx is 2: the launch has blocks 0 to 1");
    expect_refusal(2, negative_block_body, "blockIdx is -1");
    expect_refusal(2, small_workspace_body, "past its end");
    expect_refusal(1, no_launch_body, "without cross-core flags");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_cores_meet),
        cmocka_unit_test(some_cores_meet),
        cmocka_unit_test(cube_and_vector_cores_take_turns),
        cmocka_unit_test(blocks_run_in_order),
        cmocka_unit_test(groups_meet),
        cmocka_unit_test(deadlocks_say_who_is_missing),
        cmocka_unit_test(misuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
