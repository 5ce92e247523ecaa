/*
 * What the device refuses and how it says so: operands, types, repeats, flags, state; the report on stderr; observers; the
 * registry of device memory; the chips.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/memory.h"
#include "insn_rig.h"

enum { REGION = 64 * 1024 };

static dp_insn add_of(rig *r, unsigned dtype, uint64_t count) {
    dp_insn insn = {.op = DP_OP_ADD, .n_operands = 3, .mask_kind = DP_MASK_COUNT, .mask = {count, 0}, .repeat = 1};
    insn.loc = (dp_loc){"kernel.cpp", 42};
    for (unsigned k = 0; k < 3; k++)
        insn.operand[k] = (dp_operand){.addr = r->ub + k * REGION, .dtype = (uint8_t)dtype, .space = DP_SPACE_UB,
                                       .block_stride = 1, .repeat_stride = 8};
    return insn;
}

static void test_operands(void **state) {
    rig *r = *state;
    memset(r->ub, 0, r->ub_bytes);
    dp_insn insn = add_of(r, DP_F32, 64);
    rig_run(r, &insn);
    insn.operand[1].addr = r->ub + REGION + 4;
    rig_refuse(r, &insn, "the source 0 starts at UB offset 65540 (0x10004), which is not a multiple of 32 bytes");
    insn.operand[1].addr = r->ub + REGION;
    insn.operand[0].size_bytes = 252;
    rig_refuse(r, &insn, "the destination spans 256 bytes but its tensor has only 252 bytes");
    insn.operand[0].size_bytes = 256;
    rig_run(r, &insn);
    insn = add_of(r, DP_F32, 16 * 1024 + 1);
    rig_refuse(r, &insn, "the source 1 spans 65540 bytes from UB offset 131072, 4 bytes past the end of UB (196608 bytes on "
                         "Ascend910B3)");
    insn = add_of(r, DP_F32, 0xffffffffffffffffull);
    rig_refuse(r, &insn, "the count is -1, a negative number or one that was cut to 32 bits");
    insn = add_of(r, DP_F32, 64);
    insn.operand[0].past_end = 1;
    rig_refuse(r, &insn, "the destination starts at or past the end of its tensor (UB offset 0)");
    insn.operand[0].past_end = 0;
    insn.operand[2].addr = r->ub - 32;
    rig_refuse(r, &insn, "outside this core's UB");
    insn.operand[2].addr = NULL;
    rig_refuse(r, &insn, "outside this core's UB");
    insn.operand[2].space = DP_SPACE_L1;
    rig_refuse(r, &insn, "the source 1 is in L1, but this instruction takes it in UB only");
    insn.operand[2].space = DP_SPACE_NONE;
    rig_refuse(r, &insn, "the source 1 is in no memory");
    insn.operand[2].space = 77;
    rig_refuse(r, &insn, "unknown memory");
}

static void test_strides(void **state) {
    rig *r = *state;
    dp_insn insn = add_of(r, DP_F16, 0);
    insn.mask_kind = DP_MASK_LEADING;
    insn.mask[0] = 128;
    insn.repeat = 255;
    insn.operand[0].repeat_stride = 25; /* (254 * 25 + 8) * 32 = 203456 */
    rig_refuse(r, &insn, "the destination spans 203456 bytes from UB offset 0");
    insn.operand[0].repeat_stride = 8;
    insn.operand[1].block_stride = 255; /* 254 * 256 + 7 * 255 * 32 + 32 = 122176, of 131072 */
    insn.operand[2].repeat_stride = 0;
    rig_run(r, &insn);
    insn.mask[0] = 16; /* only the first block is read */
    insn.operand[1].block_stride = 65535;
    rig_run(r, &insn);
    insn.mask[0] = 17;
    rig_refuse(r, &insn, "past the end of UB");
    insn.repeat = 256;
    rig_refuse(r, &insn, "Add: repeat is 256, but one instruction repeats at most 255 times");
    insn.repeat = 0; /* no work, but the addresses are looked at */
    rig_run(r, &insn);
    insn.operand[1].addr = r->ub + 8;
    rig_refuse(r, &insn, "not a multiple of 32 bytes");
}

