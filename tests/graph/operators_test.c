/* Operators of ONNX models against plain loops: forms that the ONNX project's cases do not have. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/compile.h"
#include "graph/onnx/lower.h"
#include "graph/onnx_make.h"
#include "graph/program.h"

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6, ROOM = 1 << 14 };

static uint32_t state = 1;
static uint32_t below(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}
static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = (float)below(2001) / 1000 - 1;
}
static void fill_bytes(uint8_t *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = (uint8_t)below(256);
}

/* Compiles and runs the model; outputs[i] has room for all. */
static void run(maker *m, void *const *inputs, void **outputs) {
    size_t size;
    void *bytes = make_end(m, &size);
    dp_model *model = NULL;
    dp_program *program = NULL;
    if (dp_compile_onnx(bytes, size, NULL, NULL, 0, NULL, &model) != DP_OK ||
        dp_program_new(model->graph, &program) != DP_OK)
        fail_msg("%s", dp_fail_message());
    void *work = aligned_alloc(64, (dp_program_work_bytes(program) + 127) & ~(size_t)63);
    if (dp_program_run(program, inputs, outputs, work) != DP_OK)
        fail_msg("%s", dp_fail_message());
    free(work);
    free(bytes);
    dp_program_free(program);
    dp_model_free(model);
}

static void close_to(const char *what, const float *got, const double *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-4 + 1e-4 * fabs(want[i])))
            fail_msg("%s: element %zu is %.8g, expected %.8g", what, i, (double)got[i], want[i]);
}

/* ---- recurrent layers: two directions, lengths, states, batch first or second, all in double ---- */

enum { STEPS = 5, MOST = 11, IN = 4, HIDDEN = 6 };
static const int32_t lengths_of[MOST] = {5, 2, 3, 0, 5, 4, 1, 5, 3, 2, 5};
static int batch; /* with more than 8 sequences the weights are packed */

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

typedef struct layer {
    int gates;
    bool batch_first, variant;
    const float *x, *w, *r, *b, *h0, *c0, *p;
    double y[STEPS * 2 * MOST * HIDDEN], h[2 * MOST * HIDDEN], c[2 * MOST * HIDDEN];
} layer;

static double gate_sum(const layer *l, int d, int gate, int k, const float *x, const double *h, bool with_state) {
    int row = (d * l->gates + gate) * HIDDEN + k;
    double sum = (double)l->b[d * 2 * l->gates * HIDDEN + gate * HIDDEN + k];
    for (int i = 0; i < IN; i++)
        sum += (double)l->w[row * IN + i] * (double)x[i];
    if (with_state) {
        sum += (double)l->b[(d * 2 + 1) * l->gates * HIDDEN + gate * HIDDEN + k];
        for (int i = 0; i < HIDDEN; i++)
            sum += (double)l->r[row * HIDDEN + i] * h[i];
    }
    return sum;
}

static void lstm_step(const layer *l, int d, const float *x, double *h, double *c) {
    double next_h[HIDDEN], next_c[HIDDEN];
    const float *p = l->p + d * 3 * HIDDEN;
    for (int k = 0; k < HIDDEN; k++) {
        double i = sigmoid(gate_sum(l, d, 0, k, x, h, true) + (double)p[k] * c[k]);
        double f = sigmoid(gate_sum(l, d, 2, k, x, h, true) + (double)p[2 * HIDDEN + k] * c[k]);
        next_c[k] = (l->variant ? 1 - i : f) * c[k] + i * tanh(gate_sum(l, d, 3, k, x, h, true));
        next_h[k] = sigmoid(gate_sum(l, d, 1, k, x, h, true) + (double)p[HIDDEN + k] * next_c[k]) * tanh(next_c[k]);
    }
    memcpy(h, next_h, sizeof next_h);
    memcpy(c, next_c, sizeof next_c);
}

