/*
 * compile.h - compiling a model as a function: what the program atc calls.
 */
#ifndef DOPPEL_COMPILE_H
#define DOPPEL_COMPILE_H

#include "doppel/abi.h"

DP_BEGIN_DECLS

typedef struct dp_compile_options {
    const char *model;       /* an ONNX file */
    const char *output;      /* the file to write; ".om" is added unless it ends so */
    const char *input_shape; /* "name:1,3,224,224;other:1,10", or NULL: as the model says. -1 is an open dim, 1~8 one with bounds */
    const char *dynamic_batch_size; /* "1,2,4": for the open dims; only one of these three may be given. NULL: none */
    const char *dynamic_image_size; /* "224,224;448,448": for the two open dims of an input */
    const char *dynamic_dims;       /* "1,16;8,64": for the open dims in their order */
    const char *out_nodes;          /* "node:0;other:1" or names of values, instead of the file's outputs, or NULL */
    const char *soc_version; /* a chip's name, or NULL */
    const char *precision_mode, *precision_mode_v2; /* by the names atc has for them; at most one is not NULL */
    const char *input_fp16_nodes; /* "name;name": inputs that are given as half, or NULL */
    const char *output_type;      /* FP32, FP16, UINT8, or "node:index:type;...", or NULL */
    void (*progress)(void *data, int done, int all); /* called after each shape of several, or NULL */
    void *progress_data;
    const char *calibration;      /* int8: an .npy file of inputs, or a folder of such; NULL: floats */
    const char *calibration_method; /* minmax or percentile (NULL) */
    const char *insert_op_conf;   /* a file with settings of AIPP (docs/pictures.md), or NULL */
    const char *input_format;     /* "NHWC": inputs that AIPP prepares have their channels last; NULL or others: NCHW */
    const char *dump_graph;  /* where the graph is printed after each step: a file, "-" for stdout, or NULL */
} dp_compile_options;

/*
 * False with a sentence in `message` (at most message_bytes, ended by 0) when something is wrong; else there is what is worth
 * telling: the accuracy of a calibrated model. Often nothing.
 */
DP_API bool dp_compile_model(const dp_compile_options *options, char *message, size_t message_bytes);

/*
 * What is in a model: an ONNX file or a compiled one. json: a file, or "-" for stdout; NULL: a compiled model's inputs, outputs and sizes
 * as lines on stdout. False with a sentence as above.
 */
DP_API bool dp_describe_model(const char *model, bool is_onnx, const char *json, char *message, size_t message_bytes);

/* Whether all nodes of an ONNX file have types that are supported: a JSON file with the result, and false with a sentence if not. */
DP_API bool dp_check_model(const char *model, const char *report, char *message, size_t message_bytes);

/*
 * Compiles single operators: `json` is a list of {"op", "input_desc", "output_desc", "attr"}, each of which becomes a model of
 * one node in the folder `output`, N_Op.om. soc_version: a chip's name, or NULL. False with a sentence as above.
 */
DP_API bool dp_compile_operators(const char *json, const char *output, const char *soc_version, char *message,
                                 size_t message_bytes);

DP_END_DECLS

#endif
