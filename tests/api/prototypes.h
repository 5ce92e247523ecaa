/*
 * prototypes.h - reads the function declarations out of the public headers, for tests that call all of them.
 */
#ifndef TESTS_API_PROTOTYPES_H
#define TESTS_API_PROTOTYPES_H

#include <stdbool.h>
#include <stddef.h>

#define PARAMETERS_MAX 20

typedef enum parameter_kind {
    PARAMETER_INTEGER, /* also enumerations */
    PARAMETER_FLOAT,
    PARAMETER_POINTER,
    PARAMETER_HANDLE,   /* a type that is a typedef of void * */
    PARAMETER_FUNCTION, /* a typedef of a function pointer */
    PARAMETER_STRUCT    /* by value */
} parameter_kind;

typedef struct parameter {
    parameter_kind kind;
    char type[64]; /* without const and spaces: "aclrtStream", "aclTensorDesc*", "void**" */
} parameter;

typedef struct prototype {
    char name[64];
    char returns[32];
    bool variadic;
    size_t parameters;
    parameter parameter[PARAMETERS_MAX];
} prototype;

/* All functions marked ACL_FUNC_VISIBILITY in the headers of include_dir/acl. Returns how many; ends the program when a
 * header cannot be understood. */
size_t prototypes_read(const char *include_dir, prototype *out, size_t capacity);

#endif
