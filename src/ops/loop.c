#include "ops/loop.h"

#include <string.h>

dp_status dp_broadcast(const dp_tensor *const *tensors, const char *const *names, int n, int64_t *out_dims,
                       int *out_rank) {
    int rank = 0;
    for (int i = 0; i < n; i++)
        if (tensors[i]->rank > rank)
            rank = tensors[i]->rank;
    for (int d = 0; d < rank; d++)
        out_dims[d] = 1;
    for (int i = 0; i < n; i++) {
        int shift = rank - tensors[i]->rank;
        for (int d = 0; d < tensors[i]->rank; d++) {
            int64_t dim = tensors[i]->dims[d], *out = &out_dims[d + shift];
            if (dim == *out || dim == 1)
                continue;
            if (*out != 1)
                return dp_fail(DP_ERR_ARGUMENT,
                               "%s: dimension %d is %lld, but must be 1 or %lld to be broadcast with %s", names[i], d,
                               (long long)dim, (long long)*out, names[0]);
            *out = dim;
        }
    }
    *out_rank = rank;
    return DP_OK;
}

void dp_loop_begin(dp_loop *loop, const int64_t *dims, int rank) {
    loop->rank = rank ? rank : 1;
    loop->n_views = 0;
    loop->dims[0] = 1;
    loop->count = 1;
    bool empty = false;
    for (int d = 0; d < rank; d++)
        empty |= dims[d] == 0;
    for (int d = 0; d < rank; d++) { /* beside a dim of 0 the others may have any size */
        loop->dims[d] = empty && dims[d] > 1 ? 1 : dims[d];
        loop->count *= loop->dims[d];
    }
}

void dp_loop_add_strides(dp_loop *loop, const int64_t *strides) {
    memcpy(loop->strides[loop->n_views++], strides, (size_t)loop->rank * sizeof *strides);
}

void dp_loop_add(dp_loop *loop, const dp_tensor *t) {
    int64_t strides[DP_TENSOR_DIMS] = {0};
    int shift = loop->rank - t->rank;
    for (int d = 0; d < t->rank; d++)
        if (d + shift >= 0)
            strides[d + shift] = t->dims[d] == 1 ? 0 : t->strides[d];
    dp_loop_add_strides(loop, strides);
}

static void swap_dims(dp_loop *loop, int a, int b) {
    int64_t dim = loop->dims[a];
    loop->dims[a] = loop->dims[b];
    loop->dims[b] = dim;
    for (int v = 0; v < loop->n_views; v++) {
        int64_t stride = loop->strides[v][a];
        loop->strides[v][a] = loop->strides[v][b];
        loop->strides[v][b] = stride;
    }
}

static bool mergeable(const dp_loop *loop, int outer, int inner) {
    for (int v = 0; v < loop->n_views; v++)
        if (loop->strides[v][outer] != loop->strides[v][inner] * loop->dims[inner])
            return false;
    return true;
}

void dp_loop_merge(dp_loop *loop, bool order_by_first) {
    int rank = 0;
    for (int d = 0; d < loop->rank; d++) {
        if (loop->dims[d] == 1)
            continue;
        if (rank != d)
            swap_dims(loop, rank, d);
        rank++;
    }
    loop->rank = rank ? rank : 1;
    if (!rank)
        return;
    for (int i = 1; i < rank && order_by_first; i++)
        for (int d = i; d > 0 && loop->strides[0][d - 1] < loop->strides[0][d]; d--)
            swap_dims(loop, d - 1, d);
    int last = 0;
    for (int d = 1; d < rank; d++) {
        if (mergeable(loop, last, d)) {
            loop->dims[last] *= loop->dims[d];
            for (int v = 0; v < loop->n_views; v++)
                loop->strides[v][last] = loop->strides[v][d];
        } else {
            last++;
            if (last != d)
                swap_dims(loop, last, d);
        }
    }
    loop->rank = last + 1;
}

int64_t dp_loop_locate(const dp_loop *loop, int view, int64_t index, int64_t *out_coordinates) {
    int64_t offset = 0;
    for (int d = loop->rank - 1; d > 0; d--) {
        int64_t rest = index / loop->dims[d];
        out_coordinates[d] = index - rest * loop->dims[d];
        offset += out_coordinates[d] * loop->strides[view][d];
        index = rest;
    }
    out_coordinates[0] = index;
    return offset + index * loop->strides[view][0];
}

