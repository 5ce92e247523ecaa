/*
 * prepare.c - the arguments of the attention operators, checked and brought into one form for the engine.
 *   fused(query, key, value, bias, mask, lengths, key lengths, block table, second parts of query and key, sink, heads,
 *         scale, pre, next, layout, key heads, sparse mode, page size, lse wanted) -> out, lse
 *   score(query, key, value, bias, mask, lengths, key lengths, second parts, sink, scale, keep probability, pre, next,
 *         heads, layout, sparse mode, bias type, two lists of places that only generated biases need) -> out, max, sum
 *   heads(query, key, value, heads, scale, layout) -> out
 * Tensors that a mapping does not name (quantisation, padding, prefixes) must be absent or empty: they are refused.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "ops/attention/attention.h"

enum { SPARSE_MASK_SIZE = 2048, PAGE_KEYS_MAX = 1 << 20 };
#define FAR ((int64_t)1 << 60) /* past every key */

static const dp_arg none = {.name = "absent", .kind = DP_ARG_ABSENT};

typedef struct request {
    const dp_arg *q, *k, *v, *bias, *mask, *lengths, *key_lengths, *table, *q_rope, *k_rope, *sink;
    const dp_arg *heads, *kv_heads, *layout, *sparse, *page_keys, *pre, *next;
    double scale, bias_factor;
    const dp_arg *out, *lse, *max, *sum;
} request;

/* Places of batch, row, head and column among a tensor's dims; -1: absent. Without a head dim the last one holds heads
 * times depth. */
typedef struct axes {
    const char *name;
    int8_t rank, batch, row, head, column;
} axes;
static const axes axes_table[] = {{"BSH", 3, 0, 1, -1, 2}, {"SBH", 3, 1, 0, -1, 2}, {"BSND", 4, 0, 1, 2, 3},
                                  {"BNSD", 4, 0, 2, 1, 3}, {"NBSD", 4, 1, 2, 0, 3}, {"TND", 3, -1, 0, 1, 2},
                                  {"NTD", 3, -1, 1, 0, 2}};
static const axes pages_flat = {"pages", 3, 0, 1, -1, 2}, pages_by_head = {"pages", 4, 0, 2, 1, 3};

/* A tensor read by its axes: sizes, and strides in elements. */
typedef struct grid {
    int64_t batches, rows, heads, depth, batch, row, head, column;
} grid;

/* Present, and with something in it: callers pass empty tensors for absent ones. */
static bool given(const dp_arg *arg) {
    switch (arg->kind) {
    case DP_ARG_TENSOR:
        return dp_tensor_count(arg->as.tensor) != 0;
    case DP_ARG_INT_LIST:
    case DP_ARG_TENSOR_LIST:
        return arg->count != 0;
    default:
        return arg->kind != DP_ARG_ABSENT;
    }
}

static bool is_object(const dp_arg *arg) {
    return arg->kind == DP_ARG_TENSOR || arg->kind == DP_ARG_TENSOR_LIST || arg->kind == DP_ARG_INT_LIST;
}

/* Objects that the mapping left out. */
static dp_status refuse_others(const dp_operator_call *call) {
    for (int i = 0; i < call->n_params; i++) {
        const dp_arg *arg = &call->params[i];
        bool used = !is_object(arg) || !given(arg);
        for (int k = 0; k < call->n_in && !used; k++)
            used = call->in[k].name == arg->name;
        for (int k = 0; k < call->n_out && !used; k++)
            used = call->out[k].name == arg->name;
        if (!used)
            return dp_fail(DP_ERR_UNSUPPORTED,
                           "%s is given, but %s does not offer what it is for (quantisation, padding on the left, "
                           "shared prefixes, dropout): pass NULL",
                           arg->name, call->op->name);
    }
    return DP_OK;
}

/* Element k of a list of tensors, or the tensor itself. */
static const dp_tensor *tensor_at(const dp_arg *arg, int64_t k) {
    return arg->kind == DP_ARG_TENSOR_LIST ? arg->as.tensors[k] : arg->as.tensor;
}

