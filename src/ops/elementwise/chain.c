#include "ops/elementwise/chain.h"

#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/kernels.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "runtime/pool.h"

enum { OPERANDS = 3, NUMBERS = 4, CONSTANTS = 12, TILE = 512, GRAIN = 4096, WORD = 32 };

/* Classes of functions.def; those that give floats for floats. */
enum { ARITH = 1, FLOAT = 1, PRED = 0, BITS = 0, SAME = 0 };

static const struct {
    const char *name;
    int gives_floats, operands, numbers;
} functions[] = {
#define FNI(name, class, operands, params, real, integer) {#name, class, operands, params},
#define FN(name, class, operands, params, real) {#name, class, operands, params},
#define FNM(name, class, operands, params, via, pre, post) {#name, class, operands, params},
#include "ops/elementwise/functions.def"
};

static int find_function(const char *name) {
    for (int i = 0; i < (int)(sizeof functions / sizeof functions[0]); i++)
        if (functions[i].gives_floats && strcmp(functions[i].name, name) == 0 &&
            dp_elementwise_current()->run[i][DP_COMPUTE_F32])
            return i;
    return -1;
}

bool dp_chain_knows(const char *function, int *out_operands, int *out_numbers) {
    const int i = find_function(function);
    if (i < 0)
        return false;
    *out_operands = functions[i].operands;
    *out_numbers = functions[i].numbers;
    return true;
}

typedef enum source { FROM_INPUT, FROM_STEP, FROM_NUMBER } source;

typedef struct step {
    dp_elementwise_fn run;
    source from[OPERANDS];
    int index[OPERANDS];
    double numbers[NUMBERS];
} step;

typedef struct chain {
    dp_loop loop; /* view 0: y; then the inputs */
    int n_inputs, n_steps, n_constants, x_slot, y_slot;
    bool flat[DP_CHAIN_INPUTS], one[DP_CHAIN_INPUTS]; /* lies as y does; is a single element */
    bool y_flat;
    float constants[CONSTANTS];
    step steps[DP_CHAIN_STEPS];
} chain;

/* The next word of a program, up to a blank or a comma. */
static bool next_word(const char **at, char *word) {
    size_t n = 0;
    while (**at == ' ')
        ++*at;
    while (**at && **at != ' ' && **at != ',' && n + 1 < WORD)
        word[n++] = *(*at)++;
    word[n] = '\0';
    return n > 0;
}

static dp_status no_program(const dp_arg *arg, const char *what, const char *word) {
    return dp_fail(DP_ERR_ARGUMENT, "%s: %s \"%.40s\"", arg->name, what, word);
}

static bool read_operand(chain *c, const char *word, step *s, int k) {
    char *end;
    if (word[0] == 'x' || word[0] == 'r') {
        s->from[k] = word[0] == 'x' ? FROM_INPUT : FROM_STEP;
        const long index = strtol(word + 1, &end, 10);
        s->index[k] = (int)index;
        return end != word + 1 && !*end && index >= 0 && index < (word[0] == 'x' ? c->n_inputs : c->n_steps);
    }
    s->from[k] = FROM_NUMBER;
    s->index[k] = c->n_constants;
    if (c->n_constants == CONSTANTS)
        return false;
    c->constants[c->n_constants++] = (float)strtod(word, &end);
    return end != word && !*end;
}

static dp_status read_step(chain *c, const dp_arg *arg, const char **at) {
    char word[WORD];
    if (c->n_steps == DP_CHAIN_STEPS)
        return no_program(arg, "there are too many steps from here on:", *at);
    next_word(at, word);
    const int function = find_function(word);
    if (function < 0)
        return no_program(arg, "there is no such function of floats:", word);
    step *s = &c->steps[c->n_steps];
    s->run = dp_elementwise_current()->run[function][DP_COMPUTE_F32];
    for (int k = 0; k < functions[function].operands; k++)
        if (!next_word(at, word) || !read_operand(c, word, s, k))
            return no_program(arg, "this is no operand here:", word);
    for (int k = functions[function].operands; k < OPERANDS; k++) { /* not looked at */
        s->from[k] = s->from[0];
        s->index[k] = s->index[0];
    }
    for (int k = 0; k < functions[function].numbers && next_word(at, word); k++)
        s->numbers[k] = strtod(word, NULL);
    if (next_word(at, word))
        return no_program(arg, "there is too much behind a function:", word);
    c->n_steps++;
    return DP_OK;
}

static dp_status read_program(chain *c, const dp_arg *arg) {
    const char *at = arg->as.text;
    dp_status status;
    do {
        at += *at == ',';
        status = read_step(c, arg, &at);
    } while (status == DP_OK && *at == ',');
    return status;
}

