/* insn_capture.h - a core whose instructions are caught by an observer instead of being executed. */
#ifndef DOPPEL_TESTS_DEVICE_INSN_CAPTURE_H
#define DOPPEL_TESTS_DEVICE_INSN_CAPTURE_H

#include "doppel/insn.h"

DP_BEGIN_DECLS
void capture_open(void);
void capture_close(void);
uint8_t *capture_ub(void);
/* The only instruction since the last call; fails when there was none or more than one. */
dp_insn capture_take(void);
DP_END_DECLS

#endif
