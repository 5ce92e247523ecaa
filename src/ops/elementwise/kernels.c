/*
 * kernels.c - loops made from functions.def, and conversions. Compiled once per rung like the files of src/math.
 */
#include "ops/elementwise/kernels.h"

#include <math.h>
#include <string.h>

#include "math/math.h"
#include "ops/rung.h"

typedef float f32;
typedef double f64;
typedef int64_t i64;

#define T_ONE(name, x) _Generic((x), float : name##f, default : name)(x)
#define T_TWO(name, x, y) _Generic((x), float : name##f, default : name)(x, y)
#define T_ABS(x) T_ONE(fabs, x)
#define T_FLOOR(x) T_ONE(floor, x)
#define T_CEIL(x) T_ONE(ceil, x)
#define T_RINT(x) T_ONE(rint, x)
#define T_TRUNC(x) T_ONE(trunc, x)
#define T_SQRT(x) T_ONE(sqrt, x)
#define T_EXP(x) T_ONE(exp, x)
#define T_EXP2(x) T_ONE(exp2, x)
#define T_LOG(x) T_ONE(log, x)
#define T_LOG1P(x) T_ONE(log1p, x)
#define T_SIN(x) T_ONE(sin, x)
#define T_TAN(x) T_ONE(tan, x)
#define T_ASIN(x) T_ONE(asin, x)
#define T_ACOS(x) T_ONE(acos, x)
#define T_ATAN(x) T_ONE(atan, x)
#define T_SINH(x) T_ONE(sinh, x)
#define T_COSH(x) T_ONE(cosh, x)
#define T_ASINH(x) T_ONE(asinh, x)
#define T_ACOSH(x) T_ONE(acosh, x)
#define T_ATANH(x) T_ONE(atanh, x)
#define T_ERF(x) T_ONE(erf, x)
#define T_ERFC(x) T_ONE(erfc, x)
#define T_POW(x, y) T_TWO(pow, x, y)
#define T_FMOD(x, y) T_TWO(fmod, x, y)
#define T_ATAN2(x, y) T_TWO(atan2, x, y)
#define T_COPYSIGN(x, y) T_TWO(copysign, x, y)

/* Series near 0, where the forms with e^x cancel. */
static inline f32 small_expm1_f32(f32 x) {
    return x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7))))));
}
static inline f32 small_tanh_f32(f32 x) {
    f32 s = x * x;
    return x + x * s *
                   ((f32)(-1.0 / 3) +
                    s * ((f32)(2.0 / 15) +
                         s * ((f32)(-17.0 / 315) +
                              s * ((f32)(62.0 / 2835) - s * ((f32)(1382.0 / 155925) - s * (f32)(21844.0 / 6081075))))));
}

/*
 * erfc(z) = e^(-z^2) * scaled(z) for z >= 0: a polynomial in t = 1 / (1 + 0.35 z), relative error 8.1e-9 up to z = 11, where the
 * exponential ends. Below 0.9 a series of its own keeps what 1 - erfc would lose; error 6e-10 of x. Both fitted by
 * reweighted least squares. erf errs by at most 1 unit in the last place.
 */
