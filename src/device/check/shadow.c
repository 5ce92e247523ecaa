#include "device/check/shadow.h"

#include "base/memory.h"

/* Later than every time, and on no pipe: the ordinary test fails and leads to the split. */
#define DP_SPLIT_TIME 0xffffffffu
enum { NO_PIPE = 7, SPLIT_ROOM = 64, CHUNK = 8, EXTENT_MIN_CELLS = 8 };

static bool is_split(dp_stamp stamp) { return dp_stamp_time(stamp) == DP_SPLIT_TIME; }

static bool finished(const dp_shadow_access *access, dp_stamp earlier) {
    return dp_stamp_time(earlier) <= access->done->done[dp_stamp_pipe(earlier)] ||
           dp_stamp_time(earlier) == dp_stamp_time(access->stamp);
}

/* Bits of the bytes [first, end) of a cell. */
static uint32_t byte_bits(uint32_t first, uint32_t end) {
    uint32_t upto_end = end == DP_CELL_BYTES ? ~0u : (1u << end) - 1;
    return upto_end & ~((1u << first) - 1);
}

bool dp_shadow_create(dp_shadow *shadow, uint32_t size_bytes) {
    *shadow = (dp_shadow){.size_bytes = size_bytes};
    shadow->cells = (size_bytes + DP_CELL_BYTES - 1) / DP_CELL_BYTES;
    shadow->writer = dp_alloc(DP_MEM_CHECK, shadow->cells * sizeof *shadow->writer);
    shadow->valid = dp_alloc(DP_MEM_CHECK, shadow->cells * sizeof *shadow->valid);
    shadow->origin = dp_alloc(DP_MEM_CHECK, shadow->cells * sizeof *shadow->origin);
    shadow->owner = dp_alloc(DP_MEM_CHECK, shadow->cells);
    return shadow->writer && shadow->valid && shadow->origin && shadow->owner;
}

void dp_shadow_destroy(dp_shadow *shadow) {
    dp_free(shadow->writer);
    dp_free(shadow->valid);
    dp_free(shadow->origin);
    dp_free(shadow->splits);
    dp_free(shadow->owner);
    for (unsigned p = 0; p < DP_CHECK_PIPES; p++)
        dp_free(shadow->reader[p]);
    *shadow = (dp_shadow){0};
}

void dp_shadow_forget_data(dp_shadow *shadow) {
    memset(shadow->valid, 0, shadow->cells * sizeof *shadow->valid);
    memset(shadow->origin, 0, shadow->cells * sizeof *shadow->origin);
}

void dp_shadow_forget_stamps(dp_shadow *shadow) {
    memset(shadow->writer, 0, shadow->cells * sizeof *shadow->writer);
    for (unsigned p = 0; p < DP_CHECK_PIPES; p++) {
        if (shadow->reader[p])
            memset(shadow->reader[p], 0, shadow->cells * sizeof *shadow->reader[p]);
    }
    shadow->split_count = shadow->split_live = 0;
    shadow->split_free = 0;
    memset(shadow->owner, 0, shadow->cells);
    shadow->extents_used = 0;
}

/* Null when host memory is exhausted: the cell then stays whole, and the checker sees less, never more. */
static dp_split *split_cell(dp_shadow *shadow, uint32_t cell) {
    if (is_split(shadow->writer[cell]))
        return &shadow->splits[dp_stamp_site(shadow->writer[cell])];
    uint32_t index;
    if (shadow->split_free) {
        index = shadow->split_free - 1;
        shadow->split_free = shadow->splits[index].next_free;
    } else {
        if (shadow->split_count == shadow->split_room) {
            uint32_t room = shadow->split_room ? shadow->split_room * 2 : SPLIT_ROOM;
            dp_split *splits = dp_realloc(DP_MEM_CHECK, shadow->splits, room * sizeof *splits);
            if (!splits)
                return NULL;
            shadow->splits = splits;
            shadow->split_room = room;
        }
        index = shadow->split_count++;
    }
    dp_split *split = &shadow->splits[index];
    shadow->split_live++;
    split->cell = cell;
    split->writers = 1;
    split->writer[0] = (dp_lane_group){~0u, shadow->writer[cell]};
    memset(split->readers, 0, sizeof split->readers);
    shadow->writer[cell] = dp_stamp_make(DP_SPLIT_TIME, index, NO_PIPE);
    return split;
}

