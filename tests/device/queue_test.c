/* The queue machine: states, implied flags, memory layout, and a fault with a useful sentence for every misuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "device/exec.h"
#include "device/queue.h"
#include "doppel/kernel_rt.h"

enum { GM = 0, VECIN = 9, VECOUT = 10, VECCALC = 11 };

static jmp_buf left;
static char sentence[1024];
static int pipe_object;

static __attribute__((noreturn)) void abandon(dp_core *core) {
    (void)core;
    longjmp(left, 1);
}
static void fault(dp_core *core, dp_loc loc, const char *text) {
    (void)core, (void)loc;
    snprintf(sentence, sizeof sentence, "%s", text);
}
static dp_core_host host;

/* A block that runs on the test's own stack. */
static dp_core *begin(void) {
    host.abandon = abandon;
    host.fault = fault;
    dp_core *core = dp_core_create(dp_chip_find("Ascend910B3"));
    assert_non_null(core);
    core->host = &host;
    core->block_num = 1;
    core->sub_block_num = 1;
    dp_core_set_current(core);
    dp_core_block_begin(core);
    dp_pipe_init(&pipe_object, DP_HERE);
    return core;
}

static void end(dp_core *core) {
    dp_core_block_end(core, false);
    dp_core_set_current(NULL);
    dp_core_destroy(core);
}

