/*
 * large_test.c - results larger than the caches, which are written past them: every element is right, whatever the
 * alignment, and nothing beside the result is touched.
 */
#include "ops_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4099, COLUMNS = 1049, COUNT = ROWS * COLUMNS, GUARD = 64 }; /* 17.2 MB of floats */

typedef struct room {
    float *memory, *data; /* data is 4 bytes off a cache line */
} room;

static room make_room(void) {
    room r;
    assert_int_equal(aclrtMalloc((void **)&r.memory, (COUNT + 2 * GUARD) * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST),
                     0);
    for (size_t i = 0; i < COUNT + 2 * GUARD; i++)
        r.memory[i] = 123;
    r.data = r.memory + GUARD + 1;
    return r;
}

static void check_guards(const room *r) {
    for (int i = 0; i <= GUARD; i++)
        assert_true(r->memory[i] == 123);
    for (int i = COUNT + GUARD + 1; i < COUNT + 2 * GUARD; i++)
        assert_true(r->memory[i] == 123);
}

static aclTensor *tensor_of(aclDataType type, int64_t rows, int64_t columns, void *data) {
    const int64_t dims[] = {rows, columns};
    return aclCreateTensor(dims, 2, type, NULL, 0, ACL_FORMAT_ND, dims, 2, data);
}

static room in, out;

static float source(int64_t i) {
    return (float)(i * 2654435761u % 4096) / 512 - 4;
}

static void fill(void) {
    for (int64_t i = 0; i < COUNT; i++) {
        in.data[i] = source(i);
        out.data[i] = -123;
    }
}

static void elementwise(void **state) {
    (void)state;
    fill();
    aclTensor *a = tensor_of(ACL_FLOAT, ROWS, COLUMNS, in.data), *y = tensor_of(ACL_FLOAT, ROWS, COLUMNS, out.data);
    caller_value relu[] = {P(a), P(y)}, copy[] = {P(y), P(a)};
    assert_int_equal(call_op("Relu", relu), 0);
    for (int64_t i = 0; i < COUNT; i++)
        assert_true(out.data[i] == fmaxf(source(i), 0));
    check_guards(&out);
    assert_int_equal(call_op("InplaceCopy", copy), 0);
    assert_memory_equal(out.data, in.data, COUNT * sizeof(float));
    check_guards(&out);
    /* in place */
    caller_value inplace[] = {P(y)};
    assert_int_equal(call_op("InplaceRelu", inplace), 0);
    for (int64_t i = 0; i < COUNT; i++)
        assert_true(out.data[i] == fmaxf(source(i), 0));
    aclDestroyTensor(a);
    aclDestroyTensor(y);
}

static void casts(void **state) {
    (void)state;
    fill();
    const int64_t halves = COUNT / 2;
    aclFloat16 *half = (aclFloat16 *)in.data;
    for (int64_t i = 0; i < COUNT; i++)
        half[i] = aclFloatToFloat16(source(i));
    aclTensor *a = tensor_of(ACL_FLOAT16, ROWS, COLUMNS, half), *y = tensor_of(ACL_FLOAT, ROWS, COLUMNS, out.data);
    caller_value cast[] = {P(a), I(ACL_FLOAT), P(y)};
    assert_int_equal(call_op("Cast", cast), 0);
    for (int64_t i = 0; i < COUNT; i++)
        assert_true(out.data[i] == source(i)); /* multiples of 1/512 below 4 are halves */
    check_guards(&out);
    aclTensor *wide = tensor_of(ACL_FLOAT, 2, halves, out.data), *integers = tensor_of(ACL_INT32, 2, halves, in.data);
    caller_value back[] = {P(wide), I(ACL_INT32), P(integers)};
    assert_int_equal(call_op("Cast", back), 0);
    for (int64_t i = 0; i < 2 * halves; i++)
        assert_int_equal(((int32_t *)in.data)[i], (int32_t)source(i));
    check_guards(&in);
    aclDestroyTensor(a);
    aclDestroyTensor(y);
    aclDestroyTensor(wide);
    aclDestroyTensor(integers);
}

static void lines(void **state) {
    (void)state;
    fill();
    aclTensor *a = tensor_of(ACL_FLOAT, ROWS, COLUMNS, in.data), *y = tensor_of(ACL_FLOAT, ROWS, COLUMNS, out.data);
    caller_value softmax[] = {P(a), I(1), P(y)};
    assert_int_equal(call_op("Softmax", softmax), 0);
    for (int64_t r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int64_t c = 0; c < COLUMNS; c++)
            sum += exp(source(r * COLUMNS + c));
        for (int64_t c = 0; c < COLUMNS; c += 17) {
            double want = exp(source(r * COLUMNS + c)) / sum;
            assert_true(fabs(out.data[r * COLUMNS + c] - want) <= want * 1e-6);
        }
    }
    check_guards(&out);
    aclDestroyTensor(a);
    aclDestroyTensor(y);
}

