/* plan.c - checks a problem, picks the implementation and the blocking. */
#include "math/gemm/internal.h"

enum {
    UNIT_BLOCK_MAX = 512,         /* units of k a panel of A keeps in the first level cache: 14 rows x 2 KiB */
    TILED_UNIT_BLOCK_MAX = 256,   /* the same for 32 rows */
    COLUMN_BLOCK_BYTES = 1 << 20, /* of B, packed, in the second level cache */
    COLUMN_BLOCK_MAX = 512,       /* with few units: what was packed is multiplied while it is near */
    DIRECT_ROWS = 16,             /* B used as it lies for up to so many row panels, */
    DIRECT_PAGES = 192,           /* so many pages of it at a time: they fit the first level of the TLB */
    PAGE_UNITS = 1024,
    BANDWIDTH_ROWS = 4,           /* float products of more rows are bound by arithmetic */
    SUMS_BYTES = 3 << 20,         /* of a tile's unfinished sums in the scratch: they stream through the third level */
    TAIL_ELEMENTS = 1 << 18,      /* of A, which are read once more for the last columns: from the second level cache */
    LINE_UNITS = 16
};

static bool is_float(dp_dtype t) {
    return t == DP_F32 || t == DP_F16 || t == DP_BF16;
}

static const char *type_name(dp_dtype t) {
    static const char *const names[DP_DTYPE_COUNT] = {"int8",    "uint8",   "int16",  "uint16",  "int32",
                                                      "uint32",  "int64",   "uint64", "float16", "bfloat16",
                                                      "float32", "float64", "int4"};
    return (unsigned)t < DP_DTYPE_COUNT ? names[t] : "unknown type";
}

static dp_status check_types(const dp_gemm_problem *p) {
    dp_dtype a = p->a.dtype, b = p->b.dtype, c = p->c.dtype;
    bool quant = p->quant.scale != NULL, integer = !quant && b == DP_I8 && (a == DP_I8 || a == DP_U8);
    if (quant ? !is_float(a) || (b != DP_I8 && b != DP_I4) : !integer && (!is_float(a) || !is_float(b)))
        return dp_fail(
            DP_ERR_ARGUMENT,
            "matrix product: A is %s and B is %s%s; expected float types, int8 or uint8 by int8, or a float type "
            "by int8 or int4 with scales",
            type_name(a), type_name(b), quant ? " with scales" : "");
    if (!is_float(c) && c != DP_I8 && !(integer && c == DP_I32))
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: C is %s; expected float32, float16, bfloat16, int8%s",
                       type_name(c), integer ? " or int32" : "");
    return DP_OK;
}

static dp_status check_quant(const dp_gemm_problem *p) {
    const dp_gemm_quant *q = &p->quant;
    if (!q->scale)
        return DP_OK;
    if (!is_float(q->dtype))
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: the scales of B are %s; expected float32, float16 or bfloat16",
                       type_name(q->dtype));
    if (q->group_size % 32)
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: the group size of B is %zu; expected 0 or a multiple of 32",
                       q->group_size);
    if (p->b.packed)
        return dp_fail(DP_ERR_UNSUPPORTED, "matrix product: a quantised B is used as it is; do not pack it");
    const dp_gemm_matrix *b = &p->b;
    if (b->dtype == DP_I4) {
        bool along_k = b->row_stride == 1 && (p->n <= 1 || b->column_stride % 2 == 0);
        bool along_n = b->column_stride == 1 && (p->k <= 1 || b->row_stride % 2 == 0);
        if (!along_k && !along_n)
            return dp_fail(
                DP_ERR_ARGUMENT,
                "matrix product: strides of the int4 B are (%td, %td); expected one of them 1 and the other even",
                b->row_stride, b->column_stride);
    }
    return DP_OK;
}

