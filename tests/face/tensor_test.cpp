/* Tensors, scalar accesses, TBuf, tensor lists, tiling copies, asserts: results, and faults that name the user's line. */
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
extern "C" {
#include <cmocka.h>
}

#include "kernel_operator.h"
#undef printf
#undef assert

extern "C" {
#include "device/exec.h"
#include "device/print.h"
}

using namespace AscendC;

static jmp_buf left;
static char sentence[1024];
static uint32_t fault_line;
static dp_launch_info launch;

static __attribute__((noreturn)) void abandon(dp_core *) { longjmp(left, 1); }
static void fault(dp_core *, dp_loc loc, const char *text) {
    std::snprintf(sentence, sizeof sentence, "%s", text);
    fault_line = loc.line;
}
static dp_core_host host;
static dp_core *core;
alignas(32) static uint64_t gm[64];

static int begin(void **) {
    host.abandon = abandon;
    host.fault = fault;
    core = dp_core_create(dp_chip_find("Ascend910B3"));
    core->host = &host;
    core->block_num = 4;
    core->block_idx = 2;
    core->sub_block_num = 1;
    launch = dp_launch_info{};
    core->launch = &launch;
    uint64_t id;
    std::memset(gm, 0, sizeof gm);
    if (dp_gm_add(gm, sizeof gm, 0, &id) != DP_OK)
        return 1;
    dp_core_set_current(core);
    dp_core_block_begin(core);
    return 0;
}
static int end(void **) {
    dp_core_block_end(core, false);
    dp_print_launch_end(&launch);
    dp_core_set_current(nullptr);
    dp_core_destroy(core);
    dp_gm_remove(gm);
    return 0;
}

