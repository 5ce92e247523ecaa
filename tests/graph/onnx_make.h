/*
 * onnx_make.h - small ONNX models for tests, as the bytes of a file.
 */
#ifndef TESTS_GRAPH_ONNX_MAKE_H
#define TESTS_GRAPH_ONNX_MAKE_H

#include <stddef.h>
#include <stdint.h>

typedef struct maker maker;

maker *make_begin(int opset);
/* Element types are ONNX's: 1 float, 7 int64. dims of -1 are left open under the name "N". */
void make_input(maker *m, const char *name, int type, int rank, const int64_t *dims);
void make_output(maker *m, const char *name);
void make_constant(maker *m, const char *name, int type, int rank, const int64_t *dims, const void *contents,
                   size_t bytes);
/* The constant made last lies in a file: entries "location", "offset", "length", as texts; NULL: left out. */
void make_external(maker *m, const char *location, const char *offset, const char *length);
/* Names separated by blanks; "-" is an absent input. */
void make_node(maker *m, const char *type, const char *inputs, const char *outputs);
/* Of the node made last. */
void make_name(maker *m, const char *name);
void make_integer(maker *m, const char *name, int64_t value);
void make_integers(maker *m, const char *name, int n, const int64_t *values);
void make_real(maker *m, const char *name, float value);
void make_reals(maker *m, const char *name, int n, const float *values);
void make_text(maker *m, const char *name, const char *value);
void make_texts(maker *m, const char *name, const char *list); /* separated by blanks */
/* A graph inside the node made last: its inputs, nodes and outputs. `body` is gone with m. */
void make_body(maker *m, const char *name, maker *body);
/* An output whose type and dims the file says. */
void make_output_of(maker *m, const char *name, int type, int rank, const int64_t *dims);
/* The file; free it. The maker is gone. */
void *make_end(maker *m, size_t *out_bytes);

#endif
