/*
 * amx.c - products by matrix tiles. Sixteen rows of the left side are a tile as they lie, and so are sixteen groups of
 * a panel. Tiles of sums go through the caller's room to the end that all AVX-512 rungs share.
 */
#include "math/amx.h"
#include "math/bytes/finish512.h"

enum { TILE_ROWS = DP_AMX_ROWS, TILE_BYTES = DP_AMX_ROW_BYTES };

/* Tiles 0 to 3: sums; 4, 5: rows; 6, 7: weights. With a tail, the second of both has only so many bytes of k. */
static void configure(size_t rows, size_t tail) {
    dp_amx_shapes shapes = dp_amx_whole();
    for (int t = 0; t < 6; t++)
        shapes.rows[t] = (uint8_t)rows;
    if (tail) {
        shapes.row_bytes[5] = (uint16_t)tail;
        shapes.rows[7] = (uint8_t)(tail / 4);
    }
    dp_amx_begin(&shapes);
}

/* Of one tile of rows by `wide` panels: sums[row][panel][16]. */
FB_INLINE void zero_sums(const size_t wide) {
    _tile_zero(0);
    if (wide > 1)
        _tile_zero(1);
    if (wide > 2)
        _tile_zero(2);
    if (wide > 3)
        _tile_zero(3);
}
FB_INLINE void store_sums(const size_t wide, int32_t *sums) {
    _tile_stored(0, sums, wide * TILE_BYTES);
    if (wide > 1)
        _tile_stored(1, sums + 16, wide * TILE_BYTES);
    if (wide > 2)
        _tile_stored(2, sums + 32, wide * TILE_BYTES);
    if (wide > 3)
        _tile_stored(3, sums + 48, wide * TILE_BYTES);
}

/* One tile of rows by `wide` panels. */
FB_INLINE void one_tall(const size_t wide, const uint8_t *a, size_t a_stride, const int8_t *w, size_t panel_bytes,
                        size_t depth, int32_t *sums) {
    DP_AMX_ORDER();
    zero_sums(wide);
    for (size_t k = 0; k < depth; k += TILE_BYTES, w += 16 * TILE_BYTES) {
        _tile_loadd(4, a + k, a_stride);
        _tile_loadd(6, w, TILE_BYTES);
        _tile_dpbusd(0, 4, 6);
        if (wide > 1) {
            _tile_loadd(7, w + panel_bytes, TILE_BYTES);
            _tile_dpbusd(1, 4, 7);
        }
        if (wide > 2) {
            _tile_loadd(6, w + 2 * panel_bytes, TILE_BYTES);
            _tile_dpbusd(2, 4, 6);
        }
        if (wide > 3) {
            _tile_loadd(7, w + 3 * panel_bytes, TILE_BYTES);
            _tile_dpbusd(3, 4, 7);
        }
    }
    store_sums(wide, sums);
    DP_AMX_ORDER();
}

/* Two tiles of rows by up to two panels. */
FB_INLINE void two_tall(const size_t wide, const uint8_t *a, size_t a_stride, const int8_t *w, size_t panel_bytes,
                        size_t depth, int32_t *sums) {
    const uint8_t *below = a + TILE_ROWS * a_stride;
    int32_t *sums_below = sums + TILE_ROWS * wide * 16;
    DP_AMX_ORDER();
    _tile_zero(0);
    _tile_zero(2);
    if (wide > 1) {
        _tile_zero(1);
        _tile_zero(3);
    }
    for (size_t k = 0; k < depth; k += TILE_BYTES, w += 16 * TILE_BYTES) {
        _tile_loadd(4, a + k, a_stride);
        _tile_loadd(6, w, TILE_BYTES);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(5, below + k, a_stride);
        _tile_dpbusd(2, 5, 6);
        if (wide > 1) {
            _tile_loadd(7, w + panel_bytes, TILE_BYTES);
            _tile_dpbusd(1, 4, 7);
            _tile_dpbusd(3, 5, 7);
        }
    }
    _tile_stored(0, sums, wide * TILE_BYTES);
    _tile_stored(2, sums_below, wide * TILE_BYTES);
    if (wide > 1) {
        _tile_stored(1, sums + 16, wide * TILE_BYTES);
        _tile_stored(3, sums_below + 16, wide * TILE_BYTES);
    }
    DP_AMX_ORDER();
}