/* The cell is about to be written as a whole: who knows that write to be finished knows what it had to wait for. */
static void join_cell(dp_shadow *shadow, uint32_t cell) {
    uint32_t index = dp_stamp_site(shadow->writer[cell]);
    dp_split *split = &shadow->splits[index];
    split->next_free = shadow->split_free;
    shadow->split_free = index + 1;
    shadow->split_live--;
    shadow->writer[cell] = 0;
}

static bool use_reader(dp_shadow *shadow, unsigned pipe) {
    if (!shadow->reader[pipe])
        shadow->reader[pipe] = dp_alloc(DP_MEM_CHECK, shadow->cells * sizeof *shadow->reader[pipe]);
    if (shadow->reader[pipe])
        shadow->reader_pipes |= (uint8_t)(1u << pipe);
    return shadow->reader[pipe] != NULL;
}

/* ---- groups ---- */

/* The access takes the bytes `bits` over from the other groups. False: no room for a group of its own, nothing changed. */
static bool take_bytes(dp_lane_group *list, uint8_t *count, unsigned room, uint32_t bits, dp_stamp stamp) {
    unsigned left = 0, kept = 0;
    for (unsigned i = 0; i < *count; i++)
        left += (list[i].bits & ~bits) != 0;
    if (left == room)
        return false;
    for (unsigned i = 0; i < *count; i++) {
        uint32_t rest = list[i].bits & ~bits;
        if (rest)
            list[kept++] = (dp_lane_group){rest, list[i].stamp};
    }
    list[kept] = (dp_lane_group){bits, stamp};
    *count = (uint8_t)(kept + 1);
    return true;
}

/* Groups of the cells [cell, end) against an access of the bytes `bits` of each. */
static void check_groups(const dp_shadow_access *access, const dp_lane_group *list, unsigned count, dp_hazard hazard,
                         uint32_t cell, uint32_t end, uint32_t bits) {
    for (unsigned i = 0; i < count; i++) {
        uint32_t shared = list[i].bits & bits;
        if (!shared || finished(access, list[i].stamp))
            continue;
        unsigned first = (unsigned)__builtin_ctz(shared);
        uint32_t gap = ~(shared >> first); /* 0: every byte of the cell */
        uint32_t bytes = gap ? (uint32_t)__builtin_ctz(gap) : (end - cell) * DP_CELL_BYTES;
        access->hazard(access->context, hazard, list[i].stamp, cell * DP_CELL_BYTES + first, bytes);
    }
}

/* Writers of one cell, the bytes `bits` of it, against an access. */
static void check_writer(const dp_shadow *shadow, const dp_shadow_access *access, dp_hazard hazard, uint32_t cell,
                         uint32_t bits) {
    dp_stamp writer = shadow->writer[cell];
    if (is_split(writer)) {
        const dp_split *split = &shadow->splits[dp_stamp_site(writer)];
        check_groups(access, split->writer, split->writers, hazard, cell, cell + 1, bits);
    } else if (!finished(access, writer)) {
        unsigned first = (unsigned)__builtin_ctz(bits), last = 31u - (unsigned)__builtin_clz(bits);
        access->hazard(access->context, hazard, writer, cell * DP_CELL_BYTES + first, last - first + 1);
    }
}

/* True when all stamps of [first, first + CHUNK) are `stamp`. */
static bool same_stamps(const dp_stamp *first, dp_stamp stamp) {
    dp_stamp difference = 0;
    for (unsigned i = 0; i < CHUNK; i++)
        difference |= first[i] ^ stamp;
    return difference == 0;
}

