/*
 * chip.h - parameters of the chips Doppel can stand for. Values from public tables; see chip.c for the provenance column.
 */
#ifndef DOPPEL_DEVICE_CHIP_H
#define DOPPEL_DEVICE_CHIP_H

#include "doppel/types.h"

typedef struct dp_chip {
    const char *name;         /* "Ascend910B3" */
    const char *architecture; /* "dav-2201" */
    uint16_t cube_cores, vector_cores;
    uint16_t clock_mhz;
    uint64_t memory_bytes, l2_bytes;
    uint32_t space_bytes[DP_SPACE_COUNT]; /* usable bytes of each on-chip memory; GM is 0 here */
    uint32_t space_align[DP_SPACE_COUNT]; /* required alignment of operands in that memory */
    uint32_t ub_reserved_offset;          /* start of the scratch the library itself uses inside UB */
} dp_chip;

/* Chip by name ("Ascend910B3" or "910B3", case-insensitive); NULL if unknown. */
const dp_chip *dp_chip_find(const char *name);
/* Chip of this process: DOPPEL_SOC, or Ascend910B3. An unknown name is reported once on stderr and ignored. */
const dp_chip *dp_chip_current(void);
/* The i-th known chip, NULL past the end. */
const dp_chip *dp_chip_at(unsigned index);

#endif
