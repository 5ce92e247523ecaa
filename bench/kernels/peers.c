#include "peers.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

typedef struct work {
    void (*run)(const struct work *w, size_t first, size_t last);
    void *out;
    const void *a, *b, *c;
    size_t columns;
    size_t first, last;
} work;

static void *thread_main(void *argument) {
    work *w = argument;
    w->run(w, w->first, w->last);
    return NULL;
}

/* Cuts [0, n) into one piece per thread, on multiples of `grain`; the caller's thread does the last piece. */
static void spread(work w, size_t n, size_t grain, unsigned threads) {
    work pieces[64];
    pthread_t ids[64];
    threads = threads < 1 ? 1 : threads > 64 ? 64 : threads;
    size_t step = (n / threads + grain - 1) / grain * grain;
    for (unsigned i = 0; i < 64 && i < threads; i++) {
        pieces[i] = w;
        pieces[i].first = i * step < n ? i * step : n;
        pieces[i].last = i + 1 == threads || (i + 1) * step > n ? n : (i + 1) * step;
        if (i + 1 < threads)
            pthread_create(&ids[i], NULL, thread_main, &pieces[i]);
    }
    thread_main(&pieces[threads - 1]);
    for (unsigned i = 0; i + 1 < threads; i++)
        pthread_join(ids[i], NULL);
}