/* First cell of [cell, end) whose stamp is not finished; end if there is none. */
static uint32_t next_unfinished(const dp_shadow_access *access, const dp_stamp *stamps, uint32_t cell, uint32_t end) {
    while (cell < end) {
        dp_stamp stamp = stamps[cell];
        if (!finished(access, stamp))
            return cell;
        cell++;
        while (end - cell >= CHUNK && same_stamps(stamps + cell, stamp))
            cell += CHUNK;
    }
    return end;
}

/* Cells [cell, stop) that carry the same stamp as `cell` itself. */
static uint32_t run_end(const dp_stamp *stamps, uint32_t cell, uint32_t stop) {
    uint32_t end = cell + 1;
    while (end < stop && stamps[end] == stamps[cell])
        end++;
    return end;
}

static void check_whole_writers(const dp_shadow *shadow, const dp_shadow_access *access, dp_hazard hazard,
                                uint32_t cell, uint32_t end) {
    while ((cell = next_unfinished(access, shadow->writer, cell, end)) < end) {
        if (is_split(shadow->writer[cell])) {
            check_writer(shadow, access, hazard, cell, ~0u);
            cell++;
            continue;
        }
        uint32_t stop = run_end(shadow->writer, cell, end);
        access->hazard(access->context, hazard, shadow->writer[cell], cell * DP_CELL_BYTES,
                       (stop - cell) * DP_CELL_BYTES);
        cell = stop;
    }
}

/* Earlier reads by other pipes against a write; a pipe reads before its own later instructions write. */
static void check_whole_readers(const dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t end) {
    for (unsigned p = 0; p < DP_CHECK_PIPES; p++) {
        if (!(shadow->reader_pipes >> p & 1) || p == dp_stamp_pipe(access->stamp))
            continue;
        const dp_stamp *readers = shadow->reader[p];
        for (uint32_t at = cell; (at = next_unfinished(access, readers, at, end)) < end;) {
            uint32_t stop = run_end(readers, at, end);
            access->hazard(access->context, DP_HAZARD_WAR, readers[at], at * DP_CELL_BYTES, (stop - at) * DP_CELL_BYTES);
            at = stop;
        }
    }
}

static void check_split_readers(const dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t bits) {
    if (!is_split(shadow->writer[cell]))
        return;
    const dp_split *split = &shadow->splits[dp_stamp_site(shadow->writer[cell])];
    for (unsigned p = 0; p < DP_CHECK_PIPES; p++) {
        if (p != dp_stamp_pipe(access->stamp))
            check_groups(access, split->reader[p], split->readers[p], DP_HAZARD_WAR, cell, cell + 1, bits);
    }
}

static void fill_stamps(dp_stamp *stamps, uint32_t cell, uint32_t end, dp_stamp stamp) {
    while (end - cell >= CHUNK) {
        for (unsigned i = 0; i < CHUNK; i++)
            stamps[cell + i] = stamp;
        cell += CHUNK;
    }
    for (; cell < end; cell++)
        stamps[cell] = stamp;
}

/* ---- extents ---- */

static void drop_extent(dp_shadow *shadow, dp_extent *extent) {
    memset(shadow->owner + extent->begin, 0, extent->end - extent->begin);
    shadow->extents_used &= ~(1ull << (extent - shadow->extent));
}

/* True when every stamp of the extent stands for whole cells. */
static bool is_plain(const dp_extent *extent) {
    bool plain = extent->writers == 1;
    for (unsigned p = 0; p < DP_CHECK_PIPES; p++)
        plain = plain && (extent->readers[p] == 0 || (extent->readers[p] == 1 && extent->reader[p][0].bits == ~0u));
    return plain;
}

