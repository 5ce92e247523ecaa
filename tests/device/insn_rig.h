/*
 * insn_rig.h - what the testers of vector instructions share: a core whose faults come back as sentences, images of UB, and
 * plain one-lane references written without the library's own conversions.
 */
#ifndef DOPPEL_TESTS_DEVICE_INSN_RIG_H
#define DOPPEL_TESTS_DEVICE_INSN_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/exec.h"
#include "rounds.h"

typedef struct rig {
    dp_core *core;
    uint8_t *ub;      /* the core's UB */
    uint32_t ub_bytes;
    uint8_t *image;   /* content before the instruction */
    uint8_t *expect;  /* what the reference makes of it */
    uint8_t *touched; /* per byte what the reference touched: DP_READ, DP_WRITE */
    uint8_t *visited; /* per byte what dp_insn_visit named */
    unsigned lane_visits; /* instructions of which dp_insn_visit_lanes named the same */
    jmp_buf escape;
    char sentence[1024];
    uint64_t seed;
} rig;

rig *rig_open(void);
void rig_close(rig *r);
/* Runs every test body once per rung the processor has. */
void rig_each_rung(rig *r, void (*body)(rig *r));

uint64_t rig_random(rig *r);
uint32_t rig_below(rig *r, uint32_t n);
/* Visits and runs an instruction that must be legal. */
void rig_run(rig *r, dp_insn *insn);
/* Runs an instruction that must be refused with a sentence that contains `part`. */
void rig_refuse(rig *r, const dp_insn *insn, const char *part);
/* Compares visited with touched and UB with expect, byte by byte. `what` names the case. */
void rig_compare(rig *r, const dp_insn *insn, const char *what);
/* Restores UB and expect from image, forgets touched bytes and the faults. */
void rig_reset(rig *r);

/* ---- values ---- */

/* One number of any type: integers keep their 64 bits, floats are in f. */
typedef struct number {
    bool is_float;
    long double f;
    int64_t i;
} number;

bool is_float_type(unsigned dtype);
/* Element `index` of an array of dtype at base. */
number number_load(unsigned dtype, const uint8_t *base, size_t index);
/* Integers wrap; floats are rounded in `mode` (a RoundMode). */
void number_store(unsigned dtype, uint8_t *base, size_t index, number value, unsigned mode);
number number_float(long double f);
number number_int(int64_t i);
/* Integral value of f in a RoundMode; NaN stays. */
long double round_to_integral(long double f, unsigned mode);
/* What Cast makes of a value: saturating, NaN to integer 0. */
void number_cast(unsigned dtype, uint8_t *base, size_t index, number value, unsigned mode);
/* A number that is hard for this type, or a random one. */
void number_draw(rig *r, unsigned dtype, uint8_t *base, size_t index);

/* ---- lanes ---- */

/* Lane i of repeat r of an operand: its byte address in `image` (which mirrors UB), and the nibble for int4. */
typedef struct lane_at {
    size_t offset;
    unsigned nibble;
} lane_at;
lane_at lane_address(const rig *r, const dp_operand *operand, bool flat, uint32_t per_repeat, uint32_t repeat, uint32_t lane);

/* The lanes of an instruction by the rules of the documents, in the core state given. */
typedef struct lane_plan {
    uint32_t per_repeat, repeats, last;
    uint64_t mask[2];
    bool flat;
} lane_plan;
lane_plan plan_of(const rig *r, const dp_insn *insn, unsigned widest_bytes);
bool plan_selects(const lane_plan *plan, uint32_t repeat, uint32_t lane);

#endif
