/*
 * Random networks: what a compiled model gives against its nodes computed one by one in double precision.
 *
 * Every net comes from a number. test_graph_random FIRST COUNT runs other nets than the test does; with COUNT 1 the net
 * is printed before and after the passes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/compare/reference.h"
#include "graph/model_file.h"
#include "graph/onnx/lower.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx_make.h"
#include "graph/passes/passes.h"
#include "graph/precision.h"
#include "graph/program.h"

enum { NETS = 500, VALUES = 64, ELEMENTS_MAX = 40000, ENDS = 80 };

static int first_net = 1, n_nets = NETS;

/* A net while it is made. */
typedef struct shape {
    int rank;
    int64_t dims[4];
} shape;

typedef struct net {
    maker *m;
    uint64_t random;
    shape values[VALUES]; /* value i is called "v<i>"; 0 is the input */
    int uses[VALUES];
    int n, n_constants;
    bool wide; /* many channels, which take other ways through convolutions */
} net;

static uint32_t draw(net *g, uint32_t below) {
    g->random = g->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->random >> 33) % below;
}
static bool chance(net *g, uint32_t percent) {
    return draw(g, 100) < percent;
}
static float number(net *g) {
    return (float)draw(g, 20001) / 10000 - 1;
}

static int64_t count_of(const shape *s) {
    int64_t count = 1;
    for (int d = 0; d < s->rank; d++)
        count *= s->dims[d];
    return count;
}

/* Images without pixels or channels: many operators refuse them. Batches of none are fine. */
static bool is_hollow(const shape *s) {
    for (int d = 1; d < s->rank; d++)
        if (!s->dims[d])
            return true;
    return false;
}

/* Late values are read more often than early ones, but all are read now and then. -1: none has this rank; without one
 * there is always the input. */
static int pick(net *g, int rank) {
    for (int attempt = 0; attempt < 30; attempt++) {
        int i = chance(g, 50) ? g->n - 1 - (int)draw(g, g->n < 3 ? (uint32_t)g->n : 3) : (int)draw(g, (uint32_t)g->n);
        if ((!rank || g->values[i].rank == rank) && !is_hollow(&g->values[i]))
            return i;
    }
    return rank ? -1 : 0;
}

/* Another value like `like`, or that itself. */
static int pick_like(net *g, int like, int axis) {
    int found[VALUES], n = 0;
    const shape *s = &g->values[like];
    for (int i = 0; i < g->n; i++) {
        bool same = g->values[i].rank == s->rank;
        for (int d = 0; d < s->rank && same; d++)
            same = d == axis || g->values[i].dims[d] == s->dims[d];
        if (same)
            found[n++] = i;
    }
    return found[draw(g, (uint32_t)n)];
}

/* A constant of floats in [-scale, scale]; its name. */
static const char *constant(net *g, float scale, int rank, const int64_t *dims) {
    static char names[4][16];
    char *name = names[g->n_constants % 4];
    shape s = {.rank = rank};
    for (int d = 0; d < rank; d++)
        s.dims[d] = dims[d];
    size_t count = (size_t)count_of(&s);
    float *contents = malloc(count * sizeof *contents);
    for (size_t i = 0; i < count; i++)
        contents[i] = scale * number(g);
    snprintf(name, sizeof names[0], "c%d", g->n_constants++);
    make_constant(g->m, name, 1, rank, dims, contents, count * sizeof *contents);
    free(contents);
    return name;
}

static const char *positive(net *g, int64_t n) {
    static char name[16];
    float *contents = malloc((size_t)n * sizeof *contents);
    for (int64_t i = 0; i < n; i++)
        contents[i] = 1 + .5f * number(g);
    snprintf(name, sizeof name, "c%d", g->n_constants++);
    make_constant(g->m, name, 1, 1, &n, contents, (size_t)n * sizeof *contents);
    free(contents);
    return name;
}