static dp_status check_epilogue(const dp_gemm_problem *p) {
    const dp_gemm_epilogue *e = &p->epilogue;
    bool integer = p->b.dtype == DP_I8 && !p->quant.scale;
    if (e->bias && !is_float(e->bias_dtype) && !(integer && e->bias_dtype == DP_I32))
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: the bias is %s; expected a float type%s",
                       type_name(e->bias_dtype), integer ? " or int32" : "");
    if ((unsigned)e->activation >= DP_GEMM_ACTIVATION_COUNT)
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: activation %d does not exist", (int)e->activation);
    bool int_source = p->c.dtype == DP_I32 || p->c.dtype == DP_I8;
    if (p->source.data && (p->c.dtype == DP_I32 || !is_float(p->source.dtype)) &&
        !(int_source && p->source.dtype == p->c.dtype))
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: the source is %s; expected %s", type_name(p->source.dtype),
                       p->c.dtype == DP_I32  ? "int32, as C"
                       : p->c.dtype == DP_I8 ? "a float type, or int8, as C"
                                             : "a float type");
    if (e->residual.data && !is_float(e->residual.dtype))
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: the residual is %s; expected a float type",
                       type_name(e->residual.dtype));
    if (p->c.dtype == DP_I32 && (p->alpha != 1 || (p->beta != 0 && p->beta != 1) || e->activation || e->residual.data ||
                                 e->column_scale || e->row_scale || (e->bias && e->bias_dtype != DP_I32)))
        return dp_fail(DP_ERR_ARGUMENT,
                       "matrix product: C is int32, so alpha must be 1, beta 0 or 1, and of the epilogue "
                       "only an int32 bias is possible");
    return DP_OK;
}

static dp_status check(const dp_gemm_problem *p) {
    dp_status status = check_types(p);
    if (status == DP_OK)
        status = check_quant(p);
    if (status == DP_OK)
        status = check_epilogue(p);
    if (status != DP_OK || p->m == 0 || p->n == 0)
        return status;
    if (!p->c.data)
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: C is NULL");
    if (p->a.fill || (p->b.fill && (p->b.dtype != DP_F32 || p->b.packed || p->n_blocks)))
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: fill is for a B of floats that is neither packed nor in blocks");
    if (p->k && (!(p->n_blocks && !p->a.packed ? (const void *)p->a.blocks : p->a.data) ||
                 !(p->n_blocks && !p->b.packed ? (const void *)p->b.blocks : p->b.data)))
        return dp_fail(DP_ERR_ARGUMENT, "matrix product: A or B is NULL");
    return DP_OK;
}

static dp_gemm_kind kind_of(const dp_gemm_problem *p, const dp_gemm_rung *rung) {
    if (p->b.dtype == DP_I8 && !p->quant.scale && p->a.dtype == DP_I8 && rung->kernels[DP_GEMM_I8])
        return DP_GEMM_I8;
    if (p->b.dtype == DP_I8 && !p->quant.scale)
        return rung->kernels[DP_GEMM_U8] ? DP_GEMM_U8 : DP_GEMM_I16;
    if (p->a.dtype == DP_BF16 && p->b.dtype == DP_BF16 && rung->kernels[DP_GEMM_BF16])
        return DP_GEMM_BF16;
    return DP_GEMM_F32;
}

/* What follows from k and the types alone, so that a packed operand fits every problem it may be used in. */
static void plan_units(dp_gemm_plan *plan) {
    static const uint8_t groups[DP_GEMM_KIND_COUNT] = {1, 2, 2, 4, 4};
    const dp_gemm_problem *p = &plan->problem;
    plan->kind = kind_of(p, plan->rung);
    plan->group = groups[plan->kind];
    plan->tiled = plan->rung->tiled_kinds >> plan->kind & 1;
    plan->micro_rows = plan->tiled ? 2 * DP_GEMM_TILE : plan->rung->rows;
    plan->a_flip = plan->kind == DP_GEMM_U8 && p->a.dtype == DP_I8;
    plan->segment_units = dp_gemm_ceil(p->k, plan->group);
    plan->units = plan->segment_units * (p->n_blocks ? p->n_blocks : 1);
    size_t blocks = dp_gemm_ceil(plan->units, plan->tiled ? TILED_UNIT_BLOCK_MAX : UNIT_BLOCK_MAX);
    plan->unit_block = blocks ? dp_gemm_round(dp_gemm_ceil(plan->units, blocks), LINE_UNITS) : LINE_UNITS;
}

/* C's transpose is B's transpose by A's transpose. */
static void transpose(dp_gemm_problem *p) {
    dp_gemm_matrix a = p->a, b = p->b;
    dp_gemm_matrix *all[] = {&a, &b, &p->c, &p->source, &p->epilogue.residual};
    for (size_t i = 0; i < 5; i++) {
        ptrdiff_t row_stride = all[i]->row_stride;
        all[i]->row_stride = all[i]->column_stride;
        all[i]->column_stride = row_stride;
    }
    p->a = b;
    p->b = a;
    size_t m = p->m;
    p->m = p->n;
    p->n = m;
    p->epilogue.bias_per_row = !p->epilogue.bias_per_row;
    const float *scale = p->epilogue.row_scale;
    p->epilogue.row_scale = p->epilogue.column_scale;
    p->epilogue.column_scale = scale;
}