static void run_add(const work *w, size_t first, size_t last) {
    float *restrict out = w->out;
    const float *restrict a = w->a, *restrict b = w->b;
    for (size_t i = first; i < last; i++)
        out[i] = a[i] + b[i];
}

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__) && defined(__F16C__))
/* Written once; every name below is one instruction, or what AVX2 needs for it. */
#ifdef __AVX512F__
#define VECTOR(name) _mm512_##name
typedef __m512 vector;
typedef __m256i halves;
enum { LANES = 16 };
const char *peer_kind(void) { return "AVX-512"; }
static inline vector nearest(vector x) { return _mm512_roundscale_ps(x, 0); }
static inline vector times_power_of_two(vector x, vector k) { return _mm512_scalef_ps(x, k); }
static inline float largest(vector x) { return _mm512_reduce_max_ps(x); }
static inline float total(vector x) { return _mm512_reduce_add_ps(x); }
static inline halves load_halves(const uint16_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void store_halves(uint16_t *p, halves h) { _mm256_storeu_si256((__m256i *)p, h); }
#else
#define VECTOR(name) _mm256_##name
typedef __m256 vector;
typedef __m128i halves;
enum { LANES = 8 };
const char *peer_kind(void) { return "AVX2"; }
static inline vector nearest(vector x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* k from -150 to 128: two powers, since one float does not hold the outer ones. */
static inline vector times_power_of_two(vector x, vector k) {
    __m256i whole = _mm256_cvtps_epi32(k), half = _mm256_srai_epi32(whole, 1), rest = _mm256_sub_epi32(whole, half);
    const __m256i bias = _mm256_set1_epi32(127);
    x = _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}
static inline float largest(vector x) {
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}
static inline float total(vector x) {
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
static inline halves load_halves(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline void store_halves(uint16_t *p, halves h) { _mm_storeu_si128((__m128i *)p, h); }
#endif

/* exp with a degree-6 polynomial on [-ln2/2, ln2/2]: about 1 ulp, infinities and zeros by the scaling. */
static inline vector exp_of(vector x) {
    x = VECTOR(min_ps)(VECTOR(max_ps)(x, VECTOR(set1_ps)(-104.0f)), VECTOR(set1_ps)(89.0f));
    vector k = nearest(VECTOR(mul_ps)(x, VECTOR(set1_ps)(1.44269504f)));
    vector r = VECTOR(fnmadd_ps)(k, VECTOR(set1_ps)(0.693359375f), x);
    r = VECTOR(fnmadd_ps)(k, VECTOR(set1_ps)(-2.12194440e-4f), r);
    vector p = VECTOR(set1_ps)(1.0f / 720);
    p = VECTOR(fmadd_ps)(p, r, VECTOR(set1_ps)(1.0f / 120));
    p = VECTOR(fmadd_ps)(p, r, VECTOR(set1_ps)(1.0f / 24));
    p = VECTOR(fmadd_ps)(p, r, VECTOR(set1_ps)(1.0f / 6));
    p = VECTOR(fmadd_ps)(p, r, VECTOR(set1_ps)(0.5f));
    p = VECTOR(fmadd_ps)(p, r, VECTOR(set1_ps)(1.0f));
    p = VECTOR(fmadd_ps)(p, r, VECTOR(set1_ps)(1.0f));
    return times_power_of_two(p, k);
}

static void run_exp(const work *w, size_t first, size_t last) {
    float *out = w->out;
    const float *a = w->a;
    size_t i = first;
    for (; i + LANES <= last; i += LANES)
        VECTOR(storeu_ps)(out + i, exp_of(VECTOR(loadu_ps)(a + i)));
    for (; i < last; i++)
        out[i] = expf(a[i]);
}

static void softmax_row(float *out, const float *a, size_t n) {
    vector top = VECTOR(set1_ps)(-INFINITY), sum = VECTOR(setzero_ps)();
    for (size_t i = 0; i < n; i += LANES)
        top = VECTOR(max_ps)(top, VECTOR(loadu_ps)(a + i));
    top = VECTOR(set1_ps)(largest(top));
    for (size_t i = 0; i < n; i += LANES) {
        vector e = exp_of(VECTOR(sub_ps)(VECTOR(loadu_ps)(a + i), top));
        sum = VECTOR(add_ps)(sum, e);
        VECTOR(storeu_ps)(out + i, e);
    }
    vector scale = VECTOR(set1_ps)(1.0f / total(sum));
    for (size_t i = 0; i < n; i += LANES)
        VECTOR(storeu_ps)(out + i, VECTOR(mul_ps)(VECTOR(loadu_ps)(out + i), scale));
}

static void layernorm_row(float *out, const float *a, const float *gamma, const float *beta, size_t n) {
    vector sum = VECTOR(setzero_ps)(), square = VECTOR(setzero_ps)();
    for (size_t i = 0; i < n; i += LANES)
        sum = VECTOR(add_ps)(sum, VECTOR(loadu_ps)(a + i));
    vector mean = VECTOR(set1_ps)(total(sum) / (float)n);
    for (size_t i = 0; i < n; i += LANES) {
        vector d = VECTOR(sub_ps)(VECTOR(loadu_ps)(a + i), mean);
        square = VECTOR(fmadd_ps)(d, d, square);
    }
    vector scale = VECTOR(set1_ps)(1.0f / sqrtf(total(square) / (float)n + 1e-5f));
    for (size_t i = 0; i < n; i += LANES) {
        vector d = VECTOR(mul_ps)(VECTOR(sub_ps)(VECTOR(loadu_ps)(a + i), mean), scale);
        VECTOR(storeu_ps)(out + i, VECTOR(fmadd_ps)(d, VECTOR(loadu_ps)(gamma + i), VECTOR(loadu_ps)(beta + i)));
    }
}

static void run_half_to_float(const work *w, size_t first, size_t last) {
    for (size_t i = first; i + LANES <= last; i += LANES)
        VECTOR(storeu_ps)((float *)w->out + i, VECTOR(cvtph_ps)(load_halves((const uint16_t *)w->a + i)));
}

static void run_float_to_half(const work *w, size_t first, size_t last) {
    for (size_t i = first; i + LANES <= last; i += LANES)
        store_halves((uint16_t *)w->out + i, VECTOR(cvtps_ph)(VECTOR(loadu_ps)((const float *)w->a + i), 0));
}
#else
const char *peer_kind(void) { return "plain C"; }

static void run_exp(const work *w, size_t first, size_t last) {
    for (size_t i = first; i < last; i++)
        ((float *)w->out)[i] = expf(((const float *)w->a)[i]);
}

static void softmax_row(float *out, const float *a, size_t n) {
    float top = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        top = a[i] > top ? a[i] : top;
    for (size_t i = 0; i < n; i++)
        sum += out[i] = expf(a[i] - top);
    for (size_t i = 0; i < n; i++)
        out[i] /= sum;
}

static void layernorm_row(float *out, const float *a, const float *gamma, const float *beta, size_t n) {
    float sum = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i];
    float mean = sum / (float)n;
    for (size_t i = 0; i < n; i++)
        square += (a[i] - mean) * (a[i] - mean);
    float scale = 1.0f / sqrtf(square / (float)n + 1e-5f);
    for (size_t i = 0; i < n; i++)
        out[i] = (a[i] - mean) * scale * gamma[i] + beta[i];
}

static float half_to_float(uint16_t h) {
    float magnitude = ldexpf((float)((h & 0x3ff) | ((h & 0x7c00) ? 0x400 : 0)), ((h >> 10) & 31 ? (h >> 10) & 31 : 1) - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

static void run_half_to_float(const work *w, size_t first, size_t last) {
    for (size_t i = first; i < last; i++)
        ((float *)w->out)[i] = half_to_float(((const uint16_t *)w->a)[i]);
}

static void run_float_to_half(const work *w, size_t first, size_t last) {
    for (size_t i = first; i < last; i++) {
        uint32_t x;
        memcpy(&x, (const float *)w->a + i, sizeof x);
        uint32_t rounded = (x & 0x7fffffffu) + 0xfffu + ((x >> 13) & 1u);
        ((uint16_t *)w->out)[i] = (uint16_t)(((x >> 16) & 0x8000u) | (rounded > 0x38800000u ? (rounded - 0x38000000u) >> 13 : 0));
    }
}
#endif

static void run_softmax(const work *w, size_t first, size_t last) {
    for (size_t row = first; row < last; row++)
        softmax_row((float *)w->out + row * w->columns, (const float *)w->a + row * w->columns, w->columns);
}

static void run_layernorm(const work *w, size_t first, size_t last) {
    for (size_t row = first; row < last; row++)
        layernorm_row((float *)w->out + row * w->columns, (const float *)w->a + row * w->columns, w->b, w->c, w->columns);
}

void peer_add(float *out, const float *a, const float *b, size_t n, unsigned threads) {
    spread((work){.run = run_add, .out = out, .a = a, .b = b}, n, 16, threads);
}

void peer_exp(float *out, const float *a, size_t n, unsigned threads) {
    spread((work){.run = run_exp, .out = out, .a = a}, n, 16, threads);
}

void peer_softmax(float *out, const float *a, size_t rows, size_t columns, unsigned threads) {
    spread((work){.run = run_softmax, .out = out, .a = a, .columns = columns}, rows, 1, threads);
}

void peer_layernorm(float *out, const float *a, const float *gamma, const float *beta, size_t rows, size_t columns,
                    unsigned threads) {
    spread((work){.run = run_layernorm, .out = out, .a = a, .b = gamma, .c = beta, .columns = columns}, rows, 1, threads);
}

void peer_half_to_float(float *out, const uint16_t *a, size_t n, unsigned threads) {
    spread((work){.run = run_half_to_float, .out = out, .a = a}, n, 16, threads);
}

void peer_float_to_half(uint16_t *out, const float *a, size_t n, unsigned threads) {
    spread((work){.run = run_float_to_half, .out = out, .a = a}, n, 16, threads);
}

void peer_add_forked(float *out, const float *a, const float *b, size_t n, unsigned blocks) {
    work w = {.run = run_add, .out = out, .a = a, .b = b};
    size_t step = (n + blocks - 1) / blocks;
    for (unsigned i = 0; i < blocks; i++) {
        if (fork() == 0) {
            run_add(&w, i * step, (i + 1) * step < n ? (i + 1) * step : n);
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
}
