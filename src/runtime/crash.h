/*
 * crash.h - a sentence for kernels that crash: wild pointers, stack overflow, division by zero.
 *
 * The process ends as it would without Doppel (or goes on as the program's own signal handler says): only the kernel,
 * the block and the address are told before.
 */
#ifndef DOPPEL_RUNTIME_CRASH_H
#define DOPPEL_RUNTIME_CRASH_H

#include <signal.h>

/* Once for a thread that is going to run blocks: signal handlers of the process, and a signal stack if it has none. */
void dp_crash_thread_begins(void);
/* Gives that stack back. */
void dp_crash_thread_ends(void);
/* Takes the signals of a crash out of a set: while they are blocked no handler would hear of them. */
void dp_crash_unblock(sigset_t *set);

#endif
