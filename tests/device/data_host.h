/*
 * data_host.h - a core with memories full of noise, device memory beside it, and faults that come back as sentences.
 *
 * The reference of a test writes into the expected images; data_run() issues the instruction on the real ones and
 * compares every byte of UB, L1 and device memory, untouched ones included. It runs the instruction a second time on
 * the complement of all destination bytes outside the sources to learn exactly which bytes are written, and compares
 * that with the footprint the instruction announces.
 */
#ifndef DOPPEL_TESTS_DEVICE_DATA_HOST_H
#define DOPPEL_TESTS_DEVICE_DATA_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/half.h"
#include "rounds.h"
#include "device/exec.h"

enum { DATA_GM_BYTES = 96 * 1024, DATA_SPACES = 3 };

/* Spaces the images cover. GM: one allocation of DATA_GM_BYTES with unregistered memory around it. */
static const unsigned data_space[DATA_SPACES] = {DP_SPACE_UB, DP_SPACE_L1, DP_SPACE_GM};

typedef struct data_host {
    dp_core *core;
    uint8_t *gm;
    uint8_t *expect[DP_SPACE_COUNT];
    uint8_t *before[DP_SPACE_COUNT];
    uint8_t *written[DP_SPACE_COUNT];
    uint8_t *announced[DP_SPACE_COUNT];
    jmp_buf escape;
    char sentence[1024];
    uint64_t seed;
} data_host;

static inline uint64_t data_random(data_host *h) {
    h->seed ^= h->seed << 13;
    h->seed ^= h->seed >> 7;
    h->seed ^= h->seed << 17;
    return h->seed;
}
static inline uint32_t data_below(data_host *h, uint32_t n) {
    return (uint32_t)(data_random(h) >> 20) % n;
}

static inline size_t data_bytes(const data_host *h, unsigned space) {
    return space == DP_SPACE_GM ? DATA_GM_BYTES : h->core->memory[space].size_bytes;
}
static inline uint8_t *data_base(const data_host *h, unsigned space) {
    return space == DP_SPACE_GM ? h->gm : h->core->memory[space].base;
}

static inline bool data_park(dp_core *core, const dp_wait *wait) {
    (void)core, (void)wait;
    return false;
}
static inline void __attribute__((noreturn)) data_abandon(dp_core *core) {
    longjmp(((data_host *)core->host_state)->escape, 1);
}
static inline void data_fault(dp_core *core, dp_loc loc, const char *sentence) {
    data_host *h = core->host_state;
    (void)loc;
    snprintf(h->sentence, sizeof h->sentence, "%s", sentence);
}

static inline data_host *data_host_new(uint64_t seed) {
    static const dp_core_host scheduler = {data_park, data_abandon, data_fault};
    data_host *h = calloc(1, sizeof *h);
    h->core = dp_core_create(dp_chip_find("Ascend910B3"));
    assert_non_null(h->core);
    h->core->host = &scheduler;
    h->core->host_state = h;
    h->core->block_num = h->core->sub_block_num = 1;
    h->gm = aligned_alloc(4096, DATA_GM_BYTES);
    assert_int_equal(dp_gm_add(h->gm, DATA_GM_BYTES, 0, NULL), DP_OK);
    for (unsigned i = 0; i < DATA_SPACES; i++) {
        unsigned s = data_space[i];
        h->expect[s] = malloc(data_bytes(h, s));
        h->before[s] = malloc(data_bytes(h, s));
        h->written[s] = malloc(data_bytes(h, s));
        h->announced[s] = malloc(data_bytes(h, s));
    }
    h->seed = seed * 2654435769u + 88172645463325252ull;
    dp_core_set_current(h->core);
    dp_core_block_begin(h->core);
    return h;
}

static inline void data_host_free(data_host *h) {
    dp_core_block_end(h->core, false);
    dp_core_set_current(NULL);
    dp_gm_remove(h->gm);
    free(h->gm);
    for (unsigned s = 0; s < DP_SPACE_COUNT; s++) {
        free(h->expect[s]);
        free(h->before[s]);
        free(h->written[s]);
        free(h->announced[s]);
    }
    dp_core_destroy(h->core);
    free(h);
}

/* New noise everywhere; expected images start equal to it. */
static inline void data_noise(data_host *h) {
    for (unsigned i = 0; i < DATA_SPACES; i++) {
        unsigned s = data_space[i];
        uint8_t *base = data_base(h, s);
        for (size_t at = 0; at + 8 <= data_bytes(h, s); at += 8) {
            uint64_t word = data_random(h);
            memcpy(base + at, &word, 8);
        }
        memcpy(h->expect[s], base, data_bytes(h, s));
        memcpy(h->before[s], base, data_bytes(h, s));
    }
}