static void gather(void **state) {
    (void)state;
    fill();
    int64_t *indices, dims = ROWS;
    assert_int_equal(aclrtMalloc((void **)&indices, ROWS * sizeof *indices, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    for (int64_t i = 0; i < ROWS; i++)
        indices[i] = i * 7 % ROWS - (i % 2 ? ROWS : 0); /* every second from the end */
    aclTensor *a = tensor_of(ACL_FLOAT, ROWS, COLUMNS, in.data), *y = tensor_of(ACL_FLOAT, ROWS, COLUMNS, out.data),
              *index = aclCreateTensor(&dims, 1, ACL_INT64, NULL, 0, ACL_FORMAT_ND, &dims, 1, indices);
    caller_value values[] = {P(a), I(0), P(index), P(y)};
    assert_int_equal(call_op("GatherV2", values), 0);
    for (int64_t i = 0; i < ROWS; i++)
        assert_memory_equal(out.data + i * COLUMNS, in.data + i * 7 % ROWS * COLUMNS, COLUMNS * sizeof(float));
    check_guards(&out);
    aclDestroyTensor(a);
    aclDestroyTensor(y);
    aclDestroyTensor(index);
    aclrtFree(indices);
}

/* Whole rows have loops of their own: NaN anywhere wins, infinities stay, any length and alignment. */
static void rows_that_are_reduced(void **state) {
    (void)state;
    for (int64_t n = 1; n < 140; n += n < 70 ? 1 : 23)
        for (int64_t special = -1; special < n; special += n / 5 + 1) {
            for (int64_t i = 0; i < n; i++)
                in.data[i] = i == special ? NAN : i == 2 ? -INFINITY : source(i + 1);
            float largest = -INFINITY, smallest = INFINITY;
            for (int64_t i = 0; i < n; i++) {
                largest = in.data[i] > largest ? in.data[i] : largest;
                smallest = in.data[i] < smallest ? in.data[i] : smallest;
            }
            aclTensor *a = tensor_of(ACL_FLOAT, 1, n, in.data),
                      *y = aclCreateTensor(NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, out.data);
            caller_value values[] = {P(a), P(y)};
            assert_int_equal(call_op("Max", values), 0);
            assert_true(special >= 0 ? isnan(out.data[0]) : out.data[0] == largest);
            assert_int_equal(call_op("Min", values), 0);
            assert_true(special >= 0 ? isnan(out.data[0]) : out.data[0] == smallest);
            aclDestroyTensor(a);
            aclDestroyTensor(y);
        }
}

/* Far from 0 the error function has its limits, and gelu of negative numbers keeps its digits. */
static void ends_of_erf_and_gelu(void **state) {
    (void)state;
    static const float xs[] = {0,    -0.0f, 1e-30f, 0.3f, -0.5f, 0.5f, 0.9f,     -0.9f,     1.5f, -2.5f,
                               3.9f, -4.5f, 7,      -9,   30,    -30,  INFINITY, -INFINITY, NAN};
    enum { N = sizeof xs / sizeof *xs };
    memcpy(in.data, xs, sizeof xs);
    aclTensor *a = tensor_of(ACL_FLOAT, 1, N, in.data), *y = tensor_of(ACL_FLOAT, 1, N, out.data);
    caller_value values[] = {P(a), P(y)};
    for (int f = 0; f < 3; f++) {
        assert_int_equal(call_op(f == 0 ? "Erf" : f == 1 ? "Erfc" : "Gelu", values), 0);
        for (int i = 0; i < N; i++) {
            double x = xs[i],
                   want = f == 0   ? erf(x)
                          : f == 1 ? erfc(x)
                                   : 0.5 * x * erfc(-x * M_SQRT1_2),
                   got = out.data[i];
            double slack =
                f == 0 ? 2.5e-7 * fabs(want) : (f == 1 ? 8e-6 : 4e-6) * fabs(want) + 1e-38; /* e^-z^2 carries z^2 */
            if (f == 2 && x == -INFINITY) {
                assert_true(isnan(got) || got == 0); /* -inf times 0 */
                continue;
            }
            assert_true(isnan(want) ? isnan(got) : got == want || fabs(got - want) <= slack);
        }
    }
    assert_true(signbit(in.data[1]));
    aclDestroyTensor(a);
    aclDestroyTensor(y);
}

static int setup(void **state) {
    (void)state;
    test_begin();
    in = make_room();
    out = make_room();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    aclrtFree(in.memory);
    aclrtFree(out.memory);
    test_end();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise),
        cmocka_unit_test(casts),
        cmocka_unit_test(lines),
        cmocka_unit_test(gather),
        cmocka_unit_test(rows_that_are_reduced),
        cmocka_unit_test(ends_of_erf_and_gelu),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