static dp_status read_layout(const dp_arg *arg, axes *out_in, axes *out_out) {
    const char *text = arg->as.text, *cut = strchr(text, '_'), *parts[2] = {text, cut ? cut + 1 : text};
    const size_t lengths[2] = {cut ? (size_t)(cut - text) : strlen(text), strlen(parts[1])};
    axes *found[2] = {out_in, out_out};
    for (int p = 0; p < 2; p++) {
        found[p]->name = NULL;
        for (size_t i = 0; i < sizeof axes_table / sizeof *axes_table; i++)
            if (strlen(axes_table[i].name) == lengths[p] && !memcmp(axes_table[i].name, parts[p], lengths[p]))
                *found[p] = axes_table[i];
    }
    if (!out_in->name || !out_out->name || (out_in->batch < 0) != (out_out->batch < 0))
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s is \"%.32s\", but must be BSH, SBH, BSND, BNSD, NBSD, TND or NTD, or two of them that the "
                       "input and the output have (BNSD_BSND)",
                       arg->name, text);
    return DP_OK;
}

static dp_status read_grid(const dp_arg *arg, const dp_tensor *t, const axes *a, int64_t heads, grid *out) {
    char found[160];
    if (t->rank != a->rank)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions %s, but must have %d, as layout %s has", arg->name,
                       t->rank, dp_dims_describe(t->dims, t->rank, found, sizeof found), a->rank, a->name);
    *out = (grid){.batches = 1, .rows = t->dims[a->row], .row = t->strides[a->row], .column = t->strides[a->column]};
    if (a->batch >= 0) {
        out->batches = t->dims[a->batch];
        out->batch = t->strides[a->batch];
    }
    out->heads = heads;
    out->depth = t->dims[a->column];
    if (a->head >= 0) {
        out->head = t->strides[a->head];
        if (t->dims[a->head] != heads)
            return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be %lld, the number of heads",
                           arg->name, a->head, (long long)t->dims[a->head], (long long)heads);
        return DP_OK;
    }
    if (out->depth % heads)
        return dp_fail(DP_ERR_ARGUMENT, "%s: dimension %d is %lld, but must be a multiple of the number of heads, %lld",
                       arg->name, a->column, (long long)out->depth, (long long)heads);
    out->depth /= heads;
    out->head = out->depth * out->column;
    return DP_OK;
}

static dp_attention_span span_of(int slot, const grid *g, int64_t batch, int64_t row) {
    return (dp_attention_span){slot, batch * g->batch + row * g->row, g->head, g->row, g->column};
}

static dp_status expect_equal(const char *name, const char *what, int64_t found, int64_t expected, const char *whose) {
    if (found == expected)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s has %s %lld, but must have %lld, as %s has", name, what, (long long)found,
                   (long long)expected, whose);
}

static dp_status expect_type(const dp_arg *arg, const dp_tensor *t, int element, const char *whose) {
    if (t->element == element)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT, "%s has elements of type %s, but must have %s, as %s has", arg->name,
                   dp_element_name(t->element), dp_element_name(element), whose);
}

/* What is being put together. */
typedef struct build {
    const request *r;
    dp_attention *s;
    axes in, out;
    bool packed; /* sequences one after the other along one dim (TND): lengths are running sums */
    grid q, q_rope, k, k_rope, v, o;
    int64_t queries; /* the most of a sequence */
} build;

/* Of a call that does not say: as many as the key has room for. 0: as many as the query. */
static int64_t heads_of_key(const build *b) {
    const dp_tensor *q = b->r->q->as.tensor, *k = tensor_at(b->r->k, 0);
    if (k->rank != b->in.rank || q->rank != b->in.rank || b->s->heads < 1)
        return 0;
    if (b->in.head >= 0)
        return k->dims[b->in.head];
    int64_t depth = q->dims[b->in.column] / b->s->heads;
    return depth ? k->dims[b->in.column] / depth : 0;
}

