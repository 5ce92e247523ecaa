/*
 * kernels.c - Philox in lanes. Compiled once per rung.
 */
#include "ops/random/kernels.h"

#include "ops/rung.h"

enum { LANES = 16, ROUNDS = 10 };

static const uint32_t multiplier[2] = {0xD2511F53, 0xCD9E8D57}, weyl[2] = {0x9E3779B9, 0xBB67AE85};

/* LANES blocks from `block` on, word w of lane l at words[w][l]. */
static void lanes(uint32_t words[4][LANES], uint64_t seed, uint64_t offset, uint64_t block) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (unsigned l = 0; l < LANES; l++) {
        words[0][l] = (uint32_t)(block + l);
        words[1][l] = (uint32_t)((block + l) >> 32);
        words[2][l] = (uint32_t)offset;
        words[3][l] = (uint32_t)(offset >> 32);
    }
    for (int r = 0; r < ROUNDS; r++) {
        for (unsigned l = 0; l < LANES; l++) {
            uint64_t a = (uint64_t)multiplier[0] * words[0][l], b = (uint64_t)multiplier[1] * words[2][l];
            words[0][l] = (uint32_t)(b >> 32) ^ words[1][l] ^ key0;
            words[1][l] = (uint32_t)b;
            words[2][l] = (uint32_t)(a >> 32) ^ words[3][l] ^ key1;
            words[3][l] = (uint32_t)a;
        }
        key0 += weyl[0];
        key1 += weyl[1];
    }
}

void DP_RUNG(dp_philox)(uint32_t *words, uint64_t seed, uint64_t offset, uint64_t block, size_t n) {
    uint32_t some[4][LANES];
    for (size_t at = 0; at < n; at += LANES) {
        lanes(some, seed, offset, block + at);
        size_t count = n - at < LANES ? n - at : LANES;
        for (size_t l = 0; l < count; l++)
            for (int w = 0; w < 4; w++)
                words[(at + l) * 4 + (size_t)w] = some[w][l];
    }
}