static const char *integers(net *g, int64_t n, const int64_t *contents) {
    static char names[4][16];
    char *name = names[g->n_constants % 4];
    snprintf(name, sizeof names[0], "c%d", g->n_constants++);
    make_constant(g->m, name, 7, 1, &n, contents, (size_t)n * sizeof *contents);
    return name;
}

/* A node with one output, which becomes the next value. ends: "v%d" and names of constants. */
static int node(net *g, const char *type, shape s, const char *ends) {
    char y[16];
    snprintf(y, sizeof y, "v%d", g->n);
    make_node(g->m, type, ends, y);
    char list[ENDS], *rest;
    snprintf(list, sizeof list, "%s", ends);
    for (char *end = strtok_r(list, " ", &rest); end; end = strtok_r(NULL, " ", &rest))
        if (end[0] == 'v')
            g->uses[atoi(end + 1)]++;
    g->values[g->n] = s;
    return g->n++;
}

static const char *ends(const char *format, ...) {
    static char text[ENDS];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

/* The kinds of nodes. Each makes one or a few, or none where nothing fits. */

static void convolution(net *g) {
    int x = pick(g, 4);
    if (x < 0)
        return;
    shape s = g->values[x];
    int64_t in = s.dims[1], k = 1 + 2 * draw(g, 3), stride = 1 + draw(g, 2), pad = chance(g, 70) ? k / 2 : draw(g, 2);
    int64_t groups = chance(g, 30) ? in : chance(g, 20) && in % 2 == 0 ? 2 : 1;
    int64_t out =
        groups == in && chance(g, 70) ? in : groups * (1 + draw(g, (uint32_t)((g->wide ? 120 : 37) / groups + 1)));
    pad = pad < k ? pad : 0;
    int64_t apart = chance(g, 15) ? 2 : 1, span = (k - 1) * apart + 1, more = k > 1 ? chance(g, 15) : 0;
    for (int d = 2; d < 4; d++) {
        if (s.dims[d] + 2 * pad + more < span)
            return;
        s.dims[d] = (s.dims[d] + 2 * pad + more - span) / stride + 1;
    }
    s.dims[1] = out;
    char with_bias[ENDS];
    float scale = 1.5f / sqrtf((float)(in / groups * k * k));
    snprintf(with_bias, sizeof with_bias, "v%d %s", x, constant(g, scale, 4, (int64_t[]){out, in / groups, k, k}));
    if (chance(g, 60))
        strcat(strcat(with_bias, " "), constant(g, .5f, 1, (int64_t[]){out}));
    node(g, "Conv", s, with_bias);
    make_integers(g->m, "pads", 4, (int64_t[]){pad, pad, pad + more, pad + more});
    make_integers(g->m, "strides", 2, (int64_t[]){stride, stride});
    make_integers(g->m, "dilations", 2, (int64_t[]){apart, apart});
    make_integer(g->m, "group", groups);
}

static void transposed(net *g) {
    int x = pick(g, 4);
    if (x < 0)
        return;
    shape s = g->values[x];
    int64_t in = s.dims[1], out = 1 + draw(g, 20), k = 2 + draw(g, 2);
    s.dims[1] = out;
    for (int d = 2; d < 4; d++)
        s.dims[d] = (s.dims[d] - 1) * 2 + k;
    if (count_of(&s) > ELEMENTS_MAX)
        return;
    node(g, "ConvTranspose", s, ends("v%d %s", x, constant(g, 1 / sqrtf((float)in), 4, (int64_t[]){in, out, k, k})));
    make_integers(g->m, "strides", 2, (int64_t[]){2, 2});
}

static void normalisation(net *g) {
    int x = pick(g, 4);
    if (x < 0)
        return;
    int64_t n = g->values[x].dims[1];
    char list[ENDS];
    snprintf(list, sizeof list, "v%d %s", x, constant(g, 1, 1, &n));
    strcat(strcat(list, " "), constant(g, 1, 1, &n));
    strcat(strcat(list, " "), constant(g, 1, 1, &n));
    strcat(strcat(list, " "), positive(g, n));
    node(g, "BatchNormalization", g->values[x], list);
}

static void activation(net *g) {
    static const char *const types[] = {"Relu",      "Sigmoid",  "Tanh", "HardSwish", "HardSigmoid",
                                        "LeakyRelu", "Softplus", "Neg",  "Identity",  "Abs"};
    int x = pick(g, 0);
    shape s = g->values[x];
    switch (draw(g, 5)) {
    case 0: {
        int y = node(g, "Sigmoid", s, ends("v%d", x));
        node(g, "Mul", s, chance(g, 50) ? ends("v%d v%d", x, y) : ends("v%d v%d", y, x));
        break;
    }
    case 1: {
        float low = chance(g, 50) ? 0 : -.5f, high = .7f;
        make_constant(g->m, ends("c%d", g->n_constants++), 1, 0, NULL, &low, sizeof low);
        make_constant(g->m, ends("c%d", g->n_constants++), 1, 0, NULL, &high, sizeof high);
        node(g, "Clip", s, ends("v%d c%d c%d", x, g->n_constants - 2, g->n_constants - 1));
        break;
    }
    default:
        node(g, types[draw(g, sizeof types / sizeof types[0])], s, ends("v%d", x));
    }
}

static void arithmetic(net *g) {
    static const char *const types[] = {"Add", "Add", "Add", "Mul", "Sub"};
    const char *type = types[draw(g, 5)];
    int x = pick(g, 0);
    shape s = g->values[x];
    int64_t dims[4] = {1, 1, 1, 1};
    switch (draw(g, 4)) {
    case 0: /* per channel, for a picture or for rows */
        dims[s.rank == 4 ? 1 : s.rank - 1] = s.dims[s.rank == 4 ? 1 : s.rank - 1];
        node(g, type, s, ends("v%d %s", x, constant(g, 1, s.rank, dims)));
        break;
    case 1: /* one number, on the left */
        node(g, type, s, ends("%s v%d", constant(g, 1, chance(g, 50), dims), x));
        break;
    default:
        node(g, type, s, ends("v%d v%d", x, pick_like(g, x, -1)));
    }
}

static void gate(net *g) { /* of each picture's channels */
    int x = pick(g, 4);
    if (x < 0)
        return;
    shape s = g->values[x], mean = s;
    mean.dims[2] = mean.dims[3] = 1;
    int y = node(g, "GlobalAveragePool", mean, ends("v%d", x));
    if (chance(g, 60))
        y = node(g, "Conv", mean, ends("v%d %s", y, constant(g, .5f, 4, (int64_t[]){s.dims[1], s.dims[1], 1, 1})));
    if (chance(g, 70))
        y = node(g, chance(g, 50) ? "Sigmoid" : "HardSigmoid", mean, ends("v%d", y));
    if (chance(g, 80))
        node(g, chance(g, 80) ? "Mul" : "Add", s, chance(g, 50) ? ends("v%d v%d", x, y) : ends("v%d v%d", y, x));
}

static void concatenation(net *g) {
    int first = pick(g, 0);
    shape s = g->values[first];
    int axis = chance(g, 75) && s.rank == 4 ? 1 : (int)draw(g, (uint32_t)s.rank), n = 1 + (int)draw(g, 3);
    char list[ENDS];
    snprintf(list, sizeof list, "v%d", first);
    for (int i = 0; i < n; i++) {
        int other = pick_like(g, first, axis);
        s.dims[axis] += g->values[other].dims[axis];
        snprintf(list + strlen(list), sizeof list - strlen(list), " v%d", other);
    }
    if (count_of(&s) > ELEMENTS_MAX)
        return;
    node(g, "Concat", s, list);
    make_integer(g->m, "axis", chance(g, 20) ? axis - s.rank : axis);
}

static void pool(net *g) {
    int x = pick(g, 4);
    if (x < 0)
        return;
    shape s = g->values[x];
    int64_t k = 2 + draw(g, 2), stride = 1 + draw(g, 2), pad = draw(g, 2), up = draw(g, 2);
    for (int d = 2; d < 4; d++) {
        if (s.dims[d] + 2 * pad < k)
            return;
        int64_t span = s.dims[d] + 2 * pad - k;
        s.dims[d] = (up ? (span + stride - 1) / stride : span / stride) + 1;
        if (up && (s.dims[d] - 1) * stride >= g->values[x].dims[d] + pad)
            return; /* a window beside the picture: implementations differ */
    }
    bool most = chance(g, 60);
    node(g, most ? "MaxPool" : "AveragePool", s, ends("v%d", x));
    make_integers(g->m, "kernel_shape", 2, (int64_t[]){k, k});
    make_integers(g->m, "strides", 2, (int64_t[]){stride, stride});
    make_integers(g->m, "pads", 4, (int64_t[]){pad, pad, pad, pad});
    make_integer(g->m, "ceil_mode", up);
    if (!most && !up)
        make_integer(g->m, "count_include_pad", draw(g, 2));
}

static void resize(net *g) {
    int x = pick(g, 4);
    if (x < 0)
        return;
    shape s = g->values[x];
    s.dims[2] *= 2, s.dims[3] *= 2;
    if (count_of(&s) > ELEMENTS_MAX)
        return;
    bool nearest = chance(g, 60);
    node(g, "Resize", s, ends("v%d - - %s", x, integers(g, 4, s.dims)));
    make_text(g->m, "mode", nearest ? "nearest" : "linear");
    make_text(g->m, "coordinate_transformation_mode",
              nearest         ? "asymmetric"
              : chance(g, 50) ? "half_pixel"
                              : "pytorch_half_pixel");
    if (nearest)
        make_text(g->m, "nearest_mode", "floor");
}

static void cut(net *g) {
    int x = pick(g, 0);
    shape s = g->values[x];
    int axis = s.rank == 4 && chance(g, 70) ? 1 : (int)draw(g, (uint32_t)s.rank);
    if (!s.dims[axis])
        return;
    int64_t n = s.dims[axis], from = draw(g, (uint32_t)n), to = from + 1 + draw(g, (uint32_t)(n - from));
    s.dims[axis] = to - from;
    char list[ENDS];
    snprintf(list, sizeof list, "v%d %s", x, integers(g, 1, &from));
    strcat(strcat(list, " "), integers(g, 1, &to));
    strcat(strcat(list, " "), integers(g, 1, (int64_t[]){axis}));
    node(g, "Slice", s, list);
}

static void rearrange(net *g) {
    static const int64_t orders[][4] = {{0, 2, 3, 1}, {0, 3, 1, 2}, {0, 1, 3, 2}, {1, 0, 2, 3}, {0, 2, 1, 3}};
    int x = pick(g, 0);
    shape s = g->values[x], t = s;
    if (chance(g, 50) && s.rank == 4) {
        const int64_t *order = orders[draw(g, 5)];
        for (int d = 0; d < 4; d++)
            t.dims[d] = s.dims[order[d]];
        node(g, "Transpose", t, ends("v%d", x));
        make_integers(g->m, "perm", 4, order);
        return;
    }
    if (s.rank == 4)
        t = chance(g, 50) ? (shape){3, {s.dims[0], s.dims[1], s.dims[2] * s.dims[3]}}
                          : (shape){2, {s.dims[0], s.dims[1] * s.dims[2] * s.dims[3]}};
    else
        t = (shape){4, {s.dims[0], s.rank == 3 ? s.dims[1] : 1, 1, s.dims[s.rank - 1]}};
    node(g, "Reshape", t, ends("v%d %s", x, integers(g, t.rank, t.dims)));
}

static void product(net *g) {
    int x = pick(g, 0);
    shape s = g->values[x];
    int64_t in = s.dims[s.rank - 1], out = 1 + draw(g, 40);
    if (in > 2000)
        return;
    float scale = 1.5f / sqrtf((float)in);
    s.dims[s.rank - 1] = out;
    if (s.rank == 2 && chance(g, 50)) {
        char list[ENDS];
        bool turned = chance(g, 50);
        snprintf(list, sizeof list, "v%d %s", x,
                 constant(g, scale, 2, turned ? (int64_t[]){out, in} : (int64_t[]){in, out}));
        if (chance(g, 70))
            strcat(strcat(list, " "), constant(g, 1, 1, &out));
        node(g, "Gemm", s, list);
        make_integer(g->m, "transB", turned);
    } else {
        node(g, "MatMul", s, ends("v%d %s", x, constant(g, scale, 2, (int64_t[]){in, out})));
    }
}

static void softmax(net *g) {
    int x = pick(g, 0);
    node(g, "Softmax", g->values[x], ends("v%d", x));
    make_integer(g->m, "axis", draw(g, (uint32_t)g->values[x].rank));
}

static void split(net *g) {
    int x = pick(g, 4);
    if (x < 0 || g->values[x].dims[1] < 2)
        return;
    shape s = g->values[x], t = s;
    s.dims[1] = 1 + draw(g, (uint32_t)(s.dims[1] - 1));
    t.dims[1] -= s.dims[1];
    char list[ENDS], both[ENDS];
    snprintf(list, sizeof list, "v%d %s", x, integers(g, 2, (int64_t[]){s.dims[1], t.dims[1]}));
    snprintf(both, sizeof both, "v%d v%d", g->n, g->n + 1);
    make_node(g->m, "Split", list, both);
    make_integer(g->m, "axis", 1);
    g->uses[x]++;
    g->values[g->n++] = s;
    g->values[g->n++] = t;
}

/* softmax(x x') x, as in attention; or a layer normalisation spelled out. */
static void attention(net *g) {
    int x = pick(g, 3);
    if (x < 0)
        return;
    shape s = g->values[x], turned = {3, {s.dims[0], s.dims[2], s.dims[1]}},
          scores = {3, {s.dims[0], s.dims[1], s.dims[1]}};
    if (count_of(&scores) > ELEMENTS_MAX)
        return;
    int t = node(g, "Transpose", turned, ends("v%d", x));
    make_integers(g->m, "perm", 3, (int64_t[]){0, 2, 1});
    int y = node(g, "MatMul", scores, ends("v%d v%d", x, t));
    y = node(g, "Mul", scores, ends("v%d %s", y, constant(g, .3f, 0, NULL)));
    y = node(g, "Softmax", scores, ends("v%d", y));
    node(g, "MatMul", s, ends("v%d v%d", y, x));
}

static void layer_norm(net *g) {
    int x = pick(g, 0);
    shape s = g->values[x], mean = s;
    int64_t n = s.dims[s.rank - 1];
    float two = 2, epsilon = .1f;
    if (n < 2)
        return;
    mean.dims[s.rank - 1] = 1;
    int m = node(g, "ReduceMean", mean, ends("v%d", x));
    make_integers(g->m, "axes", 1, (int64_t[]){-1});
    int d = node(g, "Sub", s, ends("v%d v%d", x, m));
    make_constant(g->m, ends("c%d", g->n_constants++), 1, 0, NULL, &two, sizeof two);
    int q = node(g, "Pow", s, ends("v%d c%d", d, g->n_constants - 1));
    q = node(g, "ReduceMean", mean, ends("v%d", q));
    make_integers(g->m, "axes", 1, (int64_t[]){-1});
    make_constant(g->m, ends("c%d", g->n_constants++), 1, 0, NULL, &epsilon, sizeof epsilon);
    q = node(g, "Add", mean, ends("v%d c%d", q, g->n_constants - 1));
    q = node(g, "Sqrt", mean, ends("v%d", q));
    d = node(g, "Div", s, ends("v%d v%d", d, q));
    d = node(g, "Mul", s, ends("v%d %s", d, constant(g, 1, 1, &n)));
    node(g, "Add", s, ends("v%d %s", d, constant(g, 1, 1, &n)));
}

static void gelu(net *g) {
    int x = pick(g, 0);
    const float numbers[] = {1.41421356f, 1, .5f};
    for (int i = 0; i < 3; i++)
        make_constant(g->m, ends("c%d", g->n_constants++), 1, 0, NULL, &numbers[i], sizeof(float));
    int c = g->n_constants;
    int y = node(g, "Div", g->values[x], ends("v%d c%d", x, c - 3));
    y = node(g, "Erf", g->values[x], ends("v%d", y));
    y = node(g, "Add", g->values[x], ends("v%d c%d", y, c - 2));
    y = node(g, "Mul", g->values[x], ends("v%d v%d", x, y));
    node(g, "Mul", g->values[x], ends("v%d c%d", y, c - 1));
}

/* Channels become pixels, a border, another slope for each channel. */
static void picture(net *g) {
    int x = pick(g, 4);
    if (x < 0)
        return;
    shape s = g->values[x];
    int64_t channels = s.dims[1];
    switch (draw(g, 3)) {
    case 0:
        if (channels % 4)
            return;
        s.dims[1] /= 4, s.dims[2] *= 2, s.dims[3] *= 2;
        node(g, "DepthToSpace", s, ends("v%d", x));
        make_integer(g->m, "blocksize", 2);
        if (chance(g, 50))
            make_text(g->m, "mode", "CRD");
        break;
    case 1:
        s.dims[2] += 1, s.dims[3] += 2;
        node(g, "Pad", s, ends("v%d %s", x, integers(g, 8, (int64_t[]){0, 0, 0, 1, 0, 0, 1, 1})));
        break;
    default:
        node(g, "PRelu", s, ends("v%d %s", x, constant(g, 1, 3, (int64_t[]){channels, 1, 1})));
    }
}

/* A net's file; net->n etc. are set. */
static void *make_net(int index, net *g, size_t *out_size) {
    static void (*const kinds[])(net * g) = {convolution,   convolution, convolution, convolution, activation,
                                             activation,    activation,  arithmetic,  arithmetic,  concatenation,
                                             concatenation, pool,        resize,      gate,        cut,
                                             rearrange,     product,     softmax,     transposed,  attention,
                                             layer_norm,    gelu,        picture,     split,       normalisation};
    memset(g, 0, sizeof *g);
    g->random = (uint64_t)index * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 4; i++)
        draw(g, 2);
    g->wide = chance(g, 8);
    g->m = make_begin(17);
    g->values[g->n++] = (shape){
        4, {chance(g, 4) ? 0 : 1 + draw(g, 3), 1 + draw(g, g->wide ? 120 : 19), 3 + draw(g, 9), 3 + draw(g, 9)}};
    make_input(g->m, "v0", 1, 4, g->values[0].dims);
    int n_nodes = 2 + (int)draw(g, 16);
    for (int i = 0; (i < n_nodes && g->n < VALUES - 12) || g->n < 2; i++)
        kinds[draw(g, sizeof kinds / sizeof kinds[0])](g);
    for (int i = 1; i < g->n; i++)
        if (!g->uses[i] || chance(g, 8))
            make_output(g->m, ends("v%d", i));
    return make_end(g->m, out_size);
}

