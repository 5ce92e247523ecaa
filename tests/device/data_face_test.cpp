/*
 * What the kernel face writes into the instruction for every form of the data movement calls. An observer keeps the
 * instructions and skips them, so no memory is touched.
 */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <vector>
extern "C" {
#include <cmocka.h>
#include "device/core.h"
}
#include "kernel_operator.h"

using namespace AscendC;

static std::vector<dp_insn> seen;
static uint8_t device_memory[4096];

static bool keep(dp_core *, dp_insn *insn) {
    insn->result = 0x0004000300020001;
    seen.push_back(*insn);
    return false;
}

struct kernel {
    dp_observer observer = {};
    dp_core *core = nullptr;
    LocalTensor<float> ub, l1;
    LocalTensor<half> ub16;
    LocalTensor<uint32_t> offsets;
    LocalTensor<int32_t> words;
    GlobalTensor<float> gm;
    GlobalTensor<int32_t> gm_words;

    kernel() {
        observer.name = "test";
        observer.before = keep;
        dp_observer_install(&observer);
        core = dp_core_create(dp_chip_find("Ascend910B3"));
        core->block_num = core->sub_block_num = 1;
        dp_core_set_current(core);
        dp_core_block_begin(core);
        ub = LocalTensor<float>(TPosition::VECIN, 256, 1024);
        ub16 = LocalTensor<half>(TPosition::VECCALC, 8192, 1024);
        l1 = LocalTensor<float>(TPosition::A1, 512, 1024);
        offsets = LocalTensor<uint32_t>(TPosition::VECCALC, 16384, 256);
        words = LocalTensor<int32_t>(TPosition::VECCALC, 32768, 256);
        gm.SetGlobalBuffer(reinterpret_cast<float *>(device_memory), 1024);
        gm_words.SetGlobalBuffer(reinterpret_cast<int32_t *>(device_memory));
        seen.clear();
    }
    ~kernel() {
        dp_core_block_end(core, false);
        dp_core_set_current(nullptr);
        dp_observer_install(nullptr);
        dp_core_destroy(core);
    }
};

/* The one instruction the call made. */
static dp_insn only() {
    assert_int_equal(seen.size(), 1);
    dp_insn insn = seen[0];
    seen.clear();
    return insn;
}
static dp_copy_params copied(dp_op op, unsigned dst, unsigned src) {
    dp_insn insn = only();
    assert_int_equal(insn.op, op);
    assert_int_equal(insn.operand[0].space, dst);
    assert_int_equal(insn.operand[1].space, src);
    assert_non_null(insn.loc.file);
    return insn.u.copy;
}
static void expect_runs(const dp_copy_params &c, uint32_t count, uint32_t bytes, int64_t src_gap, int64_t dst_gap) {
    assert_int_equal(c.block_count, count);
    assert_int_equal(c.block_bytes, bytes);
    assert_int_equal(c.src_gap_bytes, src_gap);
    assert_int_equal(c.dst_gap_bytes, dst_gap);
}

