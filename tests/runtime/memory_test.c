/* Device, host and virtual memory: sizes, ranges, misuse. */
#include "base/memory.h"
#include "device/chip.h"
#include "device/gm.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/event.h"
#include "runtime/runtime_test.h"
#include "runtime/stream.h"
#include "runtime/task.h"

static int setup(void **state) {
    (void)state;
    return dp_device_set(0) == DP_OK ? 0 : -1;
}

static uint8_t *new_memory(size_t bytes) {
    void *ptr = NULL;
    assert_ok(dp_device_memory_alloc(bytes, &ptr));
    return ptr;
}

typedef struct owned {
    uint8_t *base;
    size_t bytes;
    uint8_t mark;
} owned;

static void allocations_are_aligned_and_apart(void **state) {
    (void)state;
    enum { COUNT = 400, STEPS = 6000 };
    static owned list[COUNT];
    uint64_t random = 11;
    size_t free_before, free_after, total;
    assert_ok(dp_device_memory_info(&free_before, &total));
    for (int step = 0; step < STEPS; step++) {
        owned *o = &list[next_random(&random) % COUNT];
        if (o->base) {
            assert_int_equal(o->base[0], o->mark);
            assert_int_equal(o->base[o->bytes - 1], o->mark);
            assert_ok(dp_device_memory_free(o->base));
            o->base = NULL;
            continue;
        }
        unsigned shift = next_random(&random) % 22;
        o->bytes = 1 + next_random(&random) % ((size_t)1 << shift);
        o->base = new_memory(o->bytes);
        o->mark = (uint8_t)step;
        assert_int_equal((uintptr_t)o->base % 512, 0);
        memset(o->base, o->mark, (o->bytes + 31) / 32 * 32 + 32); /* rounded and padded as documented */
        dp_gm_range range;
        assert_true(dp_gm_find(o->base + o->bytes - 1, &range));
        assert_int_equal(range.size_bytes, o->bytes);
        assert_false(dp_gm_find(o->base + o->bytes, &range));
    }
    for (int i = 0; i < COUNT; i++) {
        if (list[i].base)
            assert_ok(dp_device_memory_free(list[i].base));
    }
    assert_ok(dp_device_memory_info(&free_after, NULL));
    assert_int_equal(free_before, free_after);
}

static void memory_is_counted_and_limited(void **state) {
    (void)state;
    size_t free_bytes, total, used, peak;
    assert_ok(dp_device_memory_info(&free_bytes, &total));
    assert_int_equal(total, dp_chip_current()->memory_bytes);
    assert_true(free_bytes <= total);
    void *ptr = NULL, *more = NULL;
    assert_refused(dp_device_memory_alloc(total + 1, &ptr), DP_ERR_OUT_OF_MEMORY, "bytes free");
    assert_refused(dp_device_memory_alloc(SIZE_MAX, &ptr), DP_ERR_OUT_OF_MEMORY, "size is");
    assert_refused(dp_device_memory_alloc(SIZE_MAX - 40, &ptr), DP_ERR_OUT_OF_MEMORY, "size is");
    assert_refused(dp_device_memory_alloc(0, &ptr), DP_ERR_ARGUMENT, "size is 0");
    assert_refused(dp_device_memory_alloc(1, NULL), DP_ERR_ARGUMENT, "devPtr is NULL");
    assert_ok(dp_device_memory_alloc(free_bytes - 4096, &ptr)); /* not touched, so it costs nothing */
    assert_refused(dp_device_memory_alloc(8192, &more), DP_ERR_OUT_OF_MEMORY, "size is 8224 bytes, but device 0 has");
    assert_ok(dp_device_memory_usage(0, &used, &peak));
    assert_int_equal(used, free_bytes - 4096 + 32);
    assert_true(peak >= used);
    assert_ok(dp_device_memory_free(ptr));
    assert_ok(dp_device_memory_usage(0, &used, NULL));
    assert_int_equal(used, total - free_bytes);
}