/* Running. */

static dp_model *lowered(const void *bytes, size_t size) {
    dp_model *model;
    dp_onnx_cut cut;
    int opset;
    dp_status status = dp_onnx_read(bytes, size, NULL, &opset, &model);
    if (status == DP_OK)
        status = dp_onnx_lower(model->graph, opset, &cut);
    if (status != DP_OK)
        print_error("%s\n", dp_fail_message());
    assert_int_equal(status, DP_OK);
    assert_null(cut.node);
    return model;
}

/* The outputs in double precision, one block behind the other. */
static double *expected(dp_graph *graph, const float *input, size_t n_input) {
    dp_reference *reference;
    bool is_double;
    size_t count = 0, at = 0;
    assert_int_equal(dp_reference_new(graph, &reference), DP_OK);
    double *x = dp_reference_input(reference, graph->inputs[0]);
    for (size_t i = 0; i < n_input; i++)
        x[i] = (double)input[i];
    for (dp_node *step = graph->first; step; step = step->next)
        assert_int_equal(dp_reference_step(reference, step, &is_double), DP_OK);
    for (int i = 0; i < graph->n_outputs; i++)
        count += (size_t)dp_tensor_count(&graph->outputs[i]->tensor);
    double *y = malloc(count * sizeof *y + 1);
    for (int i = 0; i < graph->n_outputs; i++) {
        const dp_tensor *t = dp_reference_value(reference, graph->outputs[i]);
        assert_non_null(t);
        memcpy(y + at, t->base, (size_t)dp_tensor_count(t) * sizeof *y);
        at += (size_t)dp_tensor_count(t);
    }
    dp_reference_free(reference);
    return y;
}