#define assert_fault(statement, words)                                                                                \
    do {                                                                                                              \
        sentence[0] = 0;                                                                                              \
        if (setjmp(left) == 0) {                                                                                      \
            statement;                                                                                                \
            fail_msg("no fault from: %s", #statement);                                                                \
        }                                                                                                             \
        if (!std::strstr(sentence, words))                                                                            \
            fail_msg("\"%s\" is not in the sentence: %s", words, sentence);                                           \
        assert_int_equal(fault_line, __LINE__);                                                                       \
    } while (0)

static void elements_and_parts(void **) {
    LocalTensor<float> a(TPosition::VECIN, 64, 16);
    for (uint32_t i = 0; i < 16; i++)
        a.SetValue(i, static_cast<int>(i) * 2);
    assert_true(a.GetValue(5) == 10.0f);
    LocalTensor<float> part = a[4];
    assert_int_equal(part.GetSize(), 12);
    assert_true(part.GetValue(0) == 8.0f);
    part(1) = -1.0f;
    assert_true(a.GetValue(5) == -1.0f);
    assert_ptr_equal(a.GetPhyAddr(4), part.GetPhyAddr());
    assert_int_equal(a.GetPosition(), static_cast<int>(TPosition::VECIN));
    assert_int_equal(a.ReinterpretCast<half>().GetSize(), 32);
    assert_int_equal(a.ReinterpretCast<int32_t>().GetValue(0), 0);
    assert_int_equal(a[16].GetSize(), 0);
    a.SetSize(8);
    assert_int_equal(a.GetSize(), 8);
    LocalTensor<TensorTrait<half>> trait(TPosition::VECCALC, 0, 8);
    trait.SetValue(2, half(1.5));
    assert_true(trait.GetValue(2) == 1.5f);
    LocalTensor<half> other;
    other.SetAddrWithOffset(a, 8);
    assert_ptr_equal(other.GetPhyAddr(), a.GetPhyAddr(8));
}

static void four_bit_elements(void **) {
    LocalTensor<int4b_t> q(TPosition::VECIN, 0, 64);
    assert_int_equal(q.GetLength(), 32);
    for (int i = 0; i < 64; i++)
        q.SetValue(static_cast<uint32_t>(i), i % 16 - 8);
    for (int i = 0; i < 64; i++)
        assert_int_equal(q.GetValue(static_cast<uint32_t>(i)), i % 16 - 8);
    assert_int_equal(q[8].GetValue(3), 11 - 8);
}

static void global_elements(void **) {
    GlobalTensor<uint64_t> g;
    g.SetGlobalBuffer(gm, 64);
    g.SetValue(63, 7);
    assert_int_equal(gm[63], 7);
    assert_int_equal(g[60].GetValue(3), 7);
    assert_int_equal(g[60].GetSize(), 4);
    GlobalTensor<uint64_t> unknown;
    unknown.SetGlobalBuffer(gm);
    assert_int_equal(unknown.GetSize(), 0);
    assert_fault(unknown.GetValue(64), "");
    assert_fault(unknown(64) = 1, "");
    LocalTensor<float> none;
    assert_fault(none.GetValue(0), "");
    LocalTensor<float> last(TPosition::VECIN, core->memory[DP_SPACE_UB].size_bytes - 32, 8);
    assert_fault(last.GetValue(8), "");
    assert_fault(LocalTensor<float>(TPosition::VECIN, 1u << 20, 8), "does not fit in UB");
    assert_fault(LocalTensor<float>(TPosition::GM, 0, 8), "not a memory of the core");
}

static void expressions_run_when_assigned(void **) {
    LocalTensor<float> a(TPosition::VECIN, 0, 64), b(TPosition::VECIN, 256, 64), c(TPosition::VECOUT, 512, 64);
    for (uint32_t i = 0; i < 64; i++) {
        a.SetValue(i, i);
        b.SetValue(i, 32);
    }
    c = a + b;
    assert_true(c.GetValue(63) == 95.0f);
    c = a * b;
    assert_true(c.GetValue(2) == 64.0f);
    LocalTensor<uint8_t> bits(TPosition::VECOUT, 1024, 64);
    bits = a < b;
    assert_int_equal(bits.GetValue(3), 0xff);
    assert_int_equal(bits.GetValue(4), 0);
}

static void buffers_have_ends(void **) {
    TPipe pipe;
    TBuf<> buf, never;
    pipe.InitBuffer(buf, 100);
    assert_int_equal(buf.Get<float>().GetSize(), 32);
    assert_int_equal(buf.Get<half>(10).GetSize(), 10);
    assert_ptr_equal(buf.GetWithOffset<float>(8, 32).GetPhyAddr(), buf.Get<float>().GetPhyAddr(8));
    assert_fault(buf.Get<float>(33), "128 bytes");
    assert_fault(buf.GetWithOffset<float>(8, 128), "from offset 128");
    assert_fault(never.Get<float>(), "InitBuffer");
    LocalMemAllocator<> allocator;
    LocalTensor<half> x = allocator.Alloc<half>(3);
    LocalTensor<float> y = allocator.Alloc<TPosition::VECIN, float, 5>();
    assert_ptr_equal(x.GetPhyAddr(), core->memory[DP_SPACE_UB].base);
    assert_int_equal(allocator.GetCurAddr(), 64);
    assert_ptr_equal(y.GetPhyAddr(), core->memory[DP_SPACE_UB].base + 32);
    assert_ptr_equal(GetTPipePtr(), &pipe);
    TBuf<> large;
    assert_fault(pipe.InitBuffer(large, 1 << 20), "1048576 bytes of UB");
    TQue<TPosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 64);
    LocalTensor<float> t = queue.AllocTensor<float>();
    assert_fault(queue.AllocTensor<float>(), "no free buffer");
    assert_int_equal(static_cast<int>(queue.GetState(t)), static_cast<int>(TBufState::OCCUPIED));
    t.SetUserTag(5);
    assert_int_equal(t[4].GetUserTag(), 5);
    uint32_t dims[2] = {2, 8};
    t.SetShapeInfo(ShapeInfo(2, dims));
    assert_int_equal(GetShapeSize(t.GetShapeInfo()), 16);
    queue.FreeTensor(t);
    assert_fault(queue.FreeTensor(t), "free each tensor once");
    TBuffAddr record = queue.GetBufferAddr(t.GetBufferHandle());
    LocalTensor<float> again;
    again.SetAddr(record);
    assert_ptr_equal(again.GetPhyAddr(), t.GetPhyAddr());
    assert_int_equal(again.GetSize(), 16);
    assert_fault(queue.GetBufferAddr(nullptr), "not a buffer");
    LocalTensor<float> rest;
    assert_true((PopStackBuffer<float, TPosition::LCM>(rest)));
    assert_ptr_equal(rest.GetPhyAddr(), t.GetPhyAddr(16)); /* right behind the last buffer */
    assert_int_equal(rest.GetLength() + 128 + 64, core->chip->ub_reserved_offset);
    GlobalTensor<uint64_t> spill;
    spill.SetGlobalBuffer(gm, 64);
    pipe.InitSpmBuffer(spill, 512);
    t.SetValue(0, 3.5f);
    pipe.WriteSpmBuffer(t, 64, 32);
    t.SetValue(0, 0.0f);
    pipe.ReadSpmBuffer(t, 64, 32);
    assert_true(t.GetValue(0) == 3.5f);
    assert_fault(SetFlag<HardEvent::MTE2_V>(8), "id 8");
    assert_fault(WaitFlag<HardEvent::MTE2_V>(3), "not raised");
}

