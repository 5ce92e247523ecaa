/*
 * ge_api_types.h - names of options for aclgrphBuildInitialize and aclgrphBuildModel. Values are those of atc's flags.
 */
#ifndef DOPPEL_GE_GE_API_TYPES_H
#define DOPPEL_GE_GE_API_TYPES_H

namespace ge {
namespace ir_option {

static const char *const SOC_VERSION = "soc_version";
static const char *const PRECISION_MODE = "precision_mode";
static const char *const PRECISION_MODE_V2 = "precision_mode_v2";
static const char *const INPUT_SHAPE = "input_shape";
static const char *const OUTPUT_TYPE = "output_type";
static const char *const OUT_NODES = "out_nodes";
static const char *const INPUT_FP16_NODES = "input_fp16_nodes";
static const char *const DYNAMIC_BATCH_SIZE = "dynamic_batch_size";
static const char *const DYNAMIC_IMAGE_SIZE = "dynamic_image_size";
static const char *const DYNAMIC_DIMS = "dynamic_dims";
/* These change nothing on a CPU. */
static const char *const OP_SELECT_IMPL_MODE = "op_select_implmode";
static const char *const OPTYPELIST_FOR_IMPLMODE = "optypelist_for_implmode";
static const char *const INPUT_FORMAT = "input_format";
static const char *const LOG_LEVEL = "log";
static const char *const CORE_TYPE = "core_type";
static const char *const BUFFER_OPTIMIZE = "buffer_optimize";

} // namespace ir_option
} // namespace ge

#endif