static dp_status read_heads(build *b) {
    const request *r = b->r;
    dp_attention *s = b->s;
    s->heads = dp_arg_integer(r->heads, 0);
    s->kv_heads = dp_arg_integer(r->kv_heads, 0);
    if (r->kv_heads->kind == DP_ARG_ABSENT)
        s->kv_heads = heads_of_key(b);
    if (!s->kv_heads)
        s->kv_heads = s->heads;
    if (s->heads < 1 || s->heads > INT_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be the number of heads of the query", r->heads->name,
                       (long long)s->heads);
    if (s->kv_heads < 1 || s->heads % s->kv_heads)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must divide %s (%lld)", r->kv_heads->name,
                       (long long)s->kv_heads, r->heads->name, (long long)s->heads);
    return DP_OK;
}

static dp_status read_query(build *b) {
    const request *r = b->r;
    dp_attention *s = b->s;
    const dp_tensor *q = r->q->as.tensor, *o = r->out->as.tensor;
    dp_status status = read_grid(r->q, q, &b->in, s->heads, &b->q);
    if (status == DP_OK)
        status = read_grid(r->out, o, &b->out, s->heads, &b->o);
    if (status == DP_OK)
        status = expect_equal(r->out->name, "batches", b->o.batches, b->q.batches, r->q->name);
    if (status == DP_OK)
        status = expect_equal(r->out->name, "rows", b->o.rows, b->q.rows, r->q->name);
    if (status == DP_OK)
        status = expect_type(r->out, o, q->element, r->q->name);
    if (status == DP_OK && given(r->q_rope)) {
        status = read_grid(r->q_rope, r->q_rope->as.tensor, &b->in, s->heads, &b->q_rope);
        if (status == DP_OK)
            status = expect_equal(r->q_rope->name, "rows", b->q_rope.rows, b->q.rows, r->q->name);
        if (status == DP_OK)
            status = expect_equal(r->q_rope->name, "batches", b->q_rope.batches, b->q.batches, r->q->name);
        if (status == DP_OK)
            status = expect_type(r->q_rope, r->q_rope->as.tensor, q->element, r->q->name);
    }
    s->q_element = q->element;
    s->out_element = o->element;
    s->depth = b->q.depth;
    s->rope_depth = given(r->q_rope) ? b->q_rope.depth : 0;
    s->out_depth = b->o.depth;
    return status;
}

static dp_status read_keys_of(build *b, const dp_arg *arg, int64_t k, const axes *a, int64_t depth, const char *whose,
                              grid *out) {
    const dp_tensor *t = tensor_at(arg, k);
    dp_status status = read_grid(arg, t, a, b->s->kv_heads, out);
    if (status == DP_OK)
        status = expect_equal(arg->name, "a head size of", out->depth, depth, whose);
    if (status == DP_OK)
        status = expect_type(arg, t, b->s->q_element, b->r->q->name);
    return status;
}

/* Key, value and the key's second part, of list element i. */
static dp_status read_keys(build *b, int64_t i, const axes *a) {
    const request *r = b->r;
    dp_status status = read_keys_of(b, r->k, i, a, b->s->depth, r->q->name, &b->k);
    if (status == DP_OK)
        status = read_keys_of(b, r->v, i, a, b->s->out_depth, r->out->name, &b->v);
    if (status == DP_OK && b->s->rope_depth)
        status = read_keys_of(b, r->k_rope, 0, a, b->s->rope_depth, r->q_rope->name, &b->k_rope);
    if (status == DP_OK)
        status = expect_equal(r->v->name, "rows", b->v.rows, b->k.rows, r->k->name);
    if (status == DP_OK)
        status = expect_equal(r->v->name, "batches", b->v.batches, b->k.batches, r->k->name);
    if (status == DP_OK && b->s->rope_depth)
        status = expect_equal(r->k_rope->name, "rows", b->k_rope.rows, b->k.rows, r->k->name);
    if (status == DP_OK && b->s->rope_depth)
        status = expect_equal(r->k_rope->name, "batches", b->k_rope.batches, b->k.batches, r->k->name);
    return status;
}

/*
 * The length of sequence i, and where it begins when sequences are packed. A list of one length serves all sequences
 * that are not packed; without a list `otherwise` is the length.
 */
