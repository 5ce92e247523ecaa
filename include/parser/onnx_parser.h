/*
 * onnx_parser.h - graphs from ONNX models. parser_params may be empty; an option that Doppel does not know is refused.
 */
#ifndef DOPPEL_PARSER_ONNX_PARSER_H
#define DOPPEL_PARSER_ONNX_PARSER_H

#include <map>

#include "graph/graph.h"

namespace ge {

inline graphStatus aclgrphParseONNX(const char *model_file, const std::map<AscendString, AscendString> &parser_params,
                                    Graph &graph) {
    return parser_params.empty() ? dp_ge_parse_file(graph.ToC(), model_file) : GRAPH_FAILED;
}

/* The buffer is copied. Weights in files beside the model are not found. */
inline graphStatus aclgrphParseONNXFromMem(const char *buffer, size_t size,
                                           const std::map<AscendString, AscendString> &parser_params, Graph &graph) {
    return parser_params.empty() ? dp_ge_parse_bytes(graph.ToC(), buffer, size) : GRAPH_FAILED;
}

} // namespace ge

#endif
