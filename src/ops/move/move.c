#include "ops/move/move.h"

#include <string.h>

#include "ops/elementwise/kernels.h"
#include "runtime/pool.h"

enum { GRAIN = 16384 };

typedef struct job {
    dp_plan *plan;
    const dp_piece *piece;
    dp_loop loop; /* of copies, elements of `width` bytes */
    size_t width;
    char *to;
    const char *from;
} job;

static char *place_of(const job *j, int slot, int64_t offset) {
    dp_plan *plan = j->plan;
    return (char *)dp_plan_data(plan, slot) + offset * (int64_t)dp_element_bytes(plan->tensors[slot].view.element);
}

static void copy_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    dp_loop_copy(&j->loop, j->to, j->from, j->width, begin, end);
}

/* A few elements that lie side by side on both sides, 16 bytes at most, are copied as one. */
static void join_elements(job *j) {
    dp_loop *loop = &j->loop;
    const int last = loop->rank - 1;
    const int64_t n = loop->dims[last];
    const size_t width = j->width * (size_t)n;
    if (last < 1 || n < 2 || n > 16 || loop->strides[0][last] != 1 || loop->strides[1][last] != 1 || width > 16 ||
        (width & (width - 1)) || ((uintptr_t)j->to | (uintptr_t)j->from) % width)
        return;
    for (int d = 0; d < last; d++)
        if (loop->strides[0][d] % n || loop->strides[1][d] % n)
            return;
    for (int d = 0; d < last; d++) {
        loop->strides[0][d] /= n;
        loop->strides[1][d] /= n;
    }
    loop->rank--;
    loop->count /= n;
    j->width = width;
}

static void fill_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const dp_piece *p = j->piece;
    size_t width = dp_element_bytes(j->plan->tensors[p->to].view.element);
    struct {
        _Alignas(16) char bytes[16 * DP_TILE];
    } buffer;
    for (size_t i = 0; i < DP_TILE; i++)
        memcpy(buffer.bytes + i * width, p->fill, width);
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < DP_TILE ? end - at : DP_TILE;
        dp_loop_scatter(&p->loop, 0, place_of(j, p->to, p->to_offset), width, (int64_t)at, n, &buffer);
    }
}

static dp_status run(dp_plan *plan) {
    const dp_pieces *pieces = dp_plan_state(plan);
    for (int i = 0; i < pieces->count; i++) {
        job j = {.plan = plan, .piece = &pieces->piece[i]};
        size_t grain;
        if (j.piece->from < 0) {
            dp_pool_for((size_t)j.piece->loop.count, GRAIN, fill_range, &j);
            continue;
        }
        j.loop = j.piece->loop;
        j.width = dp_element_bytes(plan->tensors[j.piece->to].view.element);
        j.to = place_of(&j, j.piece->to, j.piece->to_offset);
        j.from = place_of(&j, j.piece->from, j.piece->from_offset);
        join_elements(&j);
        size_t units = dp_loop_copy_units(&j.loop, j.width, &grain);
        dp_pool_for(units, grain, copy_range, &j);
    }
    return DP_OK;
}

dp_plan *dp_pieces_plan(const dp_operator_call *call, int room) {
    dp_plan *plan = dp_plan_new(call, run, sizeof(dp_pieces) + (size_t)room * sizeof(dp_piece));
    if (!plan)
        return NULL;
    ((dp_pieces *)dp_plan_state(plan))->room = room;
    plan->path = "views";
    return plan;
}

dp_piece *dp_pieces_add(dp_plan *plan, const int64_t *dims, int rank, const dp_arg *to, const int64_t *to_strides,
                        int64_t to_offset, const dp_arg *from, const int64_t *from_strides, int64_t from_offset) {
    dp_pieces *pieces = dp_plan_state(plan);
    static const int64_t none[DP_TENSOR_DIMS];
    dp_piece *p = &pieces->piece[pieces->count++];
    dp_loop_begin(&p->loop, dims, rank);
    dp_loop_add_strides(&p->loop, rank ? to_strides : none);
    if (from)
        dp_loop_add_strides(&p->loop, rank ? from_strides : none);
    dp_loop_merge(&p->loop, true);
    if (from && dp_loop_across(&p->loop) >= 0)
        plan->path = "views, blocks transposed";
    p->to = to->slot;
    p->to_offset = to_offset;
    p->from = from ? from->slot : -1;
    p->from_offset = from_offset;
    return p;
}