static void give_cell_groups(dp_shadow *shadow, const dp_extent *extent, uint32_t cell) {
    dp_split *split = split_cell(shadow, cell);
    if (!split)
        return;
    split->writers = extent->writers;
    memcpy(split->writer, extent->writer, extent->writers * sizeof extent->writer[0]);
    for (unsigned p = 0; p < DP_CHECK_PIPES; p++) {
        split->readers[p] = extent->readers[p];
        memcpy(split->reader[p], extent->reader[p], extent->readers[p] * sizeof extent->reader[p][0]);
    }
}

/* Gives the cells their own stamps again. */
static void dissolve_extent(dp_shadow *shadow, dp_extent *extent) {
    bool plain = is_plain(extent);
    fill_stamps(shadow->writer, extent->begin, extent->end, extent->writer[0].stamp);
    for (unsigned p = 0; p < DP_CHECK_PIPES; p++) {
        if (shadow->reader_pipes >> p & 1)
            fill_stamps(shadow->reader[p], extent->begin, extent->end, plain && extent->readers[p] ? extent->reader[p][0].stamp : 0);
    }
    for (uint32_t cell = extent->begin; !plain && cell < extent->end; cell++)
        give_cell_groups(shadow, extent, cell);
    drop_extent(shadow, extent);
}

static void dissolve_at(dp_shadow *shadow, uint32_t cell) {
    if (shadow->owner[cell])
        dissolve_extent(shadow, &shadow->extent[shadow->owner[cell] - 1]);
}

/* First cell of [cell, end) with an owner; end if there is none. */
static uint32_t next_owned(const dp_shadow *shadow, uint32_t cell, uint32_t end) {
    for (; cell < end && !shadow->owner[cell]; cell++) {
        while (end - cell >= CHUNK) {
            uint64_t eight;
            memcpy(&eight, shadow->owner + cell, sizeof eight);
            if (eight)
                break;
            cell += CHUNK;
        }
        if (cell == end || shadow->owner[cell])
            break;
    }
    return cell;
}

/* A new extent with one writer and no readers; NULL when there are enough or it is too small. */
static dp_extent *new_extent(dp_shadow *shadow, uint32_t cell, uint32_t end, dp_stamp writer) {
    if (end - cell < EXTENT_MIN_CELLS || shadow->extents_used == ~0ull)
        return NULL;
    unsigned index = (unsigned)__builtin_ctzll(~shadow->extents_used);
    dp_extent *extent = &shadow->extent[index];
    shadow->extents_used |= 1ull << index;
    *extent = (dp_extent){.begin = cell, .end = end, .writers = 1, .writer = {{~0u, writer}}};
    memset(shadow->owner + cell, (int)index + 1, end - cell);
    return extent;
}

static bool all_same(const dp_stamp *stamps, uint32_t cell, uint32_t end) {
    dp_stamp first = stamps[cell];
    while (end - cell >= CHUNK && same_stamps(stamps + cell, first))
        cell += CHUNK;
    while (cell < end && stamps[cell] == first)
        cell++;
    return cell == end;
}

/* Cells without owner to which the same happened, as an extent. NULL: they differ, or there is none to be had. */
static dp_extent *extent_of_alike(dp_shadow *shadow, uint32_t cell, uint32_t end) {
    if (end - cell < EXTENT_MIN_CELLS || is_split(shadow->writer[cell]) || !all_same(shadow->writer, cell, end))
        return NULL;
    for (unsigned p = 0; p < DP_CHECK_PIPES; p++) {
        if ((shadow->reader_pipes >> p & 1) && !all_same(shadow->reader[p], cell, end))
            return NULL;
    }
    dp_extent *extent = new_extent(shadow, cell, end, shadow->writer[cell]);
    for (unsigned p = 0; extent && p < DP_CHECK_PIPES; p++) {
        if ((shadow->reader_pipes >> p & 1) && shadow->reader[p][cell]) {
            extent->readers[p] = 1;
            extent->reader[p][0] = (dp_lane_group){~0u, shadow->reader[p][cell]};
        }
    }
    return extent;
}

