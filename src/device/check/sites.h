/*
 * sites.h - places of the program that issue instructions, numbered: (file, line, instruction). Thread-safe.
 */
#ifndef DOPPEL_DEVICE_CHECK_SITES_H
#define DOPPEL_DEVICE_CHECK_SITES_H

#include "doppel/insn.h"

typedef struct dp_site {
    dp_loc loc;
    uint16_t op;
} dp_site;

/* Numbers a core looked up before, so that an instruction takes no lock. */
typedef struct dp_site_cache {
    struct {
        const char *file;
        uint32_t line, op_and_site; /* op << 20 | site, 0 empty */
    } slot[512];
} dp_site_cache;

/* 1 to 2^20 - 1; 0 when the table is full or memory is exhausted (an unknown place). */
uint32_t dp_site_of(dp_site_cache *cache, dp_loc loc, unsigned op);
/* line 0 for an unknown place. */
dp_site dp_site_at(uint32_t site);

#endif
