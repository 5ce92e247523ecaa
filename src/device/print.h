/*
 * print.h - hand-over of what kernels printed: block to launch, launch to standard output.
 */
#ifndef DOPPEL_DEVICE_PRINT_H
#define DOPPEL_DEVICE_PRINT_H

#include "device/core.h"

/* Gives the block's text to core->launch. Called by dp_core_block_end. Thread-safe towards other cores of the launch. */
void dp_print_block_end(dp_core *core);
/* Writes and frees all texts of a launch. To be called once by floor 4 when its last block is done. */
void dp_print_launch_end(dp_launch_info *launch);

#endif