static dp_status read_length(const build *b, const dp_arg *list, bool packed, int64_t i, int64_t otherwise,
                             int64_t limit, int64_t *out_begin, int64_t *out_length) {
    *out_begin = 0;
    *out_length = otherwise;
    if (!given(list)) {
        if (packed && b->s->n_sequences > 1)
            return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but layout %s needs it", list->name, b->in.name);
        return DP_OK;
    }
    if (list->count != b->s->n_sequences && (packed || list->count != 1))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld lengths, but must have %lld, one per sequence", list->name,
                       (long long)list->count, (long long)b->s->n_sequences);
    int64_t at = list->count == 1 ? 0 : i, end = list->as.integers[at];
    if (packed && i)
        *out_begin = list->as.integers[i - 1];
    if (end < *out_begin || end > limit)
        return dp_fail(DP_ERR_ARGUMENT, "%s[%lld] is %lld, but must be %lld to %lld%s", list->name, (long long)at,
                       (long long)end, (long long)*out_begin, (long long)limit,
                       packed ? ": with packed sequences these are running sums" : "");
    *out_length = end - *out_begin;
    return DP_OK;
}

static dp_status read_table(build *b) {
    const request *r = b->r;
    dp_attention *s = b->s;
    s->table = -1;
    if (!given(r->table))
        return DP_OK;
    const dp_tensor *t = r->table->as.tensor;
    s->page_keys = dp_arg_integer(r->page_keys, 0);
    if (s->page_keys < 1 || s->page_keys > PAGE_KEYS_MAX)
        return dp_fail(DP_ERR_ARGUMENT, "%s is %lld, but must be the number of keys of a page, 1 to %d",
                       r->page_keys->name, (long long)s->page_keys, PAGE_KEYS_MAX);
    if (t->element != DP_I32 || t->rank != 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %d dimensions of type %s, but must have 2 of i32", r->table->name,
                       t->rank, dp_element_name(t->element));
    if (!given(r->key_lengths))
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s needs it", r->key_lengths->name, r->table->name);
    if (t->dims[0] < s->n_sequences)
        return dp_fail(DP_ERR_ARGUMENT, "%s: dimension 0 is %lld, but must be at least %lld, one per sequence",
                       r->table->name, (long long)t->dims[0], (long long)s->n_sequences);
    s->table = r->table->slot;
    s->table_row = t->strides[0];
    s->table_column = t->strides[1];
    const dp_tensor *k = tensor_at(r->k, 0);
    dp_status status = read_keys(b, 0, k->rank == 4 ? &pages_by_head : &pages_flat);
    if (status == DP_OK)
        status = expect_equal(r->k->name, "pages of", b->k.rows, s->page_keys, r->page_keys->name);
    s->pages = b->k.batches;
    s->k_page = b->k.batch;
    s->v_page = b->v.batch;
    s->k_rope_page = b->k_rope.batch;
    b->k.batch = b->v.batch = b->k_rope.batch = 0;
    return status;
}

static dp_status read_sequence(build *b, int64_t i) {
    const request *r = b->r;
    dp_attention *s = b->s;
    dp_attention_sequence *q = &s->sequences[i];
    const bool list = r->k->count > 1;
    const int64_t element = list ? i : 0;
    dp_status status = DP_OK;
    if (s->table < 0)
        status = read_keys(b, element, &b->in);
    if (status == DP_OK && s->table < 0 && !b->packed)
        status = expect_equal(r->k->name, "batches", b->k.batches, list ? 1 : s->n_sequences, r->q->name);
    if (status != DP_OK)
        return status;
    int64_t q_begin, k_begin, room = s->table < 0 ? b->k.rows : r->table->as.tensor->dims[1] * s->page_keys;
    bool packed_keys = b->packed && s->table < 0;
    status = read_length(b, r->lengths, b->packed, i, b->q.rows, b->q.rows, &q_begin, &q->queries_valid);
    if (status == DP_OK)
        status = read_length(b, r->key_lengths, packed_keys, i, b->k.rows, room, &k_begin, &q->keys);
    if (status != DP_OK)
        return status;
    const int64_t batch = b->packed ? 0 : i, k_batch = list || b->packed ? 0 : i;
    q->queries = b->packed ? q->queries_valid : b->q.rows;
    q->first_query = q_begin;
    q->page_row = i;
    q->q = span_of(r->q->slot, &b->q, batch, q_begin);
    q->out = span_of(r->out->slot, &b->o, batch, q_begin);
    q->q_rope = span_of(s->rope_depth ? r->q_rope->slot : -1, &b->q_rope, batch, q_begin);
    q->k = span_of(r->k->slot + (int)element, &b->k, k_batch, k_begin);
    q->v = span_of(r->v->slot + (int)element, &b->v, k_batch, k_begin);
    q->k_rope = span_of(s->rope_depth ? r->k_rope->slot : -1, &b->k_rope, k_batch, k_begin);
    q->bias.slot = q->mask.slot = q->lse.slot = q->max.slot = q->sum.slot = -1;
    if (q->queries > b->queries)
        b->queries = q->queries;
    return DP_OK;
}

