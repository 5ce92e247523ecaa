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
#define KT_MAC_SPREAD KT_JOIN(kv_mac_spread_, KT_KIND)
#define KT_SPREAD_OPERAND KT_JOIN(KV_SPREAD_, KT_KIND)
#define KT_BODY KT_JOIN(body_, KT_KIND)
#define KT_STEP KT_JOIN(step_, KT_KIND)
#define KT_STEPS 2
#define KT_ROWS_FEW 10
#define KT_AHEAD 16 /* units: B comes from the second level cache */
#define KT_UNROLL _Pragma("GCC unroll 16")

/*
 * One unit of every row. A base pointer for every two rows: the second is at base + stride without arithmetic, and the first,
 * a plain address, may be an operand of the multiplication itself. Half of the rows each way keeps both the number of
 * instructions and of loads below what the two multipliers need. With few rows loads are what is scarce: each row is loaded once.
 */
DP_INLINE void KT_STEP(const size_t rows, const size_t vectors, const uint32_t *const *base, size_t a_stride, size_t at,
                       const uint32_t *b, const uint32_t *ahead, kv sum[KV_ROWS][KV_VECTORS]) {
    kv row[KV_VECTORS];
    KT_UNROLL for (size_t v = 0; v < vectors; v++) row[v] = kv_load(b + v * KV_LANES);
    KT_UNROLL for (size_t v = 0; v < vectors; v++) __builtin_prefetch(ahead + v * KV_LANES);
    KT_UNROLL for (size_t i = 0; i < rows; i++) {
        const uint32_t *p = base[i / 2] + i % 2 * a_stride + at;
#if KT_SPREAD_OPERAND
        if (i % 2 == 0 && rows > KT_ROWS_FEW) {
            KT_UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] = KT_MAC_SPREAD(sum[i][v], p, row[v]);
            continue;
        }
#endif
        kv x = kv_spread(p);
        KV_IN_REGISTER(x); /* else the load is repeated in every use */
        KT_UNROLL for (size_t v = 0; v < vectors; v++) sum[i][v] = KT_MAC(sum[i][v], x, row[v]);
    }
}

DP_INLINE void KT_BODY(const size_t rows, const size_t vectors, size_t units, const uint32_t *a, size_t a_stride,
                       const uint32_t *b, size_t b_stride, const int32_t *init, uint32_t *c, size_t c_stride, bool add,
                       const dp_gemm_walk *walk) {
    kv sum[KV_ROWS][KV_VECTORS];
    KT_UNROLL for (size_t v = 0; v < vectors; v++) {
        kv first = init ? kv_load(init + v * KV_LANES) : kv_zero();
        KT_UNROLL for (size_t i = 0; i < rows; i++) sum[i][v] = first;
    }
    KT_UNROLL for (size_t i = 0; i < rows; i++) { /* the sums' place, wanted at the end */
        __builtin_prefetch(c + i * c_stride, 1);
        __builtin_prefetch(c + i * c_stride + vectors * KV_LANES - 1, 1);
    }
    const uint32_t *base[(KV_ROWS + 1) / 2];
    KT_UNROLL for (size_t i = 0; i < rows; i += 2) base[i / 2] = a + i * a_stride;
    const uint32_t *ahead = b + KT_AHEAD * b_stride;
    const char *next = walk->at;
    const ptrdiff_t walk_step = walk->step;
    for (; units >= 8 * KT_STEPS; units -= 8 * KT_STEPS) {
        for (size_t turn = 8; turn; turn--) {
            KT_UNROLL for (size_t t = 0; t < KT_STEPS; t++, b += b_stride, ahead += b_stride)
                KT_STEP(rows, vectors, base, a_stride, t, b, ahead, sum);
            KT_UNROLL for (size_t i = 0; i < rows; i += 2) {
                base[i / 2] += KT_STEPS;
                KV_POINTER(base[i / 2]);
            }
            KV_POINTER(ahead);
            __builtin_prefetch(next, 0, 2);
            next += walk_step;
        }
        next += walk->turn;
    }
    for (; units; units--, b += b_stride) {
        KT_STEP(rows, vectors, base, a_stride, 0, b, b, sum);
        KT_UNROLL for (size_t i = 0; i < rows; i += 2) base[i / 2]++;
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
                                       size_t b_stride, const int32_t *init, uint32_t *c, size_t c_stride, bool add,   \
                                       const dp_gemm_walk *walk) {                                                     \
        KT_BODY(rows, vectors, units, a, a_stride, b, b_stride, init, c, c_stride, add, walk);                         \
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
#undef KT_ROWS_FEW
#undef KT_STEPS
#undef KT_STEP
#undef KT_BODY
#undef KT_SPREAD_OPERAND
#undef KT_MAC_SPREAD
#undef KT_MAC
#undef KT_JOIN
#undef KT_JOIN_
#undef KT_ADD
#undef KT_TABLE
#undef KT_KIND
