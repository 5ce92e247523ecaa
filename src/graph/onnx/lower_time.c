/* Rows of the ONNX operators that go along time: recurrent layers, Fourier transforms, windows. */
#include <math.h>
#include <string.h>

#include "graph/onnx/lower.h"

/* "type variant": the attributes have the same names on both sides; absent outputs stay absent. */
dp_status dp_low_recurrent(dp_lowering *l) {
    static const char *const lists[] = {"activation_alpha", "activation_beta", "activations", "clip"};
    char type[24], variant[24];
    if (dp_low_need(l, 3) != DP_OK)
        return l->status;
    sscanf(l->detail, "%23s %23s", type, variant);
    int n = l->node->n_outputs, most = strcmp(type, "CommonLSTM") == 0 ? 3 : 2;
    dp_node *node = dp_low_begin(l, type, n < most ? n : most, 0);
    if (!node)
        return l->status;
    node->inputs = l->node->inputs;
    node->n_inputs = l->node->n_inputs;
    for (int i = 0; i < 4; i++) {
        const dp_arg *given = dp_node_attribute(l->node, lists[i]);
        if (given && l->status == DP_OK)
            l->status = dp_node_set(node, given);
    }
    const dp_tensor *r = &dp_low_in(l, 2)->tensor;
    dp_low_integer(l, node, "hidden_size", dp_node_integer(l->node, "hidden_size", r->rank ? r->dims[r->rank - 1] : 0));
    dp_low_integer(l, node, "layout", dp_node_integer(l->node, "layout", 0));
    dp_low_text(l, node, "direction", dp_node_text(l->node, "direction", "forward"));
    if (variant[0] != '-')
        dp_low_integer(l, node, variant, dp_node_integer(l->node, variant, 0));
    for (int i = 0; i < node->n_outputs; i++)
        dp_low_give(l, node, i, i, DP_EL_NONE);
    dp_low_end(l, node);
    return l->status;
}
