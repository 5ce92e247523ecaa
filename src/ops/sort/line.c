/*
 * line.c - orders the keys of one line.
 *
 * Long lines: a radix sort from the lowest byte up. Its passes are stable, bytes that all keys share cost nothing (half
 * the passes of 16-bit types, most of small integers), and its time does not depend on the data.
 */
#include <pthread.h>
#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/scratch.h"
#include "ops/sort/kernels.h"

enum { DIGITS = 256, SELECT_BITS = 11, KEPT_BYTES = 1 << 26 };

static dp_sort_table table;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void fill_table(void) {
#if defined(DP_MATH_HAVE_X86)
    if (dp_cpu_isa() == DP_ISA_AVX512) {
        dp_sort_fill_avx512(&table);
        return;
    }
    if (dp_cpu_isa() == DP_ISA_AVX2) {
        dp_sort_fill_avx2(&table);
        return;
    }
#endif
    dp_sort_fill_generic(&table);
}

const dp_sort_table *dp_sort_current(void) {
    pthread_once(&once, fill_table);
    return &table;
}

/* What is moved: a key and its index. */
typedef uint64_t entry32; /* key above, index below */
typedef struct entry64 {
    uint64_t key, index;
} entry64;
static inline entry32 make32(uint32_t key, size_t index) {
    return (uint64_t)key << 32 | index;
}
static inline entry64 make64(uint64_t key, size_t index) {
    return (entry64){key, index};
}
static inline uint32_t key32(entry32 e) {
    return (uint32_t)(e >> 32);
}
static inline uint64_t key64(entry64 e) {
    return e.key;
}
static inline uint32_t index32(entry32 e) {
    return (uint32_t)e;
}
static inline uint32_t index64(entry64 e) {
    return (uint32_t)e.index;
}

size_t dp_sort_scratch_bytes(size_t n, bool wide) {
    return 2 * n * (wide ? sizeof(entry64) : sizeof(entry32));
}

void *dp_sort_room(size_t bytes) {
    return bytes <= KEPT_BYTES ? dp_scratch(bytes) : dp_alloc(DP_MEM_RUNTIME, bytes);
}

void dp_sort_room_end(void *room, size_t bytes) {
    if (bytes > KEPT_BYTES)
        dp_free(room);
}

#define RADIX(BITS)                                                                                                    \
    static void radix##BITS(const uint##BITS##_t *keys, size_t n, uint32_t *order, entry##BITS *from) {                \
        enum { BYTES = BITS / 8 };                                                                                     \
        uint32_t counts[BYTES][DIGITS] = {{0}};                                                                        \
        entry##BITS *to = from + n;                                                                                    \
        for (size_t i = 0; i < n; i++) {                                                                               \
            from[i] = make##BITS(keys[i], i);                                                                          \
            for (int d = 0; d < BYTES; d++)                                                                            \
                counts[d][keys[i] >> 8 * d & 255]++;                                                                   \
        }                                                                                                              \
        for (int d = 0; d < BYTES; d++) {                                                                              \
            uint32_t *at = counts[d], sum = 0;                                                                         \
            if (at[keys[0] >> 8 * d & 255] == n)                                                                       \
                continue;                                                                                              \
            for (size_t i = 0; i < DIGITS; i++) {                                                                      \
                uint32_t count = at[i];                                                                                \
                at[i] = sum;                                                                                           \
                sum += count;                                                                                          \
            }                                                                                                          \
            for (size_t i = 0; i < n; i++)                                                                             \
                to[at[key##BITS(from[i]) >> 8 * d & 255]++] = from[i];                                                 \
            entry##BITS *swap = from;                                                                                  \
            from = to;                                                                                                 \
            to = swap;                                                                                                 \
        }                                                                                                              \
        for (size_t i = 0; i < n; i++)                                                                                 \
            order[i] = index##BITS(from[i]);                                                                           \
    }
RADIX(32)
RADIX(64)

void dp_sort_order(const dp_sort_line *line, uint32_t *order, void *scratch) {
    if (!line->n)
        return;
    bool is_short = line->n <= DP_RANK_MAX;
    if (is_short && line->wide)
        dp_sort_current()->rank64(order, line->keys, line->n);
    else if (is_short)
        dp_sort_current()->rank32(order, line->keys, line->n);
    else if (line->wide)
        radix64(line->keys, line->n, order, scratch);
    else
        radix32(line->keys, line->n, order, scratch);
}

/*
 * The k-th smallest key, digit by digit from the top: only keys that share the digits found so far are looked at again.
 * *out_nth says which of the keys equal to it is the k-th, counted from 1.
 */
#define LIMIT(KEY)                                                                                                     \
    static KEY limit_##KEY(const dp_sort_line *line, size_t k, KEY *scratch, size_t *out_nth) {                        \
        const KEY *keys = line->keys;                                                                                  \
        uint32_t counts[1 << SELECT_BITS];                                                                             \
        size_t n = line->n;                                                                                            \
        for (int shift = line->key_bits, bits; shift > 0 && n > 1;) {                                                  \
            bits = shift < SELECT_BITS ? shift : SELECT_BITS;                                                          \
            shift -= bits;                                                                                             \
            const KEY mask = ((KEY)1 << bits) - 1;                                                                     \
            memset(counts, 0, sizeof *counts << bits);                                                                 \
            for (size_t i = 0; i < n; i++)                                                                             \
                counts[keys[i] >> shift & mask]++;                                                                     \
            KEY digit = 0;                                                                                             \
            for (; k > counts[digit]; digit++)                                                                         \
                k -= counts[digit];                                                                                    \
            size_t kept = 0;                                                                                           \
            for (size_t i = 0; i < n && counts[digit] < n; i++) {                                                      \
                scratch[kept] = keys[i];                                                                               \
                kept += (keys[i] >> shift & mask) == digit;                                                            \
            }                                                                                                          \
            if (kept) {                                                                                                \
                keys = scratch;                                                                                        \
                n = kept;                                                                                              \
            }                                                                                                          \
        }                                                                                                              \
        *out_nth = k;                                                                                                  \
        return keys[0];                                                                                                \
    }
LIMIT(uint32_t)
LIMIT(uint64_t)

#define SELECT(KEY)                                                                                                    \
    static uint32_t select_##KEY(const dp_sort_line *line, size_t k, uint32_t *chosen, void *scratch) {                \
        const KEY *keys = line->keys;                                                                                  \
        size_t nth, equal = 0, found = 0, kth = 0;                                                                     \
        const KEY limit = limit_##KEY(line, k, scratch, &nth);                                                         \
        for (size_t i = 0; found < k; i++) {                                                                           \
            chosen[found] = (uint32_t)i;                                                                               \
            found += keys[i] < limit;                                                                                  \
            if (keys[i] == limit && equal < nth) {                                                                     \
                equal++;                                                                                               \
                found++;                                                                                               \
                kth = i;                                                                                               \
            }                                                                                                          \
        }                                                                                                              \
        return (uint32_t)kth;                                                                                          \
    }
SELECT(uint32_t)
SELECT(uint64_t)

uint32_t dp_sort_select(const dp_sort_line *line, size_t k, uint32_t *chosen, void *scratch) {
    return (line->wide ? select_uint64_t : select_uint32_t)(line, k, chosen, scratch);
}