/* A stride, or 0 for a dim of 1 that stands for all. */
static bool spread(int64_t dim, int64_t stride, int64_t needed, bool exact, int64_t *out) {
    *out = dim == 1 ? 0 : stride;
    return dim == 1 || (exact ? dim == needed : dim >= needed);
}

/*
 * bias and mask: [batch, head, query, key], leading ones may be missing. Keys, and queries, may be more than are used.
 */
static dp_status read_plane(build *b, const dp_arg *arg, bool by_batch, size_t member) {
    const dp_tensor *t = arg->as.tensor;
    dp_attention *s = b->s;
    char found[160];
    int64_t dims[4] = {1, 1, 1, 1}, strides[4] = {0};
    for (int d = 0; d < t->rank && d < 4 && t->rank <= 4; d++) {
        /* of three dims the first is the batch for a mask, the head for a bias; of two it may be the batch of one query
         */
        int to = by_batch && t->rank == 3 && d == 0 ? 0
                 : by_batch && t->rank == 2 && d == 0 && b->queries == 1 && t->dims[0] == s->n_sequences
                     ? 0
                     : 4 - t->rank + d;
        dims[to] = t->dims[d];
        strides[to] = t->strides[d];
    }
    for (int64_t i = 0; i < s->n_sequences; i++) {
        dp_attention_sequence *q = &s->sequences[i];
        int64_t batch = 0, head = 0, row = 0, column = strides[3];
        bool fits = t->rank >= 2 && t->rank <= 4 && dims[3] >= q->keys;
        fits = fits && spread(dims[0], strides[0], s->n_sequences, true, &batch);
        fits = fits && spread(dims[1], strides[1], s->heads, true, &head);
        fits = fits && spread(dims[2], strides[2], q->queries, false, &row);
        if (!fits)
            return dp_fail(
                DP_ERR_ARGUMENT,
                "%s has the shape %s, but must be [%lld or 1, %lld or 1, %lld, %lld] for %lld sequences, %lld "
                "heads, %lld queries and %lld keys; leading dimensions of 1 may be missing",
                arg->name, dp_dims_describe(t->dims, t->rank, found, sizeof found), (long long)s->n_sequences,
                (long long)s->heads, (long long)q->queries, (long long)q->keys, (long long)s->n_sequences,
                (long long)s->heads, (long long)q->queries, (long long)q->keys);
        *(dp_attention_span *)((char *)q + member) =
            (dp_attention_span){arg->slot, (b->packed ? 0 : i) * batch, head, row, column};
    }
    return DP_OK;
}

static dp_status read_bias(build *b) {
    const request *r = b->r;
    if (!given(r->bias))
        return DP_OK;
    if (b->packed)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is given, but is not offered with layout %s", r->bias->name, b->in.name);
    b->s->bias_element = r->bias->as.tensor->element;
    dp_status status = dp_element_expect(r->bias, DP_EL_HALVES | DP_EL_BIT(DP_F32));
    return status == DP_OK ? read_plane(b, r->bias, false, offsetof(dp_attention_sequence, bias)) : status;
}

static int64_t clipped(const dp_arg *arg) {
    int64_t v = dp_arg_integer(arg, FAR);
    return v > FAR ? FAR : v < -FAR ? -FAR : v;
}

/*
 * Modes: 0 the mask as given, between pre and next when there is a mask; 1 the mask alone; 2 keys up to the query's
 * number; 3 the same with the last query at the last key; 4 pre and next with the last query at the last key. 2 to 4
 * follow from positions: the mask is the documented triangle of 2048 x 2048, whose content is not read.
 */