static void gru_step(const layer *l, int d, const float *x, double *h) {
    double z[HIDDEN], r[HIDDEN], reset[HIDDEN], next[HIDDEN];
    for (int k = 0; k < HIDDEN; k++) {
        z[k] = sigmoid(gate_sum(l, d, 0, k, x, h, true));
        r[k] = sigmoid(gate_sum(l, d, 1, k, x, h, true));
        reset[k] = r[k] * h[k];
    }
    for (int k = 0; k < HIDDEN; k++) {
        double apart = gate_sum(l, d, 2, k, x, h, false);
        double behind = gate_sum(l, d, 2, k, x, h, true) - apart;
        double sum = l->variant ? apart + r[k] * behind : gate_sum(l, d, 2, k, x, reset, true);
        next[k] = (1 - z[k]) * tanh(sum) + z[k] * h[k];
    }
    memcpy(h, next, sizeof next);
}

/* Of the plain layer: LeakyRelu with 0.1 forward, an affine function backward. */
static void rnn_step(const layer *l, int d, const float *x, double *h) {
    double next[HIDDEN];
    for (int k = 0; k < HIDDEN; k++) {
        double sum = gate_sum(l, d, 0, k, x, h, true);
        next[k] = d ? 0.2 * sum + 0.3 : sum < 0 ? 0.1 * sum : sum;
    }
    memcpy(h, next, sizeof next);
}

static void run_layer(layer *l) {
    memset(l->y, 0, sizeof l->y);
    for (int d = 0; d < 2; d++)
        for (int b = 0; b < batch; b++) {
            double h[HIDDEN], c[HIDDEN];
            int at = (l->batch_first ? b * 2 + d : d * batch + b) * HIDDEN;
            for (int k = 0; k < HIDDEN; k++) {
                h[k] = (double)l->h0[at + k];
                c[k] = (double)l->c0[at + k];
            }
            for (int step = 0; step < lengths_of[b]; step++) {
                int t = d ? (int)lengths_of[b] - 1 - step : step;
                const float *x = l->x + (l->batch_first ? b * STEPS + t : t * batch + b) * IN;
                if (l->gates == 4)
                    lstm_step(l, d, x, h, c);
                else if (l->gates == 3)
                    gru_step(l, d, x, h);
                else
                    rnn_step(l, d, x, h);
                int to = (l->batch_first ? (b * STEPS + t) * 2 + d : (t * 2 + d) * batch + b) * HIDDEN;
                memcpy(l->y + to, h, sizeof h);
            }
            memcpy(l->h + at, h, sizeof h);
            memcpy(l->c + at, c, sizeof c);
        }
}

