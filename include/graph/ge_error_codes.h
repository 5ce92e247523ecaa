/*
 * ge_error_codes.h - what functions of the graph engine return. Success is 0; the sentence of a failure is
 * aclGetRecentErrMsg's.
 */
#ifndef DOPPEL_GRAPH_GE_ERROR_CODES_H
#define DOPPEL_GRAPH_GE_ERROR_CODES_H

#include <cstdint>

namespace ge {

using graphStatus = uint32_t;

const graphStatus GRAPH_SUCCESS = 0;
const graphStatus GRAPH_FAILED = 0xFFFFFFFF;
/* Names that clients compare with; Doppel returns none of them. */
const graphStatus GRAPH_NOT_CHANGED = 1343242304;
const graphStatus GRAPH_PARAM_INVALID = 50331649;
const graphStatus GRAPH_NODE_WITHOUT_CONST_INPUT = 50331648;
const graphStatus GRAPH_NODE_NEED_REPASS = 50331647;
const graphStatus GRAPH_INVALID_IR_DEF = 50331646;
const graphStatus OP_WITHOUT_IR_DATATYPE_INFER_RULE = 50331645;

} // namespace ge

#endif
