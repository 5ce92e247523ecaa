#include "device/check/blocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    SPAN_ROOM = 256,
    SPANS_MAX = 1 << 20,      /* of one core */
    ORDERED_CORES_MAX = 1024, /* launches with more cores that order themselves are not compared */
    CONFLICTS_MAX = 256       /* of one launch: the first ones tell the story */
};

/* What a core knew at each of its epochs: newest finished epoch of every other core. */
typedef struct history {
    uint32_t *known; /* epochs x cores */
    uint32_t epochs, room;
} history;

struct dp_blocks {
    pthread_mutex_t lock;
    uint32_t cores;
    uint32_t *raised;   /* per core: newest epoch made known; NULL until somebody raises */
    history *histories; /* per core */
    bool gave_up;       /* order could not be kept: no comparison */
    dp_span *list;
    size_t count, room;
    uint64_t lost;
};

static int by_place(const void *left, const void *right) {
    const dp_span *a = left, *b = right;
    if (a->site != b->site)
        return a->site < b->site ? -1 : 1;
    if (a->mode != b->mode)
        return a->mode < b->mode ? -1 : 1;
    if (a->epoch != b->epoch)
        return a->epoch < b->epoch ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static int by_address(const void *left, const void *right) {
    const dp_span *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

void dp_spans_compact(dp_spans *spans) {
    if (spans->count < 2)
        return;
    qsort(spans->list, spans->count, sizeof *spans->list, by_place);
    size_t last = 0;
    for (size_t i = 1; i < spans->count; i++) {
        dp_span *into = &spans->list[last];
        const dp_span *next = &spans->list[i];
        if (into->site == next->site && into->mode == next->mode && into->epoch == next->epoch &&
            next->begin <= into->end) {
            if (next->end > into->end)
                into->end = next->end;
        } else {
            spans->list[++last] = *next;
        }
    }
    spans->count = last + 1;
    memset(spans->open, 0, sizeof spans->open);
}

static bool make_room(dp_spans *spans) {
    if (spans->count < spans->room)
        return true;
    if (spans->room >= SPANS_MAX) {
        dp_spans_compact(spans);
        return spans->count < spans->room - spans->room / 8; /* else compacting again and again would cost too much */
    }
    size_t room = spans->room ? spans->room * 2 : SPAN_ROOM;
    dp_span *list = dp_realloc(DP_MEM_CHECK, spans->list, room * sizeof *list);
    if (!list)
        return false;
    spans->list = list;
    spans->room = room;
    return true;
}

void dp_spans_add(dp_spans *spans, uintptr_t begin, size_t bytes, uint32_t epoch, uint32_t site, uint32_t mode) {
    uint32_t *open = &spans->open[(site ^ mode) % 8];
    if (*open) {
        dp_span *span = &spans->list[*open - 1];
        if (span->site == site && span->mode == mode && span->epoch == epoch && begin <= span->end &&
            begin >= span->begin) {
            if (begin + bytes > span->end)
                span->end = begin + bytes;
            return;
        }
    }
    if (!make_room(spans)) {
        spans->lost++;
        return;
    }
    spans->list[spans->count++] = (dp_span){begin, begin + bytes, 0, epoch, site, mode};
    *open = (uint32_t)spans->count;
}

dp_blocks *dp_blocks_create(uint32_t cores) {
    dp_blocks *blocks = dp_alloc(DP_MEM_CHECK, sizeof *blocks);
    if (!blocks)
        return NULL;
    pthread_mutex_init(&blocks->lock, NULL);
    blocks->cores = cores;
    return blocks;
}

void dp_blocks_destroy(dp_blocks *blocks) {
    if (!blocks)
        return;
    pthread_mutex_destroy(&blocks->lock);
    for (uint32_t i = 0; blocks->histories && i < blocks->cores; i++)
        dp_free(blocks->histories[i].known);
    dp_free(blocks->histories);
    dp_free(blocks->raised);
    dp_free(blocks->list);
    dp_free(blocks);
}

static bool keep_order(dp_blocks *blocks) {
    if (blocks->gave_up || blocks->raised)
        return !blocks->gave_up;
    if (blocks->cores <= ORDERED_CORES_MAX) {
        blocks->raised = dp_alloc(DP_MEM_CHECK, blocks->cores * sizeof *blocks->raised);
        blocks->histories = dp_alloc(DP_MEM_CHECK, blocks->cores * sizeof *blocks->histories);
    }
    blocks->gave_up = !blocks->raised || !blocks->histories;
    return !blocks->gave_up;
}

/* Appends what the core knows from epoch + 1 on: what it knew, joined with `more` (NULL: nothing new). */
static void learn(dp_blocks *blocks, uint32_t core, uint32_t epoch, const uint32_t *more) {
    history *h = &blocks->histories[core];
    while (h->epochs <= epoch + 1) {
        if (h->epochs == h->room) {
            uint32_t room = h->room ? h->room * 2 : 8;
            uint32_t *known = dp_realloc(DP_MEM_CHECK, h->known, (size_t)room * blocks->cores * sizeof *known);
            if (!known) {
                blocks->gave_up = true;
                return;
            }
            h->known = known;
            h->room = room;
        }
        uint32_t *row = h->known + (size_t)h->epochs * blocks->cores;
        if (h->epochs)
            memcpy(row, row - blocks->cores, blocks->cores * sizeof *row);
        else
            memset(row, 0, blocks->cores * sizeof *row);
        h->epochs++;
    }
    uint32_t *row = h->known + (size_t)(epoch + 1) * blocks->cores;
    for (uint32_t i = 0; more && i < blocks->cores; i++)
        row[i] = row[i] > more[i] ? row[i] : more[i];
}

uint32_t dp_blocks_raise(dp_blocks *blocks, uint32_t core, uint32_t epoch) {
    pthread_mutex_lock(&blocks->lock);
    if (core < blocks->cores && keep_order(blocks)) {
        blocks->raised[core] = epoch;
        learn(blocks, core, epoch, NULL);
    }
    pthread_mutex_unlock(&blocks->lock);
    return epoch + 1;
}

uint32_t dp_blocks_wait(dp_blocks *blocks, uint32_t core, uint32_t epoch) {
    pthread_mutex_lock(&blocks->lock);
    if (core < blocks->cores && keep_order(blocks))
        learn(blocks, core, epoch, blocks->raised);
    pthread_mutex_unlock(&blocks->lock);
    return epoch + 1;
}

void dp_blocks_take(dp_blocks *blocks, uint32_t core, dp_spans *spans) {
    dp_spans_compact(spans);
    pthread_mutex_lock(&blocks->lock);
    blocks->lost += spans->lost;
    if (blocks->count + spans->count > blocks->room) {
        size_t room = blocks->room ? blocks->room : SPAN_ROOM;
        while (room < blocks->count + spans->count)
            room *= 2;
        dp_span *list = dp_realloc(DP_MEM_CHECK, blocks->list, room * sizeof *list);
        if (list) {
            blocks->list = list;
            blocks->room = room;
        }
    }
    if (blocks->count + spans->count <= blocks->room) {
        for (size_t i = 0; i < spans->count; i++) {
            blocks->list[blocks->count] = spans->list[i];
            blocks->list[blocks->count++].core = core;
        }
    } else {
        blocks->lost += spans->count;
    }
    pthread_mutex_unlock(&blocks->lock);
    spans->count = 0;
    spans->lost = 0;
    memset(spans->open, 0, sizeof spans->open);
}

/* Is everything core a did in its epoch known to core b in its epoch? */
static bool ordered(const dp_blocks *blocks, const dp_span *a, const dp_span *b) {
    if (!blocks->histories)
        return false;
    const history *h = &blocks->histories[b->core];
    if (!h->epochs)
        return false;
    uint32_t epoch = b->epoch < h->epochs ? b->epoch : h->epochs - 1;
    return h->known[(size_t)epoch * blocks->cores + a->core] >= a->epoch;
}

static bool in_conflict(const dp_blocks *blocks, const dp_span *a, const dp_span *b) {
    if (a->core == b->core)
        return false;
    if (a->mode & DP_SPAN_CACHED)
        return (b->mode & DP_SPAN_READ) && ordered(blocks, a, b);
    if (b->mode & DP_SPAN_CACHED)
        return (a->mode & DP_SPAN_READ) && ordered(blocks, b, a);
    if (!((a->mode | b->mode) & DP_SPAN_WRITE))
        return false;
    if (a->mode & b->mode & DP_SPAN_ATOMIC)
        return false;
    return !ordered(blocks, a, b) && !ordered(blocks, b, a);
}

/* Spans that reach past the current address. */
typedef struct active {
    const dp_span **list;
    size_t count;
} active;

static unsigned compare(const dp_blocks *blocks, active *set, const dp_span *span, dp_conflict_fn conflict, void *context) {
    size_t kept = 0;
    unsigned found = 0;
    for (size_t i = 0; i < set->count; i++) {
        const dp_span *other = set->list[i];
        if (other->end <= span->begin)
            continue;
        set->list[kept++] = other;
        if (found < CONFLICTS_MAX && in_conflict(blocks, other, span)) {
            conflict(context, other, span, span->begin, other->end < span->end ? other->end : span->end);
            found++;
        }
    }
    set->count = kept;
    return found;
}

void dp_blocks_sweep(dp_blocks *blocks, dp_conflict_fn conflict, void *context) {
    if (blocks->gave_up || blocks->count < 2)
        return;
    qsort(blocks->list, blocks->count, sizeof *blocks->list, by_address);
    active reads = {dp_alloc(DP_MEM_CHECK, blocks->count * sizeof *reads.list), 0};
    active writes = {dp_alloc(DP_MEM_CHECK, blocks->count * sizeof *writes.list), 0};
    unsigned found = 0;
    for (size_t i = 0; reads.list && writes.list && i < blocks->count && found < CONFLICTS_MAX; i++) {
        const dp_span *span = &blocks->list[i];
        bool writing = (span->mode & (DP_SPAN_WRITE | DP_SPAN_CACHED)) != 0;
        found += compare(blocks, &writes, span, conflict, context);
        if (writing)
            found += compare(blocks, &reads, span, conflict, context);
        if (writing)
            writes.list[writes.count++] = span;
        else
            reads.list[reads.count++] = span;
    }
    dp_free(reads.list);
    dp_free(writes.list);
}

const dp_span *dp_blocks_spans(const dp_blocks *blocks, size_t *out_count) {
    *out_count = blocks->count;
    return blocks->list;
}

uint64_t dp_blocks_lost(const dp_blocks *blocks) { return blocks->lost; }