static void check_layer(const char *type, int gates, bool batch_first, bool variant) {
    static float x[STEPS * MOST * IN], w[2 * 4 * HIDDEN * IN], r[2 * 4 * HIDDEN * HIDDEN], b[2 * 8 * HIDDEN],
        h0[2 * MOST * HIDDEN], c0[2 * MOST * HIDDEN], p[2 * 3 * HIDDEN], y[STEPS * 2 * MOST * HIDDEN],
        h[2 * MOST * HIDDEN], c[2 * MOST * HIDDEN];
    static layer l;
    int32_t lengths[MOST];
    memcpy(lengths, lengths_of, sizeof lengths);
    int64_t row = gates * HIDDEN, x_dims[] = {STEPS, batch, IN}, x_first[] = {batch, STEPS, IN},
            w_dims[] = {2, row, IN}, r_dims[] = {2, row, HIDDEN}, b_dims[] = {2, 2 * row}, n_dims[] = {batch},
            p_dims[] = {2, 3 * HIDDEN}, h_dims[] = {2, batch, HIDDEN}, h_first[] = {batch, 2, HIDDEN};
    fill(x, sizeof x / 4), fill(w, sizeof w / 4), fill(r, sizeof r / 4), fill(b, sizeof b / 4);
    fill(h0, sizeof h0 / 4), fill(c0, sizeof c0 / 4), fill(p, sizeof p / 4);
    maker *m = make_begin(14);
    make_input(m, "x", FLOAT, 3, batch_first ? x_first : x_dims);
    make_input(m, "w", FLOAT, 3, w_dims);
    make_input(m, "r", FLOAT, 3, r_dims);
    make_input(m, "b", FLOAT, 2, b_dims);
    make_input(m, "n", INT32, 1, n_dims);
    make_input(m, "h0", FLOAT, 3, batch_first ? h_first : h_dims);
    if (gates == 4) {
        make_input(m, "c0", FLOAT, 3, batch_first ? h_first : h_dims);
        make_input(m, "p", FLOAT, 2, p_dims);
    }
    make_node(m, type, gates == 4 ? "x w r b n h0 c0 p" : "x w r b n h0", gates == 4 ? "y h c" : "y h");
    make_integer(m, "hidden_size", HIDDEN);
    make_integer(m, "layout", batch_first);
    make_text(m, "direction", "bidirectional");
    if (gates > 1)
        make_integer(m, gates == 4 ? "input_forget" : "linear_before_reset", variant);
    else {
        make_texts(m, "activations", "LeakyRelu Affine");
        make_reals(m, "activation_alpha", 2, (const float[]){0.1F, 0.2F});
        make_reals(m, "activation_beta", 1, (const float[]){0.3F});
    }
    make_output(m, "y");
    make_output(m, "h");
    if (gates == 4)
        make_output(m, "c");
    run(m, (void *[]){x, w, r, b, lengths, h0, c0, p}, (void *[]){y, h, c});
    l = (layer){.gates = gates,
                .batch_first = batch_first,
                .variant = variant,
                .x = x,
                .w = w,
                .r = r,
                .b = b,
                .h0 = h0,
                .c0 = c0,
                .p = p};
    run_layer(&l);
    close_to(type, y, l.y, (size_t)(STEPS * 2 * batch * HIDDEN));
    close_to(type, h, l.h, (size_t)(2 * batch * HIDDEN));
    if (gates == 4)
        close_to(type, c, l.c, (size_t)(2 * batch * HIDDEN));
}

static void recurrent_layers(void **unused) {
    (void)unused;
    for (int i = 0; i < 8; i++) {
        batch = i & 4 ? MOST : 3;
        check_layer("LSTM", 4, i & 1, i & 2);
        check_layer("GRU", 3, i & 1, i & 2);
        check_layer("RNN", 1, i & 1, i & 2);
    }
}

/* ---- Fourier transforms of any length ---- */

static void fourier_of(int length, int n, bool complex, bool inverse, bool onesided) {
    static float x[2 * 3 * 40 * 2], y[2 * 3 * 40 * 2];
    static double want[2 * 3 * 40 * 2];
    int parts = complex ? 2 : 1, results = onesided ? length / 2 + 1 : length;
    int64_t dims[] = {2, n, 3, parts}, value = length;
    fill(x, (size_t)(2 * n * 3 * parts));
    maker *m = make_begin(17);
    make_input(m, "x", FLOAT, 4, dims);
    make_constant(m, "n", 7, 0, NULL, &value, 8);
    make_node(m, "DFT", "x n", "y");
    make_integer(m, "axis", 1);
    make_integer(m, "inverse", inverse);
    make_integer(m, "onesided", onesided);
    make_output(m, "y");
    run(m, (void *[]){x}, (void *[]){y});
    for (int outer = 0; outer < 2; outer++)
        for (int side = 0; side < 3; side++)
            for (int k = 0; k < results; k++) {
                double re = 0, im = 0;
                for (int i = 0; i < n && i < length; i++) {
                    const float *at = x + ((outer * n + i) * 3 + side) * parts;
                    double a = (double)at[0], b = complex ? (double)at[1] : 0;
                    double turn =
                        (inverse ? 2 : -2) * 3.14159265358979323846 * (double)((int64_t)i * k % length) / length;
                    re += a * cos(turn) - b * sin(turn);
                    im += a * sin(turn) + b * cos(turn);
                }
                double *to = want + ((outer * results + k) * 3 + side) * 2;
                to[0] = inverse ? re / length : re;
                to[1] = inverse ? im / length : im;
            }
    close_to("DFT", y, want, (size_t)(2 * results * 3 * 2));
}