static void data_copy_forms(void **) {
    kernel k;
    unsigned line = __LINE__ + 1;
    DataCopy(k.ub, k.gm, 40);
    assert_int_equal(seen[0].loc.line, line);
    expect_runs(copied(DP_OP_DATA_COPY, DP_SPACE_UB, DP_SPACE_GM), 1, 160, 0, 0);
    DataCopy(k.gm[8], k.ub[16], 40);
    assert_ptr_equal(seen[0].operand[0].addr, device_memory + 32);
    assert_ptr_equal(seen[0].operand[1].addr, k.core->memory[DP_SPACE_UB].base + 256 + 64);
    expect_runs(copied(DP_OP_DATA_COPY, DP_SPACE_GM, DP_SPACE_UB), 1, 160, 0, 0);
    DataCopy(k.ub, k.ub[512], 8);
    expect_runs(copied(DP_OP_DATA_COPY, DP_SPACE_UB, DP_SPACE_UB), 1, 32, 0, 0);
    DataCopy(k.l1, k.gm, 0x80000000u); /* stays too large for any memory */
    expect_runs(copied(DP_OP_DATA_COPY, DP_SPACE_L1, DP_SPACE_GM), 1, UINT32_MAX, 0, 0);
    const DataCopyParams p{3, 2, 5, 7};
    DataCopy(k.ub, k.gm, p);
    expect_runs(copied(DP_OP_DATA_COPY, DP_SPACE_UB, DP_SPACE_GM), 3, 64, 160, 224);
    DataCopy(k.gm, k.ub, p);
    expect_runs(copied(DP_OP_DATA_COPY, DP_SPACE_GM, DP_SPACE_UB), 3, 64, 160, 224);
    DataCopy(k.l1, k.ub, p);
    expect_runs(copied(DP_OP_DATA_COPY, DP_SPACE_L1, DP_SPACE_UB), 3, 64, 160, 224);
    DataCopy(k.gm, k.ub, p, DataCopyEnhancedParams());
    expect_runs(copied(DP_OP_DATA_COPY, DP_SPACE_GM, DP_SPACE_UB), 3, 64, 160, 224);
    DataCopy(LocalTensor<float>(TPosition::C2, 0, 64), k.l1, p); /* 64-byte units in the bias table */
    expect_runs(copied(DP_OP_DATA_COPY, DP_SPACE_BT, DP_SPACE_L1), 3, 128, 160, 448);
}

static void data_copy_pad_forms(void **) {
    kernel k;
    DataCopyPad(k.ub, k.gm, DataCopyParams{3, 20, 5, 7}, DataCopyPadParams{true, 1, 2, 9});
    dp_copy_params c = copied(DP_OP_DATA_COPY_PAD, DP_SPACE_UB, DP_SPACE_GM);
    expect_runs(c, 3, 20, 5, 224); /* GM bytes, UB blocks */
    assert_true(c.is_pad && c.pad_form == 1 && c.left_pad == 1 && c.right_pad == 2 && c.pad_value == 9);
    DataCopyPad(k.ub, k.gm, DataCopyExtParams{3, 100000, 70000, 7, 0}, DataCopyPadExtParams<float>{true, 0, 2, 1.0f});
    c = copied(DP_OP_DATA_COPY_PAD, DP_SPACE_UB, DP_SPACE_GM);
    expect_runs(c, 3, 100000, 70000, 224);
    assert_int_equal(c.pad_value, 0x3f800000);
    DataCopyPad(k.gm, k.ub, DataCopyParams{3, 20, 5, 7});
    expect_runs(copied(DP_OP_DATA_COPY_PAD, DP_SPACE_GM, DP_SPACE_UB), 3, 20, 160, 7);
    DataCopyPad(k.gm, k.ub, DataCopyExtParams{3, 20, 5, 70000, 0});
    expect_runs(copied(DP_OP_DATA_COPY_PAD, DP_SPACE_GM, DP_SPACE_UB), 3, 20, 160, 70000);
    DataCopyPad(k.l1, k.ub, DataCopyParams{4, 32, 1, 0}, Nd2NzParams{1, 4, 8, 0, 8, 4, 1, 0});
    dp_insn insn = only();
    assert_int_equal(insn.op, DP_OP_DATA_COPY_ND2NZ);
    assert_int_equal(insn.u.nd2nz.src_d, 16); /* UB rows of 32 bytes and a block between */
}