static inline f32 scaled_erfc_f32(f32 z) {
    f32 t = 1 / (1 + 0.35f * z), p = 0x1.44f590p-5f;
    p = p * t - 0x1.53f058p-3f;
    p = p * t + 0x1.9694f6p-3f;
    p = p * t - 0x1.a32f54p-5f;
    p = p * t + 0x1.b716a8p-4f;
    p = p * t + 0x1.1414c0p-3f;
    p = p * t + 0x1.3de900p-3f;
    p = p * t + 0x1.7ef878p-3f;
    p = p * t + 0x1.93f922p-3f;
    p = p * t + 0x1.946f22p-3f;
    return t * p;
}
static inline f32 small_erf_f32(f32 x) {
    f32 s = x * x, p = 0x1.589568p-14f;
    p = p * s - 0x1.a8fcc6p-11f;
    p = p * s + 0x1.54a49ep-8f;
    p = p * s - 0x1.b80b10p-6f;
    p = p * s + 0x1.ce2de2p-4f;
    p = p * s - 0x1.812742p-2f;
    p = p * s + 0x1.06eba8p-3f;
    return x + x * p;
}
/* u = e^(-x^2) */
static inline f32 erf_of_f32(f32 x, f32 u) {
    f32 z = fabsf(x);
    return z < 0.9f ? small_erf_f32(x) : copysignf(1 - u * scaled_erfc_f32(z), x);
}
static inline f32 erfc_of_f32(f32 x, f32 u) {
    f32 far = u * scaled_erfc_f32(fabsf(x));
    return fabsf(x) < 0.5f ? 1 - small_erf_f32(x) : x < 0 ? 2 - far : far;
}
/* u = e^(-x^2 / 2); keeps the digits that 1 + erf loses for negative x */
static inline f32 gelu_of_f32(f32 x, f32 u) {
    f32 v = 0.5f * u * scaled_erfc_f32(fabsf(x) * 0.70710678f);
    return x > 0 ? x * (1 - v) : x * v;
}
static inline f64 erf_of_f64(f64 x, f64 u) {
    (void)u;
    return erf(x);
}
static inline f64 erfc_of_f64(f64 x, f64 u) {
    (void)u;
    return erfc(x);
}
static inline f64 gelu_of_f64(f64 x, f64 u) {
    (void)u;
    return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

#define HELPERS(T)                                                                                                     \
    static inline T clip_##T(T x, T low, T high) {                                                                     \
        T y = x < low ? low : x;                                                                                       \
        return y > high ? high : y;                                                                                    \
    }                                                                                                                  \
    static inline T logit_clip_##T(T x, T eps) {                                                                       \
        return eps < 0 || x != x ? x : clip_##T(x, eps, 1 - eps);                                                      \
    }                                                                                                                  \
    static inline T clip_low_##T(T x) {                                                                                \
        return x < 0 ? 0 : x;                                                                                          \
    }                                                                                                                  \
    static inline T clip_pair_##T(T x, T y) {                                                                          \
        return x > y ? x : y;                                                                                          \
    }                                                                                                                  \
    /* as Python's //: the remainder decides, so that no quotient is rounded up to the next integer */                 \
    static inline T floor_div_##T(T a, T b) {                                                                          \
        if (b == 0)                                                                                                    \
            return a / b;                                                                                              \
        T rest = T_FMOD(a, b), q = (a - rest) / b;                                                                     \
        if (rest != 0 && (b < 0) != (rest < 0))                                                                        \
            q -= 1;                                                                                                    \
        if (q == 0)                                                                                                    \
            return T_COPYSIGN((T)0, a / b);                                                                            \
        T down = T_FLOOR(q);                                                                                           \
        return q - down > (T)0.5 ? down + 1 : down;                                                                    \
    }                                                                                                                  \
    static inline T remainder_of_##T(T a, T b) {                                                                       \
        T rest = T_FMOD(a, b);                                                                                         \
        return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;                                                   \
    }
HELPERS(f32)
/* The double loops use the library's functions where float ones need series. */
HELPERS(f64)
#define BY_TYPE(name, x) _Generic((x), float : name##_f32, default : name##_f64)
#define small_expm1(x) _Generic((x), float : small_expm1_f32, default : expm1)(x)
#define small_tanh(x) _Generic((x), float : small_tanh_f32, default : tanh)(x)
#define erf_of(x, u) BY_TYPE(erf_of, x)(x, u)
#define erfc_of(x, u) BY_TYPE(erfc_of, x)(x, u)
#define gelu_of(x, u) BY_TYPE(gelu_of, x)(x, u)
#define clip(x, low, high) BY_TYPE(clip, x)(x, low, high)
#define logit_clip(x, eps) BY_TYPE(logit_clip, x)(x, eps)
#define clip_low(x) _Generic((x), float : clip_low_f32, double : clip_low_f64, default : clip_low_i64)(x)
#define clip_pair(x, y) BY_TYPE(clip_pair, x)(x, y)
#define floor_div(x, y) BY_TYPE(floor_div, x)(x, y)
#define remainder_of(x, y) BY_TYPE(remainder_of, x)(x, y)

