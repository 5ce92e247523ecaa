#include "graph/passes/passes.h"

const dp_pass dp_passes[] = {
    {"ends", "inputs and outputs get the types that were asked for", dp_pass_ends},
    {"lift", "models stored in half compute in float, unless half was asked for", dp_pass_lift},
    {"identity", "nodes that hand on their input are taken out", dp_pass_identity},
    {"dead", "nodes whose results nobody uses are taken out", dp_pass_dead},
    {"neutral", "times 1, plus 0 and shapes around a softmax are stepped over", dp_pass_neutral},
    {"activation", "activation functions spelled out in steps become one node", dp_pass_activation},
    {"norm", "layer normalisation spelled out in steps becomes one node", dp_pass_norm},
    {"attention", "attention spelled out in steps becomes one node", dp_pass_attention},
    {"scale", "factors and summands per channel go into the convolution before them", dp_pass_scale},
    {"quantise", "convolutions become int8 where there is calibration", dp_pass_quantise},
    {"precision", "floats become half or bfloat16 where it was asked for", dp_pass_precision},
    {"same", "of nodes that compute the same from the same one stays", dp_pass_same},
    {"dead", "nodes whose results nobody uses are taken out", dp_pass_dead},
    {"layout", "convolutions go over to images with channels last, and what lies between follows", dp_pass_layout},
    {"products", "products with constant weights go over to panels", dp_pass_products},
    {"epilogue", "bias, residual and activation go into the convolution or product before them", dp_pass_epilogue},
    {"rename", "transposes that move only dims of 1 are renamed elements", dp_pass_rename},
    {"same", "of nodes that compute the same from the same one stays", dp_pass_same},
    {"dead", "nodes whose results nobody uses are taken out", dp_pass_dead},
    {"chain", "elementwise nodes that only read each other become one, run tile by tile", dp_pass_chain},
    {"outputs", "every output gets a node of its own", dp_pass_outputs},
};
const unsigned dp_passes_count = sizeof dp_passes / sizeof dp_passes[0];

dp_status dp_passes_run(dp_graph *graph, FILE *print) {
    for (unsigned i = 0; i < dp_passes_count; i++) {
        int changes = 0;
        dp_status status = dp_passes[i].run(graph, &changes);
        if (status != DP_OK)
            return status;
        if (print && changes) {
            fprintf(print, "# after %s (%d changes)\n", dp_passes[i].name, changes);
            dp_graph_print(graph, print);
        }
    }
    return DP_OK;
}