/* What goes in and what must come out. */
typedef struct truth {
    const float *input;
    const double *right;
    bool has_nan; /* the input: Winograd's transforms spread it to neighbours, but it must not get lost */
} truth;

static bool is_right(double found, double right, double room, bool nan_spreads) {
    return fabs(found - right) <= room || (isnan(found) && (isnan(right) || nan_spreads));
}

/* Runs the graph twice, in memory with other contents; whether its outputs are those expected. */
static bool agrees(dp_graph *graph, const truth *t, double tolerance, const char *what) {
    dp_program *program;
    void *outputs[VALUES];
    bool fine = true;
    dp_status status = dp_program_new(graph, &program);
    if (status != DP_OK) {
        print_error("%s: %s\n", what, dp_fail_message());
        return false;
    }
    size_t work_bytes = (dp_program_work_bytes(program) + 127) / 64 * 64;
    void *work = aligned_alloc(64, work_bytes);
    for (int i = 0; i < graph->n_outputs; i++)
        outputs[i] = malloc(dp_value_bytes(graph->outputs[i]) + 1);
    for (int again = 0; again < 2; again++) {
        memset(work, again ? 0xff : 0, work_bytes);
        fine &= dp_program_run(program, (void *[]){(void *)(uintptr_t)t->input}, outputs, work) == DP_OK;
    }
    size_t at = 0;
    for (int i = 0; i < graph->n_outputs; i++) {
        size_t count = (size_t)dp_tensor_count(&graph->outputs[i]->tensor), k;
        double most = 0;
        for (k = 0; k < count; k++)
            most = isfinite(t->right[at + k]) ? fmax(most, fabs(t->right[at + k])) : most;
        for (k = 0; k < count && fine; k++) {
            double found = (double)((const float *)outputs[i])[k];
            if (is_right(found, t->right[at + k], tolerance * (1 + most), t->has_nan))
                continue;
            print_error("%s: element %zu of output %d: %g, expected %g\n", what, k, i, found, t->right[at + k]);
            fine = false;
        }
        at += count;
        free(outputs[i]);
    }
    free(work);
    dp_program_free(program);
    return fine;
}

