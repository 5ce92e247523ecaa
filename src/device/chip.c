/*
 * Chip parameters. Core counts, clocks, memory, L2 and on-chip sizes: the vendor toolkit's platform files as collected in
 * public tables; alignments and reserved parts: public documentation and the 8.1 headers (dav-2201), assumed for the others.
 */
#include "device/chip.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KIB 1024u
#define MIB (1024ull * 1024u)
#define GIB (1024ull * MIB)
#define UB_SCRATCH (8u * KIB)       /* at the end of UB, used by Select and others */
#define L1_MESSAGES 128u            /* at the end of L1 */

#define ALIGNMENTS                                                                                                     \
    {[DP_SPACE_GM] = 1, [DP_SPACE_UB] = 32, [DP_SPACE_L1] = 32, [DP_SPACE_L0A] = 512, [DP_SPACE_L0B] = 512,            \
     [DP_SPACE_L0C] = 64, [DP_SPACE_BT] = 64, [DP_SPACE_FB] = 128}

#define CHIP(chip_name, arch, cube, vector, mhz, memory, l2, ub, l1, l0c, bt)                                          \
    {.name = chip_name, .architecture = arch, .cube_cores = cube, .vector_cores = vector, .clock_mhz = mhz,            \
     .memory_bytes = (memory) * GIB, .l2_bytes = (l2) * MIB,                                                           \
     .space_bytes = {[DP_SPACE_UB] = (ub) * KIB, [DP_SPACE_L1] = (l1) * KIB - L1_MESSAGES, [DP_SPACE_L0A] = 64 * KIB,  \
                     [DP_SPACE_L0B] = 64 * KIB, [DP_SPACE_L0C] = (l0c) * KIB, [DP_SPACE_BT] = (bt) * KIB,              \
                     [DP_SPACE_FB] = 7 * KIB},                                                                         \
     .space_align = ALIGNMENTS, .ub_reserved_offset = (ub) * KIB - UB_SCRATCH}

static const dp_chip chips[] = {
    CHIP("Ascend910B3", "dav-2201", 20, 40, 1800, 64, 192, 192, 512, 128, 1),
    CHIP("Ascend910B1", "dav-2201", 24, 48, 1850, 64, 192, 192, 512, 128, 1),
    CHIP("Ascend910B2", "dav-2201", 24, 48, 1800, 64, 192, 192, 512, 128, 1),
    CHIP("Ascend910B2C", "dav-2201", 24, 48, 1800, 64, 192, 192, 512, 128, 1),
    CHIP("Ascend910B4", "dav-2201", 20, 40, 1500, 32, 96, 192, 512, 128, 1),
    CHIP("Ascend910B4-1", "dav-2201", 20, 40, 1500, 32, 168, 192, 512, 128, 1),
    CHIP("Ascend910_9391", "dav-2201", 24, 48, 1850, 64, 192, 192, 512, 128, 1),
    CHIP("Ascend910_9381", "dav-2201", 24, 48, 1800, 64, 192, 192, 512, 128, 1),
    CHIP("Ascend310P3", "dav-m200", 8, 7, 1060, 22, 16, 256, 1024, 256, 0),
    CHIP("Ascend310B1", "dav-m300", 1, 1, 1224, 32, 4, 248, 1024, 128, 1),
};
enum { CHIP_COUNT = sizeof chips / sizeof *chips };

/* Names that stand for a chip of the table. */
static const struct {
    const char *alias, *name;
} aliases[] = {{"Ascend310P1", "Ascend310P3"}, {"Ascend910_93xx", "Ascend910_9391"}, {"Ascend910B", "Ascend910B3"}};

static const char *without_prefix(const char *name) {
    return strncasecmp(name, "Ascend", 6) == 0 ? name + 6 : name;
}

static bool same_chip(const char *a, const char *b) { return strcasecmp(without_prefix(a), without_prefix(b)) == 0; }

const dp_chip *dp_chip_find(const char *name) {
    if (!name)
        return NULL;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (same_chip(name, aliases[i].alias))
            name = aliases[i].name;
    }
    for (size_t i = 0; i < CHIP_COUNT; i++) {
        if (same_chip(name, chips[i].name))
            return &chips[i];
    }
    return NULL;
}

const dp_chip *dp_chip_at(unsigned index) { return index < CHIP_COUNT ? &chips[index] : NULL; }

static pthread_once_t chosen_once = PTHREAD_ONCE_INIT;
static const dp_chip *chosen;

static void choose(void) {
    const char *name = getenv("DOPPEL_SOC");
    chosen = &chips[0];
    if (!name || !*name)
        return;
    const dp_chip *chip = dp_chip_find(name);
    if (chip) {
        chosen = chip;
        return;
    }
    fprintf(stderr, "doppel: DOPPEL_SOC=%s is not a known chip; %s is used. Known:", name, chosen->name);
    for (size_t i = 0; i < CHIP_COUNT; i++)
        fprintf(stderr, " %s", chips[i].name);
    fputc('\n', stderr);
}

const dp_chip *dp_chip_current(void) {
    pthread_once(&chosen_once, choose);
    return chosen;
}
