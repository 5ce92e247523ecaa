/*
 * thread_texts.h - the sentences a thread keeps. Not thread-local arrays: those would count against the few hundred bytes
 * of thread-local storage that dlopen() can still give to a library.
 */
#ifndef DOPPEL_BASE_THREAD_TEXTS_H
#define DOPPEL_BASE_THREAD_TEXTS_H

typedef struct dp_thread_texts {
    char fail[1024];    /* see dp_fail_message */
    char recent[1280];  /* newest error of an API call, until it is asked for */
    char shown[1280];   /* the one that was asked for last */
} dp_thread_texts;

/* Those of this thread, made (empty) at the first call and freed with the thread. Never NULL: when memory is exhausted
 * all threads that have none yet share one. */
dp_thread_texts *dp_thread_texts_current(void);

#endif