static void layout_copy_forms(void **) {
    kernel k;
    DataCopy(k.l1, k.gm, Nd2NzParams{1, 2, 3, 4, 5, 6, 7, 8});
    dp_insn insn = only();
    assert_int_equal(insn.op, DP_OP_DATA_COPY_ND2NZ);
    const dp_nd2nz_params &a = insn.u.nd2nz;
    assert_true(a.nd_num == 1 && a.n == 2 && a.d == 3 && a.src_matrix_stride == 4 && a.src_d == 5 &&
                a.dst_c0_stride == 6 && a.dst_n_stride == 7 && a.dst_matrix_stride == 8);
    DataCopy(k.gm, k.ub, Nz2NdParamsFull{1, 2, 16, 4, 5, 6, 7});
    insn = only();
    assert_int_equal(insn.op, DP_OP_DATA_COPY_NZ2ND);
    const dp_nz2nd_params &b = insn.u.nz2nd;
    assert_true(b.nd_num == 1 && b.n == 2 && b.d == 16 && b.src_matrix_stride == 4 && b.src_n_stride == 5 &&
                b.dst_d_stride == 6 && b.dst_matrix_stride == 7);
    const SliceInfo from[] = {{16, 70, 7, 3, 87}, {0, 2, 1, 1, 3}}, to[] = {{0, 47, 0, 3, 48}, {0, 1, 0, 1, 2}};
    DataCopy(k.ub, k.gm, to, from, 2);
    assert_int_equal(seen.size(), 2);
    expect_runs(seen[1].u.copy, 2, 96, 28, 0);
    assert_ptr_equal(seen[1].operand[1].addr, device_memory + (2 * 87 + 16) * 4);
    seen.clear();
    InitConstValue(k.l1, InitConstValueParams<float>{2, 3, 1, 1.0f});
    insn = only();
    assert_int_equal(insn.op, DP_OP_INIT_CONST);
    assert_int_equal(insn.scalar_bits, 0x3f800000);
    expect_runs(insn.u.copy, 2, 96, 0, 32);
    DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE, DcciDst::CACHELINE_OUT>(k.gm);
    insn = only();
    assert_true(insn.op == DP_OP_DCCI && insn.u.vec.flag0 == 1);
}

static void gather_forms(void **) {
    kernel k;
    uint64_t bits[2] = {5, 6}, kept = 0;
    Gather(k.ub, k.ub, k.offsets, 64, static_cast<uint64_t>(20), 3, 9);
    dp_insn insn = only();
    assert_true(insn.op == DP_OP_GATHER && insn.mask_kind == DP_MASK_LEADING && insn.mask[0] == 20 &&
                insn.repeat == 3 && insn.operand[0].repeat_stride == 9 && insn.scalar_bits == 64 &&
                insn.n_operands == 3);
    Gather(k.ub, k.ub, k.offsets, 0, bits, 300, 8);
    insn = only();
    assert_true(insn.mask_kind == DP_MASK_BITS && insn.mask[0] == 5 && insn.mask[1] == 6 && insn.repeat == 300);
    Gather(k.ub, k.ub, k.offsets, 0, 100);
    insn = only();
    assert_true(insn.mask_kind == DP_MASK_COUNT && insn.mask[0] == 100);
    Gatherb(k.offsets, k.offsets, k.offsets, 2, {3, 24});
    insn = only();
    assert_true(insn.op == DP_OP_GATHERB && insn.repeat == 2 && insn.operand[0].block_stride == 3 &&
                insn.operand[0].repeat_stride == 24);
    GatherMask(k.ub, k.ub, 2, true, 70, {1, 4, 9, 0}, kept);
    insn = only();
    assert_true(insn.op == DP_OP_GATHER_MASK && insn.n_operands == 2 && insn.u.vec.flag0 == 2 &&
                insn.u.vec.flag1 == 1 && insn.mask[0] == 70 && insn.repeat == 4 && insn.operand[1].repeat_stride == 9);
    assert_int_equal(kept, 0x0004000300020001);
    GatherMask(k.ub, k.ub, k.offsets, false, 0, {2, 4, 9, 3}, kept);
    insn = only();
    assert_true(insn.n_operands == 3 && insn.operand[1].block_stride == 2 && insn.operand[2].repeat_stride == 3 &&
                insn.u.vec.flag1 == 0);
    assert_int_equal(GetGatherMaskRemainCount(), 0x0004000300020001);
    assert_int_equal(only().op, DP_OP_GET_KEPT);
}

