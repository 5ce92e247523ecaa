/*
 * peer.h - onnxruntime through its C interface, loaded from a shared library that the caller names. Failures end the
 * program with a sentence.
 */
#ifndef BENCH_MODELS_PEER_H
#define BENCH_MODELS_PEER_H

#include <stddef.h>
#include <stdint.h>

typedef struct peer peer;

enum { PEER_FLOAT = 1, PEER_INT64 = 7 }; /* element types, by onnxruntime's numbers */

/* A session with all optimisations and so many threads. */
peer *peer_open(const char *library, const char *model, int threads);
void peer_close(peer *p);
size_t peer_inputs(const peer *p);
size_t peer_outputs(const peer *p);
const char *peer_input_name(const peer *p, size_t index);
/* Input `index` is this memory from now on. */
void peer_set_input(peer *p, size_t index, int element, void *data, size_t bytes, const int64_t *dims, size_t rank);
/* Runs; results stay until the next run. */
void peer_run(peer *p);
/* Elements of an output; they are floats, or the program ends. */
const float *peer_output(const peer *p, size_t index, size_t *out_count);

#endif