static inline i64 clip_low_i64(i64 x) {
    return x < 0 ? 0 : x;
}
static inline i64 trunc_div(i64 a, i64 b) {
    return b == 0 ? 0 : b == -1 ? (i64)(0 - (uint64_t)a) : a / b;
}
static inline i64 floor_div_i64(i64 a, i64 b) {
    if (b == 0 || b == -1)
        return trunc_div(a, b);
    i64 q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
static inline i64 remainder_i64(i64 a, i64 b) {
    if (b == 0 || b == -1)
        return 0;
    i64 rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline i64 gcd_i64(i64 a, i64 b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return (i64)x;
}
/* Giles' single precision polynomials ("Approximating the erfinv function", 2011), then two steps of Newton. */
static inline f64 erfinv_of(f64 x) {
    if (!(fabs(x) < 1))
        return fabs(x) == 1 ? copysign(INFINITY, x) : NAN;
    f64 w = -log1p(-x * x), p;
    if (w < 5) {
        w -= 2.5;
        p = 2.81022636e-08;
        p = 3.43273939e-07 + p * w;
        p = -3.5233877e-06 + p * w;
        p = -4.39150654e-06 + p * w;
        p = 0.00021858087 + p * w;
        p = -0.00125372503 + p * w;
        p = -0.00417768164 + p * w;
        p = 0.246640727 + p * w;
        p = 1.50140941 + p * w;
    } else {
        w = sqrt(w) - 3;
        p = -0.000200214257;
        p = 0.000100950558 + p * w;
        p = 0.00134934322 + p * w;
        p = -0.00367342844 + p * w;
        p = 0.00573950773 + p * w;
        p = -0.0076224613 + p * w;
        p = 0.00943887047 + p * w;
        p = 1.00167406 + p * w;
        p = 2.83297682 + p * w;
    }
    f64 y = p * x;
    f64 sign = x < 0 ? -1 : 1;
    for (int i = 0; i < 2; i++) { /* near 1 the complement keeps its digits */
        f64 above = fabs(x) > 0.5 ? sign * ((1 - fabs(x)) - erfc(sign * y)) : erf(y) - x;
        y -= above * exp(y * y) * 0.88622692545275801365;
    }
    return y;
}
static inline i64 power_i64(i64 base, i64 exponent) {
    if (exponent < 0)
        return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
    uint64_t result = 1, factor = (uint64_t)base;
    for (; exponent; exponent >>= 1, factor *= factor)
        if (exponent & 1)
            result *= factor;
    return (i64)result;
}

/* Conversion of a float outside the range is undefined in C: so it saturates here. */
static inline i64 cut(f64 x) {
    return x >= -0x1p63 && x < 0x1p63 ? (i64)x : x != x ? 0 : x < 0 ? INT64_MIN : INT64_MAX;
}
static inline f32 param_f32(f64 x) {
    return (f32)x;
}
static inline f64 param_f64(f64 x) {
    return x;
}
static inline i64 param_i64(f64 x) {
    return cut(x);
}

/* Rows read what they need of these; the rest disappears. */
#define LOOP_HEAD(TYPE)                                                                                                \
    typedef TYPE T;                                                                                                    \
    T *d = dst;                                                                                                        \
    const T *a_ = in_a, *b_ = in_b, *c_ = in_c;                                                                        \
    const T p0 = param_##TYPE(rp[0]), p1 = param_##TYPE(rp[1]), p2 = param_##TYPE(rp[2]),                              \
            p3 = param_##TYPE(rp[3]);                                                                                  \
    (void)p0, (void)p1, (void)p2, (void)p3, (void)b_, (void)c_;
#define LOOP_ELEMENT                                                                                                   \
    const T a = a_[i], b = b_[i], c = c_[i];                                                                           \
    (void)a, (void)b, (void)c;
#define LOOP(TYPE, name, EXPRESSION)                                                                                   \
    static void name##_##TYPE(void *dst, const void *in_a, const void *in_b, const void *in_c, const double *rp,       \
                              size_t n) {                                                                              \
        LOOP_HEAD(TYPE)                                                                                                \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            LOOP_ELEMENT                                                                                               \
            d[i] = (T)(EXPRESSION);                                                                                    \
        }                                                                                                              \
    }
