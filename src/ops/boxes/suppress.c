/*
 * suppress.c - of boxes that overlap only the best:
 *   suppress(boxes, scores, most, overlap, least, center) -> chosen
 * boxes [batch, n, 4] are (y1, x1, y2, x2), corners in any order, or with `center` (x, y, width, height); scores
 * [batch, classes, n]. For every class of every batch: boxes with a score above `least` (absent: all), best first,
 * equal scores in the boxes' order; one is left out when its intersection with a kept one is more than `overlap` of
 * their union. At most `most` (absent or 0: none) of a class. chosen has room for all and gets the dims of what was
 * found (op.h): [count, 3] with (batch, class, box). Formulas: the ONNX operator specification.
 */
#include <string.h>

#include "base/memory.h"
#include "ops/elementwise/kernels.h"
#include "ops/op.h"
#include "ops/tiles.h"

typedef struct state {
    int boxes, scores, chosen;
    int64_t batches, classes, n, most;
    float overlap, least;
    bool bounded, center;
    dp_convert_fn load_boxes, load_scores, store;
} state;

typedef struct box {
    float y1, x1, y2, x2, area;
} box;

typedef struct candidate {
    float score;
    int32_t index;
} candidate;

typedef struct job {
    dp_plan *plan;
    const state *s;
    int64_t *counts; /* by class */
    int32_t *kept;   /* [class][most] */
} job;

static box read_box(const state *s, const float *at) {
    if (s->center)
        return (box){at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2, at[0] + at[2] / 2, at[2] * at[3]};
    box b = {at[0] < at[2] ? at[0] : at[2], at[1] < at[3] ? at[1] : at[3], at[0] < at[2] ? at[2] : at[0],
             at[1] < at[3] ? at[3] : at[1], 0};
    b.area = (b.y2 - b.y1) * (b.x2 - b.x1);
    return b;
}

static bool overlaps(const box *a, const box *b, float limit) {
    float top = a->y1 > b->y1 ? a->y1 : b->y1, left = a->x1 > b->x1 ? a->x1 : b->x1;
    float bottom = a->y2 < b->y2 ? a->y2 : b->y2, right = a->x2 < b->x2 ? a->x2 : b->x2;
    if (bottom <= top || right <= left || a->area <= 0 || b->area <= 0)
        return false;
    float both = (bottom - top) * (right - left);
    return both / (a->area + b->area - both) > limit;
}

static bool before(const candidate *a, const candidate *b) {
    return a->score > b->score || (a->score == b->score && a->index < b->index);
}

