/*
 * fiber.h - stacks of their own for code that must be able to stop in the middle, or never to return.
 *
 * A fiber runs only inside dp_fiber_resume() of one thread at a time and goes back to it by yielding, finishing or
 * being abandoned. The switch is a dozen instructions on x86-64 and arm64, ucontext elsewhere; address and thread
 * sanitizer are told about every switch.
 */
#ifndef DOPPEL_BASE_FIBER_H
#define DOPPEL_BASE_FIBER_H

#include "doppel/abi.h"

typedef struct dp_fiber dp_fiber;

/*
 * A stack of stack_bytes (rounded up to pages; a sanitizer build takes four times as much) below which guard pages
 * turn an overflow into SIGSEGV. NULL when memory is exhausted.
 */
dp_fiber *dp_fiber_create(size_t stack_bytes);
/* NULL allowed. A fiber in the middle of its entry is dropped: nothing on its stack is unwound. */
void dp_fiber_destroy(dp_fiber *fiber);

/* Arms a new, finished or abandoned fiber; entry(argument) begins at the next resume. */
void dp_fiber_start(dp_fiber *fiber, void (*entry)(void *argument), void *argument);
/* Runs the fiber until it yields (true) or is done (false). */
bool dp_fiber_resume(dp_fiber *fiber);
/* From inside: back to the resumer, until resumed again. */
void dp_fiber_yield(dp_fiber *fiber);
/* From inside: ends the fiber; nothing on its stack is unwound. */
void dp_fiber_exit(dp_fiber *fiber) __attribute__((noreturn));
/* From outside: forgets a fiber that has yielded, as if it had called dp_fiber_exit. */
void dp_fiber_abandon(dp_fiber *fiber);
/* True for addresses in the guard pages: a signal handler can tell an overflow. */
bool dp_fiber_is_guard(const dp_fiber *fiber, const void *address);

#endif
