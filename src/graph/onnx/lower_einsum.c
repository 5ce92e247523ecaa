/*
 * Einsum: sums of products named by letters. Diagonals and single sums are taken first; then operands are contracted
 * from the left, two at a time, each as one batched matrix product (types that have none: by multiplying and summing).
 */
#include <string.h>

#include "graph/onnx/lower.h"

enum { LABELS = 128 };

/* Dims by label: a letter, or for those of "..." how far from the right, from 1. */
typedef struct operand {
    dp_value *value;
    char labels[DP_TENSOR_DIMS];
    int n;
} operand;

typedef struct terms {
    operand operands[16];
    char result[DP_TENSOR_DIMS];
    int n, n_result;
    int64_t size[LABELS];
} terms;

static bool has(const char *labels, int n, char label) {
    return memchr(labels, label, (size_t)n) != NULL;
}

static dp_value *shaped(dp_lowering *l, dp_value *x, const int64_t *dims, int rank) {
    return dp_low_end(l, dp_low_begin(l, "Reshape", 1, 2, x, dp_low_list(l, dims, rank)));
}

/* The operand with its dims in this order; labels that it does not have are left out. */
static void order(dp_lowering *l, operand *o, const char *labels, int n) {
    int64_t perm[DP_TENSOR_DIMS];
    bool same = true;
    int count = 0;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < o->n; d++)
            if (o->labels[d] == labels[i]) {
                same &= d == count;
                perm[count++] = d;
            }
    if (!same) {
        dp_node *node = dp_low_begin(l, "TransposeD", 1, 1, o->value);
        dp_low_integers(l, node, "perm", perm, count);
        o->value = dp_low_end(l, node);
    }
    char now[DP_TENSOR_DIMS];
    for (int i = 0; i < count; i++)
        now[i] = o->labels[perm[i]];
    memcpy(o->labels, now, (size_t)count);
}

/* A letter that stands twice: both dims go to the end and become one, of which every (n + 1)-th element stays. */
static dp_status take_diagonals(dp_lowering *l, operand *o) {
    for (int a = 0; a < o->n; a++) {
        const char *second = memchr(o->labels + a + 1, o->labels[a], (size_t)(o->n - a - 1));
        if (!second)
            continue;
        int b = (int)(second - o->labels), n = 0;
        int64_t perm[DP_TENSOR_DIMS], dims[DP_TENSOR_DIMS], zeros[DP_TENSOR_DIMS] = {0}, steps[DP_TENSOR_DIMS];
        char label = o->labels[a];
        const int64_t *from = o->value->tensor.dims;
        if (from[a] != from[b])
            return dp_low_fail(l, DP_ERR_ARGUMENT, "label %c stands for %lld and %lld", label, (long long)from[a],
                               (long long)from[b]);
        for (int d = 0; d < o->n; d++)
            if (d != a && d != b) {
                o->labels[n] = o->labels[d];
                dims[n] = from[d];
                steps[n] = 1;
                perm[n++] = d;
            }
        o->labels[n] = label;
        perm[n] = a, perm[n + 1] = b;
        dims[n] = from[a] * from[a];
        steps[n] = from[a] + 1;
        dp_node *node = dp_low_begin(l, "TransposeD", 1, 1, o->value);
        dp_low_integers(l, node, "perm", perm, o->n);
        o->value = shaped(l, dp_low_end(l, node), dims, n + 1);
        dp_node *cut = dp_low_begin(l, "StridedSliceD", 1, 1, o->value);
        dp_low_integers(l, cut, "begin", zeros, n + 1);
        dp_low_integers(l, cut, "end", dims, n + 1);
        dp_low_integers(l, cut, "strides", steps, n + 1);
        o->value = dp_low_end(l, cut);
        if (!o->value)
            return l->status;
        o->n = n + 1;
        a = -1; /* from the beginning: there may be a third */
    }
    return DP_OK;
}

