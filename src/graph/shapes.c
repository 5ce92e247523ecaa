#include "graph/shapes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Open dims of all inputs before this one. */
static int open_before(const dp_shapes *shapes, int input) {
    int n = 0;
    for (int i = 0; i < input; i++)
        for (int d = 0; d < shapes->inputs[i].rank; d++)
            n += dp_declared_is_open(&shapes->inputs[i], d);
    return n;
}

void dp_shapes_gear(const dp_shapes *shapes, int gear, int input, dp_tensor *out_shape) {
    const dp_declared *declared = &shapes->inputs[input];
    const int64_t *numbers = shapes->numbers + (size_t)gear * (size_t)shapes->n_numbers;
    int next = shapes->kind == DP_SHAPES_DIMS ? open_before(shapes, input) : 0;
    out_shape->rank = declared->rank;
    for (int d = 0; d < declared->rank; d++) {
        bool open = dp_declared_is_open(declared, d);
        out_shape->dims[d] = open ? numbers[next < shapes->n_numbers ? next : 0] : declared->least[d];
        next += open && shapes->kind != DP_SHAPES_BATCH;
    }
}

int dp_shapes_find(const dp_shapes *shapes, const int64_t *numbers) {
    size_t n = (size_t)shapes->n_numbers;
    for (int g = 0; g < shapes->n_gears; g++)
        if (memcmp(shapes->numbers + (size_t)g * n, numbers, n * sizeof *numbers) == 0)
            return g;
    return -1;
}

dp_status dp_shapes_check(const dp_shapes *shapes, int input, const char *name, const dp_tensor *shape) {
    const dp_declared *declared = &shapes->inputs[input];
    if (shape->rank != declared->rank)
        return dp_fail(DP_ERR_ARGUMENT, "input \"%s\" is given %d dimensions, but has %d", name, shape->rank,
                       declared->rank);
    for (int d = 0; d < shape->rank; d++)
        if (shape->dims[d] < declared->least[d] || shape->dims[d] > declared->most[d])
            return dp_fail(DP_ERR_ARGUMENT,
                           "dimension %d of input \"%s\" is %lld, but the model was compiled for %lld to %lld", d, name,
                           (long long)shape->dims[d], (long long)declared->least[d], (long long)declared->most[d]);
    return DP_OK;
}

/* One number of a text, blanks around it; false when there is none. */
static bool take_number(const char **at, int64_t *out) {
    char *end;
    errno = 0;
    long long number = strtoll(*at, &end, 10);
    if (end == *at || errno)
        return false;
    while (*end == ' ')
        end++;
    *at = end;
    *out = number;
    return true;
}

bool dp_declared_parse(const char *text, dp_declared *out) {
    *out = (dp_declared){.rank = 0};
    while (*text == ' ')
        text++;
    while (*text) {
        int64_t least, most;
        if (out->rank == DP_TENSOR_DIMS || !take_number(&text, &least) || least < -1)
            return false;
        most = least;
        if (*text == '~') {
            text++;
            if (least < 0 || !take_number(&text, &most) || most < -1 || (most >= 0 && most < least))
                return false;
        }
        bool any = least < 0;
        out->least[out->rank] = any ? 0 : least;
        out->most[out->rank++] = most < 0 ? DP_SHAPES_ANY : most;
        if (*text == ',' && text[1])
            text++;
        else if (*text)
            return false;
    }
    return true;
}

/* How many numbers a gear has; 0 with a sentence when the inputs do not fit. */
static int numbers_of(const dp_shapes *shapes, dp_shapes_kind kind, const char *option) {
    int total = open_before(shapes, shapes->n_inputs);
    if (total == 0) {
        dp_fail(DP_ERR_ARGUMENT, "%s is given, but no dimension is open: write -1 for it in input_shape", option);
        return 0;
    }
    if (kind == DP_SHAPES_BATCH)
        return 1;
    if (kind == DP_SHAPES_DIMS)
        return total;
    for (int i = 0; i < shapes->n_inputs; i++) {
        int open = open_before(shapes, i + 1) - open_before(shapes, i);
        if (open != 0 && open != 2) {
            dp_fail(DP_ERR_ARGUMENT,
                    "%s is given, but input %d has %d open dimensions and must have 2: height and width", option, i,
                    open);
            return 0;
        }
    }
    return 2;
}

static dp_status wrong(const char *option, const char *text) {
    return dp_fail(DP_ERR_ARGUMENT,
                   "%s is \"%.80s\", but must be 1 to %d different lists of numbers from 1, as many as there are "
                   "open dimensions, like 1,2,4 or 224,224;448,448",
                   option, text, DP_GEARS_MAX);
}

dp_status dp_shapes_parse_gears(dp_shapes *shapes, dp_shapes_kind kind, const char *option, const char *text) {
    int n = numbers_of(shapes, kind, option), n_gears = 0;
    if (n == 0)
        return DP_ERR_ARGUMENT;
    int64_t *numbers = dp_alloc(DP_MEM_GRAPH, (size_t)n * DP_GEARS_MAX * sizeof *numbers);
    if (!numbers)
        return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    *shapes = (dp_shapes){kind, shapes->is_source, shapes->opset, shapes->n_inputs, 0, n, shapes->inputs, numbers};
    const char *at = text;
    bool fine = true;
    while (fine && *at) {
        int64_t *gear = numbers + n_gears * n;
        fine = n_gears < DP_GEARS_MAX;
        for (int k = 0; k < n && fine; k++) {
            fine = take_number(&at, &gear[k]) && gear[k] >= 1 && gear[k] <= INT32_MAX && (k + 1 == n || *at == ',');
            at += fine && k + 1 < n;
        }
        char between = n == 1 ? ',' : ';';
        fine = fine && (*at == between || !*at) && dp_shapes_find(shapes, gear) < 0;
        at += fine && *at;
        shapes->n_gears = n_gears += fine;
    }
    return fine && n_gears ? DP_OK : wrong(option, text);
}