static dp_status read_mask(build *b) {
    const request *r = b->r;
    dp_attention *s = b->s;
    int64_t mode = dp_arg_integer(r->sparse, 0);
    s->pre = s->next = FAR;
    if (mode < 0 || mode > 4)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is %lld, but only 0 to 4 are offered", r->sparse->name, (long long)mode);
    if (!given(r->mask)) {
        if (mode == 0)
            return DP_OK;
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s %lld needs it", r->mask->name, r->sparse->name,
                       (long long)mode);
    }
    const dp_tensor *t = r->mask->as.tensor;
    dp_status status = dp_element_expect(r->mask, DP_EL_BIT(DP_EL_BOOL) | DP_EL_BIT(DP_I8) | DP_EL_BIT(DP_U8));
    if (status != DP_OK)
        return status;
    if (mode == 0 || mode == 4) {
        s->pre = clipped(r->pre);
        s->next = clipped(r->next);
    } else if (mode >= 2) {
        s->next = 0;
    }
    if (mode < 2)
        return read_plane(b, r->mask, true, offsetof(dp_attention_sequence, mask));
    if (t->rank < 2 || t->dims[t->rank - 1] != SPARSE_MASK_SIZE || t->dims[t->rank - 2] != SPARSE_MASK_SIZE)
        return dp_fail(DP_ERR_ARGUMENT, "%s must be of %d by %d for %s %lld, but has %d dimensions, the last %lld",
                       r->mask->name, SPARSE_MASK_SIZE, SPARSE_MASK_SIZE, r->sparse->name, (long long)mode, t->rank,
                       t->rank ? (long long)t->dims[t->rank - 1] : 0);
    for (int64_t i = 0; i < s->n_sequences && mode >= 3; i++)
        s->sequences[i].shift = s->sequences[i].keys - s->sequences[i].queries_valid;
    return DP_OK;
}

/* One number per head and query: [batch, head, query, copies], packed [row, head, copies], in float. */
static dp_status read_statistic(build *b, const dp_arg *arg, int64_t copies, size_t member) {
    if (arg->kind != DP_ARG_TENSOR)
        return DP_OK;
    const dp_tensor *t = arg->as.tensor;
    dp_attention *s = b->s;
    const int64_t whole[4] = {s->n_sequences, s->heads, b->q.rows, copies}, packed[3] = {b->q.rows, s->heads, copies};
    dp_status status = dp_element_expect(arg, DP_EL_BIT(DP_F32));
    if (status == DP_OK)
        status = dp_shape_expect(t, arg->name, b->packed ? packed : whole, b->packed ? 3 : 4,
                                 b->packed ? "rows, heads, 1 or copies" : "sequences, heads, queries, 1 or copies");
    if (status != DP_OK)
        return status;
    int row = b->packed ? 0 : 2, column = b->packed ? 2 : 3;
    for (int64_t i = 0; i < s->n_sequences; i++) {
        dp_attention_sequence *q = &s->sequences[i];
        int64_t at = (b->packed ? q->first_query : i) * t->strides[0];
        *(dp_attention_span *)((char *)q + member) =
            (dp_attention_span){arg->slot, at, t->strides[1], t->strides[row], t->strides[column]};
    }
    return DP_OK;
}

static dp_status read_sink(build *b) {
    const dp_arg *arg = b->r->sink;
    b->s->sink = -1;
    if (!given(arg))
        return DP_OK;
    dp_status status = dp_element_expect(arg, DP_EL_HALVES | DP_EL_BIT(DP_F32));
    if (status == DP_OK)
        status = dp_shape_expect(arg->as.tensor, arg->name, &b->s->heads, 1, "one per head");
    b->s->sink = arg->slot;
    b->s->sink_element = arg->as.tensor->element;
    b->s->sink_stride = arg->as.tensor->strides[0];
    return status;
}