static void test_types(void **state) {
    rig *r = *state;
    dp_insn insn = add_of(r, DP_BF16, 64);
    rig_refuse(r, &insn, "Add: element type bfloat16 is not offered; use int16, int32, half or float");
    insn = add_of(r, 200, 64);
    rig_refuse(r, &insn, "element type unknown type is not offered");
    insn = add_of(r, DP_F16, 64);
    insn.operand[2].dtype = DP_F32;
    rig_refuse(r, &insn, "the source 1 is float but the destination is half; they must have one type");
    insn.op = DP_OP_CAST;
    insn.n_operands = 2;
    insn.operand[0].dtype = DP_U8;
    insn.operand[1].dtype = DP_F32;
    rig_refuse(r, &insn, "Cast: float cannot be cast to uint8; float casts to int16, int32, int64, half, bfloat16 or float");
    insn.operand[0].dtype = DP_I32;
    rig_refuse(r, &insn, "Cast: float to int32 does not take rounding mode CAST_NONE; legal: CAST_RINT, CAST_FLOOR, "
                         "CAST_CEIL, CAST_ROUND, CAST_TRUNC");
    insn.u.vec.round_mode = 9;
    rig_refuse(r, &insn, "rounding mode (unknown)");
    insn.operand[1].dtype = DP_U64;
    rig_refuse(r, &insn, "nothing can be cast from uint64");
    insn = add_of(r, DP_F16, 64);
    insn.op = DP_OP_AXPY;
    insn.operand[1].dtype = DP_F32;
    rig_refuse(r, &insn, "Axpy: float to half is not offered; legal are half to half, float to float and half to float");
    insn = add_of(r, DP_I16, 64);
    insn.op = DP_OP_SHIFT_LEFT;
    insn.scalar_bits = 0xffff;
    rig_refuse(r, &insn, "the shift count is -1; it must not be negative");
    insn.op = DP_OP_COUNT;
    rig_refuse(r, &insn, "does not exist");
}

/* Legal overlaps, and partial ones: no byte outside the destination may change. */
static void test_overlap(void **state) {
    rig *r = *state;
    for (unsigned n = 0; n < 200; n++) {
        for (size_t i = 0; i < r->ub_bytes; i++)
            r->image[i] = (uint8_t)rig_random(r);
        rig_reset(r);
        uint64_t count = 1 + rig_below(r, 3000);
        dp_insn insn = add_of(r, rig_below(r, 2) ? DP_F16 : DP_I32, count);
        size_t bytes = count * dp_dtype_bits(insn.operand[0].dtype) / 8;
        insn.operand[0].addr = r->ub + 32 * rig_below(r, 400);
        insn.operand[1].addr = r->ub + 32 * rig_below(r, 400);
        insn.operand[2].addr = insn.operand[rig_below(r, 2)].addr;
        rig_run(r, &insn);
        size_t dst = (size_t)((uint8_t *)insn.operand[0].addr - r->ub);
        assert_memory_equal(r->ub, r->image, dst);
        assert_memory_equal(r->ub + dst + bytes, r->image + dst + bytes, r->ub_bytes - dst - bytes);
    }
}

/* ---- flags ---- */

static dp_insn flag_of(unsigned op, unsigned src, unsigned dst, unsigned id) {
    dp_insn insn = {.op = (uint16_t)op, .loc = DP_HERE};
    insn.u.sync = (dp_sync_params){.src_pipe = (uint8_t)src, .dst_pipe = (uint8_t)dst, .event_id = (uint8_t)id};
    return insn;
}