static void fourier_transforms(void **unused) {
    (void)unused;
    for (int length = 1; length <= 40; length++) {
        fourier_of(length, length, length % 2, false, false);
        fourier_of(length, length, true, true, false);
        fourier_of(length, length > 3 ? length - 2 : length + 3, false, false, true);
    }
}

/* ---- integer convolutions and products ---- */

static int at_zero(const uint8_t *x, bool is_signed, int i) {
    return is_signed ? (int8_t)x[i] : x[i];
}

static void convolution(bool x_signed, bool w_signed, int groups, int stride, int dilation, int pad) {
    enum { N = 2, C = 4, H = 7, W = 9, OUT = 6, KH = 3, KW = 2 };
    static uint8_t x[N * C * H * W], w[OUT * C * KH * KW], x_zero[1], w_zero[OUT];
    static int32_t y[ROOM];
    int c = C / groups, oh = (H + 2 * pad - (KH - 1) * dilation - 1) / stride + 1,
        ow = (W + pad - (KW - 1) * dilation - 1) / stride + 1;
    int64_t x_dims[] = {N, C, H, W}, w_dims[] = {OUT, c, KH, KW}, zeros[] = {OUT};
    fill_bytes(x, sizeof x), fill_bytes(w, sizeof w), fill_bytes(x_zero, 1), fill_bytes(w_zero, OUT);
    maker *m = make_begin(13);
    make_input(m, "x", x_signed ? INT8 : UINT8, 4, x_dims);
    make_constant(m, "w", w_signed ? INT8 : UINT8, 4, w_dims, w, (size_t)(OUT * c * KH * KW));
    make_constant(m, "p", x_signed ? INT8 : UINT8, 0, NULL, x_zero, 1);
    make_constant(m, "q", w_signed ? INT8 : UINT8, 1, zeros, w_zero, OUT);
    make_node(m, "ConvInteger", "x w p q", "y");
    make_integers(m, "strides", 2, (const int64_t[]){stride, stride});
    make_integers(m, "dilations", 2, (const int64_t[]){dilation, dilation});
    make_integers(m, "pads", 4, (const int64_t[]){pad, 0, pad, pad});
    make_integer(m, "group", groups);
    make_output(m, "y");
    run(m, (void *[]){x}, (void *[]){y});
    for (int i = 0; i < N * OUT * oh * ow; i++) {
        int n = i / (OUT * oh * ow), o = i / (oh * ow) % OUT, r = i / ow % oh, s = i % ow, sum = 0;
        for (int k = 0; k < c * KH * KW; k++) {
            int channel = o / (OUT / groups) * c + k / (KH * KW), yy = r * stride + k / KW % KH * dilation - pad,
                xx = s * stride + k % KW * dilation;
            if (yy >= 0 && yy < H && xx >= 0 && xx < W)
                sum += (at_zero(x, x_signed, ((n * C + channel) * H + yy) * W + xx) - at_zero(x_zero, x_signed, 0)) *
                       (at_zero(w, w_signed, o * c * KH * KW + k) - at_zero(w_zero, w_signed, o));
        }
        assert_int_equal(y[i], sum);
    }
}

