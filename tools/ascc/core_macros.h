#ifndef ASCC_CORE_MACROS_H
#define ASCC_CORE_MACROS_H

#include "text.h"

/* Whether one of the user's files that `preprocessed` came from has a condition on a core macro (__DAV_C220_VEC__ and alike); adds the
 * first one's "file:line" to *out_place. */
bool find_core_condition(const char *preprocessed, size_t size, text *out_place);

#endif
