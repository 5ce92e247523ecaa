#include "base/thread_texts.h"

#include <pthread.h>
#include <stdlib.h>

static _Thread_local dp_thread_texts *current;
static dp_thread_texts shared;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void thread_ends(void *texts) {
    current = NULL;
    free(texts);
}

static void make_key(void) {
    pthread_key_create(&key, thread_ends);
}

dp_thread_texts *dp_thread_texts_current(void) {
    if (current)
        return current;
    pthread_once(&once, make_key);
    dp_thread_texts *fresh = calloc(1, sizeof *fresh); /* not dp_alloc: whose failures are reported in here */
    if (!fresh)
        return &shared;
    if (pthread_setspecific(key, fresh) != 0) {
        free(fresh);
        return &shared;
    }
    return current = fresh;
}
