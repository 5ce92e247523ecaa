/*
 * shadow.h - who touched the on-chip memory of a core last, and which of its bytes hold data.
 *
 * Memory is kept in cells of 32 bytes. A stamp names an access: time << 32 | site << 3 | pipe (time: clock.h; site: sites
 * of state.h). A cell of which different accesses touched different bytes is split: its stamps are then kept per group of
 * bytes. A range of cells to which the same happened (written as a whole, or the same lanes of every block) is an extent and
 * has one set of stamps, until an access cuts through it: most kernels use the same tiles again and again, and then an
 * access costs the same whatever its size.
 */
#ifndef DOPPEL_DEVICE_CHECK_SHADOW_H
#define DOPPEL_DEVICE_CHECK_SHADOW_H

#include "device/check/clock.h"

enum { DP_CELL_BYTES = 32 };

typedef uint64_t dp_stamp;

static inline uint32_t dp_stamp_time(dp_stamp stamp) { return (uint32_t)(stamp >> 32); }
static inline unsigned dp_stamp_pipe(dp_stamp stamp) { return (unsigned)stamp & 7u; }
static inline uint32_t dp_stamp_site(dp_stamp stamp) { return (uint32_t)stamp >> 3; }
static inline dp_stamp dp_stamp_make(uint32_t time, uint32_t site, unsigned pipe) {
    return (uint64_t)time << 32 | (uint64_t)site << 3 | pipe;
}

/* Bytes of a cell (one bit each) that an access touched last. */
typedef struct dp_lane_group {
    uint32_t bits;
    dp_stamp stamp;
} dp_lane_group;

/* Stamps of a split cell: groups share no byte, so there are never more than a cell has bytes. */
typedef struct dp_split {
    uint32_t cell;
    uint32_t next_free;
    uint8_t writers, readers[DP_CHECK_PIPES]; /* groups in use */
    dp_lane_group writer[DP_CELL_BYTES];
    dp_lane_group reader[DP_CHECK_PIPES][DP_CELL_BYTES]; /* reads of part of the cell */
} dp_split;

/* Cells [begin, end), each with these groups; the cells' own stamps are out of date. */
enum { DP_EXTENT_GROUPS = 4 };
typedef struct dp_extent {
    uint32_t begin, end;
    uint8_t writers, readers[DP_CHECK_PIPES];
    dp_lane_group writer[DP_EXTENT_GROUPS];
    dp_lane_group reader[DP_CHECK_PIPES][DP_EXTENT_GROUPS];
} dp_extent;

enum { DP_EXTENTS = 64 };

typedef struct dp_shadow {
    uint32_t size_bytes, cells;
    uint8_t reader_pipes;              /* bit p: reader[p] is in use */
    dp_stamp *writer;                  /* per cell; a split cell holds the mark DP_SPLIT_TIME and the split's index */
    dp_stamp *reader[DP_CHECK_PIPES];  /* last read of the whole cell by each pipe */
    uint32_t *valid;                   /* per cell, one bit per byte: holds data */
    uint32_t *origin;                  /* per cell: site + 1 that first used its bytes without data; 0 none */
    dp_split *splits;
    uint32_t split_count, split_room, split_free; /* split_free: index + 1 */
    uint32_t split_live;                          /* cells that are split now */
    uint8_t *owner;                               /* per cell: extent + 1, 0 none */
    uint64_t extents_used;                        /* one bit per extent */
    dp_extent extent[DP_EXTENTS];
} dp_shadow;

/* Room for a memory of size_bytes. False when host memory is exhausted; the shadow is then unusable but destroyable. */
bool dp_shadow_create(dp_shadow *shadow, uint32_t size_bytes);
void dp_shadow_destroy(dp_shadow *shadow);
/* A new block: no byte holds data. Stamps stay, they are of the past. */
void dp_shadow_forget_data(dp_shadow *shadow);
/* Stamps go too: when time starts anew. */
void dp_shadow_forget_stamps(dp_shadow *shadow);

/* What kind of order is missing between the access and an earlier one. */
typedef enum dp_hazard { DP_HAZARD_RAW, DP_HAZARD_WAR, DP_HAZARD_WAW } dp_hazard;

/*
 * Told of an earlier access (stamp) of bytes [offset, offset + bytes) that is not known to be finished. Returns the clock to go
 * on with (the checker may have learnt an order).
 */
typedef void (*dp_hazard_fn)(void *context, dp_hazard hazard, dp_stamp earlier, uint32_t offset, uint32_t bytes);

typedef struct dp_shadow_access {
    dp_stamp stamp;             /* of this access */
    const dp_check_clock *done; /* of its pipe; read again after each hazard */
    bool whole_cells;           /* a partial read may be noted for the whole cell */
    dp_hazard_fn hazard;
    void *context;
} dp_shadow_access;

/* [offset, offset + bytes) must lie inside the memory. */
void dp_shadow_read(dp_shadow *shadow, const dp_shadow_access *access, uint32_t offset, uint32_t bytes);
void dp_shadow_write(dp_shadow *shadow, const dp_shadow_access *access, uint32_t offset, uint32_t bytes);
/* The same lanes of every block: the bytes `bits` (not 0) of each of the cells [cell, end). */
void dp_shadow_read_lanes(dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t end, uint32_t bits);
void dp_shadow_write_lanes(dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t end, uint32_t bits);

/* Bytes of the range without data; *out_first is the offset of the first one. 0: all hold data. */
uint32_t dp_shadow_missing(const dp_shadow *shadow, uint32_t offset, uint32_t bytes, uint32_t *out_first);
uint32_t dp_shadow_missing_lanes(const dp_shadow *shadow, uint32_t cell, uint32_t end, uint32_t bits, uint32_t *out_first);
void dp_shadow_set_data(dp_shadow *shadow, uint32_t offset, uint32_t bytes);
void dp_shadow_set_data_lanes(dp_shadow *shadow, uint32_t cell, uint32_t end, uint32_t bits);
/* The bytes hold no data; origin: site + 1 that is to blame. */
void dp_shadow_clear_data(dp_shadow *shadow, uint32_t offset, uint32_t bytes, uint32_t origin);

#endif
