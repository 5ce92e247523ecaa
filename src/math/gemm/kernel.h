/*
 * kernel.h - the micro-kernel, a template: include once per kind with
 *   KT_KIND            f32, i16, bf16 or u8: names the functions and picks kv_mac_<kind>
 *   KT_ADD             kv_add_f32 or kv_add_i32, for sums that continue in C
 *   KT_TABLE           declarator of the table to define, less its bounds: one vector with 1, 2, ... rows, then two
 *
 * Organisation: outer products of a column of A (spread from memory, rows a_stride units apart, so a packed and an unpacked A
 * are the same thing) and a row of the packed B panel, all sums in registers, one pass over the units.
 */
#define KT_JOIN_(a, b) a##b
#define KT_JOIN(a, b) KT_JOIN_(a, b)
#define KT_MAC KT_JOIN(kv_mac_, KT_KIND)
#define KT_BODY KT_JOIN(body_, KT_KIND)
#define KT_AHEAD 16 /* units: B comes from the second level cache */
#define KT_UNROLL _Pragma("GCC unroll 16")

DP_INLINE void KT_BODY(const size_t rows, const size_t vectors, size_t units, const uint32_t *a, size_t a_stride,
                       const uint32_t *b, size_t b_stride, const int32_t *init, uint32_t *c, size_t c_stride,
                       bool add) {
    kv sum[KV_ROWS][KV_VECTORS];
    KT_UNROLL for (size_t v = 0; v < vectors; v++) {
        kv first = init ? kv_load(init + v * KV_LANES) : kv_zero();
        KT_UNROLL for (size_t i = 0; i < rows; i++) sum[i][v] = first;
    }
    /* a base pointer for every three rows: their addresses are then base + {0, 1, 2} * stride, without arithmetic */
    const uint32_t *base[(KV_ROWS + 2) / 3];
    KT_UNROLL for (size_t i = 0; i < rows; i += 3) base[i / 3] = a + i * a_stride;
    for (size_t u = 0; u < units; u++) {
        kv row[KV_VECTORS];
        KT_UNROLL for (size_t v = 0; v < vectors; v++) row[v] = kv_load(b + v * KV_LANES);
        KT_UNROLL for (size_t v = 0; v < vectors; v++) __builtin_prefetch(b + KT_AHEAD * b_stride + v * KV_LANES);
        KT_UNROLL for (size_t i = 0; i < rows; i++) {
            kv x = kv_spread(base[i / 3] + i % 3 * a_stride);
            KV_IN_REGISTER(x); /* else the load is repeated in every use */
            KT_UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] = KT_MAC(sum[i][v], x, row[v]);
        }
        KT_UNROLL for (size_t i = 0; i < rows; i += 3) base[i / 3]++;
        b += b_stride;
    }
    KT_UNROLL for (size_t i = 0; i < rows; i++) {
        KT_UNROLL for (size_t v = 0; v < vectors; v++) {
            uint32_t *at = c + i * c_stride + v * KV_LANES;
            kv_store(at, add ? KT_ADD(kv_load(at), sum[i][v]) : sum[i][v]);
        }
    }
}

#define KT_NAME(rows, vectors) KT_JOIN(kernel_##rows##x##vectors##_, KT_KIND)
#define KT_DEFINE(rows, vectors)                                                                                       \
    static void KT_NAME(rows, vectors)(size_t units, const uint32_t *a, size_t a_stride, const uint32_t *b,            \
                                       size_t b_stride, const int32_t *init, uint32_t *c, size_t c_stride, bool add) { \
        KT_BODY(rows, vectors, units, a, a_stride, b, b_stride, init, c, c_stride, add);                               \
    }
KV_EACH_ROW(KT_DEFINE, 1)
KV_EACH_ROW(KT_DEFINE, 2)
#define KT_ENTRY(rows, vectors) KT_NAME(rows, vectors),
KT_TABLE[KV_VECTORS * KV_ROWS] = {KV_EACH_ROW(KT_ENTRY, 1)
                                                                                     KV_EACH_ROW(KT_ENTRY, 2)};
#undef KT_ENTRY
#undef KT_DEFINE
#undef KT_NAME
#undef KT_UNROLL
#undef KT_AHEAD
#undef KT_BODY
#undef KT_MAC
#undef KT_JOIN
#undef KT_JOIN_
#undef KT_ADD
#undef KT_TABLE
#undef KT_KIND