/* The model as it is read from the file that atc writes. */
static bool agrees_in_file(dp_model *model, const truth *t, double tolerance, const char *what) {
    void *bytes;
    size_t size;
    dp_model_file *file;
    assert_int_equal(dp_model_file_pack(NULL, &model, 1, &bytes, &size), DP_OK);
    assert_int_equal(dp_model_file_read(bytes, size, &file), DP_OK);
    bool fine = agrees(dp_model_file_variant(file, 0)->graph, t, tolerance, what);
    dp_model_file_close(file);
    dp_free(bytes);
    return fine;
}

/* With all passes, floats becoming what `precision` says (NULL: what they are). */
static bool passes_agree(const void *bytes, size_t size, const dp_precision *precision, const truth *t,
                         double tolerance, const char *what) {
    dp_model *model = lowered(bytes, size);
    model->precision = precision;
    dp_status status = dp_passes_run(model->graph, n_nets == 1 && !precision ? stdout : NULL);
    if (status != DP_OK)
        print_error("%s: %s\n", what, dp_fail_message());
    bool fine = status == DP_OK && agrees_in_file(model, t, tolerance, what);
    dp_model_free(model);
    return fine;
}

/* As if the model had been stored as `stored` makes it: compiled once more, without anybody asking for a type. */
static bool lifted_agrees(const void *bytes, size_t size, const dp_precision *stored, const truth *t, double tolerance,
                          const char *what) {
    dp_model *model = lowered(bytes, size);
    int changes;
    model->precision = stored;
    assert_int_equal(dp_pass_precision(model->graph, &changes), DP_OK);
    model->precision = NULL;
    dp_status status = dp_passes_run(model->graph, n_nets == 1 ? stdout : NULL);
    if (status != DP_OK)
        print_error("%s: %s\n", what, dp_fail_message());
    bool fine = status == DP_OK && agrees_in_file(model, t, tolerance, what);
    dp_model_free(model);
    return fine;
}

