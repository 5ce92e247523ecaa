/* move.c - fill, gather, select and copy: work on element widths, not on values. */
#include "math/vec.h"

#if DP_MATH_RUNG != DP_RUNG_GENERIC
#include <immintrin.h>
#endif

#define DP_FILL(T)                                                                                                     \
    static void fill_##T(void *dst, const void *scalar, size_t n) {                                                    \
        T *out = dst, x;                                                                                               \
        memcpy(&x, scalar, sizeof x);                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            out[i] = x;                                                                                                \
    }

DP_INLINE unsigned bit_at(const uint8_t *bits, size_t k) { return bits[k >> 3] >> (k & 7) & 1u; }

/* Bits k .. k + count - 1 (count 8, 16 or 32), reading no byte that holds none of them. */
DP_INLINE uint32_t bits_at(const uint8_t *bits, size_t k, size_t count) {
    uint64_t word = 0;
    bits += k >> 3;
    memcpy(&word, bits, count >> 3);
    if (k & 7)
        word |= (uint64_t)bits[count >> 3] << count;
    return (uint32_t)(word >> (k & 7));
}

#if DP_MATH_RUNG == DP_RUNG_AVX512
/* Whole groups of lanes by mask; returns how many elements are done. no_step 0 reads one value again and again. */
#define DP_SELECT_GROUPS(T, lanes, mask, suffix)                                                                       \
    DP_INLINE size_t select_groups_##T(T *out, const uint8_t *bits, size_t first_bit, const T *yes, const T *no,       \
                                       bool spread, size_t n) {                                                        \
        __m512i other = spread ? _mm512_set1_##suffix(*no) : _mm512_setzero_si512();                                   \
        size_t i = 0;                                                                                                  \
        for (; i + lanes <= n; i += lanes) {                                                                           \
            __m512i x = _mm512_loadu_si512(yes + i), y = spread ? other : _mm512_loadu_si512(no + i);                  \
            mask m = (mask)bits_at(bits, first_bit + i, lanes);                                                        \
            _mm512_storeu_si512(out + i, _mm512_mask_blend_##suffix(m, y, x));                                         \
        }                                                                                                              \
        return i;                                                                                                      \
    }
DP_SELECT_GROUPS(int16_t, 32, __mmask32, epi16)
DP_SELECT_GROUPS(int32_t, 16, __mmask16, epi32)
#elif DP_MATH_RUNG == DP_RUNG_AVX2
/* every lane tests its own bit of the group's word */
#define DP_SELECT_GROUPS(T, lanes, suffix, own)                                                                        \
    DP_INLINE size_t select_groups_##T(T *out, const uint8_t *bits, size_t first_bit, const T *yes, const T *no,       \
                                       bool spread, size_t n) {                                                        \
        __m256i other = spread ? _mm256_set1_##suffix(*no) : _mm256_setzero_si256(), bit = own;                        \
        size_t i = 0;                                                                                                  \
        for (; i + lanes <= n; i += lanes) {                                                                           \
            __m256i x = _mm256_loadu_si256((const void *)(yes + i));                                                   \
            __m256i y = spread ? other : _mm256_loadu_si256((const void *)(no + i));                                   \
            __m256i word = _mm256_set1_##suffix((T)bits_at(bits, first_bit + i, lanes));                               \
            __m256i m = _mm256_cmpeq_##suffix(_mm256_and_si256(word, bit), bit);                                       \
            _mm256_storeu_si256((void *)(out + i), _mm256_blendv_epi8(y, x, m));                                       \
        }                                                                                                              \
        return i;                                                                                                      \
    }
DP_SELECT_GROUPS(int16_t, 16, epi16,
                 _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, INT16_MIN))
DP_SELECT_GROUPS(int32_t, 8, epi32, _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128))
#else
#define DP_NO_GROUPS(T)                                                                                                \
    DP_INLINE size_t select_groups_##T(T *out, const uint8_t *bits, size_t first_bit, const T *yes, const T *no,       \
                                       bool spread, size_t n) {                                                        \
        (void)out, (void)bits, (void)first_bit, (void)yes, (void)no, (void)spread, (void)n;                            \
        return 0;                                                                                                      \
    }