static bool same_dims(const dp_tensor *a, const dp_tensor *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static dp_status take_tensors(const dp_operator_call *call, chain *c) {
    const dp_arg *x = &call->in[0], *y = &call->out[0];
    const dp_tensor *tensors[DP_CHAIN_INPUTS], *out = y->as.tensor;
    const char *names[DP_CHAIN_INPUTS];
    int64_t dims[DP_TENSOR_DIMS];
    int rank;
    if (x->kind != DP_ARG_TENSOR_LIST || x->count < 1 || x->count > DP_CHAIN_INPUTS)
        return dp_fail(DP_ERR_ARGUMENT, "%s has %lld tensors, but may have 1 to %d", x->name, (long long)x->count,
                       DP_CHAIN_INPUTS);
    c->n_inputs = (int)x->count;
    for (int i = 0; i < c->n_inputs; i++) {
        tensors[i] = x->as.tensors[i];
        names[i] = x->name;
        if (tensors[i]->element != DP_F32)
            return dp_fail(DP_ERR_ARGUMENT, "%s: tensor %d has elements of type %s, but must have f32", x->name, i,
                           dp_element_name(tensors[i]->element));
    }
    dp_status status = dp_broadcast(tensors, names, c->n_inputs, dims, &rank);
    if (status == DP_OK)
        status = dp_shape_expect(out, y->name, dims, rank, "the inputs broadcast together");
    if (status == DP_OK)
        status = dp_element_expect(y, DP_EL_BIT(DP_F32));
    if (status == DP_OK)
        status = dp_places_expect(y);
    if (status != DP_OK)
        return status;
    c->x_slot = x->slot;
    c->y_slot = y->slot;
    c->y_flat = dp_tensor_is_contiguous(out);
    dp_loop_begin(&c->loop, out->dims, out->rank);
    dp_loop_add(&c->loop, out);
    for (int i = 0; i < c->n_inputs; i++) {
        dp_loop_add(&c->loop, tensors[i]);
        c->flat[i] = c->y_flat && same_dims(tensors[i], out) && dp_tensor_is_contiguous(tensors[i]);
        c->one[i] = dp_tensor_count(tensors[i]) == 1;
    }
    dp_loop_merge(&c->loop, !c->y_flat); /* of a contiguous y elements stay in order */
    return DP_OK;
}

/* A thread's tiles. */
typedef struct room {
    _Alignas(64) float inputs[DP_CHAIN_INPUTS][TILE];
    float results[DP_CHAIN_STEPS][TILE], constants[CONSTANTS][TILE];
} room;

typedef struct job {
    dp_plan *plan;
    const chain *c;
} job;

static void begin_range(const job *j, room *r) {
    const chain *c = j->c;
    for (int k = 0; k < c->n_constants; k++)
        for (int i = 0; i < TILE; i++)
            r->constants[k][i] = c->constants[k];
    for (int k = 0; k < c->n_inputs; k++) {
        if (!c->one[k])
            continue;
        const float value = *(const float *)dp_plan_data(j->plan, c->x_slot + k);
        for (int i = 0; i < TILE; i++)
            r->inputs[k][i] = value;
    }
}

static void run_range(void *context, size_t begin, size_t end) {
    const job *j = context;
    const chain *c = j->c;
    room r;
    const float *inputs[DP_CHAIN_INPUTS];
    begin_range(j, &r);
    float *y = dp_plan_data(j->plan, c->y_slot);
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < TILE ? end - at : TILE;
        for (int k = 0; k < c->n_inputs; k++) {
            const float *x = dp_plan_data(j->plan, c->x_slot + k);
            inputs[k] = c->one[k]    ? r.inputs[k]
                        : c->flat[k] ? x + at
                                     : dp_loop_gather(&c->loop, 1 + k, x, sizeof *x, (int64_t)at, n, r.inputs[k]);
        }
        for (int i = 0; i < c->n_steps; i++) {
            const step *s = &c->steps[i];
            const float *from[OPERANDS];
            for (int k = 0; k < OPERANDS; k++)
                from[k] = s->from[k] == FROM_INPUT  ? inputs[s->index[k]]
                          : s->from[k] == FROM_STEP ? r.results[s->index[k]]
                                                    : r.constants[s->index[k]];
            s->run(i + 1 == c->n_steps && c->y_flat ? y + at : r.results[i], from[0], from[1], from[2], s->numbers, n);
        }
        if (!c->y_flat)
            dp_loop_scatter(&c->loop, 0, y, sizeof *y, (int64_t)at, n, r.results[c->n_steps - 1]);
    }
}

static dp_status run(dp_plan *plan) {
    const job j = {plan, dp_plan_state(plan)};
    if (j.c->loop.count)
        dp_pool_for((size_t)j.c->loop.count, GRAIN, run_range, (void *)(uintptr_t)&j);
    return DP_OK;
}

static dp_status prepare(const dp_operator_call *call, dp_plan **out_plan) {
    chain c = {0};
    dp_status status = take_tensors(call, &c);
    if (status == DP_OK)
        status = read_program(&c, &call->in[1]);
    if (status != DP_OK)
        return status;
    dp_plan *plan = dp_plan_new(call, run, sizeof c);
    if (!plan)
        return DP_ERR_OUT_OF_MEMORY;
    memcpy(dp_plan_state(plan), &c, sizeof c);
    plan->path = "tiles in the cache";
    *out_plan = plan;
    return DP_OK;
}

extern const dp_function dp_elementwise_chain;
const dp_function dp_elementwise_chain = {"chain", prepare, NULL, 0, 0};