static void misuse_is_explained(void **state) {
    (void)state;
    uint8_t *d = new_memory(1024), host[4096] = {0};
    void *h;
    assert_ok(dp_host_memory_alloc(100, &h));
    assert_refused(dp_device_memory_free(NULL), DP_ERR_ARGUMENT, "devPtr is NULL");
    assert_refused(dp_device_memory_free(d + 64), DP_ERR_ADDRESS,
                   "points 64 bytes into the 1024-byte device allocation");
    assert_refused(dp_device_memory_free(host), DP_ERR_ADDRESS, "is not device memory (a host pointer?)");
    assert_refused(dp_device_memory_free(h), DP_ERR_ADDRESS, "is host memory (from aclrtMallocHost");
    assert_refused(dp_device_memory_free((void *)8), DP_ERR_ADDRESS, "is not device memory");
    assert_refused(dp_host_memory_free(d), DP_ERR_ADDRESS, "is device memory, which aclrtFree frees");
    assert_refused(dp_host_memory_free(host), DP_ERR_ADDRESS, "is not an address that aclrtMallocHost gave");
    assert_refused(dp_host_memory_free(NULL), DP_ERR_ARGUMENT, "hostPtr is NULL");

    assert_refused(dp_copy(d + 896, 4096, host, 4096, DP_COPY_HOST_TO_DEVICE), DP_ERR_ADDRESS, "dst (");
    assert_int_equal(dp_copy(d + 896, 4096, host, 4096, DP_COPY_HOST_TO_DEVICE), DP_ERR_ADDRESS);
    assert_non_null(
        strstr(dp_fail_message(),
               "4096 bytes starting 128 bytes before the end of a 1024-byte allocation go 3968 past its end"));
    assert_refused(dp_copy(host, 4096, d, 1025, DP_COPY_DEVICE_TO_HOST), DP_ERR_ADDRESS, "go 1 past its end");
    assert_refused(dp_copy(d, 100, host, 101, DP_COPY_HOST_TO_DEVICE), DP_ERR_ARGUMENT, "destMax");
    assert_refused(dp_copy(host, 100, host + 200, 100, DP_COPY_HOST_TO_DEVICE), DP_ERR_ADDRESS, "dst (");
    assert_refused(dp_copy(d, 100, host, 100, DP_COPY_DEVICE_TO_DEVICE), DP_ERR_ADDRESS, "src (");
    assert_refused(dp_copy(d, 100, d + 100, 100, DP_COPY_HOST_TO_DEVICE), DP_ERR_ADDRESS, "wants host memory there");
    assert_refused(dp_copy(NULL, 100, host, 100, DP_COPY_HOST_TO_DEVICE), DP_ERR_ARGUMENT, "dst is NULL");
    assert_refused(dp_copy(d, 100, NULL, 100, DP_COPY_HOST_TO_DEVICE), DP_ERR_ARGUMENT, "src is NULL");
    assert_refused(dp_copy(d, 100, host, 100, (dp_copy_kind)8), DP_ERR_ARGUMENT, "kind is 8");
    assert_refused(dp_copy_async(d, 100, host, 100, DP_COPY_HOST_TO_DEVICE, host), DP_ERR_HANDLE, "stream");
    assert_refused(dp_fill(d, 10, 0, 11), DP_ERR_ARGUMENT, "maxCount");
    assert_refused(dp_fill(d + 1000, 100, 0, 100), DP_ERR_ADDRESS, "devPtr (");
    assert_refused(dp_fill(host, 100, 0, 100), DP_ERR_ADDRESS, "must be device memory");
    assert_refused(dp_copy_2d(d, 99, host, 100, 100, 2, DP_COPY_HOST_TO_DEVICE), DP_ERR_ARGUMENT, "dpitch is 99");
    assert_refused(dp_copy_2d(d, 100, host, 99, 100, 2, DP_COPY_HOST_TO_DEVICE), DP_ERR_ARGUMENT, "spitch is 99");
    assert_refused(dp_copy_2d(d, 100, host, 100, 100, 11, DP_COPY_HOST_TO_DEVICE), DP_ERR_ADDRESS, "1100 bytes");
    assert_refused(dp_copy_2d(d, 100, host, 100, 0, 1, DP_COPY_HOST_TO_DEVICE), DP_ERR_ARGUMENT, "width is 0");
    assert_refused(dp_copy_2d(d, SIZE_MAX / 2, host, SIZE_MAX / 2, 8, 8, DP_COPY_HOST_TO_DEVICE), DP_ERR_ARGUMENT,
                   "height");

    assert_ok(dp_device_memory_free(d));
    assert_refused(dp_device_memory_free(d), DP_ERR_ADDRESS, "freed before (1024 bytes at");
    assert_refused(dp_copy(d, 16, host, 16, DP_COPY_HOST_TO_DEVICE), DP_ERR_ADDRESS, "freed before");
    assert_ok(dp_host_memory_free(h));
    assert_refused(dp_host_memory_free(h), DP_ERR_ADDRESS, "was freed before");
}