static void test_flags(void **state) {
    rig *r = *state;
    dp_core_block_begin(r->core);
    dp_insn set = flag_of(DP_OP_SET_FLAG, DP_PIPE_MTE2, DP_PIPE_V, 3), wait = flag_of(DP_OP_WAIT_FLAG, DP_PIPE_MTE2, DP_PIPE_V, 3);
    rig_refuse(r, &wait, "flag MTE2->V id 3 is not raised, this would hang on the chip; call SetFlag for it before");
    rig_run(r, &set);
    rig_refuse(r, &set, "flag MTE2->V id 3 is already raised");
    wait.u.sync.event_id = 2;
    rig_refuse(r, &wait, "id 3 of the same pair is raised: SetFlag and WaitFlag must use the same id");
    wait = flag_of(DP_OP_WAIT_FLAG, DP_PIPE_V, DP_PIPE_MTE3, 3);
    rig_refuse(r, &wait, "MTE2->V id 3 is raised: SetFlag and WaitFlag must name the same pair");
    wait = flag_of(DP_OP_WAIT_FLAG, DP_PIPE_MTE2, DP_PIPE_V, 3);
    rig_run(r, &wait);
    rig_run(r, &set); /* lowered by the wait */
    set.u.sync.event_id = 8;
    rig_refuse(r, &set, "event id 8 does not exist; a pipe pair has the ids 0 to 7");
    set = flag_of(DP_OP_SET_FLAG, 9, DP_PIPE_V, 0);
    rig_refuse(r, &set, "pipes 9 and 1 are not a pipe pair");
    dp_insn barrier = flag_of(DP_OP_BARRIER, DP_PIPE_ALL, 0, 0);
    rig_run(r, &barrier);
    barrier.u.sync.src_pipe = DP_PIPE_S;
    rig_refuse(r, &barrier, "a barrier on the scalar pipe (PIPE_S) is a hardware error");
    set = flag_of(DP_OP_SET_FLAG, DP_PIPE_V, DP_PIPE_V, 0); /* V_V is a barrier: nothing to wait for */
    rig_run(r, &set);
    rig_run(r, &set);
    r->core->kind = DP_CORE_AIC; /* the cube core has no V */
    wait = flag_of(DP_OP_WAIT_FLAG, DP_PIPE_V, DP_PIPE_MTE3, 5);
    rig_run(r, &wait);
    r->core->kind = DP_CORE_AIV;
    assert_int_equal(dp_insn_pipe(&set), DP_PIPE_V);
    wait = flag_of(DP_OP_WAIT_FLAG, DP_PIPE_MTE2, DP_PIPE_V, 3);
    assert_int_equal(dp_insn_pipe(&wait), DP_PIPE_V);
    dp_core_block_begin(r->core);
    rig_refuse(r, &wait, "not raised"); /* a new block starts with all flags down */
}

static void test_state(void **state) {
    rig *r = *state;
    dp_core_block_begin(r->core);
    dp_insn insn = {.op = DP_OP_SET_ATOMIC, .loc = DP_HERE};
    insn.u.vec.aux[0] = 1;
    insn.u.vec.aux[1] = DP_U32;
    rig_refuse(r, &insn, "atomic stores of uint32 do not exist; use int8, int16, int32, half, bfloat16 or float");
    insn.u.vec.aux[1] = DP_F32;
    rig_run(r, &insn);
    assert_int_equal(r->core->atomic_op, 1);
    insn.u.vec.aux[0] = 4;
    insn.u.vec.aux[1] = DP_F16;
    rig_run(r, &insn);
    assert_true(r->core->atomic_op == 1 && r->core->atomic_dtype == DP_F16);
    dp_insn ctrl = {.op = DP_OP_SET_CTRL, .scalar_bits = 0x1f, .loc = DP_HERE};
    ctrl.u.vec.aux[0] = 6;
    ctrl.u.vec.aux[1] = 8;
    rig_run(r, &ctrl);
    assert_true(r->core->ctrl == 0x1c0);
    ctrl.op = DP_OP_GET_CTRL;
    rig_run(r, &ctrl);
    assert_int_equal(ctrl.result, 7);
    ctrl.u.vec.aux[1] = 64;
    rig_refuse(r, &ctrl, "bits 6 to 64 are not a field of the 64-bit CTRL register");
    dp_insn init = {.op = DP_OP_INIT_SOC_STATE, .loc = DP_HERE};
    r->core->counter_mode = 1;
    rig_run(r, &init);
    assert_true(r->core->atomic_op == 0 && r->core->counter_mode == 0 && r->core->mask[1] == ~0ull);
    for (unsigned i = 0; i < 16; i++)
        r->ub[64 + i] = (uint8_t)(i + 1);
    dp_insn move = {.op = DP_OP_SET_CMPMASK, .n_operands = 2, .loc = DP_HERE};
    move.operand[1] = (dp_operand){.addr = r->ub + 64, .space = DP_SPACE_UB, .dtype = DP_U8};
    rig_run(r, &move);
    move.op = DP_OP_GET_CMPMASK;
    move.n_operands = 1;
    move.operand[0] = (dp_operand){.addr = r->ub + 1024, .space = DP_SPACE_UB, .dtype = DP_U8};
    rig_run(r, &move);
    assert_memory_equal(r->ub + 1024, r->ub + 64, 16);
    move.operand[0].addr = r->ub + 1032;
    rig_refuse(r, &move, "not a multiple of 16 bytes");
}