static void orient(dp_gemm_problem *p) {
    if (p->quant.scale || p->a.packed || p->b.packed || p->b.fill || p->a.dtype == DP_U8)
        return;
    bool few_columns = p->n <= DP_GEMM_DECODE_ROWS && p->m > DP_GEMM_DECODE_ROWS;
    bool few_rows = p->m <= DP_GEMM_DECODE_ROWS && p->n > DP_GEMM_DECODE_ROWS;
    bool turned = p->c.column_stride != 1 && p->c.row_stride == 1 && p->n > 1;
    if (few_columns || (turned && !few_rows))
        transpose(p);
}

static size_t packed_row_units(size_t units) {
    size_t lines = dp_gemm_ceil(units, LINE_UNITS);
    return (lines | 1) * LINE_UNITS; /* odd: rows do not fall on the same sets of the cache */
}

static int decode_way(const dp_gemm_problem *p, dp_gemm_kind kind) {
    if (p->m > DP_GEMM_DECODE_ROWS || p->n_blocks || p->k == 0 || p->b.fill)
        return DP_GEMM_DECODE_NO;
    const bool bytes = kind != DP_GEMM_F32 && kind != DP_GEMM_BF16;
    if (kind != DP_GEMM_F32 && p->b.packed) /* pairs and quads are packed for the micro-kernel only */
        return DP_GEMM_DECODE_NO;
    if (bytes && (p->m > BANDWIDTH_ROWS || p->a.packed))
        return DP_GEMM_DECODE_NO;
    if (!p->quant.scale && p->b.dtype == DP_F32 && p->m > BANDWIDTH_ROWS && p->b.row_stride != 1)
        return DP_GEMM_DECODE_NO; /* the micro-kernel reads B as it lies, once */
    if (p->b.packed)
        return DP_GEMM_DECODE_PANEL;
    size_t group = p->quant.group_size;
    if (p->b.dtype == DP_I4 && p->b.row_stride == 1 &&
        (group & (group - 1))) /* lanes of a chunk would straddle groups */
        return DP_GEMM_DECODE_NO;
    if (p->b.row_stride == 1)
        return DP_GEMM_DECODE_DOT;
    return p->b.column_stride == 1 ? DP_GEMM_DECODE_AXPY : DP_GEMM_DECODE_NO;
}

/* Nobody waits for a product of few rows; for the others: what is done to the operands before they are multiplied. */
static const char *blocked_reason(const dp_gemm_plan *plan) {
    const dp_gemm_problem *p = &plan->problem;
    const bool halves = p->a.dtype != DP_F32 || (p->b.dtype != DP_F32 && !p->quant.scale);
    if (p->quant.scale)
        return "more rows than are read at memory speed: B is made floats block by block";
    if (plan->kind == DP_GEMM_F32 && halves)
        return p->a.dtype == DP_BF16 && p->b.dtype == DP_BF16
                   ? "this processor has no fast bfloat16 products: widened to float"
                   : "halves are widened to float while they are packed";
    if (plan->kind == DP_GEMM_I16)
        return "this processor has no products of four int8: pairs of int16";
    if (p->b.fill || p->b.packed)
        return "";
    if (!plan->b_direct)
        return p->b.column_stride == 1 ? "B is packed on each call: more rows than read it in place"
                                       : "B is packed on each call: its rows are not contiguous";
    return plan->a_direct ? "" : "A's rows are packed: not contiguous, or whole pages apart";
}

static void plan_decode(dp_gemm_plan *plan, unsigned threads) {
    static const char *const names[] = {"", "gemv dot", "gemv axpy", "gemv panel"};
    dp_gemm_problem *p = &plan->problem;
    plan->path = names[plan->decode];
    if (p->a.packed) /* from units to elements */
        p->a.row_stride *= (ptrdiff_t)plan->group;
    plan->tile_m = p->m;
    plan->tile_n = dp_gemm_round(dp_gemm_ceil(p->n, threads), DP_GEMM_COLUMNS_MAX);
    size_t rows = p->m * dp_gemm_decode_stride(p->k) + p->m * dp_gemm_decode_groups(plan);
    plan->rows_at = 0;
    plan->sums_at = dp_gemm_round(rows, LINE_UNITS) * 4;
    const size_t last = dp_gemm_round(p->n < DP_GEMM_DECODE_COLUMNS ? p->n : DP_GEMM_DECODE_COLUMNS, 128);
    plan->scratch_bytes = plan->sums_at + ((p->m - 1) * DP_GEMM_DECODE_COLUMNS + last) * 4;
}

