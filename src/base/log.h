/*
 * log.h - diagnostics on standard error, off unless asked for.
 *
 * DOPPEL_LOG is a comma list of topics ("runtime,memory", "all") and may contain a level (error, warn, info, debug).
 * Without it only errors are printed. ASCEND_GLOBAL_LOG_LEVEL (0 debug .. 3 error, 4 none) sets the level as the vendor's does.
 */
#ifndef DOPPEL_BASE_LOG_H
#define DOPPEL_BASE_LOG_H

#include "doppel/abi.h"

typedef enum dp_log_level { DP_LOG_ERROR, DP_LOG_WARN, DP_LOG_INFO, DP_LOG_DEBUG } dp_log_level;

/* True when a line of this topic and level would be printed. Cheap: call it before formatting in hot places. */
bool dp_log_on(const char *topic, dp_log_level level);

/* Prints "doppel: <topic>: <text>" with a newline as one write. Thread-safe. */
void dp_log(const char *topic, dp_log_level level, const char *format, ...) DP_PRINTF(3, 4);

#endif
