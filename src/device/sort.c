/*
 * sort.c - Sort32 and MrgSort over 8-byte entries: score in the low bytes (half: 2, then 2 reserved; float: 4), uint32
 * index in the high four. All orders are descending.
 *
 * SORT32    [0] entries, [1] scores, [2] indices; repeat groups of 32
 * MRG_SORT  [0] entries, [1], [2], [3] lists 0..2, address of list 3 in u.vec.aux[0] (low) and aux[1] (high);
 *           scalar_bits: four 16-bit lengths; u.vec.flag0: valid bits, flag1: stop when a list is used up; repeat.
 *           result and GetMrgSortResult: entries taken of each list, four 16-bit fields
 *
 * Undocumented, chosen here: NaN sorts before everything, -0 equals +0, equal scores of different lists keep list
 * order.
 */
#include "device/runs.h"

#include <inttypes.h>
#include <string.h>

enum { GROUP = 32, LISTS = 4, MAX_LENGTH = 4095, ENTRY_BYTES = 8 };

/* Maps a score to an integer that grows with it. */
static uint32_t key_of_float(uint32_t bits) {
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return UINT32_MAX;
    if (bits == 0x80000000u)
        bits = 0;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static uint32_t key_of_half(uint16_t bits) {
    if ((bits & 0x7fffu) > 0x7c00u)
        return UINT32_MAX;
    if (bits == 0x8000u)
        bits = 0;
    return bits & 0x8000u ? (uint16_t)~bits : bits | 0x8000u;
}

static uint32_t key_of_entry(uint64_t entry, bool half) {
    return half ? key_of_half((uint16_t)entry) : key_of_float((uint32_t)entry);
}

static bool check_type(dp_core *core, const dp_insn *insn) {
    unsigned dtype = insn->operand[0].dtype;
    if (dtype != DP_F16 && dtype != DP_F32)
        dp_fault(core, insn, insn->loc, "scores of %s cannot be sorted: only half and float", dp_dtype_name(dtype));
    return dtype == DP_F16;
}

static void sort_group(uint8_t *dst, const uint8_t *scores, const uint8_t *indices, bool half) {
    uint64_t order[GROUP]; /* key, then earlier positions higher, then the position itself */
    uint64_t entries[GROUP];
    for (uint32_t i = 0; i < GROUP; i++) {
        uint32_t score = 0, index;
        memcpy(&score, scores + i * (half ? 2 : 4), half ? 2 : 4);
        memcpy(&index, indices + i * sizeof index, sizeof index);
        entries[i] = (uint64_t)index << 32 | score;
        uint64_t key = (uint64_t)key_of_entry(score, half) << 32 | (GROUP - 1 - i);
        uint32_t at = i;
        for (; at > 0 && order[at - 1] < key; at--)
            order[at] = order[at - 1];
        order[at] = key;
    }
    for (uint32_t i = 0; i < GROUP; i++)
        memcpy(dst + i * ENTRY_BYTES, &entries[GROUP - 1 - (uint32_t)order[i]], ENTRY_BYTES);
}

static void sort32(dp_core *core, const dp_insn *insn) {
    bool half = check_type(core, insn);
    size_t score_bytes = half ? 2 : 4;
    for (unsigned k = 0; k < 3; k++)
        dp_operand_in_space(core, insn, k, DP_SPACE_UB);
    if (insn->repeat > 255)
        dp_fault(core, insn, insn->loc, "repeatTimes is %" PRId32 ": 0 to 255 groups of 32 are possible",
                 (int32_t)insn->repeat);
    dp_operand_check(core, insn, 0, (size_t)insn->repeat * GROUP * ENTRY_BYTES, DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 1, (size_t)insn->repeat * GROUP * score_bytes, DP_BLOCK_BYTES);
    dp_operand_check(core, insn, 2, (size_t)insn->repeat * GROUP * sizeof(uint32_t), DP_BLOCK_BYTES);
    for (size_t r = 0; r < insn->repeat; r++)
        sort_group((uint8_t *)insn->operand[0].addr + r * GROUP * ENTRY_BYTES,
                   (const uint8_t *)insn->operand[1].addr + r * GROUP * score_bytes,
                   (const uint8_t *)insn->operand[2].addr + r * GROUP * sizeof(uint32_t), half);
}

/* --- MrgSort --- */

typedef struct merge_list {
    const uint8_t *entries;
    uint32_t length, taken;
} merge_list;

static uint32_t list_length(const dp_insn *insn, unsigned i) {
    return insn->u.vec.flag0 >> i & 1 ? (uint32_t)(insn->scalar_bits >> (16 * i) & 0xffff) : 0;
}

static const uint8_t *list_addr(const dp_insn *insn, unsigned i) {
    if (i < 3)
        return insn->operand[1 + i].addr;
    return (const uint8_t *)(uintptr_t)((uint64_t)insn->u.vec.aux[1] << 32 | insn->u.vec.aux[0]);
}

static uint32_t all_lengths(const dp_insn *insn) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < LISTS; i++)
        sum += list_length(insn, i);
    return sum;
}