#define VIA_EXP(x) exp(x)
#define VIA_LN(x) log(x)
#define TABLE_EXP DP_MATH_EXP
#define TABLE_LN DP_MATH_LN
#define LOOP_VIA_TABLE(name, VIA, PRE, POST)                                                                           \
    static void name##_f32(void *dst, const void *in_a, const void *in_b, const void *in_c, const double *rp,          \
                           size_t n) {                                                                                 \
        LOOP_HEAD(f32)                                                                                                 \
        f32 u_[DP_TILE];                                                                                               \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            LOOP_ELEMENT                                                                                               \
            u_[i] = (PRE);                                                                                             \
        }                                                                                                              \
        dp_math_current()->unary[TABLE_##VIA][DP_F32](u_, u_, n);                                                      \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            LOOP_ELEMENT                                                                                               \
            const T u = u_[i];                                                                                         \
            d[i] = (POST);                                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_f64(void *dst, const void *in_a, const void *in_b, const void *in_c, const double *rp,          \
                           size_t n) {                                                                                 \
        LOOP_HEAD(f64)                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            LOOP_ELEMENT                                                                                               \
            const T u = VIA_##VIA(PRE);                                                                                \
            d[i] = (POST);                                                                                             \
        }                                                                                                              \
    }

/* The names of rows may be those of library functions. */
#define FNI(name, class, operands, params, real, integer)                                                              \
    LOOP(f32, row_##name, real) LOOP(f64, row_##name, real) LOOP(i64, row_##name, integer)
#define FN(name, class, operands, params, real) LOOP(f32, row_##name, real) LOOP(f64, row_##name, real)
#define FNM(name, class, operands, params, via, pre, post) LOOP_VIA_TABLE(row_##name, via, pre, post)
#include "ops/elementwise/functions.def"

/*
 * sin and cos of floats: reduced by multiples of pi/2 in double, where products with |k| < 2^20 lose nothing that a
 * float sees, then Taylor series on [-pi/4, pi/4]. Tiles with larger arguments go through the library.
 */
#define REDUCED_MAX 1.0e6f
static inline f32 sine_quarter(f32 x, int shift) {
    f64 k = (f64)x * 0.63661977236758134308;
    k = (k + 0x1.8p52) - 0x1.8p52;
    f64 r = ((f64)x - k * 0x1.921fb54442d18p0) - k * 0x1.1a62633145c07p-54;
    int q = (int)k + shift;
    f64 s = r * r;
    f64 sine = r + r * s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880))));
    f64 cosine = 1 + s * (-0.5 + s * (1.0 / 24 + s * (-1.0 / 720 + s * (1.0 / 40320 - s * (1.0 / 3628800)))));
    f64 value = q & 1 ? cosine : sine;
    return (f32)(q & 2 ? -value : value);
}
static bool all_small(const f32 *a, size_t n) {
    int large = 0;
    for (size_t i = 0; i < n; i++)
        large |= !(fabsf(a[i]) < REDUCED_MAX);
    return !large;
}
#define SINE(name, shift)                                                                                              \
    static void row_##name##_f32(void *dst, const void *in_a, const void *in_b, const void *in_c, const double *rp,    \
                                 size_t n) {                                                                           \
        (void)in_b, (void)in_c, (void)rp;                                                                              \
        f32 *d = dst;                                                                                                  \
        const f32 *a = in_a;                                                                                           \
        if (all_small(a, n)) {                                                                                         \
            DP_IVDEP for (size_t i = 0; i < n; i++) d[i] = sine_quarter(a[i], shift);                                  \
        } else {                                                                                                       \
            for (size_t i = 0; i < n; i++)                                                                             \
                d[i] = name##f(a[i]);                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    LOOP(f64, row_##name, name(a))
SINE(sin, 0)
SINE(cos, 1)

/* Conversions. Halves go through float by the tables of src/math. */
#define CONVERT(to, from, TO, FROM, EXPRESSION)                                                                        \
    static void to##_from_##from(void *dst, const void *src, size_t n) {                                               \
        TO *d = dst;                                                                                                   \
        const FROM *s = src;                                                                                           \
        DP_IVDEP for (size_t i = 0; i < n; i++) {                                                                      \
            const FROM x = s[i];                                                                                       \
            d[i] = (TO)(EXPRESSION);                                                                                   \
        }                                                                                                              \
    }
static inline uint64_t cut_unsigned(f64 x) {
    return x >= 0x1p63 ? (x < 0x1p64 ? (uint64_t)x : UINT64_MAX) : (uint64_t)cut(x);
}
static inline int32_t cut_i32(f64 x) {
    return x >= -0x1p31 && x < 0x1p31 ? (int32_t)x : x != x ? 0 : x < 0 ? INT32_MIN : INT32_MAX;
}
#define CONVERT_INT(name, C)                                                                                           \
    CONVERT(f32, name, f32, C, x)                                                                                      \
    CONVERT(f64, name, f64, C, x)                                                                                      \
    CONVERT(i64, name, i64, C, x)                                                                                      \
    CONVERT(name, i64, C, i64, x)
CONVERT_INT(i8, int8_t)
CONVERT_INT(u8, uint8_t)
CONVERT_INT(i16, int16_t)
CONVERT_INT(u16, uint16_t)
CONVERT_INT(i32, int32_t)
CONVERT_INT(u32, uint32_t)
CONVERT_INT(u64, uint64_t)
#define CONVERT_CUT(name, C, CUT)                                                                                      \
    CONVERT(name, f32, C, f32, CUT(x))                                                                                 \
    CONVERT(name, f64, C, f64, CUT(x))
CONVERT_CUT(i8, int8_t, cut_i32)
CONVERT_CUT(u8, uint8_t, cut_i32)
CONVERT_CUT(i16, int16_t, cut_i32)
CONVERT_CUT(u16, uint16_t, cut_i32)
CONVERT_CUT(i32, int32_t, cut_i32)
CONVERT_CUT(u32, uint32_t, cut)
CONVERT_CUT(i64, i64, cut)
CONVERT_CUT(u64, uint64_t, cut_unsigned)
CONVERT(f32, i64, f32, i64, x)
CONVERT(f64, i64, f64, i64, x)
CONVERT(f32, f64, f32, f64, x)
CONVERT(f64, f32, f64, f32, x)
CONVERT(f32, bool, f32, uint8_t, x != 0)
CONVERT(f64, bool, f64, uint8_t, x != 0)
CONVERT(i64, bool, i64, uint8_t, x != 0)
CONVERT(bool, f32, uint8_t, f32, x != 0)
CONVERT(bool, f64, uint8_t, f64, x != 0)
CONVERT(bool, i64, uint8_t, i64, x != 0)

#define CONVERT_SAME(name, bytes)                                                                                      \
    static void name##_from_##name(void *dst, const void *src, size_t n) {                                             \
        if (dst != src)                                                                                                \
            memcpy(dst, src, n *bytes);                                                                                \
    }
