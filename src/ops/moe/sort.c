#include "ops/moe/sort.h"

#include <string.h>

/* Negative keys come first. */
static unsigned byte_of(int32_t key, int shift) {
    return ((uint32_t)key ^ 0x80000000u) >> shift & 255;
}

/* By bytes, the lowest first; a byte that is the same in all keys costs only its counting. */
void dp_moe_sort(int32_t *keys, int32_t *values, int64_t count, int32_t *room) {
    int32_t *from[2] = {keys, values}, *to[2] = {room, room + count};
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t first[257] = {0};
        for (int64_t i = 0; i < count; i++)
            first[byte_of(from[0][i], shift) + 1]++;
        int used = 0;
        for (int b = 1; b <= 256; b++) {
            used += first[b] != 0;
            first[b] += first[b - 1];
        }
        if (used < 2)
            continue;
        for (int64_t i = 0; i < count; i++) {
            const int64_t place = first[byte_of(from[0][i], shift)]++;
            to[0][place] = from[0][i];
            to[1][place] = from[1][i];
        }
        for (int k = 0; k < 2; k++) {
            int32_t *turned = from[k];
            from[k] = to[k];
            to[k] = turned;
        }
    }
    if (from[0] != keys) {
        memcpy(keys, from[0], (size_t)count * sizeof *keys);
        memcpy(values, from[1], (size_t)count * sizeof *values);
    }
}