static void tensor_lists(void **) {
    ListTensorDesc list;
    gm[0] = 56;                 /* pointers after two records of 3 words */
    gm[1] = 2 | 0ull << 32;
    gm[2] = 4, gm[3] = 5;
    gm[4] = 2 | 1ull << 32;
    gm[5] = 6, gm[6] = 7;
    gm[7] = reinterpret_cast<uint64_t>(&gm[20]), gm[8] = reinterpret_cast<uint64_t>(&gm[40]);
    list.Init(gm);
    assert_int_equal(list.GetSize(), 2);
    assert_ptr_equal(list.GetDataPtr<uint64_t>(1), &gm[40]);
    uint64_t shape[8];
    TensorDesc<uint64_t> desc;
    desc.SetShapeAddr(shape);
    list.GetDesc(desc, 1);
    assert_int_equal(desc.GetDim(), 2);
    assert_int_equal(desc.GetShape(1), 7);
    assert_int_equal(desc.GetDataObj().GetSize(), 42);
    assert_fault(list.GetDataPtr<uint64_t>(2), "beyond the tensors");
    assert_fault(desc.GetShape(2), "beyond the tensor's dimensions");
    list.Init(gm, 56 + 16, 2);
    assert_fault(list.Init(gm, 56 + 8), "length");
    assert_fault(list.Init(gm, 0xffffffff, 3), "shapeSize");
    gm[0] = 0;
    assert_fault(list.Init(gm), "word 0");
    gm[0] = 24, gm[1] = 3ull << 32, gm[2] = 0xffffffff;
    list.Init(gm);
    assert_int_equal(list.GetSize(), 3);
    assert_fault(list.GetDesc(desc, 0), "no shapes");
}

struct Tiling {
    uint32_t a;
    uint32_t list[3];
};

static void tiling_data(void **) {
    Tiling *t = reinterpret_cast<Tiling *>(gm);
    t->a = 9;
    t->list[2] = 11;
    GET_TILING_DATA_WITH_STRUCT(Tiling, copy, gm);
    GET_TILING_DATA_MEMBER(Tiling, list, list, gm);
    GET_TILING_DATA_PTR_WITH_STRUCT(Tiling, pointer, gm);
    COPY_TILING_WITH_ARRAY(uint32_t, 3, pointer->list, array);
    assert_true(copy.a == 9 && list[2] == 11 && pointer == t && array[2] == 11);
    Tiling on_host = {};
    assert_fault(dp_tiling_copy(&copy, &on_host, sizeof copy, DP_HERE), "");
    dp_tiling_key_set(4);
    assert_true(TILING_KEY_IS(4) && !TILING_KEY_IS(5) && TILING_KEY_LIST(1, 4) && TILING_KEY_VAR == 4);
    dp_tiling_key_set(0);
}