/* Dims of 1 where others have more: they are repeated, so they need not be there. */
static void drop_ones(dp_lowering *l, operand *o, const int64_t *size) {
    int64_t dims[DP_TENSOR_DIMS];
    int n = 0, before = o->n;
    for (int d = 0; d < o->n; d++)
        if (o->value->tensor.dims[d] == size[(int)o->labels[d]]) {
            dims[n] = o->value->tensor.dims[d];
            o->labels[n++] = o->labels[d];
        }
    o->n = n;
    if (n != before)
        o->value = shaped(l, o->value, dims, n);
}

/* Sums over the labels that are not in `kept`. */
static void sum_rest(dp_lowering *l, operand *o, const bool *kept) {
    int64_t axes[DP_TENSOR_DIMS];
    int count = 0, n = 0;
    for (int d = 0; d < o->n; d++) {
        if (kept[(int)o->labels[d]])
            o->labels[n++] = o->labels[d];
        else
            axes[count++] = d;
    }
    o->n = n;
    if (!count)
        return;
    dp_node *node = dp_low_begin(l, "ReduceSumD", 1, 1, o->value);
    dp_low_integers(l, node, "axes", axes, count);
    o->value = dp_low_end(l, node);
}

/* Labels of both operands: batch (in both, needed later), rows, columns (in one), inner (in both, summed). */
typedef struct split {
    char batch[DP_TENSOR_DIMS], rows[DP_TENSOR_DIMS], columns[DP_TENSOR_DIMS], inner[DP_TENSOR_DIMS];
    int n_batch, n_rows, n_columns, n_inner;
} split;

static split split_labels(const operand *a, const operand *b, const bool *needed) {
    split s = {.n_batch = 0};
    for (int d = 0; d < a->n; d++) {
        char label = a->labels[d];
        if (!has(b->labels, b->n, label))
            s.rows[s.n_rows++] = label;
        else if (needed[(int)label])
            s.batch[s.n_batch++] = label;
        else
            s.inner[s.n_inner++] = label;
    }
    for (int d = 0; d < b->n; d++)
        if (!has(a->labels, a->n, b->labels[d]))
            s.columns[s.n_columns++] = b->labels[d];
    return s;
}

static int64_t count_of(const int64_t *size, const char *labels, int n) {
    int64_t count = 1;
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(count, size[(int)labels[i]], &count))
            return 0;
    return count;
}

/* Parts of no letters may be NULL. */
static int join(char *to, const char *a, int n_a, const char *b, int n_b, const char *c, int n_c) {
    if (n_a)
        memcpy(to, a, (size_t)n_a);
    if (n_b)
        memcpy(to + n_a, b, (size_t)n_b);
    if (n_c)
        memcpy(to + n_a + n_b, c, (size_t)n_c);
    return n_a + n_b + n_c;
}

static dp_value *by_product(dp_lowering *l, operand *a, operand *b, const split *s, const int64_t *size) {
    char labels[3 * DP_TENSOR_DIMS];
    int64_t batch = count_of(size, s->batch, s->n_batch), inner = count_of(size, s->inner, s->n_inner);
    int64_t left[] = {batch, count_of(size, s->rows, s->n_rows), inner},
            right[] = {batch, inner, count_of(size, s->columns, s->n_columns)};
    order(l, a, labels, join(labels, s->batch, s->n_batch, s->rows, s->n_rows, s->inner, s->n_inner));
    order(l, b, labels, join(labels, s->batch, s->n_batch, s->inner, s->n_inner, s->columns, s->n_columns));
    dp_value *x = shaped(l, a->value, left, 3), *y = shaped(l, b->value, right, 3);
    return dp_low_end(l, dp_low_begin(l, "BatchMatMulV2", 1, 2, x, y));
}