/* Runs the statement; passes when it faults with a sentence that contains every one of the words. */
#define assert_fault(statement, ...)                                                                                   \
    do {                                                                                                               \
        sentence[0] = 0;                                                                                               \
        if (setjmp(left) == 0) {                                                                                       \
            statement;                                                                                                 \
            fail_msg("no fault from: %s", #statement);                                                                 \
        }                                                                                                              \
        const char *const words[] = {__VA_ARGS__};                                                                     \
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {                                                    \
            if (!strstr(sentence, words[w]))                                                                           \
                fail_msg("\"%s\" is not in the sentence: %s", words[w], sentence);                                     \
        }                                                                                                              \
    } while (0)

static const dp_queue_shape in_shape = {.src_position = GM, .dst_position = VECIN, .space = DP_SPACE_UB, .depth = 2};
static const dp_queue_shape out_shape = {.src_position = VECOUT, .dst_position = GM, .space = DP_SPACE_UB, .depth = 1};
static const dp_pipe_pair own = {DP_PAIR_OWN, DP_PAIR_OWN};

static void a_tensor_goes_round(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_queue_handle q = dp_queue_init(in_shape, 0, 2, 100, DP_HERE);
    for (int round = 0; round < 1000; round++) {
        dp_buffer_view a = dp_queue_alloc(q, DP_HERE), b = dp_queue_alloc(q, DP_HERE);
        assert_int_equal(a.size_bytes, 128); /* 100 rounded up to a block */
        assert_ptr_not_equal(a.addr, b.addr);
        assert_int_equal(core->flags[DP_PIPE_V][DP_PIPE_MTE2], 0); /* both free events were waited for */
        dp_queue_enque(q, b.buffer_id, own, DP_HERE);
        dp_queue_enque(q, a.buffer_id, own, DP_HERE);
        assert_int_equal(core->flags[DP_PIPE_MTE2][DP_PIPE_V], 3);
        assert_int_equal(dp_queue_open_entries(q, DP_HERE), 2);
        assert_false(dp_queue_has_idle(q, DP_HERE));
        assert_int_equal(dp_queue_deque(q, own, DP_HERE).buffer_id, b.buffer_id); /* oldest first */
        assert_int_equal(dp_queue_deque(q, own, DP_HERE).buffer_id, a.buffer_id);
        assert_int_equal(core->flags[DP_PIPE_MTE2][DP_PIPE_V], 0);
        assert_int_equal(dp_queue_buffer_state(q, a.buffer_id, DP_HERE), DP_BUFFER_DEQUE);
        dp_queue_free(q, a.buffer_id, DP_HERE);
        dp_queue_free(q, b.buffer_id, DP_HERE);
        assert_int_equal(core->flags[DP_PIPE_V][DP_PIPE_MTE2], 3);
    }
    dp_pipe_destroy(&pipe_object, DP_HERE);
    assert_int_equal(core->flags[DP_PIPE_V][DP_PIPE_MTE2], 0); /* Destroy waits for the open free events */
    end(core);
}

static void alloc_with_nothing_free(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_queue_handle q = dp_queue_init(in_shape, 0, 2, 64, DP_HERE);
    dp_queue_alloc(q, DP_HERE);
    dp_buffer_view b = dp_queue_alloc(q, DP_HERE);
    dp_queue_enque(q, b.buffer_id, own, DP_HERE);
    assert_fault(dp_queue_alloc(q, DP_HERE), "AllocTensor", "VECIN", "2 buffers", "depth 2", "1 allocated", "1 in the queue",
                 "FreeTensor", "queue_test.c");
    end(core);
}

static void free_twice_and_in_the_wrong_state(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_queue_handle q = dp_queue_init(in_shape, 0, 1, 64, DP_HERE);
    dp_buffer_view a = dp_queue_alloc(q, DP_HERE);
    dp_queue_enque(q, a.buffer_id, own, DP_HERE);
    assert_fault(dp_queue_free(q, a.buffer_id, DP_HERE), "FreeTensor", "in the queue", "DeQue");
    assert_fault(dp_queue_enque(q, a.buffer_id, own, DP_HERE), "EnQue", "in the queue", "once");
    dp_queue_deque(q, own, DP_HERE);
    dp_queue_free(q, a.buffer_id, DP_HERE);
    assert_fault(dp_queue_free(q, a.buffer_id, DP_HERE), "FreeTensor", "is free since", "once");
    assert_fault(dp_queue_enque(q, a.buffer_id, own, DP_HERE), "EnQue", "free", "AllocTensor");
    end(core);
}

static void foreign_tensors(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_queue_handle in = dp_queue_init(in_shape, 0, 1, 64, DP_HERE), out = dp_queue_init(out_shape, 0, 1, 64, DP_HERE);
    dp_buffer_view scratch = dp_tbuf_init(VECCALC, DP_SPACE_UB, 0, 64, DP_HERE);
    dp_buffer_view a = dp_queue_alloc(in, DP_HERE);
    assert_fault(dp_queue_free(out, a.buffer_id, DP_HERE), "FreeTensor", "VECIN buffer 1 of 1", "VECOUT queue");
    assert_fault(dp_queue_enque(out, a.buffer_id, own, DP_HERE), "EnQue", "does not belong");
    assert_fault(dp_queue_enque(in, scratch.buffer_id, own, DP_HERE), "TBuf");
    assert_fault(dp_queue_enque(in, 0, own, DP_HERE), "does not come from a queue");
    end(core);
}

static void empty_full_and_mismatched_queues(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_queue_handle out = dp_queue_init(out_shape, 0, 2, 64, DP_HERE);
    assert_fault(dp_queue_deque(out, own, DP_HERE), "DeQue", "VECOUT", "is empty", "hang");
    dp_buffer_view a = dp_queue_alloc(out, DP_HERE), b = dp_queue_alloc(out, DP_HERE);
    dp_queue_enque(out, a.buffer_id, own, DP_HERE);
    assert_fault(dp_queue_enque(out, b.buffer_id, own, DP_HERE), "EnQue", "already holds 1 tensor", "depth");
    static const dp_pipe_pair other = {DP_PIPE_MTE2, DP_PIPE_V};
    assert_fault(dp_queue_deque(out, other, DP_HERE), "DeQue", "V->MTE3", "MTE2->V");
    end(core);
}

static void queues_without_buffers(void **state) {
    (void)state;
    dp_core *core = begin();
    assert_fault(dp_queue_alloc(0, DP_HERE), "AllocTensor", "no buffers", "InitBuffer");
    dp_queue_handle q = dp_queue_init(in_shape, 0, 1, 64, DP_HERE);
    dp_pipe_reset(&pipe_object, DP_HERE);
    assert_fault(dp_queue_alloc(q, DP_HERE), "gone since", "InitBuffer");
    dp_pipe_destroy(&pipe_object, DP_HERE);
    assert_fault(dp_queue_init(in_shape, 0, 1, 64, DP_HERE), "no TPipe");
    end(core);
}

static void memory_limits(void **state) {
    (void)state;
    dp_core *core = begin();
    uint32_t usable = core->chip->ub_reserved_offset;
    dp_queue_init(in_shape, 0, 2, 65536, DP_HERE);
    char left_text[64];
    snprintf(left_text, sizeof left_text, "%u of %u bytes are left", usable - 131072, usable);
    assert_fault(dp_queue_init(out_shape, 0, 1, 65536, DP_HERE), "InitBuffer", "65536 bytes of UB", left_text, "131072 taken");
    dp_tbuf_init(VECCALC, DP_SPACE_UB, 0, usable - 131072, DP_HERE); /* exactly full */
    assert_fault(dp_tbuf_init(VECCALC, DP_SPACE_UB, 0, 1, DP_HERE), "0 of");
    assert_fault(dp_queue_init(in_shape, 0, 0, 64, DP_HERE), "at least 1");
    dp_queue_shape gm = {.src_position = GM, .dst_position = GM, .space = DP_SPACE_GM, .depth = 1};
    assert_fault(dp_queue_init(gm, 0, 1, 64, DP_HERE), "GM");
    dp_pipe_reset(&pipe_object, DP_HERE);
    for (int i = 0; i < 64; i++)
        dp_tbuf_init(VECCALC, DP_SPACE_UB, 0, 32, DP_HERE);
    assert_fault(dp_tbuf_init(VECCALC, DP_SPACE_UB, 0, 32, DP_HERE), "64 buffers");
    end(core);
}

static void variables_and_queues_meet(void **state) {
    (void)state;
    dp_core *core = begin();
    uint32_t usable = core->chip->ub_reserved_offset;
    dp_local_array_begin(DP_SPACE_UB, 1024, DP_HERE);
    assert_fault(dp_tbuf_init(VECCALC, DP_SPACE_UB, 0, usable, DP_HERE), "1024 by variables");
    dp_tbuf_init(VECCALC, DP_SPACE_UB, 0, usable - 1024, DP_HERE);
    assert_fault(dp_local_array_begin(DP_SPACE_UB, 32, DP_HERE), "does not fit in UB", "0 of");
    end(core);
}

static void event_ids(void **state) {
    (void)state;
    dp_core *core = begin();
    static const dp_pipe_pair pair = {DP_PIPE_S, DP_PIPE_MTE2};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(dp_event_fetch(pair, DP_HERE), i);
        assert_int_equal(dp_event_alloc(pair, DP_HERE), i);
    }
    assert_fault(dp_event_alloc(pair, DP_HERE), "all 8 event ids", "S->MTE2");
    assert_fault(dp_event_fetch(pair, DP_HERE), "all 8 event ids");
    dp_event_release(pair, 5, DP_HERE);
    assert_int_equal(dp_event_fetch(pair, DP_HERE), 5);
    assert_fault(dp_event_release(pair, 5, DP_HERE), "not reserved");
    assert_fault(dp_event_release(pair, 8, DP_HERE), "does not exist");
    end(core);
}