static void check_extent(const dp_extent *extent, const dp_shadow_access *access, bool write, uint32_t bits) {
    /* readers first: who waits for the reader of the last tile has waited for its writer */
    for (unsigned p = 0; write && p < DP_CHECK_PIPES; p++) {
        if (p != dp_stamp_pipe(access->stamp))
            check_groups(access, extent->reader[p], extent->readers[p], DP_HAZARD_WAR, extent->begin, extent->end, bits);
    }
    check_groups(access, extent->writer, extent->writers, write ? DP_HAZARD_WAW : DP_HAZARD_RAW, extent->begin, extent->end, bits);
}

/* ---- parts of cells ---- */

static void read_part(dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t bits) {
    unsigned pipe = dp_stamp_pipe(access->stamp);
    dissolve_at(shadow, cell);
    check_writer(shadow, access, DP_HAZARD_RAW, cell, bits);
    dp_split *split = access->whole_cells ? NULL : split_cell(shadow, cell);
    if (split)
        take_bytes(split->reader[pipe], &split->readers[pipe], DP_CELL_BYTES, bits, access->stamp);
    else
        shadow->reader[pipe][cell] = access->stamp;
}

static void write_part(dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t bits) {
    dissolve_at(shadow, cell);
    check_split_readers(shadow, access, cell, bits);
    check_whole_readers(shadow, access, cell, cell + 1);
    check_writer(shadow, access, DP_HAZARD_WAW, cell, bits);
    if (shadow->writer[cell] == access->stamp)
        return;
    dp_split *split = split_cell(shadow, cell);
    if (split)
        take_bytes(split->writer, &split->writers, DP_CELL_BYTES, bits, access->stamp);
    else
        shadow->writer[cell] = access->stamp;
}

/* The bytes `bits` of every cell of the extent; false: it has no room for one more group. */
static bool lanes_of_extent(dp_extent *extent, const dp_shadow_access *access, uint32_t bits, bool write) {
    unsigned pipe = dp_stamp_pipe(access->stamp);
    check_extent(extent, access, write, bits);
    if (write)
        return take_bytes(extent->writer, &extent->writers, DP_EXTENT_GROUPS, bits, access->stamp);
    return take_bytes(extent->reader[pipe], &extent->readers[pipe], DP_EXTENT_GROUPS, bits, access->stamp);
}

static void access_lanes(dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t end, uint32_t bits,
                         bool write) {
    while (cell < end) {
        dp_extent *extent = shadow->owner[cell] ? &shadow->extent[shadow->owner[cell] - 1] : NULL;
        if (extent && (extent->begin != cell || extent->end > end)) {
            dissolve_extent(shadow, extent);
            extent = NULL;
        }
        uint32_t stop = extent ? extent->end : next_owned(shadow, cell, end);
        if (!extent)
            extent = extent_of_alike(shadow, cell, stop);
        if (!extent || !lanes_of_extent(extent, access, bits, write)) {
            for (uint32_t at = cell; at < stop && write; at++)
                write_part(shadow, access, at, bits);
            for (uint32_t at = cell; at < stop && !write; at++)
                read_part(shadow, access, at, bits);
        }
        cell = stop;
    }
}

/* ---- whole cells ---- */

/* Cells touched in part at both ends, whole cells between. */
typedef struct cut {
    uint32_t head_cell, head_bits; /* bits 0: none */
    uint32_t first, end;           /* whole cells */
    uint32_t tail_cell, tail_bits;
} cut;

static cut cut_range(uint32_t offset, uint32_t bytes) {
    cut c = {0};
    uint32_t end = offset + bytes, cell = offset / DP_CELL_BYTES, last = end / DP_CELL_BYTES;
    uint32_t head = offset % DP_CELL_BYTES, tail = end % DP_CELL_BYTES;
    if (head) {
        c.head_cell = cell;
        c.head_bits = byte_bits(head, cell == last ? tail : DP_CELL_BYTES);
        cell++;
    }
    c.first = cell;
    c.end = last > cell ? last : cell;
    if (tail && last >= cell) {
        c.tail_cell = last;
        c.tail_bits = byte_bits(0, tail);
    }
    return c;
}