static void copies_arrive(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 31, 4097, (size_t)9 << 20};
    void *stream;
    assert_ok(dp_stream_create(0, &stream));
    for (int s = 0; s < 4; s++) {
        size_t n = sizes[s];
        uint8_t *host = malloc(n), *back = malloc(n), *a = new_memory(n), *b = new_memory(n);
        uint64_t random = s;
        for (size_t i = 0; i < n; i++)
            host[i] = (uint8_t)next_random(&random);
        assert_ok(dp_copy(a, n, host, n, DP_COPY_HOST_TO_DEVICE));
        assert_ok(dp_copy(b, n, a, n, DP_COPY_DEFAULT));
        assert_ok(dp_copy(back, n, b, n, DP_COPY_DEVICE_TO_HOST));
        assert_memory_equal(host, back, n);
        assert_ok(dp_fill(a, n, 0x1a5, n));
        assert_int_equal(a[n - 1], 0xa5);
        memset(back, 0, n);
        assert_ok(dp_fill_async(b, n, 7, n, stream));
        assert_ok(dp_copy_async(a, n, host, n, DP_COPY_HOST_TO_BUF_TO_DEVICE, stream));
        host[0] ^= 1; /* its bytes travelled */
        assert_ok(dp_copy_async(b, n, a, n, DP_COPY_INNER_DEVICE_TO_DEVICE, stream));
        assert_ok(dp_copy_async(back, n, b, n, DP_COPY_DEVICE_TO_HOST, stream));
        assert_ok(dp_stream_synchronise(stream, -1));
        host[0] ^= 1;
        assert_memory_equal(host, back, n);
        assert_ok(dp_copy(back, n, host, 0, DP_COPY_HOST_TO_HOST));
        assert_ok(dp_device_memory_free(a));
        assert_ok(dp_device_memory_free(b));
        free(host);
        free(back);
    }
    assert_ok(dp_stream_destroy(stream, false));
}

static void rows_arrive(void **state) {
    (void)state;
    enum { W = 37, H = 11, DP = 64, SP = 41 };
    uint8_t host[SP * H], back[SP * H], *d = new_memory(DP * (H - 1) + W);
    for (int i = 0; i < SP * H; i++)
        host[i] = (uint8_t)(i * 7);
    memset(back, 0xee, sizeof back);
    assert_ok(dp_fill(d, DP * (H - 1) + W, 0xcc, DP * (H - 1) + W));
    assert_ok(dp_copy_2d(d, DP, host, SP, W, H, DP_COPY_HOST_TO_DEVICE));
    assert_ok(dp_copy_2d_async(back, SP, d, DP, W, H, DP_COPY_DEVICE_TO_HOST, NULL));
    assert_ok(dp_stream_synchronise(NULL, -1));
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < SP; x++)
            assert_int_equal(back[y * SP + x], x < W ? host[y * SP + x] : 0xee);
        for (int x = W; x < DP && y < H - 1; x++)
            assert_int_equal(d[y * DP + x], 0xcc);
    }
    assert_ok(dp_device_memory_free(d));
}

typedef struct late_use {
    gate *g;
    uint8_t *ptr;
    size_t bytes;
} late_use;

static dp_status use_late(void *payload) {
    late_use *use = payload;
    stand_in_gate(use->g);
    memset(use->ptr, 1, use->bytes);
    return DP_OK;
}

