#include "base/scratch.h"

#include "base/memory.h"

#include <pthread.h>

enum { STEP = 1 << 16 };

static _Thread_local void *block;
static _Thread_local size_t room;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void thread_ends(void *mine) {
    block = NULL;
    room = 0;
    dp_free(mine);
}

static void make_key(void) {
    pthread_key_create(&key, thread_ends);
}

void *dp_scratch(size_t size_bytes) {
    if (size_bytes <= room && block)
        return block;
    pthread_once(&once, make_key);
    dp_free(block);
    room = (size_bytes + STEP - 1) / STEP * STEP;
    block = dp_alloc(DP_MEM_SCRATCH, room ? room : STEP);
    pthread_setspecific(key, block);
    if (!block)
        room = 0;
    return block;
}