DP_NO_GROUPS(int16_t)
DP_NO_GROUPS(int32_t)
#endif

/* groups: what the rung does in vectors; the rest goes one by one */
#define DP_SELECT(T, groups)                                                                                           \
    static void select_##T(void *dst, const uint8_t *bits, size_t first_bit, const void *a, const void *b, size_t n) { \
        T *out = dst;                                                                                                  \
        const T *yes = a, *no = b;                                                                                     \
        for (size_t i = groups(out, bits, first_bit, yes, no, false, n); i < n; i++)                                   \
            out[i] = bit_at(bits, first_bit + i) ? yes[i] : no[i];                                                     \
    }                                                                                                                  \
    static void select_scalar_##T(void *dst, const uint8_t *bits, size_t first_bit, const void *a, const void *b,      \
                                  size_t n) {                                                                          \
        T *out = dst, no;                                                                                              \
        const T *yes = a;                                                                                              \
        memcpy(&no, b, sizeof no);                                                                                     \
        for (size_t i = groups(out, bits, first_bit, yes, &no, true, n); i < n; i++)                                   \
            out[i] = bit_at(bits, first_bit + i) ? yes[i] : no;                                                        \
    }
#define DP_ONE_BY_ONE(...) 0

DP_SELECT(int8_t, DP_ONE_BY_ONE)
DP_SELECT(int16_t, select_groups_int16_t)
DP_SELECT(int32_t, select_groups_int32_t)
DP_SELECT(int64_t, DP_ONE_BY_ONE)

DP_FILL(int8_t)
DP_FILL(int16_t)
DP_FILL(int32_t)
DP_FILL(int64_t)
/* Scalar loads measured faster than the gather instructions, which the compiler would choose: one code for all rungs. */
#if DP_MATH_RUNG == DP_RUNG_GENERIC
#define DP_GATHER(T)                                                                                                   \
    static void gather_##T(void *dst, const void *base, const uint32_t *offset_bytes, size_t n) {                      \
        T *out = dst;                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            memcpy(out + i, (const char *)base + offset_bytes[i], sizeof(T));                                          \
    }
DP_GATHER(int8_t)
DP_GATHER(int16_t)
DP_GATHER(int32_t)
DP_GATHER(int64_t)
#define DP_ENTER_GATHER(T, dtype) table->gather[dtype] = gather_##T;
#else
#define DP_ENTER_GATHER(T, dtype)
#endif

static void copy(void *dst, const void *src, size_t size_bytes) {
    if (dst != src)
        memcpy(dst, src, size_bytes);
}

#if DP_MATH_RUNG == DP_RUNG_GENERIC
static void copy_stream(void *dst, const void *src, size_t size_bytes) { copy(dst, src, size_bytes); }
static void copy_stream_ahead(void *dst, const void *src, size_t size_bytes, const void *next, size_t next_bytes) {
    (void)next;
    (void)next_bytes;
    copy(dst, src, size_bytes);
}
#else
#if DP_MATH_RUNG == DP_RUNG_AVX512
#define DP_LINE_MOVE(to, from) _mm512_stream_si512((void *)(to), _mm512_loadu_si512(from))
#else
DP_INLINE void line_move(char *to, const char *from) {
    __m256i low = _mm256_loadu_si256((const void *)from), high = _mm256_loadu_si256((const void *)(from + 32));
    _mm256_stream_si256((void *)to, low);
    _mm256_stream_si256((void *)(to + 32), high);
}
#define DP_LINE_MOVE(to, from) line_move(to, from)
#endif

enum { LINE = 64, LINES_AT_ONCE = 4 };

/*
 * Whole cache lines go past the caches; the ends, which share a line with other data, through them. With every four lines, `lines` from
 * `next` on are called.
 */