/* Queued work may use memory that is freed meanwhile: no crash, and nobody else gets the bytes. */
static void freeing_waits_for_queued_work(void **state) {
    (void)state;
    void *stream;
    assert_ok(dp_stream_create(0, &stream));
    static const size_t sizes[] = {1000, (size_t)5 << 20};
    for (int s = 0; s < 2; s++) {
        gate g = {0};
        uint8_t *d = new_memory(sizes[s]), *others[50];
        assert_ok(dp_task_submit(stream, "late", use_late, NULL, &(late_use){&g, d, sizes[s]}, sizeof(late_use)));
        await_entry(&g);
        assert_ok(dp_device_memory_free(d));
        for (int i = 0; i < 50; i++) {
            others[i] = new_memory(sizes[s]);
            assert_ptr_not_equal(others[i], d);
            memset(others[i], 2, 100);
        }
        g.open = true;
        assert_ok(dp_stream_synchronise(stream, -1));
        for (int i = 0; i < 50; i++) {
            assert_int_equal(others[i][0], 2);
            assert_ok(dp_device_memory_free(others[i]));
        }
    }
    assert_ok(dp_stream_destroy(stream, false));
}

static void host_memory_can_be_used_by_kernels(void **state) {
    (void)state;
    static uint8_t mine[8192];
    void *h, *p = NULL;
    dp_gm_range range;
    dp_pointer_kind kind;
    int32_t device;
    assert_ok(dp_host_memory_alloc(5000, &h));
    assert_false(dp_gm_find(h, &range));
    assert_ok(dp_host_memory_device_pointer(h, &p));
    assert_ptr_equal(h, p);
    assert_true(dp_gm_find((uint8_t *)h + 4999, &range));
    assert_ok(dp_pointer_describe(h, &kind, &device));
    assert_int_equal(kind, DP_POINTER_HOST);
    assert_ok(dp_copy(h, 5000, mine, 5000, DP_COPY_HOST_TO_HOST)); /* still host memory too */
    assert_ok(dp_fill(h, 5000, 3, 5000));
    assert_ok(dp_host_memory_free(h));
    assert_false(dp_gm_find(h, &range));
    assert_ok(dp_host_memory_register(mine, sizeof mine, &p));
    assert_ptr_equal(p, mine);
    assert_refused(dp_host_memory_register(mine, 10, &p), DP_ERR_ADDRESS, "registered already");
    assert_true(dp_gm_find(mine + 8191, &range));
    assert_refused(dp_host_memory_free(mine), DP_ERR_ADDRESS, "is not an address that aclrtMallocHost gave");
    assert_refused(dp_host_memory_unregister(mine + 1), DP_ERR_ADDRESS, "not the start");
    assert_ok(dp_host_memory_unregister(mine));
    assert_refused(dp_host_memory_unregister(mine), DP_ERR_ADDRESS, "not the start");
    assert_refused(dp_host_memory_register(NULL, 10, &p), DP_ERR_ARGUMENT, "ptr");
    assert_ok(dp_pointer_describe(mine, &kind, &device));
    assert_int_equal(kind, DP_POINTER_UNKNOWN);
}