CONVERT_SAME(f32, 4)
CONVERT_SAME(f64, 8)
CONVERT_SAME(i64, 8)

#define CONVERT_HALF(name, DTYPE)                                                                                      \
    static void f32_from_##name(void *dst, const void *src, size_t n) {                                                \
        dp_math_current()->cast[DP_F32][DTYPE][DP_ROUND_RINT](dst, src, n);                                            \
    }                                                                                                                  \
    static void f64_from_##name(void *dst, const void *src, size_t n) {                                                \
        f32 middle[DP_TILE];                                                                                           \
        f32_from_##name(middle, src, n);                                                                               \
        f64_from_f32(dst, middle, n);                                                                                  \
    }                                                                                                                  \
    static void i64_from_##name(void *dst, const void *src, size_t n) {                                                \
        f32 middle[DP_TILE];                                                                                           \
        f32_from_##name(middle, src, n);                                                                               \
        i64_from_f32(dst, middle, n);                                                                                  \
    }                                                                                                                  \
    static void name##_from_f32(void *dst, const void *src, size_t n) {                                                \
        dp_math_current()->cast[DTYPE][DP_F32][DP_ROUND_RINT](dst, src, n);                                            \
    }                                                                                                                  \
    static void name##_from_f64(void *dst, const void *src, size_t n) {                                                \
        f32 middle[DP_TILE];                                                                                           \
        f32_from_f64(middle, src, n);                                                                                  \
        name##_from_f32(dst, middle, n);                                                                               \
    }                                                                                                                  \
    static void name##_from_i64(void *dst, const void *src, size_t n) {                                                \
        f32 middle[DP_TILE];                                                                                           \
        f32_from_i64(middle, src, n);                                                                                  \
        name##_from_f32(dst, middle, n);                                                                               \
    }