/* One tile of rows whose last bytes of k are a tail, by `wide` panels. */
FB_INLINE void with_tail(const size_t wide, const uint8_t *a, size_t a_stride, const int8_t *w, size_t panel_bytes,
                         size_t k, int32_t *sums) {
    DP_AMX_ORDER();
    zero_sums(wide);
    for (; k > TILE_BYTES; k -= TILE_BYTES, a += TILE_BYTES, w += 16 * TILE_BYTES) {
        _tile_loadd(4, a, a_stride);
        _tile_loadd(6, w, TILE_BYTES);
        _tile_dpbusd(0, 4, 6);
        if (wide > 1) {
            _tile_loadd(6, w + panel_bytes, TILE_BYTES);
            _tile_dpbusd(1, 4, 6);
        }
        if (wide > 2) {
            _tile_loadd(6, w + 2 * panel_bytes, TILE_BYTES);
            _tile_dpbusd(2, 4, 6);
        }
        if (wide > 3) {
            _tile_loadd(6, w + 3 * panel_bytes, TILE_BYTES);
            _tile_dpbusd(3, 4, 6);
        }
    }
    _tile_loadd(5, a, a_stride);
    _tile_loadd(7, w, TILE_BYTES);
    _tile_dpbusd(0, 5, 7);
    if (wide > 1) {
        _tile_loadd(7, w + panel_bytes, TILE_BYTES);
        _tile_dpbusd(1, 5, 7);
    }
    if (wide > 2) {
        _tile_loadd(7, w + 2 * panel_bytes, TILE_BYTES);
        _tile_dpbusd(2, 5, 7);
    }
    if (wide > 3) {
        _tile_loadd(7, w + 3 * panel_bytes, TILE_BYTES);
        _tile_dpbusd(3, 5, 7);
    }
    store_sums(wide, sums);
    DP_AMX_ORDER();
}

/* Rows [row, row + rows), by tiles of `height`, as many as one end takes. */
static void tiles_with_tail(const dp_bytes_block *b, const dp_bytes_finish *f, size_t row, size_t rows, size_t height,
                            size_t column, size_t columns, int32_t *sums) {
    const size_t panel_bytes = dp_bytes_depth(b->k) * 16, vectors = (columns + 15) / 16;
    const int8_t *w = b->panels + column / 16 * panel_bytes;
    for (size_t r = 0; r < rows; r += height) {
        const uint8_t *a = b->a + (row + r) * b->a_stride;
        int32_t *to = sums + r * vectors * 16;
        if (vectors == 4)
            with_tail(4, a, b->a_stride, w, panel_bytes, b->k, to);
        else if (vectors == 3)
            with_tail(3, a, b->a_stride, w, panel_bytes, b->k, to);
        else if (vectors == 2)
            with_tail(2, a, b->a_stride, w, panel_bytes, b->k, to);
        else
            with_tail(1, a, b->a_stride, w, panel_bytes, b->k, to);
    }
    fb_finish(b, f, sums, row, rows, column, columns, vectors);
}

/* Rows [row, row + rows) of up to 16, or 32 when `tall`; up to four panels, two when tall. */
static void tile(const dp_bytes_block *b, const dp_bytes_finish *f, size_t row, size_t rows, bool tall, size_t column,
                 size_t columns, int32_t *sums) {
    const size_t depth = dp_bytes_depth(b->k), panel_bytes = depth * 16, vectors = (columns + 15) / 16;
    const int8_t *w = b->panels + column / 16 * panel_bytes;
    const uint8_t *a = b->a + row * b->a_stride;
    if (tall && vectors == 2)
        two_tall(2, a, b->a_stride, w, panel_bytes, depth, sums);
    else if (tall)
        two_tall(1, a, b->a_stride, w, panel_bytes, depth, sums);
    else if (vectors == 4)
        one_tall(4, a, b->a_stride, w, panel_bytes, depth, sums);
    else if (vectors == 3)
        one_tall(3, a, b->a_stride, w, panel_bytes, depth, sums);
    else if (vectors == 2)
        one_tall(2, a, b->a_stride, w, panel_bytes, depth, sums);
    else
        one_tall(1, a, b->a_stride, w, panel_bytes, depth, sums);
    fb_finish(b, f, sums, row, rows, column, columns, vectors);
}

/* Rows [row, row + rows) of whole tiles of `height` rows, all columns. */
static void all_columns(const dp_bytes_block *b, const dp_bytes_finish *f, size_t row, size_t rows, size_t height,
                        size_t tail, void *room) {
    enum { AT_ONCE = 4 }; /* tiles of sums */
    for (size_t at = 0; at < b->columns; at += 64) {
        const size_t columns = b->columns - at < 64 ? b->columns - at : 64, vectors = (columns + 15) / 16;
        const size_t step = height * (tail ? AT_ONCE / vectors : columns <= 32 ? 2 : 1);
        for (size_t r = row; r < row + rows; r += step) {
            const size_t left = row + rows - r, n = left < step ? left : step;
            if (tail)
                tiles_with_tail(b, f, r, n, height, b->first + at, columns, room);
            else
                tile(b, f, r, n, n > height, b->first + at, columns, room);
        }
    }
}

void dp_bytes_product_amx(const dp_bytes_block *b, const dp_bytes_finish *f, void *room) {
    const size_t whole = b->rows / TILE_ROWS * TILE_ROWS, rest = b->rows - whole;
    const size_t tail = b->exact ? b->k % DP_BYTES_DEPTH : 0;
    if (whole) {
        configure(TILE_ROWS, tail);
        all_columns(b, f, 0, whole, TILE_ROWS, tail, room);
    }
    if (rest) {
        configure(rest, tail);
        all_columns(b, f, whole, rest, rest, tail, room);
    }
    _tile_release();
}