static void virtual_memory_is_mapped(void **state) {
    (void)state;
    const size_t g = DP_VMM_GRANULARITY_BYTES;
    void *range, *a, *b;
    size_t before, after;
    dp_gm_range gm;
    assert_ok(dp_device_memory_info(&before, NULL));
    assert_refused(dp_vmm_reserve(g + 1, 0, NULL, &range), DP_ERR_ARGUMENT, "granularity");
    assert_refused(dp_vmm_reserve(g, 3, NULL, &range), DP_ERR_ARGUMENT, "alignment is 3");
    assert_ok(dp_vmm_reserve(1024 * g, 0, NULL, &range));
    assert_int_equal((uintptr_t)range % g, 0);
    assert_refused(dp_vmm_create(0, 100, &a), DP_ERR_ARGUMENT, "size is 100");
    assert_refused(dp_vmm_create(7, g, &a), DP_ERR_NOT_FOUND, "deviceId is 7");
    assert_ok(dp_vmm_create(0, 2 * g, &a));
    assert_ok(dp_vmm_create(0, g, &b));
    assert_ok(dp_device_memory_info(&after, NULL));
    assert_int_equal(before - after, 3 * g);
    uint8_t *base = range;
    assert_refused(dp_vmm_map(base, 3 * g, 0, a), DP_ERR_ARGUMENT, "offset is 0");
    assert_refused(dp_vmm_map(base, g, 0, base), DP_ERR_HANDLE, "handle");
    assert_refused(dp_vmm_map(base + 4096, g, 0, a), DP_ERR_ARGUMENT, "multiple of the granularity");
    assert_refused(dp_vmm_map(base + 1023 * g, 2 * g, 0, a), DP_ERR_ADDRESS, "one range");
    assert_ok(dp_vmm_map(base, 2 * g, 0, a));
    assert_ok(dp_vmm_map(base + 2 * g, g, 0, b));
    assert_ok(dp_vmm_map(base + 10 * g, g, g, a)); /* the second half of a once more */
    assert_ok(dp_device_memory_check("x", base + g, 2 * g)); /* what lies against each other is one piece */
    assert_refused(dp_device_memory_check("x", base + g, 2 * g + 1), DP_ERR_ADDRESS, "1 past its end");
    assert_refused(dp_device_memory_check("x", base + 10 * g, g + 1), DP_ERR_ADDRESS, "1 past its end");
    assert_refused(dp_vmm_map(base + g, g, 0, b), DP_ERR_ADDRESS, "mapped at");
    base[g + 5] = 42;
    assert_int_equal(base[10 * g + 5], 42);
    assert_ok(dp_copy(base + 2 * g, g, base, 100, DP_COPY_DEVICE_TO_DEVICE));
    assert_refused(dp_device_memory_free(base), DP_ERR_ADDRESS, "mapped by aclrtMapMem");
    assert_refused(dp_vmm_release(range), DP_ERR_BUSY, "aclrtUnmapMem");
    assert_ok(dp_vmm_destroy(a));
    assert_refused(dp_vmm_destroy(a), DP_ERR_HANDLE, "destroyed before");
    base[3] = 1; /* mappings keep the memory */
    assert_ok(dp_vmm_unmap(base));
    assert_false(dp_gm_find(base, &gm));
    assert_refused(dp_vmm_unmap(base), DP_ERR_ADDRESS, "aclrtMapMem");
    assert_ok(dp_vmm_unmap(base + 2 * g));
    assert_ok(dp_vmm_unmap(base + 10 * g));
    assert_ok(dp_vmm_destroy(b));
    assert_ok(dp_vmm_release(range));
    assert_refused(dp_vmm_release(range), DP_ERR_ADDRESS, "aclrtReserveMemAddress");
    assert_ok(dp_device_memory_info(&after, NULL));
    assert_int_equal(before, after);
}

static void memory_survives_a_reset(void **state) {
    (void)state;
    void *stream, *event;
    uint8_t *d = new_memory(100);
    assert_ok(dp_stream_create(0, &stream));
    assert_ok(dp_event_create(0, &event));
    assert_ok(dp_device_reset(0, false));
    int32_t device;
    assert_refused(dp_device_get(&device), DP_ERR_STATE, "aclrtSetDevice");
    void *more;
    assert_refused(dp_device_memory_alloc(10, &more), DP_ERR_STATE, "aclrtSetDevice");
    assert_ok(dp_device_memory_free(d));
    assert_ok(dp_stream_destroy(stream, false));
    assert_ok(dp_event_destroy(event));
    assert_ok(dp_device_set(0));
    d = new_memory(100);
    assert_ok(dp_device_reset(0, true)); /* forced: everything goes */
    assert_refused(dp_device_memory_free(d), DP_ERR_ADDRESS, "freed before");
    assert_ok(dp_device_set(0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_apart),
        cmocka_unit_test(memory_is_counted_and_limited),
        cmocka_unit_test(misuse_is_explained),
        cmocka_unit_test(copies_arrive),
        cmocka_unit_test(rows_arrive),
        cmocka_unit_test(freeing_waits_for_queued_work),
        cmocka_unit_test(host_memory_can_be_used_by_kernels),
        cmocka_unit_test(virtual_memory_is_mapped),
        cmocka_unit_test(memory_survives_a_reset),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
