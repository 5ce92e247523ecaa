/*
 * The short forms of doppel/count.h against the instructions they stand for: random operands, legal and not, on a core nobody
 * observes and on one that is observed and so builds the instruction. Memory, registers and faults must agree.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "device/count.h"

enum { ARENA_BYTES = 16384, GM_BYTES = 8192, ROUNDS = 40000 };

typedef struct side {
    dp_core *core;
    uint8_t *gm; /* GM_BYTES of device memory */
    char sentence[512];
} side;

static jmp_buf left;
static side *running;
static int own_stderr, no_stderr; /* thousands of faults are no news */

static __attribute__((noreturn)) void abandon(dp_core *core) {
    (void)core;
    longjmp(left, 1);
}
static void fault(dp_core *core, dp_loc loc, const char *sentence) {
    (void)core, (void)loc;
    snprintf(running->sentence, sizeof running->sentence, "%s", sentence);
}

static const dp_core_host host = {.abandon = abandon, .fault = fault};
static const dp_observer onlooker = {.name = "onlooker", .prints_faults = true};
static dp_launch_info launch = {.kernel = {.name = "count"}};

static void open_side(side *s, const dp_observer *observer) {
    s->core = dp_core_create(dp_chip_find("Ascend910B3"));
    assert_non_null(s->core);
    s->core->host = &host;
    s->core->launch = &launch;
    dp_core_block_begin(s->core);
    s->core->observer = observer;
    uint64_t id;
    s->gm = calloc(1, GM_BYTES);
    assert_non_null(s->gm);
    assert_int_equal(dp_gm_add(s->gm, GM_BYTES, 0, &id), DP_OK);
}

static void close_side(side *s) {
    dp_gm_remove(s->gm);
    free(s->gm);
    dp_core_destroy(s->core);
}

/* One call, its operands as offsets into UB. */
typedef struct call {
    unsigned form;
    uint32_t code, n;
    uint64_t bits, index;
    struct {
        uint32_t offset, size_bytes, space;
    } at[3];
} call;

enum { UNARY, BINARY, SCALAR, CAST, FILL, REDUCE, GET, SET, COPY_IN, COPY_OUT, FORMS };

static uint64_t state = 88172645463325252ull;
static uint32_t below(uint32_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 20) % n;
}

static uint32_t an_op(unsigned form) {
    switch (form) {
    case UNARY: return DP_OP_ABS + below(DP_OP_NOT - DP_OP_ABS + 1);
    case BINARY: return below(3) ? DP_OP_ADD + below(DP_OP_SUB_RELU - DP_OP_ADD + 1) : DP_OP_MUL_ADD_DST + below(3);
    case SCALAR: return below(6) ? DP_OP_ADDS + below(DP_OP_LEAKY_RELU - DP_OP_ADDS + 2) : DP_OP_AXPY;
    case CAST: return DP_OP_CAST;
    case FILL: return DP_OP_DUPLICATE;
    default: return DP_OP_REDUCE_SUM + below(3);
    }
}

/* Mostly legal: a fault in every other call would test little else. */
static call a_call(void) {
    call c = {.form = below(FORMS), .index = below(80), .bits = below(8) ? 0x3f803c00u + below(1024) : below(UINT32_MAX)};
    static const uint8_t types[] = {DP_F32, DP_F32, DP_F16, DP_F16, DP_I16, DP_I32};
    unsigned dst = below(12) ? types[below(6)] : below(DP_DTYPE_COUNT), src = dst;
    if (c.form == CAST || below(40) == 0)
        src = below(3) ? types[below(6)] : below(DP_DTYPE_COUNT);
    c.code = DP_COUNT_CODE(an_op(c.form), dst, src, c.form == CAST ? below(8) : 0);
    c.n = below(30) == 0 ? below(2) * UINT32_MAX : below(4) ? 64 * (1 + below(12)) : 1 + below(600);
    bool in_place = below(4) == 0;
    for (unsigned k = 0; k < 3; k++) {
        c.at[k].offset = in_place && k < 2 ? 4096 : k * 5120 + (below(40) ? 0 : 4096);
        c.at[k].offset += below(25) ? 0 : below(64);
        c.at[k].size_bytes = below(25) ? 4096 : below(2) * c.n * 2;
        c.at[k].space = below(60) ? DP_SPACE_UB : below(DP_SPACE_COUNT + 1);
    }
    return c;
}