/* Everything that needs the sequences. */
static dp_status fill(build *b) {
    const request *r = b->r;
    dp_attention *s = b->s;
    s->scale = (float)r->scale;
    s->bias_factor = (float)r->bias_factor;
    s->kv_element = s->q_element;
    s->copies = 8;
    dp_status status = read_table(b);
    for (int64_t i = 0; i < s->n_sequences && status == DP_OK; i++)
        status = read_sequence(b, i);
    if (status == DP_OK)
        status = read_bias(b);
    if (status == DP_OK)
        status = read_mask(b);
    if (status == DP_OK)
        status = read_sink(b);
    if (status == DP_OK)
        status = read_statistic(b, r->lse, 1, offsetof(dp_attention_sequence, lse));
    if (status == DP_OK)
        status = read_statistic(b, r->max, s->copies, offsetof(dp_attention_sequence, max));
    if (status == DP_OK)
        status = read_statistic(b, r->sum, s->copies, offsetof(dp_attention_sequence, sum));
    if (status == DP_OK)
        dp_attention_cut(s);
    return status;
}

static dp_status check_presence(const request *r) {
    const int64_t counts[2] = {r->k->kind == DP_ARG_TENSOR_LIST ? r->k->count : 1,
                               r->v->kind == DP_ARG_TENSOR_LIST ? r->v->count : 1};
    if (counts[0] < 1 || counts[1] != counts[0])
        return dp_fail(DP_ERR_ARGUMENT,
                       "%s has %lld tensors and %s %lld, but both must have the same number, at least 1", r->k->name,
                       (long long)counts[0], r->v->name, (long long)counts[1]);
    if (given(r->q_rope) != given(r->k_rope))
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s is given: both are needed",
                       given(r->q_rope) ? r->k_rope->name : r->q_rope->name,
                       given(r->q_rope) ? r->q_rope->name : r->k_rope->name);
    if (counts[0] > 1 && given(r->k_rope))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is not offered with a list of several tensors in %s", r->k_rope->name,
                       r->k->name);
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, const request *r, dp_plan **out_plan) {
    dp_attention head = {0};
    build b = {.r = r, .s = &head};
    dp_status status = refuse_others(call);
    if (status == DP_OK)
        status = check_presence(r);
    if (status == DP_OK)
        status = dp_element_expect(r->q, call->op->elements);
    if (status == DP_OK)
        status = read_layout(r->layout, &b.in, &b.out);
    if (status == DP_OK)
        status = read_heads(&b);
    if (status == DP_OK)
        status = read_query(&b);
    if (status != DP_OK)
        return status;
    b.packed = b.in.batch < 0;
    head.n_sequences = !b.packed ? b.q.batches : given(r->lengths) ? r->lengths->count : 1;
    if (head.n_sequences > INT_MAX / 2)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld sequences, but may have %d", r->q->name,
                       (long long)head.n_sequences, INT_MAX / 2);
    if (r->k->count > 1 && (b.packed || r->k->count != head.n_sequences))
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld tensors, but must have 1, or one per sequence (%lld)", r->k->name,
                       (long long)r->k->count, (long long)head.n_sequences);
    dp_plan *plan =
        dp_plan_new(call, dp_attention_run, sizeof head + (size_t)head.n_sequences * sizeof(dp_attention_sequence));
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    b.s = dp_plan_state(plan);
    memcpy(b.s, &head, sizeof head);
    status = fill(&b);
    if (status != DP_OK) {
        dp_plan_free(plan);
        return status;
    }
    plan->path = b.queries * (head.heads / head.kv_heads) <= 8 ? "tiles of keys, rows added" : "tiles of keys";
    *out_plan = plan;
    return DP_OK;
}

static dp_status prepare_fused(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    bool wants_lse = dp_arg_integer(&a[19], 0) != 0;
    if (wants_lse && call->out[1].kind != DP_ARG_TENSOR)
        return dp_fail(DP_ERR_NOT_FOUND, "%s is NULL, but %s asks for it", call->out[1].name, a[19].name);
    request r = {.q = &a[0],
                 .k = &a[1],
                 .v = &a[2],
                 .bias = &a[3],
                 .mask = &a[4],
                 .lengths = &a[5],
                 .key_lengths = &a[6],
                 .table = &a[7],
                 .q_rope = &a[8],
                 .k_rope = &a[9],
                 .sink = &a[10],
                 .heads = &a[11],
                 .scale = dp_arg_real(&a[12], 1),
                 .bias_factor = 1,
                 .pre = &a[13],
                 .next = &a[14],
                 .layout = &a[15],
                 .kv_heads = &a[16],
                 .sparse = &a[17],
                 .page_keys = &a[18],
                 .out = &call->out[0],
                 .lse = wants_lse ? &call->out[1] : &none,
                 .max = &none,
                 .sum = &none};
    return prepare(call, &r, out_plan);
}