/* Next row of the innermost dim: its offset. */
static int64_t next_row(const dp_loop *loop, int view, int64_t *coordinates, int64_t offset) {
    int last = loop->rank - 1;
    offset -= coordinates[last] * loop->strides[view][last];
    coordinates[last] = 0;
    for (int d = last - 1; d >= 0; d--) {
        offset += loop->strides[view][d];
        if (++coordinates[d] < loop->dims[d] || d == 0)
            return offset;
        offset -= loop->dims[d] * loop->strides[view][d];
        coordinates[d] = 0;
    }
    return offset;
}

typedef struct pair64 {
    uint64_t low, high;
} pair64;

#define STRIDED_COPIES(T)                                                                                              \
    static void gather_##T(void *to, const void *from, int64_t stride, size_t n) {                                     \
        T *restrict d = to;                                                                                            \
        const T *restrict s = from;                                                                                    \
        if (stride == 0) {                                                                                             \
            T value = *s;                                                                                              \
            for (size_t i = 0; i < n; i++)                                                                             \
                d[i] = value;                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (size_t i = 0; i < n; i++)                                                                                 \
            d[i] = s[(int64_t)i * stride];                                                                             \
    }                                                                                                                  \
    static void scatter_##T(void *to, const void *from, int64_t stride, size_t n) {                                    \
        T *restrict d = to;                                                                                            \
        const T *restrict s = from;                                                                                    \
        for (size_t i = 0; i < n; i++)                                                                                 \
            d[(int64_t)i * stride] = s[i];                                                                             \
    }
STRIDED_COPIES(uint8_t)
STRIDED_COPIES(uint16_t)
STRIDED_COPIES(uint32_t)
STRIDED_COPIES(uint64_t)
STRIDED_COPIES(pair64)

static void gather_run(void *to, const void *from, size_t width, int64_t stride, size_t n) {
    if (stride == 1) {
        memcpy(to, from, n * width);
        return;
    }
    switch (width) {
    case 1:
        gather_uint8_t(to, from, stride, n);
        break;
    case 2:
        gather_uint16_t(to, from, stride, n);
        break;
    case 4:
        gather_uint32_t(to, from, stride, n);
        break;
    case 8:
        gather_uint64_t(to, from, stride, n);
        break;
    default:
        gather_pair64(to, from, stride, n);
    }
}

static void scatter_run(void *to, const void *from, size_t width, int64_t stride, size_t n) {
    if (stride == 1) {
        memmove(to, from, n * width); /* from may be a tensor itself (dp_loop_gather), and a caller's tensors may overlap */
        return;
    }
    switch (width) {
    case 1:
        scatter_uint8_t(to, from, stride, n);
        break;
    case 2:
        scatter_uint16_t(to, from, stride, n);
        break;
    case 4:
        scatter_uint32_t(to, from, stride, n);
        break;
    case 8:
        scatter_uint64_t(to, from, stride, n);
        break;
    default:
        scatter_pair64(to, from, stride, n);
    }
}

const void *dp_loop_gather(const dp_loop *loop, int view, const void *data, size_t width, int64_t index, size_t n,
                           void *buffer) {
    int64_t at[DP_TENSOR_DIMS];
    int64_t offset = dp_loop_locate(loop, view, index, at);
    int last = loop->rank - 1;
    int64_t stride = loop->strides[view][last];
    size_t run = (size_t)(loop->dims[last] - at[last]);
    if (stride == 1 && run >= n)
        return (const char *)data + offset * (int64_t)width;
    char *to = buffer;
    for (;;) {
        if (run > n)
            run = n;
        gather_run(to, (const char *)data + offset * (int64_t)width, width, stride, run);
        n -= run;
        if (!n)
            return buffer;
        to += run * width;
        at[last] += (int64_t)run;
        offset = next_row(loop, view, at, offset + (int64_t)run * stride);
        run = (size_t)loop->dims[last];
    }
}

void dp_loop_scatter(const dp_loop *loop, int view, void *data, size_t width, int64_t index, size_t n,
                     const void *from) {
    int64_t at[DP_TENSOR_DIMS];
    int64_t offset = dp_loop_locate(loop, view, index, at);
    int last = loop->rank - 1;
    int64_t stride = loop->strides[view][last];
    size_t run = (size_t)(loop->dims[last] - at[last]);
    const char *s = from;
    for (;;) {
        if (run > n)
            run = n;
        scatter_run((char *)data + offset * (int64_t)width, s, width, stride, run);
        n -= run;
        if (!n)
            return;
        s += run * width;
        at[last] += (int64_t)run;
        offset = next_row(loop, view, at, offset + (int64_t)run * stride);
        run = (size_t)loop->dims[last];
    }
}