/* Sinks the first of the heap [0, n), whose top is the worst, to its place. */
static void sink(candidate *heap, int64_t at, int64_t n) {
    candidate own = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && before(&heap[child], &heap[child + 1]);
        if (!before(&own, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = own;
}

static void sort_best_first(candidate *list, int64_t n) {
    for (int64_t i = n / 2; i-- > 0;)
        sink(list, i, n);
    for (int64_t last = n - 1; last > 0; last--) {
        candidate worst = list[0];
        list[0] = list[last];
        list[last] = worst;
        sink(list, 0, last);
    }
}

/* Scratch of one class: the batch's boxes, the candidates, the kept boxes. */
static size_t scratch_bytes(const state *s) {
    return (size_t)s->n * (4 * sizeof(float) + sizeof(candidate) + sizeof(float)) + (size_t)s->most * sizeof(box) + 64;
}

static void choose(void *context, size_t tile, void *scratch) {
    const job *j = context;
    const state *s = j->s;
    float *corners = scratch, *scores = corners + 4 * s->n;
    candidate *list = (candidate *)(scores + s->n);
    box *kept = (box *)(list + s->n);
    int64_t batch = (int64_t)tile / s->classes, n = 0, count = 0;
    const dp_tensor *b = &j->plan->tensors[s->boxes].view, *c = &j->plan->tensors[s->scores].view;
    s->load_boxes(corners, (char *)dp_tensor_data(b) + batch * s->n * 4 * (int64_t)dp_element_bytes(b->element),
                  (size_t)s->n * 4);
    s->load_scores(scores, (char *)dp_tensor_data(c) + (int64_t)tile * s->n * (int64_t)dp_element_bytes(c->element),
                   (size_t)s->n);
    for (int64_t i = 0; i < s->n; i++)
        if (s->bounded ? scores[i] > s->least : scores[i] == scores[i])
            list[n++] = (candidate){scores[i], (int32_t)i};
    sort_best_first(list, n);
    for (int64_t i = 0; i < n && count < s->most; i++) {
        box own = read_box(s, corners + 4 * list[i].index);
        bool free = true;
        for (int64_t k = 0; k < count && free; k++)
            free = !overlaps(&own, &kept[k], s->overlap);
        if (!free)
            continue;
        kept[count] = own;
        j->kept[(int64_t)tile * s->most + count++] = list[i].index;
    }
    j->counts[tile] = count;
}

static void write_all(const job *j) {
    const state *s = j->s;
    dp_tensor *chosen = &j->plan->tensors[s->chosen].view;
    char *to = dp_tensor_data(chosen);
    size_t width = dp_element_bytes(chosen->element);
    int64_t total = 0;
    for (int64_t tile = 0; tile < s->batches * s->classes; tile++)
        for (int64_t k = 0; k < j->counts[tile]; k++, total++) {
            int64_t row[] = {tile / s->classes, tile % s->classes, j->kept[tile * s->most + k]};
            s->store(to + (size_t)(3 * total) * width, row, 3);
        }
    dp_tensor_shrink(chosen, 0, total);
}

static dp_status run(dp_plan *plan) {
    job j = {.plan = plan, .s = dp_plan_state(plan)};
    size_t tiles = (size_t)(j.s->batches * j.s->classes);
    j.counts = dp_alloc(DP_MEM_RUNTIME, tiles * (sizeof(int64_t) + (size_t)j.s->most * sizeof(int32_t)) + 8);
    if (!j.counts)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the boxes of %zu classes: free some", tiles);
    j.kept = (int32_t *)(j.counts + tiles);
    dp_status status = tiles ? dp_tiles_run(tiles, scratch_bytes(j.s), choose, &j) : DP_OK;
    if (status == DP_OK)
        write_all(&j);
    dp_free(j.counts);
    return status;
}

static dp_status check(const dp_operator_call *call) {
    const dp_arg *boxes = &call->in[0], *scores = &call->in[1], *chosen = &call->out[0];
    const dp_tensor *b = boxes->as.tensor, *c = scores->as.tensor;
    dp_status status = dp_element_expect(boxes, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(scores, call->op->elements);
    if (status == DP_OK)
        status = dp_element_expect(chosen, DP_EL_BIT(DP_I64) | DP_EL_BIT(DP_I32));
    if (status == DP_OK && (b->rank != 3 || c->rank != 3 || b->dims[2] != 4 || c->dims[0] != b->dims[0] ||
                            c->dims[2] != b->dims[1] || b->dims[1] > INT32_MAX))
        status = dp_fail(DP_ERR_ARGUMENT, "%s and %s must have the dimensions [batch, n, 4] and [batch, classes, n]",
                         boxes->name, scores->name);
    const dp_arg *all[] = {boxes, scores, chosen};
    for (int i = 0; i < 3 && status == DP_OK; i++)
        if (!dp_tensor_is_contiguous(all[i]->as.tensor))
            status = dp_fail(DP_ERR_UNSUPPORTED, "%s must be contiguous", all[i]->name);
    return status;
}

static dp_status suppress(const dp_operator_call *call, dp_plan **out_plan) {
    const dp_arg *in = call->in, *chosen = &call->out[0];
    dp_status status = check(call);
    if (status != DP_OK)
        return status;
    const dp_tensor *b = in[0].as.tensor, *c = in[1].as.tensor;
    int64_t most = dp_arg_integer(&in[2], 0), room[2] = {0, 3}, classes = 0;
    most = most < 0 ? 0 : most < b->dims[1] ? most : b->dims[1];
    if (__builtin_mul_overflow(c->dims[0], c->dims[1], &classes) || __builtin_mul_overflow(classes, most, &room[0]) ||
        room[0] > INT64_MAX / 32)
        return dp_fail(DP_ERR_ARGUMENT, "%s has more classes than memory", in[1].name);
    status = dp_shape_expect(chosen->as.tensor, chosen->name, room, 2, "room for all that may be chosen");
    dp_plan *plan = status == DP_OK ? dp_plan_new(call, run, sizeof(state)) : NULL;
    if (!plan)
        return status == DP_OK ? DP_ERR_OUT_OF_MEMORY : status;
    const dp_elementwise_table *t = dp_elementwise_current();
    *(state *)dp_plan_state(plan) = (state){.boxes = in[0].slot,
                                            .scores = in[1].slot,
                                            .chosen = chosen->slot,
                                            .batches = c->dims[0],
                                            .classes = c->dims[1],
                                            .n = b->dims[1],
                                            .most = most,
                                            .overlap = (float)dp_arg_real(&in[3], 0),
                                            .least = (float)dp_arg_real(&in[4], 0),
                                            .bounded = in[4].kind != DP_ARG_ABSENT,
                                            .center = dp_arg_integer(&in[5], 0) != 0,
                                            .load_boxes = t->load[b->element][DP_COMPUTE_F32],
                                            .load_scores = t->load[c->element][DP_COMPUTE_F32],
                                            .store = t->store[chosen->as.tensor->element][DP_COMPUTE_I64]};
    plan->finds_dims = true;
    plan->path = "best first";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_boxes_suppress;
const dp_function dp_boxes_suppress = {"suppress", suppress, NULL, 0x1c, DP_FINDS_DIMS};
