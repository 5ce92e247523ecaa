#include "graph/precision.h"

#include <stdio.h>
#include <string.h>

#include "ops/tensor.h"

typedef struct mode_row {
    const char *name;
    bool v2;
    dp_precision_mode mode;
    int low;
} mode_row;

static const mode_row rows[] = {
    {"must_keep_origin_dtype", false, DP_PRECISION_ORIGIN, DP_F16},
    {"force_fp16", false, DP_PRECISION_LOW, DP_F16},
    {"force_fp32", false, DP_PRECISION_MATRIX_INPUTS, DP_F16},
    {"cube_fp16in_fp32out", false, DP_PRECISION_MATRIX_INPUTS, DP_F16},
    {"allow_fp32_to_fp16", false, DP_PRECISION_MATRIX, DP_F16},
    {"allow_fp32_to_bf16", false, DP_PRECISION_MATRIX, DP_BF16},
    {"allow_mix_precision", false, DP_PRECISION_MIXED, DP_F16},
    {"allow_mix_precision_fp16", false, DP_PRECISION_MIXED, DP_F16},
    {"allow_mix_precision_bf16", false, DP_PRECISION_MIXED, DP_BF16},
    {"origin", true, DP_PRECISION_ORIGIN, DP_F16},
    {"fp16", true, DP_PRECISION_LOW, DP_F16},
    {"bf16", true, DP_PRECISION_LOW, DP_BF16}, /* Doppel's own */
    {"mixed_float16", true, DP_PRECISION_MIXED, DP_F16},
    {"mixed_bfloat16", true, DP_PRECISION_MIXED, DP_BF16},
    {"cube_fp16in_fp32out", true, DP_PRECISION_MATRIX_INPUTS, DP_F16},
};

static dp_status no_mode(const char *flag, const char *text, bool v2) {
    if (strstr(text, "hif8"))
        return dp_fail(DP_ERR_UNSUPPORTED, "%s=%.40s: HiFloat8 exists on newer NPUs only; choose another mode", flag, text);
    char names[512];
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].v2 == v2)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", rows[i].name);
    return dp_fail(DP_ERR_ARGUMENT, "%s is \"%.40s\", but must be one of %s", flag, text, names);
}

dp_status dp_precision_parse(const char *mode, const char *mode_v2, dp_precision *precision) {
    if (mode && mode_v2)
        return dp_fail(DP_ERR_ARGUMENT, "precision_mode and precision_mode_v2 are two names of one choice: give one of them");
    precision->mode = DP_PRECISION_ORIGIN;
    precision->low = DP_F16;
    const char *text = mode_v2 ? mode_v2 : mode;
    if (!text)
        return DP_OK;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].v2 != (mode_v2 != NULL) || strcmp(rows[i].name, text) != 0)
            continue;
        precision->mode = rows[i].mode;
        precision->low = rows[i].low;
        return DP_OK;
    }
    return no_mode(mode_v2 ? "precision_mode_v2" : "precision_mode", text, mode_v2 != NULL);
}

int dp_precision_element(const char *text, size_t length) {
    static const struct {
        const char *name;
        int element;
    } types[] = {{"FP32", DP_F32}, {"FP16", DP_F16}, {"UINT8", DP_U8}, {"INT8", DP_I8}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].name) == length && strncmp(types[i].name, text, length) == 0)
            return types[i].element;
    return DP_EL_NONE;
}