static void ids_run_out_with_nine_buffers_in_flight(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_queue_shape wide = in_shape;
    wide.depth = 16;
    dp_queue_handle q = dp_queue_init(wide, 0, 9, 64, DP_HERE);
    for (int i = 0; i < 8; i++)
        dp_queue_enque(q, dp_queue_alloc(q, DP_HERE).buffer_id, own, DP_HERE);
    uint32_t ninth = dp_queue_alloc(q, DP_HERE).buffer_id;
    assert_fault(dp_queue_enque(q, ninth, own, DP_HERE), "all 8 event ids", "MTE2->V");
    end(core);
}

static void pools(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_pool_handle a = dp_pool_init(DP_SPACE_UB, 0, 0, 4096, 2, DP_HERE);
    dp_pool_handle b = dp_pool_init(DP_SPACE_UB, 0, a, 2048, 4, DP_HERE);
    dp_queue_handle q = dp_queue_init(in_shape, a, 2, 1024, DP_HERE);
    dp_buffer_view t = dp_tbuf_init(VECCALC, DP_SPACE_UB, b, 1024, DP_HERE);
    assert_ptr_equal(t.addr, dp_queue_alloc(q, DP_HERE).addr); /* shared memory */
    assert_fault(dp_tbuf_init(VECCALC, DP_SPACE_UB, b, 2048, DP_HERE), "left in the pool");
    assert_fault(dp_tbuf_init(VECCALC, DP_SPACE_UB, a, 32, DP_HERE), "already has its 2 buffers");
    assert_fault(dp_pool_init(DP_SPACE_UB, 0, a, 8192, 4, DP_HERE), "do not fit on the shared pool");
    dp_pool_reset(a, DP_HERE);
    assert_fault(dp_queue_alloc(q, DP_HERE), "gone since");
    dp_queue_init(in_shape, a, 1, 4096, DP_HERE);
    assert_fault(dp_pool_reset(0, DP_HERE), "InitBufPool");
    end(core);
}

