/*
 * sanitizers.h - what tests leave out when they are built with a sanitizer.
 */
#ifndef TESTS_SANITIZERS_H
#define TESTS_SANITIZERS_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/*
 * May a process fork while other threads of it allocate? Not with the sanitizers of gcc 12: their allocators' locks are
 * not taken at a fork, so the child waits for ever in its first malloc. glibc takes its own.
 */
enum { FORKS_WHILE_BUSY = !SANITIZED };

#endif