static void product(bool a_signed, bool b_signed, bool lists) {
    enum { B = 3, M = 5, N = 7, K = 11 };
    static uint8_t a[M * K], b[B * K * N], a_zero[M], b_zero[N];
    static int32_t y[B * M * N];
    int64_t a_dims[] = {M, K}, b_dims[] = {B, K, N}, rows[] = {lists ? M : 1}, columns[] = {lists ? N : 1};
    fill_bytes(a, sizeof a), fill_bytes(b, sizeof b), fill_bytes(a_zero, M), fill_bytes(b_zero, N);
    maker *m = make_begin(13);
    make_input(m, "a", a_signed ? INT8 : UINT8, 2, a_dims);
    make_input(m, "b", b_signed ? INT8 : UINT8, 3, b_dims);
    make_input(m, "p", a_signed ? INT8 : UINT8, 1, rows);
    make_input(m, "q", b_signed ? INT8 : UINT8, 1, columns);
    make_node(m, "MatMulInteger", "a b p q", "y");
    make_output(m, "y");
    run(m, (void *[]){a, b, a_zero, b_zero}, (void *[]){y});
    for (int i = 0; i < B * M * N; i++) {
        int n = i / (M * N), r = i / N % M, c = i % N, sum = 0;
        for (int k = 0; k < K; k++)
            sum += (at_zero(a, a_signed, r * K + k) - at_zero(a_zero, a_signed, lists ? r : 0)) *
                   (at_zero(b, b_signed, (n * K + k) * N + c) - at_zero(b_zero, b_signed, lists ? c : 0));
        assert_int_equal(y[i], sum);
    }
}

static void integers(void **unused) {
    (void)unused;
    for (int i = 0; i < 8; i++) {
        convolution(i & 1, i & 2, i & 4 ? 2 : 1, 1 + (i & 1), 1 + (i >> 1 & 1), i % 3);
        product(i & 1, i & 2, i & 4);
    }
}

/* ---- Einsum: labels are summed over one after the other ---- */

typedef struct sum {
    const char *terms[3], *result;
    int n, sizes[128];
    const float *inputs[3];
} sum;

static int offset_of(const sum *s, const char *labels, const int *at) {
    int offset = 0;
    for (; *labels; labels++)
        offset = offset * s->sizes[(int)*labels] + at[(int)*labels];
    return offset;
}

static void add_all(const sum *s, const char *labels, int *at, double *y) {
    if (!*labels) {
        double value = 1;
        for (int k = 0; k < s->n; k++)
            value *= (double)s->inputs[k][offset_of(s, s->terms[k], at)];
        y[offset_of(s, s->result, at)] += value;
        return;
    }
    for (at[(int)*labels] = 0; at[(int)*labels] < s->sizes[(int)*labels]; at[(int)*labels]++)
        add_all(s, labels + 1, at, y);
}

static void einsum(const char *equation, const char *a, const char *b, const char *c, const char *result) {
    static float x[3][ROOM], y[ROOM];
    static double want[ROOM];
    sum s = {.terms = {a, b, c}, .result = result, .n = c ? 3 : b ? 2 : 1, .inputs = {x[0], x[1], x[2]}};
    char all[32] = "";
    int at[128] = {0};
    maker *m = make_begin(13);
    for (int k = 0; k < s.n; k++) {
        int64_t dims[8];
        int rank = 0;
        for (const char *label = s.terms[k]; *label; label++) {
            s.sizes[(int)*label] = 2 + (*label - 'a') % 4;
            dims[rank++] = s.sizes[(int)*label];
            if (!strchr(all, *label))
                strncat(all, label, 1);
        }
        fill(x[k], ROOM);
        make_input(m, (const char *[]){"a", "b", "c"}[k], FLOAT, rank, dims);
    }
    make_node(m, "Einsum", s.n == 3 ? "a b c" : s.n == 2 ? "a b" : "a", "y");
    make_text(m, "equation", equation);
    make_output(m, "y");
    run(m, (void *[]){x[0], x[1], x[2]}, (void *[]){y});
    memset(want, 0, sizeof want);
    add_all(&s, all, at, want);
    size_t n = 1;
    for (; *result; result++)
        n *= (size_t)s.sizes[(int)*result];
    close_to(equation, y, want, n);
}

