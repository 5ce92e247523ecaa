/*
 * scratch.h - one block of memory per thread that is kept between uses, for workers that need room while they work on a
 * piece.
 */
#ifndef DOPPEL_BASE_SCRATCH_H
#define DOPPEL_BASE_SCRATCH_H

#include <stddef.h>

/*
 * At least size_bytes, 64-byte aligned, with undefined contents; the same block as last time when that was large
 * enough. It belongs to the calling thread until its next call, so two users may not be nested. Freed when the thread
 * ends. NULL when memory is exhausted (no sentence is recorded).
 */
void *dp_scratch(size_t size_bytes);

#endif