static void sort_forms(void **) {
    kernel k;
    uint16_t lengths[4] = {1, 2, 3, 4}, a, b, c, d;
    uint32_t taken[4];
    MrgSortSrcList<float> lists(k.ub, k.ub[2], k.ub[4], k.ub[8]);
    Sort32(k.ub, k.ub, k.offsets, 3);
    dp_insn insn = only();
    assert_true(insn.op == DP_OP_SORT32 && insn.repeat == 3 && insn.operand[2].addr == k.offsets.GetPhyAddr());
    MrgSort(k.ub, lists, MrgSort4Info(lengths, true, 7, 2));
    insn = only();
    assert_true(insn.op == DP_OP_MRG_SORT && insn.u.vec.flag0 == 7 && insn.u.vec.flag1 == 1 && insn.repeat == 2);
    assert_int_equal(insn.scalar_bits, 0x0004000300020001);
    assert_int_equal(static_cast<uint64_t>(insn.u.vec.aux[1]) << 32 | insn.u.vec.aux[0],
                     reinterpret_cast<uint64_t>(k.ub[8].GetPhyAddr()));
    MrgSort<float, true>(k.ub, lists, lengths, taken, 15, 1);
    assert_true(only().u.vec.flag1 == 1 && taken[0] == 1 && taken[1] == 2 && taken[2] == 3 && taken[3] == 4);
    GetMrgSortResult(a, b, c, d);
    assert_true(only().op == DP_OP_GET_MRG_SORT_RESULT && a == 1 && b == 2 && c == 3 && d == 4);
    LocalTensor<float> tmp = k.ub[512], alias;
    Sort<float, false>(k.ub, k.ub, k.offsets, tmp, 4);
    assert_int_equal(only().op, DP_OP_SORT32);
    Concat(alias, k.ub, tmp, 4);
    assert_ptr_equal(alias.GetPhyAddr(), k.ub.GetPhyAddr());
    Extract(k.ub16, k.offsets, k.ub16, 2);
    assert_int_equal(seen.size(), 2);
    assert_true(seen[0].u.vec.flag0 == 3 && seen[1].u.vec.flag0 == 2 && seen[1].operand[1].dtype == DP_U32);
    seen.clear();
    assert_int_equal(GetSortLen<half>(10), 40);
    assert_int_equal(GetSortOffset<float>(10), 20);
}

static void layout_forms(void **) {
    kernel k;
    uint64_t bits[2] = {5, 6}, dst_list[16], src_list[16];
    LocalTensor<half> dst_rows[16], src_rows[16];
    LocalTensor<uint8_t> scratch(TPosition::VECCALC, 65536, 1024);
    Transpose(k.ub16, k.ub16[256]);
    assert_true(only().op == DP_OP_TRANSPOSE);
    Transpose(k.ub16, k.ub16[256], scratch, TransposeParamsExt(1, 2, 3, 4, TransposeType::TRANSPOSE_NHWC2NCHW));
    dp_insn insn = only();
    const uint32_t *aux = insn.u.vec.aux;
    assert_true(insn.n_operands == 3 && aux[0] == 12 && aux[1] == 1 && aux[2] == 2 && aux[3] == 3 && aux[4] == 4);
    for (unsigned i = 0; i < 16; i++) {
        dst_rows[i] = k.ub16[i * 16];
        src_rows[i] = k.ub16[512 + i * 16];
        dst_list[i] = reinterpret_cast<uint64_t>(dst_rows[i].GetPhyAddr());
        src_list[i] = reinterpret_cast<uint64_t>(src_rows[i].GetPhyAddr());
    }
    TransDataTo5HD<half>(dst_rows, src_rows, TransDataTo5HDParams(true, false, 3, 4, 5));
    insn = only();
    assert_true(insn.op == DP_OP_TRANS_DATA_TO_5HD && insn.repeat == 3 && insn.operand[0].repeat_stride == 4 &&
                insn.operand[1].repeat_stride == 5 && insn.u.vec.flag0 == 1 && insn.u.vec.flag1 == 0);
    assert_int_equal(insn.operand[0].dtype, DP_F16);
    TransDataTo5HD<int32_t>(dst_list, src_list, TransDataTo5HDParams());
    insn = only();
    assert_true(insn.operand[0].addr == k.ub16.GetPhyAddr() && insn.operand[1].addr == src_rows[0].GetPhyAddr());
    Brcb(k.ub, k.ub[256], 2, {3, 24});
    insn = only();
    assert_true(insn.op == DP_OP_BRCB && insn.repeat == 2 && insn.operand[0].block_stride == 3 &&
                insn.operand[0].repeat_stride == 24);
    CreateVecIndex(k.ub, 2.0f, static_cast<uint64_t>(9), 2, 3, 24);
    insn = only();
    assert_true(insn.op == DP_OP_CREATE_VEC_INDEX && insn.mask[0] == 9 && insn.repeat == 2 &&
                insn.scalar_bits == 0x40000000 && insn.operand[0].block_stride == 3 &&
                insn.operand[0].repeat_stride == 24);
    CreateVecIndex(k.ub, 2.0f, bits, 1, 1, 8);
    insn = only();
    assert_true(insn.mask_kind == DP_MASK_BITS && insn.mask[1] == 6);
    CreateVecIndex(k.ub, 2.0f, 77u);
    insn = only();
    assert_true(insn.mask_kind == DP_MASK_COUNT && insn.mask[0] == 77);
    BilinearInterpolation(k.ub16, k.ub16, k.offsets, k.ub16, static_cast<uint64_t>(64), 2, true, 3, 256, 4, scratch);
    insn = only();
    assert_true(insn.op == DP_OP_BILINEAR && insn.mask[0] == 64 && insn.operand[0].block_stride == 3 &&
                insn.u.vec.aux[0] == 2 && insn.u.vec.aux[1] == 1 && insn.u.vec.aux[2] == 256 && insn.u.vec.aux[3] == 4);
}