static void check_merge(dp_core *core, const dp_insn *insn) {
    unsigned valid = insn->u.vec.flag0;
    uint32_t first = list_length(insn, 0), sum = all_lengths(insn);
    check_type(core, insn);
    if (valid != 3 && valid != 7 && valid != 15)
        dp_fault(core, insn, insn->loc, "validBit is %u: 3, 7 and 15 merge the first two, three or four lists", valid);
    if (insn->repeat > 255)
        dp_fault(core, insn, insn->loc, "repeatTimes is %" PRId32 ": 0 to 255 are possible", (int32_t)insn->repeat);
    for (unsigned i = 0; i < LISTS; i++) {
        uint32_t length = list_length(insn, i);
        if (length > MAX_LENGTH)
            dp_fault(core, insn, insn->loc, "list %u has %" PRIu32 " entries: at most %d are possible", i + 1, length,
                     MAX_LENGTH);
        if (insn->repeat > 1 && (valid != 15 || length != first || insn->u.vec.flag1))
            dp_fault(core, insn, insn->loc,
                     "repeatTimes is %" PRIu32 ": more than 1 needs four lists of equal length, validBit 15 and no "
                     "suspension",
                     insn->repeat);
    }
    for (unsigned i = 0; insn->repeat > 1 && i < LISTS; i++)
        if (list_addr(insn, i) != list_addr(insn, 0) + (size_t)i * first * ENTRY_BYTES)
            dp_fault(core, insn, insn->loc,
                     "with repeatTimes over 1 the four lists must follow each other; list %u does not", i + 1);
    if (!insn->repeat)
        return;
    size_t before = (size_t)(insn->repeat - 1) * sum;
    dp_operand_in_space(core, insn, 0, DP_SPACE_UB);
    dp_operand_check(core, insn, 0, (before + sum) * ENTRY_BYTES, DP_BLOCK_BYTES);
    for (unsigned i = 0; i < LISTS; i++) {
        if (!list_length(insn, i))
            continue;
        dp_insn probe = *insn;
        if (i == 3)
            probe.operand[3] = (dp_operand){
                .addr = (void *)list_addr(insn, 3), .dtype = insn->operand[0].dtype, .space = insn->operand[1].space};
        unsigned k = i < 3 ? 1 + i : 3;
        dp_operand_in_space(core, &probe, k, DP_SPACE_UB);
        dp_operand_check(core, &probe, k, (before + list_length(insn, i)) * ENTRY_BYTES, DP_BLOCK_BYTES);
    }
}