/*
 * Splits C among the threads so that the busiest finishes first. In cycles of a vector of 16: a product 1/32 (by tiles
 * 1/256), packing a unit of A about 1/10 and of B about 1/6.
 */
static void plan_split(dp_gemm_plan *plan, unsigned threads) {
    const dp_gemm_problem *p = &plan->problem;
    const size_t rows = plan->micro_rows, columns = plan->rung->columns;
    const double products = plan->tiled ? 256 : 32;
    double best = 0;
    for (unsigned down = 1; down <= threads; down++) {
        size_t tile_m = dp_gemm_round(dp_gemm_ceil(p->m, down), rows);
        size_t tile_n = dp_gemm_round(dp_gemm_ceil(p->n, threads / down), columns);
        double m = (double)tile_m, n = (double)tile_n;
        double cost = m * n / products + (p->a.packed ? 0 : m / 10) + (p->b.packed ? 0 : n / 6);
        if (best != 0 && cost >= best)
            continue;
        best = cost;
        plan->tile_m = tile_m;
        plan->tile_n = tile_n;
    }
}

static void plan_blocked(dp_gemm_plan *plan, unsigned threads) {
    static const char *const names[DP_GEMM_KIND_COUNT] = {"gemm float", "gemm int16 pairs", "gemm bfloat16 pairs",
                                                          "gemm int8 quads", "gemm int8 tiles"};
    const dp_gemm_problem *p = &plan->problem;
    const dp_gemm_epilogue *e = &p->epilogue;
    const size_t rows = plan->micro_rows, columns = plan->rung->columns;
    plan->path = plan->tiled && plan->kind == DP_GEMM_BF16 ? "gemm bfloat16 tiles" : names[plan->kind];
    plan_split(plan, threads);
    plan->plain = (p->c.dtype == DP_F32 || p->c.dtype == DP_I32) && p->c.column_stride == 1 && p->alpha == 1 &&
                  (p->beta == 0 || (p->beta == 1 && !p->source.data)) && !e->bias && !e->activation &&
                  !e->residual.data && !e->column_scale && !e->row_scale &&
                  (p->c.dtype == DP_I32) == (plan->kind != DP_GEMM_F32 && plan->kind != DP_GEMM_BF16);
    const bool in_place = p->b.packed && (plan->kind != DP_GEMM_F32 || p->b.dtype == DP_F32);
    /* rows whole pages apart fall on the same sets of the caches: once through them at most */
    const size_t direct_rows = p->b.row_stride % 1024 ? DIRECT_ROWS : 1;
    plan->b_direct =
        in_place || (plan->kind == DP_GEMM_F32 && p->b.dtype == DP_F32 && p->b.column_stride == 1 &&
                     p->b.row_stride > 0 && !p->n_blocks && !p->b.fill && plan->tile_m <= direct_rows * rows);
    if (plan->b_direct && !in_place) { /* a row on each page, or several rows */
        const size_t row = (size_t)p->b.row_stride, most = DIRECT_PAGES * (row < PAGE_UNITS ? PAGE_UNITS / row : 1);
        size_t blocks = dp_gemm_ceil(plan->units, most < UNIT_BLOCK_MAX ? most : UNIT_BLOCK_MAX);
        plan->unit_block = blocks ? dp_gemm_round(dp_gemm_ceil(plan->units, blocks), LINE_UNITS) : LINE_UNITS;
    }
    bool sums = !plan->plain && plan->units > plan->unit_block;
    size_t fit = COLUMN_BLOCK_BYTES / (plan->unit_block * 4) / columns * columns;
    fit = fit < COLUMN_BLOCK_MAX ? fit : COLUMN_BLOCK_MAX;
    plan->column_block = fit < columns ? columns : fit < plan->tile_n ? fit : plan->tile_n;
    const size_t sums_rows = SUMS_BYTES / (plan->column_block * 4) / rows * rows;
    if (sums && plan->tile_m > sums_rows)
        plan->tile_m = sums_rows;
    size_t row_bytes = (size_t)(p->a.row_stride < 0 ? -p->a.row_stride : p->a.row_stride) * 4;
    plan->a_direct = p->a.packed || (plan->kind == DP_GEMM_F32 && p->a.dtype == DP_F32 && p->a.column_stride == 1 &&
                                     !p->n_blocks && p->a.row_stride > 0 && row_bytes % 4096 && p->n <= 128);
    if (plan->kind == DP_GEMM_U8 && p->a.dtype == DP_U8 && !p->a.packed && p->a.column_stride == 1 &&
        !p->n_blocks && p->a.row_stride > 0 && p->a.row_stride % 4 == 0 && p->k % 4 == 0 && (uintptr_t)p->a.data % 4 == 0)
        plan->a_direct = true;
    /* a row panel of A; the block of B (its last panel at least) with one row of sums per panel; sums of C */
    plan->rows_at = 0;
    plan->panel_at = rows * packed_row_units(plan->unit_block) * 4;
    plan->sums_at = plan->panel_at + (in_place ? 0 : plan->column_block * (plan->unit_block + 1) * 4);
    plan->scratch_bytes = plan->sums_at + (sums ? plan->tile_m * plan->column_block * 4 : 0);
}

