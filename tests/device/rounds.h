/* rounds.h - how often a test repeats itself with new random values. Under sanitizers, ten times slower, an eighth of it. */
#ifndef DOPPEL_TESTS_DEVICE_ROUNDS_H
#define DOPPEL_TESTS_DEVICE_ROUNDS_H

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ROUNDS_DIVISOR 8
#endif
#endif
#if !defined(ROUNDS_DIVISOR) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define ROUNDS_DIVISOR 8
#endif
#ifndef ROUNDS_DIVISOR
#define ROUNDS_DIVISOR 1
#endif
#define ROUNDS(n) (((n) + ROUNDS_DIVISOR - 1) / ROUNDS_DIVISOR)

#endif
