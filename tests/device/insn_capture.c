#include "insn_capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device/core.h"

static dp_core *core;
static dp_insn last;
static unsigned count;

static bool before(dp_core *on, dp_insn *insn) {
    (void)on;
    last = *insn;
    count++;
    insn->result = 0x3f800000; /* what register reads return */
    return false;
}

void capture_open(void) {
    static const dp_observer observer = {.name = "capture", .before = before};
    dp_observer_install(&observer);
    core = dp_core_create(dp_chip_find("Ascend910B3"));
    assert_non_null(core);
    dp_core_block_begin(core);
    dp_core_set_current(core);
    count = 0;
}

void capture_close(void) {
    dp_core_set_current(NULL);
    dp_core_destroy(core);
    dp_observer_install(NULL);
}

uint8_t *capture_ub(void) { return core->memory[DP_SPACE_UB].base; }

dp_insn capture_take(void) {
    assert_int_equal(count, 1);
    count = 0;
    return last;
}