CONVERT_HALF(f16, DP_F16)
CONVERT_HALF(bf16, DP_BF16)

#define BOTH_WAYS(index, name)                                                                                         \
    table->load[index][DP_COMPUTE_F32] = f32_from_##name;                                                              \
    table->load[index][DP_COMPUTE_F64] = f64_from_##name;                                                              \
    table->load[index][DP_COMPUTE_I64] = i64_from_##name;                                                              \
    table->store[index][DP_COMPUTE_F32] = name##_from_f32;                                                             \
    table->store[index][DP_COMPUTE_F64] = name##_from_f64;                                                             \
    table->store[index][DP_COMPUTE_I64] = name##_from_i64;

/* Rows that are nothing but the table's function. */
#define DIRECT(name, VIA)                                                                                              \
    static void direct_##name##_f32(void *dst, const void *a, const void *b, const void *c, const double *rp,          \
                                    size_t n) {                                                                        \
        (void)b, (void)c, (void)rp;                                                                                    \
        dp_math_current()->unary[VIA][DP_F32](dst, a, n);                                                              \
    }
DIRECT(exp, DP_MATH_EXP)
DIRECT(log, DP_MATH_LN)

void DP_RUNG(dp_elementwise_fill)(dp_elementwise_table *table) {
    memset(table, 0, sizeof *table);
#define REALS(name)                                                                                                    \
    table->run[DP_ELEMENTWISE_##name][DP_COMPUTE_F32] = row_##name##_f32;                                              \
    table->run[DP_ELEMENTWISE_##name][DP_COMPUTE_F64] = row_##name##_f64;
#define FNI(name, class, operands, params, real, integer)                                                              \
    REALS(name) table->run[DP_ELEMENTWISE_##name][DP_COMPUTE_I64] = row_##name##_i64;
#define FN(name, class, operands, params, real) REALS(name)
#define FNM(name, class, operands, params, via, pre, post) REALS(name)
#include "ops/elementwise/functions.def"
    REALS(sin)
    REALS(cos)
    table->run[DP_ELEMENTWISE_exp][DP_COMPUTE_F32] = direct_exp_f32;
    table->run[DP_ELEMENTWISE_log][DP_COMPUTE_F32] = direct_log_f32;
    BOTH_WAYS(DP_I8, i8)
    BOTH_WAYS(DP_U8, u8)
    BOTH_WAYS(DP_I16, i16)
    BOTH_WAYS(DP_U16, u16)
    BOTH_WAYS(DP_I32, i32)
    BOTH_WAYS(DP_U32, u32)
    BOTH_WAYS(DP_I64, i64)
    BOTH_WAYS(DP_U64, u64)
    BOTH_WAYS(DP_F16, f16)
    BOTH_WAYS(DP_BF16, bf16)
    BOTH_WAYS(DP_F32, f32)
    BOTH_WAYS(DP_F64, f64)
    BOTH_WAYS(DP_EL_BOOL, bool)
}