/* The mask a form leaves behind is what a later isSetMask = false instruction uses. */
static void test_mask_register(void **state) {
    rig *r = *state;
    dp_core_block_begin(r->core);
    dp_insn insn = add_of(r, DP_F32, 0);
    insn.mask_kind = DP_MASK_LEADING;
    insn.mask[0] = 20;
    rig_run(r, &insn);
    assert_true(r->core->mask[0] == 0xfffff && r->core->mask[1] == 0);
    insn.mask[0] = 64; /* all lanes of a float repeat: both words */
    rig_run(r, &insn);
    assert_true(r->core->mask[0] == ~0ull && r->core->mask[1] == ~0ull);
    insn.mask_kind = DP_MASK_BITS;
    insn.mask[0] = 5;
    insn.mask[1] = 9;
    rig_run(r, &insn);
    assert_true(r->core->mask[0] == 5 && r->core->mask[1] == 9);
    insn.mask_kind = DP_MASK_REGISTER;
    rig_run(r, &insn);
    assert_true(r->core->mask[0] == 5 && r->core->mask[1] == 9);
}

/* ---- the report ---- */

static void test_report(void **state) {
    rig *r = *state;
    dp_launch_info launch = {.id = 1, .kernel = {.name = "add_custom", .launch = {"main.asc", 7}}, .blocks = 8};
    r->core->launch = &launch;
    r->core->block_idx = 3;
    r->core->block_num = 8;
    r->core->core_index = 3;
    char path[] = "/tmp/insn_fault_XXXXXX", text[1024] = {0};
    int file = mkstemp(path), keep = dup(STDERR_FILENO);
    unlink(path);
    dup2(file, STDERR_FILENO);
    dp_insn insn = add_of(r, DP_F32, 64);
    insn.operand[0].addr = r->ub + 1;
    rig_refuse(r, &insn, "Add: the destination starts at UB offset 1");
    /* rig_refuse silences stderr, so issue once more with the file in place */
    if (!setjmp(r->escape))
        dp_issue(&insn);
    dup2(keep, STDERR_FILENO);
    close(keep);
    assert_true(pread(file, text, sizeof text - 1, 0) > 0);
    close(file);
    r->core->launch = NULL;
    r->core->block_idx = r->core->core_index = 0;
    r->core->block_num = 1;
    assert_string_equal(text, "kernel.cpp:42: error: Add: the destination starts at UB offset 1 (0x1), which is not a multiple "
                              "of 32 bytes; start tensors on a 32-byte boundary\n"
                              "  kernel add_custom, block 3 of 8 (vector core 3), launched at main.asc:7\n");
}

/* ---- observers ---- */

static unsigned befores, afters, faults;
static bool allow;
static bool count_before(dp_core *core, dp_insn *insn) {
    (void)core, (void)insn;
    befores++;
    return allow;
}
static void count_after(dp_core *core, dp_insn *insn) {
    (void)core, (void)insn;
    afters++;
}
static void count_fault(dp_core *core, const dp_insn *insn, const char *sentence) {
    (void)core, (void)insn, (void)sentence;
    faults++;
}

static void test_observer(void **state) {
    rig *r = *state;
    static const dp_observer observer = {.name = "counter", .before = count_before, .after = count_after, .fault = count_fault};
    dp_observer_install(&observer);
    dp_core_block_begin(r->core);
    dp_insn insn = add_of(r, DP_I32, 8);
    memset(r->ub, 1, r->ub_bytes);
    allow = true;
    rig_run(r, &insn);
    assert_true(befores == 1 && afters == 1 && r->ub[0] == 2 && r->core->issued == 1);
    allow = false; /* the observer refused it: nothing happens */
    rig_run(r, &insn);
    memset(r->ub, 1, 32);
    rig_run(r, &insn);
    assert_true(befores == 3 && afters == 1 && r->ub[0] == 1);
    allow = true;
    insn.operand[0].addr = r->ub + 1;
    rig_refuse(r, &insn, "not a multiple");
    assert_true(faults == 1 && afters == 1);
    dp_observer_install(NULL);
    dp_core_block_begin(r->core);
}

static void test_cube_core(void **state) {
    rig *r = *state;
    dp_insn insn = add_of(r, DP_I32, 8);
    r->core->kind = DP_CORE_AIC;
    rig_refuse(r, &insn, "a cube core has no vector unit");
    r->core->kind = DP_CORE_AIV;
    rig_run(r, &insn);
}

/* ---- device memory and chips ---- */

