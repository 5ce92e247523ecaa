#include "graph/passes/match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

bool dp_node_is(const dp_node *node, const char *type) {
    return node && strcmp(node->type, type) == 0;
}

bool dp_value_is_real(const dp_value *value) {
    return value &&
           (value->tensor.element == DP_F32 || value->tensor.element == DP_F16 || value->tensor.element == DP_BF16);
}

float dp_value_real_at(const dp_value *value, int64_t i) {
    const void *base = value->tensor.base;
    if (value->tensor.element == DP_F32)
        return ((const float *)base)[i];
    const uint16_t bits = ((const uint16_t *)base)[i];
    return value->tensor.element == DP_F16 ? dp_f32_from_f16(bits) : dp_f32_from_bf16(bits);
}

bool dp_value_number(const dp_value *value, double *out_number) {
    if (!dp_value_is_real(value) || !value->is_constant || dp_tensor_count(&value->tensor) != 1)
        return false;
    *out_number = (double)dp_value_real_at(value, 0);
    return true;
}

bool dp_value_same_shape(const dp_value *a, const dp_value *b) {
    return a->tensor.rank == b->tensor.rank &&
           memcmp(a->tensor.dims, b->tensor.dims, sizeof a->tensor.dims[0] * (size_t)a->tensor.rank) == 0;
}

bool dp_graph_gives(const dp_graph *graph, const dp_value *value) {
    for (int i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i] == value)
            return true;
    return false;
}

static bool is_float(const dp_node *node) {
    return node->n_outputs > 0 && node->outputs[0] && node->outputs[0]->tensor.element == DP_F32;
}

static bool is_real(const dp_node *node) {
    return node->n_outputs > 0 && dp_value_is_real(node->outputs[0]);
}

/* The operand beside a number; it must have the shape of the result, so that the number is all that is broadcast. */
static bool beside_number(const dp_node *node, int at, dp_value **out_x, double *out_number) {
    if (node->n_inputs != 2 || !node->inputs[1 - at] || !dp_value_number(node->inputs[at], out_number) ||
        !dp_value_same_shape(node->inputs[1 - at], node->outputs[0]))
        return false;
    *out_x = node->inputs[1 - at];
    return true;
}

static bool with_attribute(const dp_node *node, const char *type, dp_value **out_x, double *out_number) {
    if (!dp_node_is(node, type))
        return false;
    *out_x = node->inputs[0];
    *out_number = dp_node_real(node, "value", 0);
    return true;
}

bool dp_node_adds(const dp_node *node, dp_value **out_x, double *out_number) {
    if (!node || !is_real(node))
        return false;
    if (dp_node_is(node, "Sub") && beside_number(node, 1, out_x, out_number)) {
        *out_number = -*out_number;
        return true;
    }
    return with_attribute(node, "Adds", out_x, out_number) ||
           (dp_node_is(node, "Add") &&
            (beside_number(node, 1, out_x, out_number) || beside_number(node, 0, out_x, out_number)));
}

bool dp_node_multiplies(const dp_node *node, dp_value **out_x, double *out_number) {
    if (!node || !is_real(node))
        return false;
    if ((dp_node_is(node, "Div") || dp_node_is(node, "RealDiv")) && beside_number(node, 1, out_x, out_number) &&
        *out_number != 0) {
        *out_number = 1 / *out_number;
        return true;
    }
    return with_attribute(node, "Muls", out_x, out_number) ||
           (dp_node_is(node, "Mul") &&
            (beside_number(node, 1, out_x, out_number) || beside_number(node, 0, out_x, out_number)));
}

dp_node *dp_node_replace(dp_node *node, const char *type, dp_value *const *inputs, int n_inputs) {
    dp_node *other = dp_node_new(node->graph, node, type, node->name, n_inputs, 1);
    if (!other)
        return NULL;
    if (n_inputs)
        memcpy(other->inputs, inputs, (size_t)n_inputs * sizeof inputs[0]);
    dp_value *result = node->outputs[0];
    dp_node_remove(node);
    dp_node_output(other, 0, result);
    return other;
}

/* Patterns. `at` moves over the text; on failure it may stand anywhere. Their nesting is that of tables in the source.
 */

static void skip_blanks(const char **at) {
    while (**at == ' ')
        ++*at;
}

