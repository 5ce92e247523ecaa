#include "peers.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __AVX512F__
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

#ifdef __AVX512F__
const char *peer_kind(void) { return "AVX-512"; }

/* exp with a degree-6 polynomial on [-ln2/2, ln2/2]: about 1 ulp, infinities and zeros by the scaling. */
static inline __m512 exp16(__m512 x) {
    x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-104.0f)), _mm512_set1_ps(89.0f));
    __m512 k = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
    __m512 r = _mm512_fnmadd_ps(k, _mm512_set1_ps(0.693359375f), x);
    r = _mm512_fnmadd_ps(k, _mm512_set1_ps(-2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.0f / 720);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, k);
}

static void run_exp(const work *w, size_t first, size_t last) {
    float *out = w->out;
    const float *a = w->a;
    size_t i = first;
    for (; i + 16 <= last; i += 16)
        _mm512_storeu_ps(out + i, exp16(_mm512_loadu_ps(a + i)));
    for (; i < last; i++)
        out[i] = expf(a[i]);
}

static void softmax_row(float *out, const float *a, size_t n) {
    __m512 top = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16)
        top = _mm512_max_ps(top, _mm512_loadu_ps(a + i));
    top = _mm512_set1_ps(_mm512_reduce_max_ps(top));
    for (size_t i = 0; i < n; i += 16) {
        __m512 e = exp16(_mm512_sub_ps(_mm512_loadu_ps(a + i), top));
        sum = _mm512_add_ps(sum, e);
        _mm512_storeu_ps(out + i, e);
    }
    __m512 scale = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(sum));
    for (size_t i = 0; i < n; i += 16)
        _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_loadu_ps(out + i), scale));
}

static void layernorm_row(float *out, const float *a, const float *gamma, const float *beta, size_t n) {
    __m512 sum = _mm512_setzero_ps(), square = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16)
        sum = _mm512_add_ps(sum, _mm512_loadu_ps(a + i));
    __m512 mean = _mm512_set1_ps(_mm512_reduce_add_ps(sum) / (float)n);
    for (size_t i = 0; i < n; i += 16) {
        __m512 d = _mm512_sub_ps(_mm512_loadu_ps(a + i), mean);
        square = _mm512_fmadd_ps(d, d, square);
    }
    __m512 scale = _mm512_set1_ps(1.0f / sqrtf(_mm512_reduce_add_ps(square) / (float)n + 1e-5f));
    for (size_t i = 0; i < n; i += 16) {
        __m512 d = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(a + i), mean), scale);
        _mm512_storeu_ps(out + i, _mm512_fmadd_ps(d, _mm512_loadu_ps(gamma + i), _mm512_loadu_ps(beta + i)));
    }
}

static void run_half_to_float(const work *w, size_t first, size_t last) {
    for (size_t i = first; i + 16 <= last; i += 16) {
        __m256i h = _mm256_loadu_si256((const __m256i *)((const uint16_t *)w->a + i));
        _mm512_storeu_ps((float *)w->out + i, _mm512_cvtph_ps(h));
    }
}

static void run_float_to_half(const work *w, size_t first, size_t last) {
    for (size_t i = first; i + 16 <= last; i += 16) {
        __m256i h = _mm512_cvtps_ph(_mm512_loadu_ps((const float *)w->a + i), 0);
        _mm256_storeu_si256((__m256i *)((uint16_t *)w->out + i), h);
    }
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