static void cross_forms(void **) {
    kernel k;
    CrossCoreSetFlag<2, PIPE_MTE3>(5);
    dp_insn insn = only();
    assert_true(insn.op == DP_OP_CROSS_SET && insn.u.sync.mode == 2 && insn.u.sync.event_id == 5 &&
                insn.u.sync.src_pipe == DP_PIPE_MTE3);
    CrossCoreWaitFlag(300);
    insn = only();
    assert_true(insn.op == DP_OP_CROSS_WAIT && insn.u.sync.mode == 0 && insn.u.sync.event_id == 255 &&
                insn.u.sync.src_pipe == DP_PIPE_S);
    SyncAll();
    insn = only();
    assert_true(insn.op == DP_OP_SYNC_ALL && insn.n_operands == 0 && insn.u.sync.mode == 1);
    SyncAll<false>();
    assert_int_equal(only().u.sync.mode, 0);
    SyncAll(k.gm_words, k.words, 6);
    insn = only();
    assert_true(insn.n_operands == 2 && insn.mask[0] == 6 && insn.operand[0].space == DP_SPACE_GM &&
                insn.operand[1].space == DP_SPACE_UB);
    IBSet(k.gm_words, k.words, -1, 2);
    insn = only();
    assert_true(insn.op == DP_OP_IB_SET && insn.mask[0] == UINT64_MAX && insn.mask[1] == 2 && insn.u.sync.mode == 1);
    IBWait<false>(k.gm_words, k.words, 1, 2);
    insn = only();
    assert_true(insn.op == DP_OP_IB_WAIT && insn.mask[0] == 1 && insn.u.sync.mode == 0);
    InitDetermineComputeWorkspace(k.gm_words, k.words);
    assert_int_equal(only().op, DP_OP_ORDER_INIT);
    WaitPreBlock(k.gm_words, k.words);
    assert_int_equal(only().op, DP_OP_ORDER_WAIT);
    NotifyNextBlock(k.gm_words, k.words);
    assert_int_equal(only().op, DP_OP_ORDER_NOTIFY);
    GroupBarrier<PipeMode::MTE3_MODE> barrier(device_memory, 3, 6);
    barrier.Arrive(2);
    insn = only();
    assert_true(insn.op == DP_OP_GROUP_ARRIVE && insn.mask[0] == 2 && insn.mask[1] == 3 && insn.scalar_bits == 6);
    barrier.Wait(5);
    assert_true(only().op == DP_OP_GROUP_WAIT);
    assert_int_equal(barrier.GetWorkspaceLen(), 6 * 512);
}

int main() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_copy_forms), cmocka_unit_test(data_copy_pad_forms), cmocka_unit_test(layout_copy_forms),
        cmocka_unit_test(gather_forms),    cmocka_unit_test(sort_forms),          cmocka_unit_test(layout_forms),
        cmocka_unit_test(cross_forms),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