/* Where the operand at `at` ends. */
static const char *behind(const char *at) {
    int depth = 0;
    skip_blanks(&at);
    do {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        at++;
    } while (*at && (depth > 0 || (*at != ' ' && *at != ')')));
    return at;
}

static bool match_operand(const char *at, dp_value *value, dp_match *m);

static bool match_number(const char *at, double number, dp_match *m) {
    skip_blanks(&at);
    if (*at == '$') {
        int place = at[1] - '0';
        if (m->known[place] && fabs(m->numbers[place] - number) > 1e-6 * fabs(number))
            return false;
        m->known[place] = true;
        m->numbers[place] = number;
        return true;
    }
    char *end;
    double wanted = strtod(at, &end);
    return end != at && fabs(number - wanted) <= 1e-6 * fabs(wanted);
}

static bool is_number(const char *at) {
    skip_blanks(&at);
    return *at == '$' || *at == '-' || (*at >= '0' && *at <= '9');
}

/* Two operands in either order; when one is a number, all the forms that add or multiply one. */
static bool match_pair(const char *type, const char *first, const char *second, const dp_node *node, dp_match *m) {
    if (is_number(second)) {
        dp_value *x;
        double number;
        return (strcmp(type, "Add") == 0 ? dp_node_adds : dp_node_multiplies)(node, &x, &number) &&
               match_number(second, number, m) && match_operand(first, x, m);
    }
    if (!dp_node_is(node, type) || node->n_inputs != 2)
        return false;
    const dp_match before = *m;
    if (match_operand(first, node->inputs[0], m) && match_operand(second, node->inputs[1], m))
        return true;
    *m = before;
    return match_operand(first, node->inputs[1], m) && match_operand(second, node->inputs[0], m);
}

static bool match_clip(const char *x, const dp_node *node, dp_match *m) {
    const char *low = behind(x), *high = behind(low);
    double numbers[2];
    return dp_node_is(node, "ClipByValue") && dp_value_number(node->inputs[1], &numbers[0]) &&
           dp_value_number(node->inputs[2], &numbers[1]) && match_number(low, numbers[0], m) &&
           match_number(high, numbers[1], m) && match_operand(x, node->inputs[0], m);
}

/* Operands in order; numbers behind them are the attributes alpha and beta. */
static bool match_in_order(const char *at, const dp_node *node, dp_match *m) {
    static const char *const attributes[] = {"alpha", "beta"};
    int inputs = 0, numbers = 0;
    for (skip_blanks(&at); *at != ')'; at = behind(at), skip_blanks(&at)) {
        if (is_number(at) && inputs > 0 && inputs == node->n_inputs) {
            if (numbers > 1 || !match_number(at, dp_node_real(node, attributes[numbers++], 0), m))
                return false;
        } else if (inputs == node->n_inputs || !match_operand(at, node->inputs[inputs++], m)) {
            return false;
        }
    }
    return inputs == node->n_inputs;
}

static bool match_here(const char *at, dp_node *node, dp_match *m) {
    char type[32];
    skip_blanks(&at);
    size_t length = strcspn(++at, " )");
    if (length >= sizeof type || !node || !is_float(node))
        return false;
    memcpy(type, at, length);
    type[length] = '\0';
    at += length;
    if (strcmp(type, "Add") == 0 || strcmp(type, "Mul") == 0)
        return match_pair(type, at, behind(at), node, m);
    if (strcmp(type, "Clip") == 0)
        return match_clip(at, node, m);
    if (!dp_node_is(node, type))
        return false;
    if (strcmp(type, "ReduceMeanD") == 0 && m->n_reduced < DP_MATCH_NODES)
        m->reduced[m->n_reduced++] = node;
    return match_in_order(at, node, m);
}

static bool match_operand(const char *at, dp_value *value, dp_match *m) {
    skip_blanks(&at);
    if (!value)
        return false;
    if (*at == '(')
        return match_here(at, value->producer, m);
    double number;
    if (is_number(at))
        return dp_value_number(value, &number) && match_number(at, number, m);
    dp_value **bound = &m->values[*at - 'a'];
    if (*bound && *bound != value)
        return false;
    *bound = value;
    return true;
}

bool dp_match_node(const char *pattern, dp_node *node, dp_match *out_match) {
    memset(out_match, 0, sizeof *out_match);
    return match_here(pattern, node, out_match);
}