static void sums_of_products(void **unused) {
    (void)unused;
    einsum("ij,jk->ik", "ij", "jk", NULL, "ik");
    einsum("bij,bkj->bik", "bij", "bkj", NULL, "bik");
    einsum("ij,jk", "ij", "jk", NULL, "ik");
    einsum("ba", "ba", NULL, NULL, "ab");
    einsum("ii->i", "ii", NULL, NULL, "i");
    einsum("ii->", "ii", NULL, NULL, "");
    einsum("iij,jk->k", "iij", "jk", NULL, "k");
    einsum(" i , j , k -> k j i ", "i", "j", "k", "kji");
    einsum("ab,cd->", "ab", "cd", NULL, "");
    einsum("bhwc,hkc->bhwk", "bhwc", "hkc", NULL, "bhwk");
    einsum("bhwc,wkc->bhwk", "bhwc", "wkc", NULL, "bhwk");
    einsum("...ij,...jk->...ik", "abij", "abjk", NULL, "abik");
    einsum("...ij,jk->i...k", "abij", "jk", NULL, "iabk");
    einsum("abc,cd,db->ad", "abc", "cd", "db", "ad");
    einsum("iji->ji", "iji", NULL, NULL, "ji");
}

/* ---- pooling over any window ---- */

static void pool(bool average, bool include, int pad, int dilation, int stride, bool ceil) {
    enum { C = 3, D = 4, H = 6, W = 7, K = 2 };
    static float x[C * D * H * W], y[ROOM];
    static double want[ROOM];
    static const int64_t dims[] = {1, C, D, H, W};
    int sizes[] = {D, H, W}, out[3], n = 0;
    fill(x, C * D * H * W);
    maker *m = make_begin(19);
    make_input(m, "x", FLOAT, 5, dims);
    make_node(m, average ? "AveragePool" : "MaxPool", "x", "y");
    make_integers(m, "kernel_shape", 3, (const int64_t[]){K, K, K});
    make_integers(m, "strides", 3, (const int64_t[]){stride, stride, stride});
    make_integers(m, "dilations", 3, (const int64_t[]){dilation, dilation, dilation});
    make_integers(m, "pads", 6, (const int64_t[]){pad, pad, pad, 0, 0, 0});
    make_integer(m, "ceil_mode", ceil);
    if (average)
        make_integer(m, "count_include_pad", include);
    make_output(m, "y");
    run(m, (void *[]){x}, (void *[]){y});
    for (int d = 0; d < 3; d++) {
        int room = sizes[d] + pad - (K - 1) * dilation - 1;
        out[d] = (room + (ceil ? stride - 1 : 0)) / stride + 1;
        out[d] -= ceil && (out[d] - 1) * stride >= sizes[d] + pad;
    }
    for (int c = 0; c < C; c++)
        for (int i = 0; i < out[0] * out[1] * out[2]; i++) {
            int o[] = {i / out[2] / out[1], i / out[2] % out[1], i % out[2]}, count = 0;
            double total = 0, most = -INFINITY;
            for (int k = 0; k < K * K * K; k++) {
                int tap[] = {k / 4, k / 2 % 2, k % 2}, at[3];
                bool inside = true, padded = true;
                for (int d = 0; d < 3; d++) {
                    at[d] = o[d] * stride + tap[d] * dilation - pad;
                    inside &= at[d] >= 0 && at[d] < sizes[d];
                    padded &= at[d] < sizes[d];
                }
                count += include ? padded : inside;
                if (!inside)
                    continue;
                double value = (double)x[((c * D + at[0]) * H + at[1]) * W + at[2]];
                total += value;
                most = value > most ? value : most;
            }
            want[n++] = average ? total / count : most;
        }
    close_to("pool", y, want, (size_t)n);
}

static void windows(void **unused) {
    (void)unused;
    for (int i = 0; i < 16; i++) {
        pool(true, i & 1, i & 2 ? 1 : 0, 1 + (i >> 2 & 1), 1 + (i >> 3), i % 3 == 0);
        pool(false, false, i & 2 ? 1 : 0, 1 + (i >> 2 & 1), 1 + (i >> 3), i % 3 == 0);
    }
}