/* One dim per label of all, 1 where the operand has none, then inner ones are summed. */
static dp_value *by_sum(dp_lowering *l, operand *a, operand *b, const split *s, const int64_t *size) {
    char labels[4 * DP_TENSOR_DIMS];
    int n = join(labels, s->batch, s->n_batch, s->rows, s->n_rows, s->columns, s->n_columns), outer = n;
    memcpy(labels + n, s->inner, (size_t)s->n_inner);
    n += s->n_inner;
    operand *both[] = {a, b};
    dp_value *x[2];
    if (n > DP_TENSOR_DIMS) {
        dp_low_fail(l, DP_ERR_UNSUPPORTED, "a product has %d labels, but at most %d are supported", n, DP_TENSOR_DIMS);
        return NULL;
    }
    for (int k = 0; k < 2; k++) {
        int64_t dims[DP_TENSOR_DIMS];
        order(l, both[k], labels, n);
        for (int i = 0; i < n; i++)
            dims[i] = has(both[k]->labels, both[k]->n, labels[i]) ? size[(int)labels[i]] : 1;
        x[k] = shaped(l, both[k]->value, dims, n);
    }
    dp_value *y = dp_low_end(l, dp_low_begin(l, "Mul", 1, 2, x[0], x[1]));
    if (n == outer)
        return y;
    int64_t axes[DP_TENSOR_DIMS];
    for (int i = outer; i < n; i++)
        axes[i - outer] = i;
    dp_node *node = dp_low_begin(l, "ReduceSumD", 1, 1, y);
    dp_low_integers(l, node, "axes", axes, n - outer);
    return dp_low_end(l, node);
}

/* a becomes the contraction of a and b; `needed`: labels of the result and of operands that follow. */
static dp_status contract(dp_lowering *l, operand *a, operand *b, const int64_t *size, const bool *needed) {
    bool kept[2][LABELS];
    operand *both[] = {a, b};
    for (int k = 0; k < 2; k++) {
        memcpy(kept[k], needed, sizeof kept[k]);
        for (int d = 0; d < both[!k]->n; d++)
            kept[k][(int)both[!k]->labels[d]] = true;
    }
    for (int k = 0; k < 2; k++)
        sum_rest(l, both[k], kept[k]);
    split s = split_labels(a, b, needed);
    int n = s.n_batch + s.n_rows + s.n_columns;
    if (!a->value || !b->value || l->status != DP_OK)
        return l->status;
    if (n > DP_TENSOR_DIMS)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "a product has %d dimensions, but at most %d are supported", n,
                           DP_TENSOR_DIMS);
    int element = a->value->tensor.element;
    bool engine = DP_SET_HALF >> element & 1;
    dp_value *y = engine ? by_product(l, a, b, &s, size) : by_sum(l, a, b, &s, size);
    a->n = join(a->labels, s.batch, s.n_batch, s.rows, s.n_rows, s.columns, s.n_columns);
    int64_t dims[DP_TENSOR_DIMS];
    for (int i = 0; i < n; i++)
        dims[i] = size[(int)a->labels[i]];
    a->value = shaped(l, y, dims, n);
    return l->status;
}

/* The labels of one term; "..." stands for as many as `rest`. False when it is malformed or longer than a tensor. */
static bool read_term(const char *at, const char *end, int rest, char *labels, int *out_n) {
    int n = 0;
    for (; at < end; at++) {
        if (*at == ' ')
            continue;
        bool dots = end - at >= 3 && strncmp(at, "...", 3) == 0;
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        if (!dots && !letter)
            return false;
        for (int i = dots ? rest : 1; i > 0; i--) {
            if (n == DP_TENSOR_DIMS)
                return false;
            labels[n++] = dots ? (char)i : *at;
        }
        at += dots ? 2 : 0;
    }
    *out_n = n;
    return true;
}

static int letters_in(const char *at, const char *end) {
    int n = 0;
    for (; at < end; at++)
        n += *at != ' ' && *at != '.';
    return n;
}

/* Without "->": the dims of "...", then the letters that stand once, in their order. */
static bool usual_result(terms *t, int most_rest) {
    int times[LABELS] = {0};
    for (int k = 0; k < t->n; k++)
        for (int d = 0; d < t->operands[k].n; d++)
            times[(int)t->operands[k].labels[d]]++;
    for (int i = most_rest; i > 0; i--)
        t->result[t->n_result++] = (char)i;
    for (int c = 'A'; c <= 'z'; c++) {
        if (times[c] != 1)
            continue;
        if (t->n_result == DP_TENSOR_DIMS)
            return false;
        t->result[t->n_result++] = (char)c;
    }
    return true;
}