DP_INLINE void stream(char *to, const char *from, size_t size_bytes, const char *next, const size_t lines) {
    size_t head = (size_t)(-(uintptr_t)to % LINE);
    head = head < size_bytes ? head : size_bytes;
    memcpy(to, from, head);
    to += head;
    from += head;
    size_bytes -= head;
    for (; size_bytes >= LINES_AT_ONCE * LINE; size_bytes -= LINES_AT_ONCE * LINE) {
        for (size_t l = 0; l < lines; l++, next += LINE)
            __builtin_prefetch(next, 0, 2);
        _Pragma("GCC unroll 4") for (size_t l = 0; l < LINES_AT_ONCE; l++, to += LINE, from += LINE) DP_LINE_MOVE(to, from);
    }
    for (; size_bytes >= LINE; size_bytes -= LINE, to += LINE, from += LINE)
        DP_LINE_MOVE(to, from);
    memcpy(to, from, size_bytes);
}

static void copy_stream(void *dst, const void *src, size_t size_bytes) {
    stream(dst, src, size_bytes, NULL, 0);
}

static void copy_stream_ahead(void *dst, const void *src, size_t size_bytes, const void *next, size_t next_bytes) {
    const size_t turns = size_bytes / (LINES_AT_ONCE * LINE), lines = (next_bytes + LINE - 1) / LINE;
    stream(dst, src, size_bytes, next, turns ? (lines + turns - 1) / turns : 0);
}
#endif

#if DP_MATH_RUNG == DP_RUNG_GENERIC
static void copy_in(void *dst, const void *src, size_t size_bytes) { copy(dst, src, size_bytes); }
static void stream_fence(void) {}
#else
enum { QUARTERS_LEAST_BYTES = 16 << 10 };

/*
 * Four runs at once: the hardware's prefetcher follows each page for itself, and one run alone leaves the memory idle between pages.
 * Measured out of DRAM, 16 KiB at a time: 13.4 against 10.3 GB/s; asking for lines ahead by instruction gained nothing. All four are
 * read before any is written: a load waits for an earlier store with the same place in a page. Less than four pages gain nothing.
 */
static void copy_in(void *dst, const void *src, size_t size_bytes) {
    if (size_bytes < QUARTERS_LEAST_BYTES) {
        copy(dst, src, size_bytes);
        return;
    }
    char *to = dst;
    const char *from = src;
    size_t quarter = size_bytes / (4 * LINE) * LINE, words = quarter / sizeof(int32_t);
    for (size_t i = 0; i < words; i += DP_LANES) {
        vi first = vi_load_i32(from, i), second = vi_load_i32(from + quarter, i);
        vi third = vi_load_i32(from + 2 * quarter, i), fourth = vi_load_i32(from + 3 * quarter, i);
        vi_store_i32(to, i, first);
        vi_store_i32(to + quarter, i, second);
        vi_store_i32(to + 2 * quarter, i, third);
        vi_store_i32(to + 3 * quarter, i, fourth);
    }
    memcpy(to + 4 * quarter, from + 4 * quarter, size_bytes - 4 * quarter);
}

static void stream_fence(void) { _mm_sfence(); }
#endif

#define DP_ENTER(T, dtype)                                                                                             \
    table->fill[dtype] = fill_##T;                                                                                     \
    DP_ENTER_GATHER(T, dtype)                                                                                          \
    table->select[dtype] = select_##T;                                                                                 \
    table->select_scalar[dtype] = select_scalar_##T;

void DP_RUNG(dp_math_fill_move)(dp_math *table) {
    DP_ENTER(int8_t, DP_I8)
    DP_ENTER(int8_t, DP_U8)
    DP_ENTER(int16_t, DP_I16)
    DP_ENTER(int16_t, DP_U16)
    DP_ENTER(int16_t, DP_F16)
    DP_ENTER(int16_t, DP_BF16)
    DP_ENTER(int32_t, DP_I32)
    DP_ENTER(int32_t, DP_U32)
    DP_ENTER(int32_t, DP_F32)
    DP_ENTER(int64_t, DP_I64)
    DP_ENTER(int64_t, DP_U64)
    DP_ENTER(int64_t, DP_F64)
    table->copy = copy;
    table->copy_stream = copy_stream;
    table->copy_stream_ahead = copy_stream_ahead;
    table->copy_in = copy_in;
    table->stream_fence = stream_fence;
}
