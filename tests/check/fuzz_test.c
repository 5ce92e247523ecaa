/*
 * Nonsense under the checker: random instructions with random operands, most of them illegal. Nothing may crash, and an
 * instruction that the device accepts without the checker must be accepted with it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/check/check.h"
#include "device/check/finding.h"
#include "device/exec.h"
#include "device/gm.h"

static jmp_buf block_exit;
static uint64_t seed = 88172645463325252ull;

static uint32_t rnd(uint32_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 24) % below;
}

static bool park(dp_core *core, const dp_wait *wait) {
    (void)core;
    return wait->ready(wait->context);
}
static void abandon(dp_core *core) __attribute__((noreturn));
static void abandon(dp_core *core) {
    (void)core;
    longjmp(block_exit, 1);
}

enum { GM_BYTES = 1 << 16 };

static void *random_address(const dp_core *core, const uint8_t *gm, unsigned space) {
    uint32_t size = space == DP_SPACE_GM ? GM_BYTES : core->memory[space].size_bytes;
    const uint8_t *base = space == DP_SPACE_GM ? gm : core->memory[space].base;
    if (!base)
        base = (const uint8_t *)(uintptr_t)4096; /* a memory this chip does not have */
    switch (rnd(16)) {
    case 0:
        return (void *)(uintptr_t)64; /* not NULL: adding to it would be undefined, and sanitizers say so */
    case 1:
        return (void *)(uintptr_t)(((uint64_t)rnd(1u << 31) << 20) | rnd(1u << 20)); /* anywhere */
    case 2:
        return (void *)((uintptr_t)base - rnd(256));
    case 3:
        return (void *)((uintptr_t)base + size - rnd(512));
    case 4:
        return (void *)((uintptr_t)base + rnd(size ? size : 1)); /* not aligned */
    default:
        return (void *)((uintptr_t)base + (size ? rnd(size) / 32 * 32 : 0));
    }
}

static dp_insn random_insn(const dp_core *core, const uint8_t *gm) {
    dp_insn insn = {.op = (uint16_t)rnd(DP_OP_COUNT), .loc = {__FILE__, 1 + rnd(50)}};
    insn.mask_kind = (uint8_t)rnd(5);
    insn.n_operands = (uint8_t)rnd(5);
    insn.repeat = rnd(8) ? rnd(12) : rnd(400);
    for (unsigned i = 0; i < 2; i++)
        insn.mask[i] = rnd(2) ? rnd(300) : ((uint64_t)rnd(~0u) << 32 | rnd(~0u));
    insn.scalar_bits = rnd(~0u);
    static const uint8_t types[] = {DP_F32, DP_F16, DP_I32, DP_I16};
    uint8_t type = types[rnd(4)];
    for (unsigned k = 0; k < 4; k++) {
        dp_operand *o = &insn.operand[k];
        o->space = rnd(10) ? (k < 2 && rnd(3) == 0 ? DP_SPACE_GM : DP_SPACE_UB) : (uint8_t)rnd(DP_SPACE_COUNT + 2);
        o->addr = random_address(core, gm, o->space < DP_SPACE_COUNT ? o->space : DP_SPACE_GM);
        o->size_bytes = rnd(3) ? 0 : rnd(70000);
        o->buffer_id = rnd(8) ? 0 : rnd(300);
        o->block_stride = rnd(3) ? 1 : (uint16_t)rnd(12);
        o->repeat_stride = rnd(3) ? 8 : (uint16_t)rnd(300);
        o->dtype = rnd(6) ? type : (uint8_t)rnd(DP_DTYPE_COUNT + 2);
    }
    uint8_t *u = (uint8_t *)&insn.u;
    for (size_t i = 0; i < sizeof insn.u; i++)
        u[i] = rnd(3) ? (uint8_t)rnd(4) : (uint8_t)rnd(256);
    dp_family family = dp_insn_family(insn.op);
    if (family == DP_FAMILY_COPY_ND2NZ || family == DP_FAMILY_COPY_NZ2ND || family == DP_FAMILY_FILL_SPACE) {
        uint32_t words[sizeof insn.u / 4];
        for (size_t i = 0; i < sizeof words / 4; i++)
            words[i] = rnd(20);
        memcpy(&insn.u, words, sizeof words);
    }
    if (family == DP_FAMILY_COPY) {
        insn.u.copy = (dp_copy_params){.block_count = rnd(5), .block_bytes = rnd(600), .src_gap_bytes = (int64_t)rnd(200),
                                       .dst_gap_bytes = (int64_t)rnd(8) * 32, .pad_form = (uint8_t)rnd(2),
                                       .is_pad = (uint8_t)rnd(2), .left_pad = (uint8_t)rnd(8), .right_pad = (uint8_t)rnd(8)};
    }
    return insn;
}