static dp_status read_equation(dp_lowering *l, terms *t) {
    const char *at = dp_node_text(l->node, "equation", ""), *arrow = strstr(at, "->"),
               *stop = arrow ? arrow : at + strlen(at);
    int most_rest = 0;
    for (t->n = 0; t->n < l->node->n_inputs && at <= stop; t->n++) {
        operand *o = &t->operands[t->n];
        const char *comma = memchr(at, ',', (size_t)(stop - at)), *end = comma ? comma : stop;
        o->value = dp_low_in(l, t->n);
        const dp_tensor *x = &o->value->tensor;
        int rest = x->rank - letters_in(at, end);
        if (rest < 0 || !read_term(at, end, rest, o->labels, &o->n) || o->n != x->rank)
            return dp_low_fail(l, DP_ERR_ARGUMENT, "term %d of the equation does not fit the input's %d dimensions",
                               t->n, x->rank);
        for (int d = 0; d < o->n; d++) {
            int64_t *size = &t->size[(int)o->labels[d]];
            if (*size > 1 && x->dims[d] > 1 && *size != x->dims[d])
                return dp_low_fail(l, DP_ERR_ARGUMENT, "dimension %d of input %d is %lld, but is %lld elsewhere", d,
                                   t->n, (long long)x->dims[d], (long long)*size);
            *size = *size == 0 || *size == 1 ? x->dims[d] : *size;
            most_rest = o->labels[d] < 'A' && o->labels[d] > most_rest ? o->labels[d] : most_rest;
        }
        at = end + 1;
    }
    if (at <= stop || t->n != l->node->n_inputs)
        return dp_low_fail(l, DP_ERR_ARGUMENT, "the equation has another number of terms than the node has inputs");
    bool fine = arrow ? read_term(arrow + 2, arrow + strlen(arrow), most_rest, t->result, &t->n_result)
                      : usual_result(t, most_rest);
    return fine ? DP_OK
                : dp_low_fail(l, DP_ERR_ARGUMENT, "the equation's result is malformed or has too many dimensions");
}

dp_status dp_low_einsum(dp_lowering *l) {
    terms t = {.n = 0};
    bool needed[LABELS] = {false};
    if (l->node->n_inputs < 1 || l->node->n_inputs > 16)
        return dp_low_fail(l, DP_ERR_UNSUPPORTED, "%d inputs are not supported, but 1 to 16", l->node->n_inputs);
    if (dp_low_need(l, l->node->n_inputs) != DP_OK || read_equation(l, &t) != DP_OK)
        return l->status;
    for (int k = 0; k < t.n && l->status == DP_OK; k++) {
        if (take_diagonals(l, &t.operands[k]) == DP_OK)
            drop_ones(l, &t.operands[k], t.size);
    }
    for (int k = 1; k < t.n && l->status == DP_OK; k++) {
        memset(needed, 0, sizeof needed);
        for (int i = 0; i < t.n_result; i++)
            needed[(int)t.result[i]] = true;
        for (int later = k + 1; later < t.n; later++)
            for (int d = 0; d < t.operands[later].n; d++)
                needed[(int)t.operands[later].labels[d]] = true;
        contract(l, &t.operands[0], &t.operands[k], t.size, needed);
    }
    if (l->status != DP_OK)
        return l->status;
    memset(needed, 0, sizeof needed);
    for (int i = 0; i < t.n_result; i++) {
        bool known = has(t.operands[0].labels, t.operands[0].n, t.result[i]);
        if (!known || needed[(int)t.result[i]])
            return dp_low_fail(l, DP_ERR_ARGUMENT,
                               "the equation's result has a label that stands in no term, or stands twice");
        needed[(int)t.result[i]] = true;
    }
    sum_rest(l, &t.operands[0], needed);
    if (l->status == DP_OK)
        order(l, &t.operands[0], t.result, t.n_result);
    return dp_low_last(l, dp_low_begin(l, "Identity", 1, 1, t.operands[0].value), DP_EL_NONE);
}