/* What onnxruntime's CANN provider hands over, by the list in its source; Constant is taken by the reader. */
static void names_of_the_provider(void **unused) {
    static const char *const names[] = {"Abs",
                                        "Acos",
                                        "Acosh",
                                        "Add",
                                        "And",
                                        "ArgMax",
                                        "ArgMin",
                                        "Asin",
                                        "Asinh",
                                        "Atan",
                                        "Atanh",
                                        "AveragePool",
                                        "BatchNormalization",
                                        "BitShift",
                                        "Cast",
                                        "Ceil",
                                        "Celu",
                                        "Clip",
                                        "Compress",
                                        "Concat",
                                        "Constant",
                                        "ConstantOfShape",
                                        "Conv",
                                        "ConvTranspose",
                                        "Cos",
                                        "Cosh",
                                        "CumSum",
                                        "DepthToSpace",
                                        "Det",
                                        "Div",
                                        "Dropout",
                                        "Elu",
                                        "Equal",
                                        "Erf",
                                        "Exp",
                                        "Expand",
                                        "EyeLike",
                                        "Flatten",
                                        "Floor",
                                        "Gather",
                                        "GatherElements",
                                        "GatherND",
                                        "Gemm",
                                        "GlobalAveragePool",
                                        "GlobalLpPool",
                                        "GlobalMaxPool",
                                        "Greater",
                                        "GreaterOrEqual",
                                        "Hardmax",
                                        "HardSigmoid",
                                        "HardSwish",
                                        "Identity",
                                        "InstanceNormalization",
                                        "LeakyRelu",
                                        "Less",
                                        "LessOrEqual",
                                        "Log",
                                        "LogSoftmax",
                                        "LpNormalization",
                                        "LpPool",
                                        "LRN",
                                        "LSTM",
                                        "MatMul",
                                        "Max",
                                        "MaxPool",
                                        "MaxRoiPool",
                                        "MaxUnpool",
                                        "Mean",
                                        "MeanVarianceNormalization",
                                        "Min",
                                        "Mod",
                                        "Mul",
                                        "Multinomial",
                                        "Neg",
                                        "NonMaxSuppression",
                                        "NonZero",
                                        "Not",
                                        "OneHot",
                                        "Or",
                                        "Pad",
                                        "Pow",
                                        "PRelu",
                                        "RandomNormalLike",
                                        "RandomUniform",
                                        "RandomUniformLike",
                                        "Range",
                                        "Reciprocal",
                                        "ReduceL1",
                                        "ReduceL2",
                                        "ReduceLogSum",
                                        "ReduceLogSumExp",
                                        "ReduceMax",
                                        "ReduceMean",
                                        "ReduceMin",
                                        "ReduceProd",
                                        "ReduceSum",
                                        "ReduceSumSquare",
                                        "Relu",
                                        "Reshape",
                                        "Resize",
                                        "ReverseSequence",
                                        "RoiAlign",
                                        "Round",
                                        "Scatter",
                                        "ScatterElements",
                                        "ScatterND",
                                        "Selu",
                                        "Shape",
                                        "Shrink",
                                        "Sigmoid",
                                        "Sign",
                                        "Sin",
                                        "Sinh",
                                        "Size",
                                        "Slice",
                                        "Softmax",
                                        "SoftmaxCrossEntropyLoss",
                                        "Softplus",
                                        "Softsign",
                                        "SpaceToDepth",
                                        "Split",
                                        "Sqrt",
                                        "Squeeze",
                                        "Sub",
                                        "Sum",
                                        "Tanh",
                                        "TfIdfVectorizer",
                                        "ThresholdedRelu",
                                        "Tile",
                                        "TopK",
                                        "Transpose",
                                        "Unsqueeze",
                                        "Where",
                                        "Xor"};
    (void)unused;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool known = strcmp(names[i], "Constant") == 0;
        for (unsigned k = 0; k < dp_onnx_rows_count && !known; k++)
            known = strcmp(dp_onnx_rows[k].type, names[i]) == 0;
        if (!known)
            fail_msg("%s has no row", names[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recurrent_layers), cmocka_unit_test(fourier_transforms),
        cmocka_unit_test(integers),         cmocka_unit_test(sums_of_products),
        cmocka_unit_test(windows),          cmocka_unit_test(names_of_the_provider),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