/* Merges into dst; stops when a list with entries is used up, if asked to. */
static void merge(uint8_t *dst, merge_list lists[LISTS], unsigned valid, bool half, bool suspend) {
    uint64_t head[LISTS];
    uint32_t key[LISTS];
    for (unsigned i = 0; i < LISTS; i++) {
        lists[i].taken = 0;
        if (lists[i].length) {
            memcpy(&head[i], lists[i].entries, ENTRY_BYTES);
            key[i] = key_of_entry(head[i], half);
        } else if (suspend && valid >> i & 1) {
            return;
        }
    }
    for (;;) {
        unsigned best = LISTS;
        for (unsigned i = 0; i < LISTS; i++)
            if (lists[i].taken < lists[i].length && (best == LISTS || key[i] > key[best]))
                best = i;
        if (best == LISTS)
            return;
        memcpy(dst, &head[best], ENTRY_BYTES);
        dst += ENTRY_BYTES;
        merge_list *list = &lists[best];
        if (++list->taken == list->length) {
            if (suspend)
                return;
            continue;
        }
        memcpy(&head[best], list->entries + (size_t)list->taken * ENTRY_BYTES, ENTRY_BYTES);
        key[best] = key_of_entry(head[best], half);
    }
}

static void mrg_sort(dp_core *core, dp_insn *insn) {
    check_merge(core, insn);
    size_t step = (size_t)all_lengths(insn) * ENTRY_BYTES;
    for (size_t r = 0; r < insn->repeat; r++) {
        merge_list lists[LISTS];
        for (unsigned i = 0; i < LISTS; i++)
            lists[i] =
                (merge_list){list_length(insn, i) ? list_addr(insn, i) + r * step : NULL, list_length(insn, i), 0};
        merge((uint8_t *)insn->operand[0].addr + r * step, lists, insn->u.vec.flag0, insn->operand[0].dtype == DP_F16,
              insn->u.vec.flag1);
        core->mrg_result = 0;
        for (unsigned i = 0; i < LISTS; i++)
            core->mrg_result |= (uint64_t)lists[i].taken << (16 * i);
    }
    insn->result = core->mrg_result;
}

static void __attribute__((noreturn)) refuse(dp_core *core, const dp_insn *insn) {
    dp_fault(core, insn, insn->loc,
             "region proposals belong to the first chip generation, %s does not have them: use Sort32 and MrgSort",
             core->chip->name);
}

void dp_exec_sort(dp_core *core, dp_insn *insn) {
    if (insn->op == DP_OP_SORT32)
        sort32(core, insn);
    else if (insn->op == DP_OP_MRG_SORT)
        mrg_sort(core, insn);
    else
        refuse(core, insn);
}

void dp_exec_proposal(dp_core *core, dp_insn *insn) {
    refuse(core, insn);
}

/* A merge that stops early writes less than its lists hold; how much is known only afterwards, so all is shown. */
void dp_visit_sort(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core;
    size_t repeat = insn->repeat;
    if (!repeat)
        return;
    if (insn->op == DP_OP_SORT32) {
        visit(context, 0, DP_WRITE, insn->operand[0].addr, repeat * GROUP * ENTRY_BYTES);
        visit(context, 1, DP_READ, insn->operand[1].addr, repeat * GROUP * (dp_dtype_bits(insn->operand[0].dtype) / 8));
        visit(context, 2, DP_READ, insn->operand[2].addr, repeat * GROUP * sizeof(uint32_t));
    } else if (insn->op == DP_OP_MRG_SORT) {
        size_t sum = all_lengths(insn);
        if (!sum)
            return;
        visit(context, 0, DP_WRITE, insn->operand[0].addr, repeat * sum * ENTRY_BYTES);
        for (unsigned i = 0; i < LISTS; i++)
            if (list_length(insn, i))
                visit(context, i < 3 ? 1 + i : 3, DP_READ, list_addr(insn, i),
                      ((repeat - 1) * sum + list_length(insn, i)) * ENTRY_BYTES);
    }
}

void dp_visit_proposal(const dp_core *core, const dp_insn *insn, dp_access_fn visit, void *context) {
    (void)core, (void)insn, (void)visit, (void)context;
}
