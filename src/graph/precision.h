/*
 * precision.h - which element types a model computes in, as the user of atc asks for it.
 */
#ifndef DOPPEL_GRAPH_PRECISION_H
#define DOPPEL_GRAPH_PRECISION_H

#include "base/status.h"

typedef enum dp_precision_mode {
    DP_PRECISION_ORIGIN,        /* the types that the model is stored in */
    DP_PRECISION_LOW,           /* all floats become `low` where the operator has it */
    DP_PRECISION_MIXED,         /* matrix products become `low`, sums and exponentials stay float, the rest follows its inputs */
    DP_PRECISION_MATRIX,        /* matrix products become `low`, all else stays float */
    DP_PRECISION_MATRIX_INPUTS, /* factors of matrix products are rounded to `low`; their results and all else are float */
} dp_precision_mode;

struct dp_calibration;

typedef struct dp_precision {
    dp_precision_mode mode;
    int low;                 /* DP_F16 or DP_BF16 */
    const char *half_inputs; /* names of inputs that are given as half, ';' between them; NULL: none */
    const char *output_type; /* FP32, FP16 or UINT8 for all outputs, or "node:index:type;..."; NULL: as the model says */
    struct dp_calibration *calibration; /* data for int8, or NULL (graph/calibration.h) */
} dp_precision;

/*
 * From the values of --precision_mode and --precision_mode_v2 (either or both NULL) into mode and low. DP_ERR_ARGUMENT:
 * both are given, or no such mode; DP_ERR_UNSUPPORTED: a mode with types that only some NPUs have.
 */
dp_status dp_precision_parse(const char *mode, const char *mode_v2, dp_precision *precision);

/* An output's type by its name in --output_type: FP32, FP16, UINT8, INT8; DP_EL_NONE for other texts. */
int dp_precision_element(const char *text, size_t length);

#endif
