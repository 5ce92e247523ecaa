#include "device/check/sites.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"

enum { SITE_BITS = 20, CHUNK = 1024, CHUNKS = 64, SLOTS = 512 };

static struct {
    pthread_mutex_t lock;
    dp_site *chunk[CHUNKS];
    uint32_t count;
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER, .count = 1};

static bool same(const dp_site *site, dp_loc loc, unsigned op) {
    return site->op == op && site->loc.line == loc.line &&
           (site->loc.file == loc.file || (site->loc.file && loc.file && strcmp(site->loc.file, loc.file) == 0));
}

static uint32_t find_or_add(dp_loc loc, unsigned op) {
    for (uint32_t i = 1; i < sites.count; i++) {
        if (same(&sites.chunk[i / CHUNK][i % CHUNK], loc, op))
            return i;
    }
    if (sites.count == CHUNK * CHUNKS)
        return 0;
    dp_site **chunk = &sites.chunk[sites.count / CHUNK];
    if (!*chunk && !(*chunk = dp_alloc(DP_MEM_CHECK, CHUNK * sizeof **chunk)))
        return 0;
    (*chunk)[sites.count % CHUNK] = (dp_site){loc, (uint16_t)op};
    return sites.count++;
}

uint32_t dp_site_of(dp_site_cache *cache, dp_loc loc, unsigned op) {
    uint32_t hash = (uint32_t)((uintptr_t)loc.file >> 3) * 31u + loc.line * 2654435761u + op * 40503u;
    uint32_t at = (hash ^ hash >> 15) % SLOTS;
    if (cache->slot[at].op_and_site && cache->slot[at].file == loc.file && cache->slot[at].line == loc.line &&
        cache->slot[at].op_and_site >> SITE_BITS == op)
        return cache->slot[at].op_and_site & ((1u << SITE_BITS) - 1);
    pthread_mutex_lock(&sites.lock);
    uint32_t site = find_or_add(loc, op);
    pthread_mutex_unlock(&sites.lock);
    cache->slot[at].file = loc.file;
    cache->slot[at].line = loc.line;
    cache->slot[at].op_and_site = op << SITE_BITS | site;
    return site;
}

dp_site dp_site_at(uint32_t site) {
    dp_site found = {{NULL, 0}, 0};
    pthread_mutex_lock(&sites.lock);
    if (site && site < sites.count)
        found = sites.chunk[site / CHUNK][site % CHUNK];
    pthread_mutex_unlock(&sites.lock);
    return found;
}