/* What training adds: no dropout here, a bias before or after the scale, maximum and sum as outputs. */
static dp_status prepare_score(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    const double scale = dp_arg_real(&a[10], 1), keep = dp_arg_real(&a[11], 1);
    const int64_t bias_type = dp_arg_integer(&a[17], 1);
    if (keep != 1)
        return dp_fail(DP_ERR_UNSUPPORTED, "%s is %g, but only 1 is offered: no dropout", a[11].name, keep);
    if (bias_type != 0 && bias_type != 1)
        return dp_fail(DP_ERR_UNSUPPORTED,
                       "%s is %lld, but only 0 (scale, then add) and 1 (add, then scale) are offered", a[17].name,
                       (long long)bias_type);
    request r = {.q = &a[0],
                 .k = &a[1],
                 .v = &a[2],
                 .bias = &a[3],
                 .mask = &a[4],
                 .lengths = &a[5],
                 .key_lengths = &a[6],
                 .table = &none,
                 .q_rope = &a[7],
                 .k_rope = &a[8],
                 .sink = &a[9],
                 .heads = &a[14],
                 .scale = scale,
                 .bias_factor = bias_type == 1 ? scale : 1,
                 .pre = &a[12],
                 .next = &a[13],
                 .layout = &a[15],
                 .kv_heads = &none,
                 .sparse = &a[16],
                 .page_keys = &none,
                 .out = &call->out[0],
                 .lse = &none,
                 .max = &call->out[1],
                 .sum = &call->out[2]};
    return prepare(call, &r, out_plan);
}

/* Plain attention of models: what is written has the query's rows and the value's depth, in its own layout. */
static dp_status prepare_heads(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *a = call->in;
    dp_attention s = {0};
    request r = {.q = &a[0], .k = &a[1], .v = &a[2], .bias = &none, .mask = &none, .lengths = &none};
    r.key_lengths = r.table = r.q_rope = r.k_rope = r.sink = r.sparse = r.page_keys = r.pre = r.next = &none;
    r.lse = r.max = r.sum = &none;
    r.heads = r.kv_heads = &a[3];
    r.scale = dp_arg_real(&a[4], 1);
    r.bias_factor = 1;
    r.layout = &a[5];
    r.out = &call->out[0];
    build b = {.r = &r, .s = &s};
    dp_status status = read_layout(r.layout, &b.in, &b.out);
    if (status == DP_OK)
        status = read_heads(&b);
    if (status == DP_OK)
        status = read_grid(r.q, r.q->as.tensor, &b.in, s.heads, &b.q);
    if (status == DP_OK)
        status = read_grid(r.v, r.v->as.tensor, &b.in, s.heads, &b.v);
    if (status != DP_OK)
        return status;
    int64_t dims[4] = {0};
    if (b.out.batch >= 0)
        dims[b.out.batch] = b.q.batches;
    if (b.out.head >= 0)
        dims[b.out.head] = s.heads;
    dims[b.out.row] = b.q.rows;
    dims[b.out.column] = b.v.depth * (b.out.head < 0 ? s.heads : 1);
    status = dp_shape_expect(r.out->as.tensor, r.out->name, dims, b.out.rank, "the query's rows, the value's depth");
    return status == DP_OK ? prepare(call, &r, out_plan) : status;
}

extern const dp_function dp_attention_fused, dp_attention_score, dp_attention_heads;
const dp_function dp_attention_fused = {"fused", prepare_fused, NULL, 0x7f8, 2};
const dp_function dp_attention_score = {"score", prepare_score, NULL, 0xc03f8, 6};
const dp_function dp_attention_heads = {"heads", prepare_heads, NULL, 0, 0};
