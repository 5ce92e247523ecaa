/*
 * asc_types.h - element types of the C API. In C++ they are the classes of the kernel language; in C, where no portable
 * 16-bit floating type exists, half and bfloat16_t are structs of two bytes with conversion functions.
 */
#ifndef DOPPEL_C_API_ASC_TYPES_H
#define DOPPEL_C_API_ASC_TYPES_H

#include "ascendc/qualifiers.h"
#include "doppel/pipes.h"

#ifdef __cplusplus
#include "ascendc/types.h"
#else

typedef struct half {
    uint16_t bits;
} half;
typedef struct bfloat16_t {
    uint16_t bits;
} bfloat16_t;
typedef struct int4x2_t {
    uint8_t pair;
} int4x2_t;

#endif

/* Rounds to nearest even; exact the other way. For host code and scalar work, in C and C++ alike. */
DP_EXTERN_C DP_API uint16_t dp_half_bits(float value);
DP_EXTERN_C DP_API float dp_half_value(uint16_t bits);
DP_EXTERN_C DP_API uint16_t dp_bfloat16_bits(float value);
DP_EXTERN_C DP_API float dp_bfloat16_value(uint16_t bits);

#ifndef __cplusplus
static inline half asc_half(float value) { return (half){dp_half_bits(value)}; }
static inline float asc_half_to_float(half value) { return dp_half_value(value.bits); }
static inline bfloat16_t asc_bfloat16(float value) { return (bfloat16_t){dp_bfloat16_bits(value)}; }
static inline float asc_bfloat16_to_float(bfloat16_t value) { return dp_bfloat16_value(value.bits); }
#endif

#endif