/* A net's file without and with passes; input: random numbers. */
static bool is_fine(net *g, const void *bytes, size_t size) {
    static const dp_precision half = {.mode = DP_PRECISION_LOW, .low = DP_F16},
                              mixed = {.mode = DP_PRECISION_MIXED, .low = DP_F16};
    int changes;
    dp_model *plain = lowered(bytes, size);
    size_t n_input = (size_t)count_of(&g->values[0]);
    float *input = malloc(n_input * sizeof *input + 1);
    for (size_t i = 0; i < n_input; i++)
        input[i] = 2 * number(g);
    const bool has_nan = n_input && chance(g, 10);
    if (has_nan)
        input[draw(g, (uint32_t)n_input)] = NAN;
    if (n_nets == 1)
        dp_graph_print(plain->graph, stdout);
    double *right = expected(plain->graph, input, n_input);
    const truth t = {input, right, has_nan};
    assert_int_equal(dp_pass_outputs(plain->graph, &changes), DP_OK);
    bool fine = agrees(plain->graph, &t, 1e-4, "without passes");
    fine &= passes_agree(bytes, size, NULL, &t, 1e-4, "with passes");
    if (chance(g, 25))
        fine &= passes_agree(bytes, size, &half, &t, .05, "in half");
    else if (chance(g, 30))
        fine &= passes_agree(bytes, size, &mixed, &t, .05, "half and float");
    else if (chance(g, 40))
        fine &= lifted_agrees(bytes, size, chance(g, 50) ? &half : &mixed, &t, .05, "stored in half");
    free(right);
    free(input);
    dp_model_free(plain);
    return fine;
}