static void read_cells(dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t end) {
    check_whole_writers(shadow, access, DP_HAZARD_RAW, cell, end);
    fill_stamps(shadow->reader[dp_stamp_pipe(access->stamp)], cell, end, access->stamp);
}

/* Cells without owner, about to be written as a whole. */
static void check_write_cells(dp_shadow *shadow, const dp_shadow_access *access, uint32_t first, uint32_t end) {
    /* readers first: who waits for the reader of the last tile has waited for its writer */
    check_whole_readers(shadow, access, first, end);
    for (uint32_t cell = first; shadow->split_live && cell < end; cell++)
        check_split_readers(shadow, access, cell, ~0u);
    check_whole_writers(shadow, access, DP_HAZARD_WAW, first, end);
    for (uint32_t cell = first; shadow->split_live && cell < end; cell++) {
        if (is_split(shadow->writer[cell]))
            join_cell(shadow, cell);
    }
}

static void read_whole(dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t end) {
    while (cell < end) {
        dp_extent *extent = shadow->owner[cell] ? &shadow->extent[shadow->owner[cell] - 1] : NULL;
        if (!extent) {
            uint32_t stop = next_owned(shadow, cell, end);
            read_cells(shadow, access, cell, stop);
            cell = stop;
        } else if (extent->begin == cell && extent->end <= end) {
            unsigned pipe = dp_stamp_pipe(access->stamp);
            check_extent(extent, access, false, ~0u);
            extent->readers[pipe] = 1;
            extent->reader[pipe][0] = (dp_lane_group){~0u, access->stamp};
            cell = extent->end;
        } else {
            dissolve_extent(shadow, extent);
        }
    }
}

static void write_whole(dp_shadow *shadow, const dp_shadow_access *access, uint32_t first, uint32_t end) {
    for (uint32_t cell = first; cell < end;) {
        dp_extent *extent = shadow->owner[cell] ? &shadow->extent[shadow->owner[cell] - 1] : NULL;
        if (!extent) {
            uint32_t stop = next_owned(shadow, cell, end);
            check_write_cells(shadow, access, cell, stop);
            cell = stop;
        } else if (extent->begin == cell && extent->end <= end) {
            check_extent(extent, access, true, ~0u);
            cell = extent->end;
            if (extent->begin == first && extent->end == end) { /* the same tile again */
                extent->writers = 1;
                extent->writer[0] = (dp_lane_group){~0u, access->stamp};
                memset(extent->readers, 0, sizeof extent->readers);
                return;
            }
            drop_extent(shadow, extent);
        } else {
            dissolve_extent(shadow, extent);
        }
    }
    /* who knows this write to be finished knows what it had to wait for */
    if (first < end && !new_extent(shadow, first, end, access->stamp))
        fill_stamps(shadow->writer, first, end, access->stamp);
}

void dp_shadow_read(dp_shadow *shadow, const dp_shadow_access *access, uint32_t offset, uint32_t bytes) {
    if (!bytes || !use_reader(shadow, dp_stamp_pipe(access->stamp)))
        return;
    cut c = cut_range(offset, bytes);
    if (c.head_bits)
        read_part(shadow, access, c.head_cell, c.head_bits);
    read_whole(shadow, access, c.first, c.end);
    if (c.tail_bits)
        read_part(shadow, access, c.tail_cell, c.tail_bits);
}

void dp_shadow_write(dp_shadow *shadow, const dp_shadow_access *access, uint32_t offset, uint32_t bytes) {
    if (!bytes)
        return;
    cut c = cut_range(offset, bytes);
    if (c.head_bits)
        write_part(shadow, access, c.head_cell, c.head_bits);
    write_whole(shadow, access, c.first, c.end);
    if (c.tail_bits)
        write_part(shadow, access, c.tail_cell, c.tail_bits);
}