static void make(const call *c, const side *s, uint64_t *out_value) {
    dp_local t[3];
    const dp_loc loc = {"count", 1};
    for (unsigned k = 0; k < 3; k++)
        t[k] = (dp_local){.addr = s->core->memory[DP_SPACE_UB].base + c->at[k].offset,
                          .size_bytes = c->at[k].size_bytes,
                          .space = (uint8_t)c->at[k].space};
    switch (c->form) {
    case UNARY: dp_count_unary(c->code, &t[0], &t[1], c->n, loc); break;
    case BINARY: dp_count_binary(c->code, &t[0], &t[1], &t[2], c->n, loc); break;
    case SCALAR: dp_count_scalar(c->code, &t[0], &t[1], c->bits, c->n, loc); break;
    case CAST: dp_count_cast(c->code, &t[0], &t[1], c->n, loc); break;
    case FILL: dp_count_fill(c->code, &t[0], c->bits, c->n, loc); break;
    case REDUCE: dp_count_reduce(c->code, &t[0], &t[1], &t[2], c->n, loc); break;
    case GET: *out_value = dp_local_get(dp_code_dst(c->code), &t[0], c->index, loc); break;
    case COPY_IN: dp_count_copy_in(dp_code_dst(c->code), &t[0], s->gm + c->index * 16, 0, c->n * 4, loc); break;
    case COPY_OUT: dp_count_copy_out(dp_code_dst(c->code), s->gm + c->index * 16, 0, &t[0], c->n * 4, loc); break;
    default: dp_local_set(dp_code_dst(c->code), &t[0], c->index, c->bits, loc); break;
    }
}

/* false: the call faulted. */
static bool attempt(const call *c, side *s, uint64_t *out_value) {
    running = s;
    s->sentence[0] = 0;
    *out_value = 0;
    dup2(no_stderr, STDERR_FILENO);
    dp_core_set_current(s->core);
    if (setjmp(left) == 0)
        make(c, s, out_value);
    dp_core_set_current(NULL);
    dup2(own_stderr, STDERR_FILENO);
    return !s->sentence[0];
}

/* Addresses and numbers of allocations in a sentence differ from core to core. */
static void assert_same_sentence(const side *a, const side *b) {
    const char *x = a->sentence, *y = b->sentence;
    while (*x && *x == *y)
        x++, y++;
    if (*x != *y && !strstr(a->sentence, "address") && !strstr(a->sentence, "(number "))
        fail_msg("the faults differ:\n  %s\n  %s", a->sentence, b->sentence);
}

static void short_forms_do_what_the_instruction_does(void **unused) {
    (void)unused;
    side quiet, observed;
    open_side(&quiet, NULL);
    open_side(&observed, &onlooker);
    unsigned done = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint8_t *ub = quiet.core->memory[DP_SPACE_UB].base, *other = observed.core->memory[DP_SPACE_UB].base;
        if (round % 16 == 0) { /* results of results soon are all the same */
            for (unsigned i = 0; i < ARENA_BYTES / 2; i++)
                ((uint16_t *)(void *)ub)[i] = (uint16_t)(below(20) ? 0x3c00 + below(2048) : below(65536));
            memcpy(other, ub, ARENA_BYTES);
            quiet.core->counter_mode = observed.core->counter_mode = (uint8_t)below(2);
            quiet.core->atomic_op = observed.core->atomic_op = (uint8_t)(below(4) == 0);
            quiet.core->atomic_dtype = observed.core->atomic_dtype = DP_F32;
            quiet.core->mask[0] = observed.core->mask[0] = below(256);
        }
        call c = a_call();
        uint64_t value, expected;
        bool fine = attempt(&c, &quiet, &value);
        assert_int_equal(fine, attempt(&c, &observed, &expected));
        assert_same_sentence(&quiet, &observed);
        assert_int_equal(value, expected);
        assert_memory_equal(ub, other, ARENA_BYTES);
        assert_memory_equal(quiet.gm, observed.gm, GM_BYTES);
        assert_memory_equal(quiet.core->mask, observed.core->mask, sizeof quiet.core->mask);
        assert_int_equal(quiet.core->counter_mode, observed.core->counter_mode);
        assert_int_equal(quiet.core->acc_value, observed.core->acc_value);
        assert_memory_equal(quiet.core->reduce_value, observed.core->reduce_value, sizeof quiet.core->reduce_value);
        assert_int_equal(quiet.core->issued, observed.core->issued);
        done += fine;
    }
    assert_in_range(done, ROUNDS / 4, ROUNDS - ROUNDS / 20); /* both kinds were met */
    close_side(&quiet);
    close_side(&observed);
}

int main(void) {
    own_stderr = dup(STDERR_FILENO);
    no_stderr = open("/dev/null", O_WRONLY);
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_forms_do_what_the_instruction_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