static void pools_the_user_divides(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_pool_handle pool = dp_pool_init(DP_SPACE_UB, 0, 0, 4096, 3, DP_HERE);
    dp_queue_handle q = dp_queue_announce(in_shape, 2, 1024, DP_HERE);
    assert_fault(dp_queue_place(q, pool, 1, 0, 1024, DP_HERE), "index is 1", "next buffer of the queue is 0 of 2");
    assert_fault(dp_queue_place(q, 0, 0, 0, 1024, DP_HERE), "InitBufPool");
    assert_fault(dp_queue_place(q, pool, 0, 3104, 1024, DP_HERE), "1024 bytes at address 3104", "4096 bytes");
    assert_fault(dp_queue_place(q, pool, 0, UINT32_MAX - 31, 64, DP_HERE), "does not lie in the pool");
    assert_fault(dp_queue_place(q, pool, 0, 16, 1024, DP_HERE), "steps of 32");
    assert_fault(dp_queue_place(q, pool, 0, 0, 0, DP_HERE), "0 bytes");
    assert_fault(dp_queue_place(0, pool, 0, 0, 32, DP_HERE), "InitStartBufHandle");
    dp_queue_place(q, pool, 0, 3072, 1024, DP_HERE);
    dp_queue_place(q, pool, 1, 0, 1000, DP_HERE);
    assert_fault(dp_queue_place(q, pool, 2, 1024, 32, DP_HERE), "index is 2");
    dp_buffer_view first = dp_queue_alloc(q, DP_HERE), second = dp_queue_alloc(q, DP_HERE);
    assert_int_equal((uint8_t *)first.addr - (uint8_t *)second.addr, 3072);
    assert_int_equal(second.size_bytes, 1024); /* in blocks of 32 */
    dp_buffer_view shared = dp_tbuf_place(VECCALC, DP_SPACE_UB, pool, 3072, 64, DP_HERE);
    assert_ptr_equal(shared.addr, first.addr);
    assert_fault(dp_tbuf_place(VECCALC, DP_SPACE_UB, pool, 0, 32, DP_HERE), "already has its 3 buffers");
    dp_pool_reset(pool, DP_HERE);
    assert_fault(dp_queue_place(q, pool, 0, 0, 32, DP_HERE), "InitStartBufHandle");
    assert_fault(dp_queue_announce(in_shape, 0, 32, DP_HERE), "at least 1");
    end(core);
}

static unsigned leaks;
static void count_leak(void *context, const dp_buffer_info *info) {
    (void)context;
    assert_int_equal(info->state, DP_BUFFER_OCCUPIED);
    assert_true(info->last.line > 0);
    leaks++;
}

static void leaks_stay_visible(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_queue_handle q = dp_queue_init(in_shape, 0, 2, 64, DP_HERE);
    dp_queue_alloc(q, DP_HERE);
    leaks = 0;
    dp_queue_leaks(core, count_leak, NULL);
    assert_int_equal(leaks, 1);
    dp_pipe_destroy(&pipe_object, DP_HERE);
    dp_core_block_end(core, false);
    leaks = 0;
    dp_queue_leaks(core, count_leak, NULL);
    assert_int_equal(leaks, 1);
    dp_core_block_begin(core);
    leaks = 0;
    dp_queue_leaks(core, count_leak, NULL);
    assert_int_equal(leaks, 0);
    end(core);
}