/* Runs one instruction in a block of its own or in the running one; true if it was accepted. */
static bool try_insn(const dp_insn *asked) {
    dp_insn insn = *asked;
    if (setjmp(block_exit))
        return false;
    dp_issue(&insn);
    return true;
}

/* The device prints a sentence for each refusal. */
static int silence(void) {
    int saved = dup(STDERR_FILENO);
    if (!freopen("/dev/null", "w", stderr))
        abort();
    return saved;
}
static void speak(int saved) {
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

static void run(unsigned blocks, unsigned per_block) {
    static const dp_core_host host = {.park = park, .abandon = abandon};
    uint8_t *gm = aligned_alloc(512, GM_BYTES);
    memset(gm, 0, GM_BYTES);
    dp_core *core = dp_core_create(dp_chip_find("Ascend910B3"));
    assert_non_null(core);
    assert_int_equal(dp_gm_add(gm, GM_BYTES, 0, NULL), DP_OK);
    dp_launch_info launch = {.id = 1, .kernel = {.name = "fuzz"}, .blocks = blocks};
    const dp_observer *checker = dp_observer_current();
    unsigned accepted = 0, refused = 0;
    checker->launch_begin(&launch);
    for (unsigned b = 0; b < blocks; b++) {
        core->kind = DP_CORE_AIV;
        core->block_idx = core->core_index = b;
        core->block_num = blocks;
        core->sub_block_num = 1;
        core->launch = &launch;
        core->host = &host;
        dp_core_set_current(core);
        dp_core_block_begin(core);
        for (unsigned i = 0; i < per_block; i++) {
            dp_insn insn = random_insn(core, gm);
            dp_family family = dp_insn_family(insn.op);
            if (family == DP_FAMILY_CROSS || family == DP_FAMILY_QUEUE || insn.op == DP_OP_TRANS_DATA_TO_5HD ||
                insn.op == DP_OP_SET_MASK_MODE)
                continue; /* need their own state; its scalar is a pointer of the kernel face; in counter
                           * mode a mask is a count, and random ones take for ever */
            if (try_insn(&insn))
                accepted++;
            else
                refused++;
        }
        dp_core_block_end(core, rnd(2));
        dp_core_set_current(NULL);
    }
    checker->launch_end(&launch);
    assert_true(accepted > 0 && refused > 0);
    dp_gm_remove(gm);
    dp_core_destroy(core);
    free(gm);
}

static void test_nonsense(void **state) {
    (void)state;
    int saved = silence();
    run(40, 1500);
    speak(saved);
    assert_true(dp_check_finding_count() > 10);
    dp_finding f;
    for (unsigned i = 0; dp_finding_at(i, &f); i++) {
        assert_true(f.kind < DP_CHECK_KIND_COUNT);
        assert_true(f.sentence[0]);
        assert_true(strlen(f.memory) < sizeof f.memory && strlen(f.cure) < sizeof f.cure);
    }
}

int main(void) {
    setenv("DOPPEL_CHECK_DIR", "/nonexistent/doppel", 1); /* nowhere to write: no report, no crash */
    setenv("DOPPEL_CHECK_NAN", "1", 1);
    setenv("DOPPEL_CHECK_OVERFLOW", "1", 1);
    setenv("DOPPEL_CHECK_STRICT", "1", 1);
    dp_check_install();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nonsense)};
    return cmocka_run_group_tests_name("check_fuzz", tests, NULL, NULL);
}