static void stops(void **) {
    assert_fault(Trap(), "Trap");
    assert_fault(dp_assert("x == 1", DP_HERE, false, "x is %d", 2), "assertion failed: x == 1: x is 2");
    assert_int_equal(GetBlockIdx(), 2);
    assert_int_equal(block_idx + 0, 2);
    assert_int_equal(GetBlockNum(), 4);
    assert_true(ASCEND_IS_AIV && !ASCEND_IS_AIC);
    assert_true(dp_local_offset(DP_SPACE_UB, core->memory[DP_SPACE_UB].base + 40, DP_HERE) == 40);
    assert_fault(dp_local_offset(DP_SPACE_UB, gm, DP_HERE), "not in UB");
}

static void scalar_helpers(void **) {
    assert_int_equal(ScalarGetCountOfValue<1>(0xff), 8);
    assert_int_equal(ScalarGetCountOfValue<0>(0xff), 56);
    assert_int_equal(ScalarCountLeadingZero(1), 63);
    assert_int_equal(ScalarGetSFFValue<1>(8), 3);
    assert_int_equal(ScalarGetSFFValue<0>(7), 3);
    assert_int_equal(ScalarGetSFFValue<1>(0), -1);
    assert_int_equal((ScalarCast<float, int32_t, RoundMode::CAST_RINT>(2.5f)), 2);
    assert_int_equal((ScalarCast<float, int32_t, RoundMode::CAST_ROUND>(2.5f)), 3);
    assert_int_equal((ScalarCast<float, int32_t, RoundMode::CAST_FLOOR>(-2.5f)), -3);
    assert_int_equal((ScalarCast<float, int32_t, RoundMode::CAST_CEIL>(1e20f)), INT32_MAX);
    for (int i = 1; i < 4000; i++) { /* round to odd: exact values stay, others get an odd last bit */
        float v = static_cast<float>(i) * 0.37f;
        half h = ScalarCast<float, half, RoundMode::CAST_ODD>(v);
        if (float(half(v)) == v)
            assert_true(h == v);
        else
            assert_true((h.bits() & 1) == 1 && std::fabs(float(h) - v) < v * 0.001f);
    }
    assert_int_equal(AlignUp(33, 32), 64);
    assert_int_equal(CeilDivision(7, 2), 4);
    SetVectorMask<float>(40);
    assert_true(core->mask[0] == (1ull << 40) - 1 && core->mask[1] == 0);
    SetVectorMask<half>(100);
    assert_true(core->mask[0] == ~0ull && core->mask[1] == (1ull << 36) - 1);
    SetVectorMask<float>(64);
    assert_true(core->mask[1] == ~0ull);
    SetCtrlSpr<8, 10>(5);
    assert_int_equal((GetCtrlSpr<8, 10>()), 5);
    assert_int_equal((GetCtrlSpr<9, 9>()), 0);
}

static void one_block_prints_at_most_a_mebibyte(void **) {
    char line[1025];
    std::memset(line, 'x', 1023);
    line[1023] = '\n';
    line[1024] = 0;
    int printed = 0;
    for (int i = 0; i < 2000; i++)
        printed += dp_print(line) > 0;
    assert_in_range(printed, 1000, 1024);
    std::fflush(stdout);
    if (!std::freopen("/dev/null", "w", stdout)) /* the text itself is of no interest here */
        fail();
}

#define with_block(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main() {
    const struct CMUnitTest tests[] = {
        with_block(elements_and_parts), with_block(four_bit_elements), with_block(global_elements),
        with_block(expressions_run_when_assigned), with_block(buffers_have_ends), with_block(tensor_lists),
        with_block(tiling_data), with_block(stops), with_block(scalar_helpers),
        with_block(one_block_prints_at_most_a_mebibyte),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