static bool try_net(int index) {
    net g;
    size_t size;
    void *bytes = make_net(index, &g, &size);
    bool fine = is_fine(&g, bytes, size);
    free(bytes);
    return fine;
}

static void nets_agree_with_their_nodes(void **state) {
    (void)state;
    int wrong = 0;
    for (int i = 0; i < n_nets; i++) {
        if (try_net(first_net + i))
            continue;
        print_error("net %d is wrong; test_graph_random %d 1 prints it\n", first_net + i, first_net + i);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Each part can be written where it belongs in one of them only. */
static void parts_of_two_concatenations(void **state) {
    (void)state;
    net g = {.m = make_begin(17), .random = 1};
    size_t size;
    g.values[g.n++] = (shape){4, {1, 3, 4, 5}};
    shape whole = {4, {1, 6, 4, 5}};
    make_input(g.m, "v0", 1, 4, g.values[0].dims);
    node(&g, "Sigmoid", g.values[0], "v0");
    node(&g, "Tanh", g.values[0], "v0");
    node(&g, "Concat", whole, "v1 v2");
    make_integer(g.m, "axis", 1);
    node(&g, "Concat", whole, "v2 v1");
    make_integer(g.m, "axis", 1);
    node(&g, "Sub", whole, "v3 v4");
    make_output(g.m, "v5");
    void *bytes = make_end(g.m, &size);
    assert_true(is_fine(&g, bytes, size));
    free(bytes);
}

int main(int argc, char **argv) {
    if (argc == 3) {
        first_net = atoi(argv[1]);
        n_nets = atoi(argv[2]);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(nets_agree_with_their_nodes),
                                       cmocka_unit_test(parts_of_two_concatenations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
