/*
 * fourier.c - discrete Fourier transforms of lines:
 *   fourier(self, axis, length, inverse, onesided) -> out
 * self [..., n, ..., 1 or 2] has real numbers, or real and imaginary parts in its last dim; out has both. Lines along
 * `axis` are cut or filled with zeros to `length` (0: n). out[k] = sum of self[i] e^(-2 pi i k / length), with
 * `inverse` the conjugate, divided by length; onesided: the first length / 2 + 1 of them. Computed in double: radix 2
 * for powers of 2, by Bluestein's chirps for other lengths (L. Bluestein, "A linear filtering approach to the
 * computation of discrete Fourier transform", 1970). Both are contiguous.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "ops/tiles.h"

#define PI 3.14159265358979323846
enum { LENGTH = 1 << 24 };

typedef struct number {
    double re, im;
} number;

typedef struct state {
    int self, out;
    int64_t lines, inner;             /* all lines; those side by side */
    int64_t n, length, results, size; /* elements in and used, out, of the power of 2 inside */
    bool is_complex, inverse;
    dp_convert_fn load, store;
} state;

/* Made once per run: roots of unity of `size`; for other lengths the chirp and the transform of its conjugate. */
typedef struct job {
    dp_plan *plan;
    const state *s;
    number *roots, *chirp, *filter;
} job;

static number times(number a, number b) {
    return (number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* In place, size a power of 2: out[k] = sum of x[i] roots[i * k]. */
static void radix2(number *x, const number *roots, int64_t size) {
    for (int64_t i = 1, j = 0; i < size; i++) {
        int64_t bit = size >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            number other = x[i];
            x[i] = x[j];
            x[j] = other;
        }
    }
    for (int64_t half = 1; half < size; half *= 2)
        for (int64_t begin = 0; begin < size; begin += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                number a = x[begin + k], b = times(x[begin + k + half], roots[k * (size / (2 * half))]);
                x[begin + k] = (number){a.re + b.re, a.im + b.im};
                x[begin + k + half] = (number){a.re - b.re, a.im - b.im};
            }
}

/* The transform of x [length] into x; room [size] for other lengths than powers of 2. */
static void transform(const job *j, number *x, number *room) {
    const state *s = j->s;
    if (!j->chirp) {
        radix2(x, j->roots, s->size);
        return;
    }
    for (int64_t i = 0; i < s->size; i++)
        room[i] = i < s->length ? times(x[i], j->chirp[i]) : (number){0, 0};
    radix2(room, j->roots, s->size);
    for (int64_t i = 0; i < s->size; i++) {
        number product = times(room[i], j->filter[i]);
        room[i] = (number){product.re, -product.im}; /* the way back is the conjugate's way there */
    }
    radix2(room, j->roots, s->size);
    for (int64_t i = 0; i < s->length; i++)
        x[i] = times((number){room[i].re / (double)s->size, -room[i].im / (double)s->size}, j->chirp[i]);
}

static void one_line(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    const dp_tensor *self = &j->plan->tensors[s->self].view, *out = &j->plan->tensors[s->out].view;
    number *x = scratch, *room = x + s->length;
    int64_t outer = (int64_t)tile / s->inner, side = (int64_t)tile % s->inner, parts = s->is_complex ? 2 : 1;
    int64_t width = (int64_t)dp_element_bytes(self->element), used = s->n < s->length ? s->n : s->length;
    const char *from = (const char *)dp_tensor_data(self) + (outer * s->n * s->inner + side) * parts * width;
    char *to = (char *)dp_tensor_data(out) + (outer * s->results * s->inner + side) * 2 * width;
    for (int64_t i = 0; i < s->length; i++) {
        double pair[2] = {0, 0};
        if (i < used)
            s->load(pair, from + i * s->inner * parts * width, (size_t)parts);
        x[i] = (number){pair[0], s->inverse ? -pair[1] : pair[1]};
    }
    transform(j, x, room);
    double factor = s->inverse ? 1 / (double)s->length : 1;
    for (int64_t k = 0; k < s->results; k++) {
        double pair[2] = {x[k].re * factor, s->inverse ? -x[k].im * factor : x[k].im};
        s->store(to + k * s->inner * 2 * width, pair, 2);
    }
}

static void make_tables(job *j) {
    const state *s = j->s;
    for (int64_t i = 0; i < s->size; i++)
        j->roots[i] = (number){cos(-2 * PI * (double)i / (double)s->size), sin(-2 * PI * (double)i / (double)s->size)};
    if (!j->chirp)
        return;
    memset(j->filter, 0, (size_t)s->size * sizeof(number));
    for (int64_t i = 0; i < s->length; i++) {
        double angle = PI * (double)(i * i % (2 * s->length)) / (double)s->length;
        j->chirp[i] = (number){cos(angle), -sin(angle)};
        j->filter[i] = (number){cos(angle), sin(angle)};
        if (i)
            j->filter[s->size - i] = j->filter[i];
    }
    radix2(j->filter, j->roots, s->size);
}

static dp_status run(dp_plan *plan) {
    const state *s = dp_plan_state(plan);
    job j = {.plan = plan, .s = s};
    if (s->lines == 0)
        return DP_OK;
    bool chirps = s->size != s->length;
    j.roots = dp_alloc(DP_MEM_RUNTIME, (size_t)(2 * s->size + s->length) * sizeof(number));
    if (!j.roots)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a transform of %lld numbers: free some",
                       (long long)s->length);
    if (chirps) {
        j.filter = j.roots + s->size;
        j.chirp = j.filter + s->size;
    }
    make_tables(&j);
    size_t scratch = (size_t)(s->length + (chirps ? s->size : 0)) * sizeof(number);
    dp_status status = dp_tiles_run((size_t)s->lines, scratch, one_line, &j);
    dp_free(j.roots);
    return status;
}