size_t dp_gemm_tail(const dp_gemm_plan *plan) {
    const dp_gemm_problem *p = &plan->problem;
    const size_t lanes = plan->rung->lanes, left = p->n % lanes;
    if (plan->decode || plan->kind != DP_GEMM_F32 || p->quant.scale || p->a.packed || p->b.packed || p->n_blocks || p->b.fill)
        return 0;
    if (left > lanes / 4 || p->n < lanes || p->m <= DP_GEMM_DECODE_ROWS || p->a.column_stride != 1)
        return 0;
    return p->k && p->m <= TAIL_ELEMENTS / p->k ? left : 0;
}

/* The columns of m from j on. */
static dp_gemm_matrix columns_from(dp_gemm_matrix m, size_t j) {
    if (m.data)
        m.data = (const char *)m.data + (ptrdiff_t)j * m.column_stride * (ptrdiff_t)(dp_dtype_bits(m.dtype) / 8);
    return m;
}

static void plan_whole(unsigned threads, dp_gemm_plan *out_plan);

void dp_gemm_tail_plan(const dp_gemm_plan *plan, dp_gemm_plan *out_plan) {
    const size_t tail = dp_gemm_tail(plan), j = plan->problem.n - tail;
    *out_plan = (dp_gemm_plan){.problem = plan->problem, .rung = plan->rung, .path = "", .why = ""};
    dp_gemm_problem *p = &out_plan->problem;
    dp_gemm_epilogue *e = &p->epilogue;
    p->n = tail;
    p->b = columns_from(p->b, j);
    p->c = columns_from(p->c, j);
    p->source = columns_from(p->source, j);
    e->residual = columns_from(e->residual, j);
    if (e->bias && !e->bias_per_row)
        e->bias = (const char *)e->bias + j * (dp_dtype_bits(e->bias_dtype) / 8);
    if (e->column_scale)
        e->column_scale += j;
    plan_whole(1, out_plan);
}

dp_status dp_gemm_plan_make_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem, unsigned threads,
                                dp_gemm_plan *out_plan) {
    dp_status status = check(problem);
    if (status != DP_OK)
        return status;
    *out_plan =
        (dp_gemm_plan){.problem = *problem, .rung = dp_gemm_rung_for(isa, features), .path = "empty", .why = ""};
    if (problem->m && problem->n)
        plan_whole(threads, out_plan);
    return DP_OK;
}

