/* What the kernels are measured against: the same work in threaded C, AVX-512 or AVX2 where the processor has it. */
#ifndef BENCH_KERNELS_PEERS_H
#define BENCH_KERNELS_PEERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All split the work over `threads` threads and return when all is done. n: elements. */
void peer_add(float *out, const float *a, const float *b, size_t n, unsigned threads); /* plain C loop */
void peer_exp(float *out, const float *a, size_t n, unsigned threads);
void peer_softmax(float *out, const float *a, size_t rows, size_t columns, unsigned threads);
void peer_layernorm(float *out, const float *a, const float *gamma, const float *beta, size_t rows, size_t columns,
                    unsigned threads);
void peer_half_to_float(float *out, const uint16_t *a, size_t n, unsigned threads);
void peer_float_to_half(uint16_t *out, const float *a, size_t n, unsigned threads);
/* One forked process per block, as the vendor's host debugging does; the memory must be shared. */
void peer_add_forked(float *out, const float *a, const float *b, size_t n, unsigned blocks);
/* "AVX-512", "AVX2" or "plain C" */
const char *peer_kind(void);

#ifdef __cplusplus
}
#endif

#endif