static inline dp_operand data_operand(const data_host *h, unsigned space, size_t offset, unsigned dtype) {
    return (dp_operand){.addr = data_base(h, space) + offset,
                        .dtype = (uint8_t)dtype,
                        .space = (uint8_t)space,
                        .block_stride = 1,
                        .repeat_stride = 8};
}

/* NULL, or the sentence of the fault. */
static inline const char *data_issue(data_host *h, dp_insn *insn) {
    insn->loc = DP_HERE;
    h->sentence[0] = '\0';
    if (setjmp(h->escape))
        return h->sentence;
    dp_issue(insn);
    return NULL;
}

/* The instruction must be refused with a sentence that contains `part`. */
static inline void data_expect_fault(data_host *h, dp_insn *insn, const char *part) {
    int keep = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    const char *sentence = data_issue(h, insn);
    dup2(keep, 2);
    close(keep);
    close(null);
    if (!sentence || !strstr(sentence, part))
        fail_msg("expected a fault with \"%s\", got \"%s\"", part, sentence ? sentence : "no fault");
}

static inline void data_announce(void *context, unsigned operand, unsigned mode, const void *addr, size_t size_bytes) {
    data_host *h = context;
    (void)operand;
    for (unsigned i = 0; i < DATA_SPACES; i++) {
        unsigned s = data_space[i];
        size_t at = (size_t)((const uint8_t *)addr - data_base(h, s));
        if (at >= data_bytes(h, s))
            continue;
        assert_true(size_bytes <= data_bytes(h, s) - at);
        for (size_t b = 0; b < size_bytes; b++)
            h->announced[s][at + b] |= (uint8_t)mode;
        return;
    }
    fail_msg("the instruction announces bytes at %p, which is no memory of the test", addr);
}

static inline void data_compare(data_host *h, const char *what) {
    for (unsigned i = 0; i < DATA_SPACES; i++) {
        unsigned s = data_space[i];
        const uint8_t *got = data_base(h, s);
        if (!memcmp(got, h->expect[s], data_bytes(h, s)))
            continue;
        for (size_t at = 0; at < data_bytes(h, s); at++)
            if (got[at] != h->expect[s][at])
                fail_msg("%s: byte %zu of %s is 0x%02x, expected 0x%02x (before: 0x%02x)", what, at, dp_space_name(s),
                         got[at], h->expect[s][at], h->before[s][at]);
    }
}

/* Runs, compares all memory with the expectation, and checks the announced footprint. */
static inline void data_run(data_host *h, dp_insn *insn, const char *what) {
    dp_insn again = *insn;
    for (unsigned i = 0; i < DATA_SPACES; i++)
        memset(h->announced[data_space[i]], 0, data_bytes(h, data_space[i]));
    dp_insn_visit(h->core, insn, data_announce, h);
    const char *sentence = data_issue(h, insn);
    if (sentence)
        fail_msg("%s: unexpected fault: %s", what, sentence);
    data_compare(h, what);
    for (unsigned i = 0; i < DATA_SPACES;
         i++) { /* what differs now, or after a run over complemented bytes, was written */
        unsigned s = data_space[i];
        uint8_t *base = data_base(h, s);
        for (size_t at = 0; at < data_bytes(h, s); at++) {
            h->written[s][at] = base[at] != h->before[s][at];
            base[at] = h->announced[s][at] & DP_READ ? h->before[s][at] : (uint8_t)~h->before[s][at];
        }
    }
    data_issue(h, &again);
    for (unsigned i = 0; i < DATA_SPACES; i++) {
        unsigned s = data_space[i];
        const uint8_t *base = data_base(h, s);
        for (size_t at = 0; at < data_bytes(h, s); at++) {
            uint8_t start = h->announced[s][at] & DP_READ ? h->before[s][at] : (uint8_t)~h->before[s][at];
            bool written = h->written[s][at] || base[at] != start, announced = h->announced[s][at] & DP_WRITE;
            if (written != announced && !(announced && h->announced[s][at] & DP_READ))
                fail_msg("%s: byte %zu of %s is %s, but the instruction announces %s", what, at, dp_space_name(s),
                         written ? "written" : "not written", announced ? "that it is" : "nothing");
            if (written && base[at] != h->expect[s][at])
                fail_msg("%s: byte %zu of %s depends on bytes the instruction does not announce to read", what, at,
                         dp_space_name(s));
        }
    }
}

#endif