/* What follows from a problem that is not empty and its rung. */
static void plan_whole(unsigned threads, dp_gemm_plan *out_plan) {
    dp_gemm_problem *p = &out_plan->problem;
    orient(p);
    plan_units(out_plan);
    if (p->a.packed) {
        p->a.row_stride = (ptrdiff_t)packed_row_units(out_plan->units);
        p->a.column_stride = 1;
        p->a.dtype = out_plan->kind == DP_GEMM_F32 ? DP_F32 : p->a.dtype;
    }
    threads = threads ? threads : 1;
    out_plan->decode = decode_way(p, out_plan->kind);
    if (out_plan->decode) {
        plan_decode(out_plan, threads);
    } else {
        plan_blocked(out_plan, threads);
        out_plan->why = blocked_reason(out_plan);
    }
    out_plan->tiles_m = dp_gemm_ceil(p->m, out_plan->tile_m);
    const size_t tail = dp_gemm_tail(out_plan);
    out_plan->tiles_n = dp_gemm_ceil(p->n - tail, out_plan->tile_n) + (tail != 0);
    if (tail) {
        dp_gemm_plan last;
        dp_gemm_tail_plan(out_plan, &last);
        if (last.scratch_bytes > out_plan->scratch_bytes)
            out_plan->scratch_bytes = last.scratch_bytes;
    }
}

static unsigned features_in_force(void) {
    unsigned features = dp_cpu_features();
    return features & DP_CPU_BF16_FAST ? features : features & ~(unsigned)DP_CPU_AVX512_BF16;
}

dp_status dp_gemm_plan_make(const dp_gemm_problem *problem, unsigned threads, dp_gemm_plan *out_plan) {
    return dp_gemm_plan_make_for(dp_cpu_isa(), features_in_force(), problem, threads, out_plan);
}

/* A plan good enough to know the packed layout; C, alpha and the epilogue do not matter for it. */
static dp_status packing_plan(dp_isa isa, unsigned features, const dp_gemm_problem *problem, dp_gemm_plan *out_plan) {
    *out_plan = (dp_gemm_plan){.problem = *problem, .rung = dp_gemm_rung_for(isa, features)};
    dp_status status = check_types(problem);
    if (status == DP_OK)
        status = check_quant(problem);
    if (status == DP_OK)
        plan_units(out_plan);
    return status;
}

size_t dp_gemm_pack_a_bytes_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem) {
    dp_gemm_plan plan;
    if (packing_plan(isa, features, problem, &plan) != DP_OK)
        return 0;
    size_t rows = plan.tiled ? dp_gemm_round(problem->m, DP_GEMM_TILE) : problem->m; /* tiles are read whole */
    return rows * packed_row_units(plan.units) * 4;
}

size_t dp_gemm_pack_b_bytes_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem) {
    dp_gemm_plan plan;
    if (problem->quant.scale || packing_plan(isa, features, problem, &plan) != DP_OK)
        return 0;
    return dp_gemm_packed_b_at(&plan, dp_gemm_ceil(plan.units, plan.unit_block), 0);
}

dp_status dp_gemm_pack_a_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem, void *out_packed) {
    dp_gemm_plan plan;
    dp_status status = packing_plan(isa, features, problem, &plan);
    if (status != DP_OK)
        return status;
    size_t stride = packed_row_units(plan.units), rows = plan.micro_rows;
    for (size_t i = 0; i < problem->m; i += rows)
        dp_gemm_pack_a_units(&plan, i, problem->m - i < rows ? problem->m - i : rows, 0, plan.units,
                             (uint32_t *)out_packed + i * stride, stride);
    return DP_OK;
}

dp_status dp_gemm_pack_b_for(dp_isa isa, unsigned features, const dp_gemm_problem *problem, void *out_packed) {
    dp_gemm_plan plan;
    dp_status status = packing_plan(isa, features, problem, &plan);
    if (status != DP_OK)
        return status;
    if (problem->quant.scale)
        return dp_fail(DP_ERR_UNSUPPORTED, "matrix product: a quantised B is used as it is; do not pack it");
    dp_gemm_pack_b_all(&plan, out_packed);
    return DP_OK;
}

size_t dp_gemm_pack_a_bytes(const dp_gemm_problem *problem) {
    return dp_gemm_pack_a_bytes_for(dp_cpu_isa(), features_in_force(), problem);
}
size_t dp_gemm_pack_b_bytes(const dp_gemm_problem *problem) {
    return dp_gemm_pack_b_bytes_for(dp_cpu_isa(), features_in_force(), problem);
}
dp_status dp_gemm_pack_a(const dp_gemm_problem *problem, void *out_packed) {
    return dp_gemm_pack_a_for(dp_cpu_isa(), features_in_force(), problem, out_packed);
}
dp_status dp_gemm_pack_b(const dp_gemm_problem *problem, void *out_packed) {
    return dp_gemm_pack_b_for(dp_cpu_isa(), features_in_force(), problem, out_packed);
}