void dp_shadow_read_lanes(dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t end, uint32_t bits) {
    if (!use_reader(shadow, dp_stamp_pipe(access->stamp)))
        return;
    if (bits == ~0u || access->whole_cells)
        read_whole(shadow, access, cell, end);
    else
        access_lanes(shadow, access, cell, end, bits, false);
}

void dp_shadow_write_lanes(dp_shadow *shadow, const dp_shadow_access *access, uint32_t cell, uint32_t end, uint32_t bits) {
    if (bits == ~0u)
        write_whole(shadow, access, cell, end);
    else
        access_lanes(shadow, access, cell, end, bits, true);
}

static uint32_t missing_of_cell(const dp_shadow *shadow, uint32_t cell, uint32_t bits, uint32_t before, uint32_t *out_first) {
    uint32_t missing = bits & ~shadow->valid[cell];
    if (missing && !before)
        *out_first = cell * DP_CELL_BYTES + (uint32_t)__builtin_ctz(missing);
    return (uint32_t)__builtin_popcount(missing);
}

/* The usual case, by the widest compare there is: each word is the one before it, and the first has all bits. */
static bool all_valid(const uint32_t *words, uint32_t count) {
    return words[0] == ~0u && memcmp(words, words + 1, (count - 1) * sizeof *words) == 0;
}

uint32_t dp_shadow_missing(const dp_shadow *shadow, uint32_t offset, uint32_t bytes, uint32_t *out_first) {
    if (!bytes)
        return 0;
    cut c = cut_range(offset, bytes);
    uint32_t count = 0;
    if (c.head_bits)
        count += missing_of_cell(shadow, c.head_cell, c.head_bits, count, out_first);
    if (c.first < c.end && !all_valid(shadow->valid + c.first, c.end - c.first)) {
        for (uint32_t cell = c.first; cell < c.end; cell++)
            count += missing_of_cell(shadow, cell, ~0u, count, out_first);
    }
    if (c.tail_bits)
        count += missing_of_cell(shadow, c.tail_cell, c.tail_bits, count, out_first);
    return count;
}

uint32_t dp_shadow_missing_lanes(const dp_shadow *shadow, uint32_t cell, uint32_t end, uint32_t bits, uint32_t *out_first) {
    uint32_t all = ~0u, count = 0;
    for (uint32_t at = cell; at < end; at++)
        all &= shadow->valid[at];
    for (uint32_t at = cell; (bits & ~all) && at < end; at++)
        count += missing_of_cell(shadow, at, bits, count, out_first);
    return count;
}

void dp_shadow_set_data_lanes(dp_shadow *shadow, uint32_t cell, uint32_t end, uint32_t bits) {
    for (; cell < end; cell++)
        shadow->valid[cell] |= bits;
}

void dp_shadow_set_data(dp_shadow *shadow, uint32_t offset, uint32_t bytes) {
    if (!bytes)
        return;
    cut c = cut_range(offset, bytes);
    if (c.head_bits)
        shadow->valid[c.head_cell] |= c.head_bits;
    memset(shadow->valid + c.first, 0xff, (c.end - c.first) * sizeof *shadow->valid);
    if (c.tail_bits)
        shadow->valid[c.tail_cell] |= c.tail_bits;
}

static void clear_cell(dp_shadow *shadow, uint32_t cell, uint32_t bits, uint32_t origin) {
    shadow->valid[cell] &= ~bits;
    shadow->origin[cell] = origin;
}

void dp_shadow_clear_data(dp_shadow *shadow, uint32_t offset, uint32_t bytes, uint32_t origin) {
    if (!bytes)
        return;
    cut c = cut_range(offset, bytes);
    if (c.head_bits)
        clear_cell(shadow, c.head_cell, c.head_bits, origin);
    for (uint32_t cell = c.first; cell < c.end; cell++)
        clear_cell(shadow, cell, ~0u, origin);
    if (c.tail_bits)
        clear_cell(shadow, c.tail_cell, c.tail_bits, origin);
}