static void a_second_pipe(void **state) {
    (void)state;
    dp_core *core = begin();
    int other;
    dp_pipe_init(&other, DP_HERE); /* nothing laid out yet: the newer one takes over */
    dp_pipe_destroy(&pipe_object, DP_HERE);
    assert_ptr_equal(dp_pipe_object(), &other);
    dp_tbuf_init(VECCALC, DP_SPACE_UB, 0, 64, DP_HERE);
    assert_fault(dp_pipe_init(&pipe_object, DP_HERE), "still owns 1 buffers", "Destroy");
    end(core);
}

/* With an observer the same steps appear as instructions, flags marked as implied, in program order. */
static dp_op seen[64];
static unsigned n_seen, n_implied;
static bool before(dp_core *core, dp_insn *insn) {
    (void)core;
    seen[n_seen++ % 64] = (dp_op)insn->op;
    if (insn->op == DP_OP_SET_FLAG || insn->op == DP_OP_WAIT_FLAG)
        n_implied += insn->u.sync.implied;
    return true;
}

static void observers_see_every_step(void **state) {
    (void)state;
    static const dp_observer observer = {.name = "test", .before = before};
    dp_observer_install(&observer);
    dp_core *core = begin();
    dp_queue_handle q = dp_queue_init(in_shape, 0, 1, 64, DP_HERE);
    n_seen = n_implied = 0;
    for (int i = 0; i < 2; i++) {
        uint32_t id = dp_queue_alloc(q, DP_HERE).buffer_id;
        dp_queue_enque(q, id, own, DP_HERE);
        dp_queue_deque(q, own, DP_HERE);
        dp_queue_free(q, id, DP_HERE);
    }
    static const dp_op expected[] = {DP_OP_QUE_ALLOC, DP_OP_QUE_ENQUE, DP_OP_SET_FLAG, DP_OP_QUE_DEQUE, DP_OP_WAIT_FLAG,
                                     DP_OP_QUE_FREE, DP_OP_SET_FLAG, DP_OP_QUE_ALLOC, DP_OP_WAIT_FLAG};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(seen[i], expected[i]);
    assert_int_equal(n_implied, 7);
    end(core);
    dp_observer_install(NULL);
}

static void addresses_and_names(void **state) {
    (void)state;
    dp_core *core = begin();
    dp_buffer_view t = dp_tbuf_init(VECCALC, DP_SPACE_UB, 0, 96, DP_HERE);
    dp_buffer_info info;
    assert_true(dp_buffer_find_at(core, DP_SPACE_UB, (uint8_t *)t.addr + 95, &info));
    assert_int_equal(info.buffer_id, t.buffer_id);
    assert_false(dp_buffer_find_at(core, DP_SPACE_UB, (uint8_t *)t.addr + 96, &info));
    dp_buffer_tag_set(t.buffer_id, 77);
    assert_int_equal(dp_buffer_tag(t.buffer_id), 77);
    assert_int_equal(dp_buffer_tag(0), 0);
    assert_ptr_equal(dp_local_address(DP_SPACE_UB, 32, 32, DP_HERE), core->memory[DP_SPACE_UB].base + 32);
    assert_fault(dp_local_address(DP_SPACE_UB, 1u << 20, 32, DP_HERE), "does not fit in UB");
    assert_fault(dp_local_address(DP_SPACE_GM, 0, 32, DP_HERE), "GM is not a memory of the core");
    assert_fault(dp_tbuf_fault(64, 0, 32, DP_HERE), "64 bytes from offset 0", "32 bytes");
    assert_fault(dp_tbuf_fault(64, 0, 0, DP_HERE), "InitBuffer");
    end(core);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_goes_round),
        cmocka_unit_test(alloc_with_nothing_free),
        cmocka_unit_test(free_twice_and_in_the_wrong_state),
        cmocka_unit_test(foreign_tensors),
        cmocka_unit_test(empty_full_and_mismatched_queues),
        cmocka_unit_test(queues_without_buffers),
        cmocka_unit_test(memory_limits),
        cmocka_unit_test(variables_and_queues_meet),
        cmocka_unit_test(event_ids),
        cmocka_unit_test(ids_run_out_with_nine_buffers_in_flight),
        cmocka_unit_test(pools),
        cmocka_unit_test(pools_the_user_divides),
        cmocka_unit_test(leaks_stay_visible),
        cmocka_unit_test(a_second_pipe),
        cmocka_unit_test(observers_see_every_step),
        cmocka_unit_test(addresses_and_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
