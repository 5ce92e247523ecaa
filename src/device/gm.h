/*
 * gm.h - registry of device memory ranges, so that every access to GM is checked in every mode. Thread-safe.
 */
#ifndef DOPPEL_DEVICE_GM_H
#define DOPPEL_DEVICE_GM_H

#include "base/status.h"

typedef struct dp_gm_range {
    uint8_t *base;
    size_t size_bytes; /* as the user asked for it, not the padded size */
    size_t padded_bytes; /* what is there: the vendor's allocator rounds up and pads, and programs read into it */
    uint64_t id;       /* allocation number, from 1, never reused */
    uint32_t device_id;
    uintptr_t group;   /* 0: alone */
} dp_gm_range;

/* Announces [base, base+size) as device memory. Ranges never overlap. */
dp_status dp_gm_add(void *base, size_t size_bytes, uint32_t device_id, uint64_t *out_id);
/* Says that padded_bytes (at least the size) of memory stand behind base. Without it: the size. */
dp_status dp_gm_set_padding(void *base, size_t padded_bytes);
/* Ranges of one group that lie against each other are one piece of memory: the parts of a reserved range of addresses. */
dp_status dp_gm_set_group(void *base, uintptr_t group);
dp_status dp_gm_remove(void *base);
/* The live range that contains addr, false if none. Of a group, it goes on to the end of the last range without a gap. */
bool dp_gm_find(const void *addr, dp_gm_range *out_range);
/* The nearest live range that ends at or before addr ("16 bytes past the end of ..."), false if none is within 1 MiB. */
bool dp_gm_find_before(const void *addr, dp_gm_range *out_range);
/* Changes whenever a range is added or removed: lets cores cache their last range. */
uint64_t dp_gm_epoch(void);

/* Around fork(): the child must not inherit a lock that a thread it does not have was holding. */
void dp_gm_fork_prepare(void);
void dp_gm_fork_done(void); /* in the parent */
void dp_gm_fork_child(void);

#endif
