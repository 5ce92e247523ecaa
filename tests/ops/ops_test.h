/*
 * ops_test.h - for tests of operators: tensors of any type and layout filled with doubles, and calls by the operator's
 * name.
 */
#ifndef DOPPEL_TESTS_OPS_TEST_H
#define DOPPEL_TESTS_OPS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

typedef union caller_value {
    const void *pointer;
    int64_t integer;
    double real;
} caller_value;

typedef struct caller {
    const char *name;
    aclnnStatus (*prepare)(const caller_value *values, uint64_t *size, aclOpExecutor **executor);
    aclnnStatus (*run)(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream);
    const char *family, *types, *mapping;
    const char *params; /* "T:self,S:alpha," with T tensor, S scalar, I integer, R real, D element type, X text; lists
                           end in l */
} caller;

const caller *find_caller(const char *name); /* fails the test when there is none */
unsigned caller_count(void);
const caller *caller_at(unsigned index);

/* Both calls, and a synchronise; the first code that is not 0. */
aclnnStatus call_op(const char *name, const caller_value *values);
/* The sentence of the last failure, never NULL. */
const char *sentence(void);

/* A tensor in device memory with `rank` dims; every layout has its elements apart from each other. */
typedef enum layout { CONTIGUOUS, TRANSPOSED, STRIDED, OFFSET, LAYOUTS } layout;
typedef struct tensor {
    aclTensor *handle;
    aclDataType type;
    int rank;
    int64_t dims[8], strides[8], offset, count, storage;
    void *data;
} tensor;
tensor make_tensor(aclDataType type, int rank, const int64_t *dims, layout how);
void free_tensor(tensor *t);
/* Element `index` in row-major order of the dims; values are rounded to the type as the library must round. */
double get_element(const tensor *t, int64_t index);
void set_element(const tensor *t, int64_t index, double value);
/* The value after rounding to the type. */
double round_to(aclDataType type, double value);
bool is_float(aclDataType type);
/* Storage elements outside the view still have the pattern of make_tensor. */
bool untouched_outside(const tensor *t);

uint64_t random_bits(void); /* reproducible; DOPPEL_TEST_SEED changes the start */
double random_between(double low, double high);

void test_begin(void); /* aclInit, device 0 */
void test_end(void);
/* The same for cmocka_run_group_tests. */
int test_setup(void **state);
int test_teardown(void **state);

#define T(t)                                                                                                           \
    { .pointer = (t).handle }
#define P(p)                                                                                                           \
    { .pointer = (p) }
#define I(i)                                                                                                           \
    { .integer = (i) }
#define R(r)                                                                                                           \
    { .real = (r) }

#endif
