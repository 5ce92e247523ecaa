/*
 * fork.h - what a forked child may count on: no lock held by a thread it does not have, idle streams, fresh workers on
 * first use, device memory as it was (copy on write; memory mapped by the virtual memory calls stays shared).
 */
#ifndef DOPPEL_RUNTIME_FORK_H
#define DOPPEL_RUNTIME_FORK_H

/* Registers the handlers; called once. */
void dp_fork_install(void);

#endif
