#include "arguments.h"

#include <string.h>

arguments begin_call(const char *name) {
    arguments a = {.op = find_caller(name)};
    return a;
}

static caller_value *find(arguments *a, const char *name, size_t length) {
    const char *p = a->op->params;
    for (int i = 0; *p; i++) {
        const char *colon = strchr(p, ':'), *comma = strchr(p, ',');
        if ((size_t)(comma - colon - 1) == length && memcmp(colon + 1, name, length) == 0)
            return &a->values[i];
        p = comma + 1;
    }
    return NULL;
}

caller_value *find_argument(arguments *a, const char *name) {
    static const char ending[] = "Optional";
    const size_t length = strlen(name), cut = sizeof ending - 1;
    caller_value *found = find(a, name, length);
    if (!found && length > cut && strcmp(name + length - cut, ending) == 0)
        found = find(a, name, length - cut);
    return found;
}

static caller_value *at(arguments *a, const char *name) {
    caller_value *found = find_argument(a, name);
    if (!found)
        fail_msg("%s has no parameter %s", a->op->name, name);
    return found;
}

void put(arguments *a, const char *name, const void *pointer) {
    at(a, name)->pointer = pointer;
}
void put_integer(arguments *a, const char *name, int64_t value) {
    at(a, name)->integer = value;
}
void put_real(arguments *a, const char *name, double value) {
    at(a, name)->real = value;
}

void must(arguments *a) {
    if (call_op(a->op->name, a->values))
        fail_msg("%s: %s", a->op->name, sentence());
}

void refused(arguments *a, const char *word) {
    aclnnStatus status = call_op(a->op->name, a->values);
    if (status != ACLNN_ERR_PARAM_INVALID && status != ACLNN_ERR_PARAM_NULLPTR)
        fail_msg("%s gives %d instead of an argument error, \"%s\"", a->op->name, status, word);
    const char *said = sentence(); /* asked for once: then it is gone */
    if (!strstr(said, word))
        fail_msg("%s says: %s; expected: %s", a->op->name, said, word);
}

/* In a stream of its own: a failed one stays failed. */
void fails_when_run(arguments *a, const char *word) {
    aclrtStream stream;
    uint64_t size = 0;
    aclOpExecutor *executor = NULL;
    assert_int_equal(aclrtCreateStream(&stream), 0);
    assert_int_equal(a->op->prepare(a->values, &size, &executor), 0);
    assert_int_equal(a->op->run(NULL, size, executor, stream), 0);
    assert_int_not_equal(aclrtSynchronizeStream(stream), 0);
    const char *said = sentence(); /* asked for once: then it is gone */
    if (!strstr(said, word))
        fail_msg("%s says: %s; expected: %s", a->op->name, said, word);
    aclrtDestroyStream(stream);
}