static void test_gm(void **state) {
    (void)state;
    static uint8_t memory[4096];
    dp_gm_range range;
    uint64_t first = 0, second = 0, epoch = dp_gm_epoch();
    assert_int_equal(dp_gm_add(memory + 1024, 100, 0, &first), DP_OK);
    assert_int_equal(dp_gm_add(memory + 2048, 512, 1, &second), DP_OK);
    assert_true(second == first + 1 && dp_gm_epoch() != epoch);
    assert_int_equal(dp_gm_add(memory + 1100, 10, 0, NULL), DP_ERR_INTERNAL);
    assert_int_equal(dp_gm_add(memory + 1000, 25, 0, NULL), DP_ERR_INTERNAL);
    assert_int_equal(dp_gm_add(memory + 1000, 24, 0, NULL), DP_OK);
    assert_int_equal(dp_gm_add(NULL, 24, 0, NULL), DP_ERR_ARGUMENT);
    assert_int_equal(dp_gm_add(memory, 0, 0, NULL), DP_ERR_ARGUMENT);
    assert_true(dp_gm_find(memory + 1123, &range) && range.id == first && range.size_bytes == 100);
    assert_false(dp_gm_find(memory + 1124, &range));
    assert_true(dp_gm_find_before(memory + 1124, &range) && range.id == first);
    assert_true(dp_gm_find(memory + 1023, &range) && range.base == memory + 1000);
    assert_true(dp_gm_find(memory + 2559, &range) && range.device_id == 1);
    assert_int_equal(range.padded_bytes, 512);
    assert_int_equal(dp_gm_set_padding(memory + 2048, 576), DP_OK);
    assert_true(dp_gm_find(memory + 2559, &range) && range.padded_bytes == 576 && range.size_bytes == 512);
    assert_false(dp_gm_find(memory + 2560, &range)); /* padding is behind an allocation, not part of it */
    assert_int_equal(dp_gm_set_padding(memory + 2048, 511), DP_ERR_ARGUMENT);
    assert_int_equal(dp_gm_set_padding(memory + 2049, 600), DP_ERR_ADDRESS);
    assert_int_equal(dp_gm_remove(memory + 2049), DP_ERR_ADDRESS);
    assert_int_equal(dp_gm_remove(memory + 2048), DP_OK);
    assert_int_equal(dp_gm_remove(memory + 2048), DP_ERR_ADDRESS);
    assert_false(dp_gm_find(memory + 2048, &range));
    assert_int_equal(dp_gm_remove(memory + 1024), DP_OK);
    assert_int_equal(dp_gm_remove(memory + 1000), DP_OK);
}

static void test_chips(void **state) {
    (void)state;
    assert_string_equal(dp_chip_find("910b3")->name, "Ascend910B3");
    assert_string_equal(dp_chip_find("ASCEND310P1")->name, "Ascend310P3");
    assert_ptr_equal(dp_chip_find("Ascend999"), NULL);
    assert_ptr_equal(dp_chip_find(NULL), NULL);
    assert_int_equal(dp_chip_find("Ascend910B1")->vector_cores, 48);
    assert_int_equal(dp_chip_find("Ascend910B4-1")->l2_bytes >> 20, 168);
    for (unsigned i = 0; dp_chip_at(i); i++) {
        const dp_chip *chip = dp_chip_at(i);
        assert_ptr_equal(dp_chip_find(chip->name), chip);
        assert_int_equal(chip->ub_reserved_offset + 8192, chip->space_bytes[DP_SPACE_UB]);
        dp_core *core = dp_core_create(chip);
        assert_non_null(core);
        for (unsigned s = DP_SPACE_UB; s < DP_SPACE_COUNT; s++) {
            assert_int_equal((uintptr_t)core->memory[s].base % 512, 0);
            if (core->memory[s].size_bytes)
                core->memory[s].base[core->memory[s].size_bytes - 1] = 1;
        }
        dp_core_destroy(core);
    }
    dp_core_destroy(NULL);
    dp_mem_fail_after(1);
    assert_null(dp_core_create(dp_chip_at(0)));
    assert_non_null(strstr(dp_fail_message(), "no host memory for a core"));
}

static int set_up(void **state) {
    *state = rig_open();
    return 0;
}
static int tear_down(void **state) {
    rig_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operands), cmocka_unit_test(test_strides),  cmocka_unit_test(test_types),
        cmocka_unit_test(test_overlap),  cmocka_unit_test(test_flags),    cmocka_unit_test(test_state),
        cmocka_unit_test(test_mask_register), cmocka_unit_test(test_report), cmocka_unit_test(test_observer),
        cmocka_unit_test(test_gm),       cmocka_unit_test(test_chips),    cmocka_unit_test(test_cube_core)};
    return cmocka_run_group_tests_name("insn_fault", tests, set_up, tear_down);
}