static dp_status check(const dp_operator_call *call) {
    const dp_arg *in = &call->in[0], *out = &call->out[0];
    const dp_tensor *t = in->as.tensor;
    dp_status status = dp_element_expect(in, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(out, DP_EL_BIT(t->element));
    if (status == DP_OK && (t->rank < 2 || t->dims[t->rank - 1] < 1 || t->dims[t->rank - 1] > 2))
        status = dp_fail(DP_ERR_ARGUMENT,
                         "%s must have at least 2 dimensions, and 1 or 2 parts of a number in the last", in->name);
    if (status == DP_OK && (!dp_tensor_is_contiguous(t) || !dp_tensor_is_contiguous(out->as.tensor)))
        status = dp_fail(DP_ERR_UNSUPPORTED, "%s and %s must be contiguous", in->name, out->name);
    return status;
}

static dp_status fourier(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *out = &call->out[0];
    const dp_tensor *t = in[0].as.tensor;
    int axis = 0;
    dp_status status = check(call);
    if (status == DP_OK)
        status = dp_dim_check(dp_arg_integer(&in[1], 0), t, in[1].name, &axis);
    if (status == DP_OK && axis == t->rank - 1)
        status =
            dp_fail(DP_ERR_ARGUMENT, "%s is %d, but the last dimension has the parts of numbers", in[1].name, axis);
    if (status != DP_OK)
        return status;
    int64_t length = dp_arg_integer(&in[2], 0), dims[DP_TENSOR_DIMS];
    length = length ? length : t->dims[axis];
    if (length < 1 || length > LENGTH)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be 1 to %d", in[2].name, (long long)length, LENGTH);
    bool onesided = dp_arg_integer(&in[4], 0) != 0;
    memcpy(dims, t->dims, sizeof dims);
    dims[axis] = onesided ? length / 2 + 1 : length;
    dims[t->rank - 1] = 2;
    status = dp_shape_expect(out->as.tensor, out->name, dims, t->rank, "self's, with the results along the axis");
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    state s = {.self = in[0].slot, .out = out->slot, .lines = 1, .inner = 1, .n = t->dims[axis], .length = length};
    for (int d = 0; d < t->rank - 1; d++) {
        s.lines *= d == axis ? 1 : t->dims[d];
        s.inner *= d > axis ? t->dims[d] : 1;
    }
    s.results = dims[axis];
    s.is_complex = t->dims[t->rank - 1] == 2;
    s.inverse = dp_arg_integer(&in[3], 0) != 0;
    bool power = (length & (length - 1)) == 0;
    for (s.size = 1; s.size < (power ? length : 2 * length - 1);)
        s.size *= 2;
    s.load = dp_elementwise_current()->load[t->element][DP_COMPUTE_F64];
    s.store = dp_elementwise_current()->store[t->element][DP_COMPUTE_F64];
    *(state *)dp_plan_state(plan) = s;
    plan->path = power ? "radix 2" : "chirps";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_complex_fourier;
const dp_function dp_complex_fourier = {"fourier", fourier, NULL, 0, 0};
