#include <string.h>

#include "ops/loop.h"

/*
 * Where the source's neighbours are not the destination's, elements go through a square block whose rows fill a cache
 * line: each line on either side is then touched once, as a whole, however the strides fall on the sets of a cache.
 */
enum { LINE = 64, GRAIN = 16384, TILE_BYTES = 8192 };
/* So few columns, those of pixels, need no block: rows lie together on both sides, and are many at a time. */
enum { FEW = 4, ROWS_OF_FEW = 1024 };

typedef struct wide {
    uint64_t half[2];
} wide;

#define TRANSPOSE(T)                                                                                                   \
    static void transpose_##T(void *to, int64_t to_stride, const void *from, int64_t from_stride, size_t rows,         \
                              size_t columns) {                                                                        \
        enum { N = LINE / sizeof(T) };                                                                                 \
        T block[N][N];                                                                                                 \
        T *restrict d = to;                                                                                            \
        const T *restrict s = from;                                                                                    \
        if (rows == N && columns == N) {                                                                               \
            for (size_t c = 0; c < N; c++)                                                                             \
                memcpy(block[c], s + (int64_t)c * from_stride, sizeof block[c]);                                       \
            for (size_t r = 0; r < N; r++)                                                                             \
                for (size_t c = 0; c < N; c++)                                                                         \
                    d[(int64_t)r * to_stride + (int64_t)c] = block[c][r];                                              \
            return;                                                                                                    \
        }                                                                                                              \
        if (columns == 3 && to_stride == 3) { /* pixels */                                                             \
            const T *restrict second = s + from_stride, *restrict third = second + from_stride;                        \
            for (size_t r = 0; r < rows; r++, d += 3) {                                                                \
                d[0] = s[r];                                                                                           \
                d[1] = second[r];                                                                                      \
                d[2] = third[r];                                                                                       \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        if (columns <= FEW) {                                                                                          \
            for (size_t r = 0; r < rows; r++)                                                                          \
                for (size_t c = 0; c < columns; c++)                                                                   \
                    d[(int64_t)r * to_stride + (int64_t)c] = s[(int64_t)c * from_stride + (int64_t)r];                 \
            return;                                                                                                    \
        }                                                                                                              \
        for (size_t c = 0; c < columns; c++)                                                                           \
            memcpy(block[c], s + (int64_t)c * from_stride, rows * sizeof(T));                                          \
        for (size_t r = 0; r < rows; r++)                                                                              \
            for (size_t c = 0; c < columns; c++)                                                                       \
                d[(int64_t)r * to_stride + (int64_t)c] = block[c][r];                                                  \
    }
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)
TRANSPOSE(wide)

static void transpose(void *to, int64_t to_stride, const void *from, int64_t from_stride, size_t rows, size_t columns,
                      size_t width) {
    switch (width) {
    case 1:
        transpose_uint8_t(to, to_stride, from, from_stride, rows, columns);
        break;
    case 2:
        transpose_uint16_t(to, to_stride, from, from_stride, rows, columns);
        break;
    case 4:
        transpose_uint32_t(to, to_stride, from, from_stride, rows, columns);
        break;
    case 8:
        transpose_uint64_t(to, to_stride, from, from_stride, rows, columns);
        break;
    default:
        transpose_wide(to, to_stride, from, from_stride, rows, columns);
    }
}

int dp_loop_across(const dp_loop *loop) {
    int last = loop->rank - 1;
    if (loop->strides[0][last] != 1 || loop->strides[1][last] <= 1 || loop->dims[last] < 2)
        return -1;
    for (int d = 0; d < last; d++)
        if (loop->strides[1][d] == 1 && loop->dims[d] >= 4)
            return d;
    return -1;
}

static size_t block_of(const dp_loop *loop, size_t width) {
    return loop->dims[loop->rank - 1] <= FEW ? ROWS_OF_FEW : LINE / width;
}

size_t dp_loop_copy_units(const dp_loop *loop, size_t width, size_t *out_grain) {
    int across = dp_loop_across(loop);
    *out_grain = GRAIN;
    if (across < 0 || loop->count == 0)
        return (size_t)loop->count;
    size_t block = block_of(loop, width), columns = (size_t)loop->dims[loop->rank - 1];
    *out_grain = GRAIN / (block * columns) + 1;
    return (size_t)(loop->count / loop->dims[across]) / columns * (((size_t)loop->dims[across] + block - 1) / block);
}

/* Unit `index`: one block of rows along `across`, all columns. */
static void copy_rows(const dp_loop *loop, int across, char *to, const char *from, size_t width, int64_t index) {
    int last = loop->rank - 1;
    int64_t block = (int64_t)block_of(loop, width), blocks = (loop->dims[across] + block - 1) / block;
    int64_t first = index % blocks * block, rest = index / blocks, to_offset = first * loop->strides[0][across],
            from_offset = first;
    for (int d = last - 1; d >= 0; d--) {
        if (d == across)
            continue;
        int64_t at = rest % loop->dims[d];
        rest /= loop->dims[d];
        to_offset += at * loop->strides[0][d];
        from_offset += at * loop->strides[1][d];
    }
    int64_t rows = loop->dims[across] - first < block ? loop->dims[across] - first : block;
    for (int64_t c = 0; c < loop->dims[last]; c += block) {
        int64_t columns = loop->dims[last] - c < block ? loop->dims[last] - c : block;
        transpose(to + (to_offset + c) * (int64_t)width, loop->strides[0][across],
                  from + (from_offset + c * loop->strides[1][last]) * (int64_t)width, loop->strides[1][last],
                  (size_t)rows, (size_t)columns, width);
    }
}

void dp_loop_copy(const dp_loop *loop, void *to, const void *from, size_t width, size_t begin, size_t end) {
    struct {
        _Alignas(LINE) char bytes[TILE_BYTES];
    } tile;
    int across = dp_loop_across(loop);
    if (across >= 0) {
        for (size_t unit = begin; unit < end; unit++)
            copy_rows(loop, across, to, from, width, (int64_t)unit);
        return;
    }
    for (size_t at = begin, n, room = TILE_BYTES / width; at < end; at += n) {
        n = end - at < room ? end - at : room;
        dp_loop_scatter(loop, 0, to, width, (int64_t)at, n,
                        dp_loop_gather(loop, 1, from, width, (int64_t)at, n, &tile));
    }
}
