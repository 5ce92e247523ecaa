#include "device/check/finding.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "device/check/state.h"

static struct {
    pthread_mutex_t lock;
    dp_finding *list;
    unsigned count, capacity, limit;
    uint64_t dropped;
} findings = {.lock = PTHREAD_MUTEX_INITIALIZER, .limit = 200};

const char *dp_check_kind_name(dp_check_kind kind) {
    static const char *const names[DP_CHECK_KIND_COUNT] = {
#define X(id, name) name,
        DP_CHECK_KINDS(X)
#undef X
    };
    return kind < DP_CHECK_KIND_COUNT ? names[kind] : "unknown";
}

static bool same_loc(dp_loc a, dp_loc b) {
    if (a.line != b.line || !a.file != !b.file)
        return false;
    return a.file == b.file || !a.file || strcmp(a.file, b.file) == 0;
}

static bool same_finding(const dp_finding *a, const dp_finding *b) {
    return a->kind == b->kind && a->has_other == b->has_other && a->place.op == b->place.op &&
           same_loc(a->place.loc, b->place.loc) &&
           /* two host calls may share a line */
           (a->place.op >= 0 || strcmp(a->place.what, b->place.what) == 0) &&
           (!a->has_other || (a->other.op == b->other.op && same_loc(a->other.loc, b->other.loc))) &&
           /* without places the sentence tells them apart */
           (a->place.loc.line || strcmp(a->sentence, b->sentence) == 0);
}

static void count_block(dp_finding *known, uint32_t block) {
    if (block < 64)
        known->block_bits |= 1ull << block;
    else if (block != known->block)
        known->other_blocks = known->other_blocks > block - 63 ? known->other_blocks : block - 63;
}

void dp_finding_add(const dp_finding *finding) {
    bool is_new = false;
    pthread_mutex_lock(&findings.lock);
    for (unsigned i = 0; i < findings.count; i++) {
        dp_finding *known = &findings.list[i];
        if (same_finding(known, finding)) {
            known->count++;
            count_block(known, finding->block);
            goto done;
        }
    }
    if (findings.count >= findings.limit) {
        findings.dropped++;
        goto done;
    }
    if (findings.count == findings.capacity) {
        unsigned capacity = findings.capacity ? findings.capacity * 2 : 16;
        dp_finding *list = dp_realloc(DP_MEM_CHECK, findings.list, capacity * sizeof *list);
        if (!list) {
            findings.dropped++;
            goto done;
        }
        findings.list = list;
        findings.capacity = capacity;
    }
    dp_finding *added = &findings.list[findings.count++];
    *added = *finding;
    added->count = 1;
    added->block_bits = 0;
    added->other_blocks = 0;
    count_block(added, finding->block);
    is_new = true;
done:
    pthread_mutex_unlock(&findings.lock);
    if (is_new)
        dp_check_report_touch();
}

unsigned dp_finding_count(void) {
    pthread_mutex_lock(&findings.lock);
    unsigned count = findings.count;
    pthread_mutex_unlock(&findings.lock);
    return count;
}

bool dp_finding_at(unsigned index, dp_finding *out_finding) {
    pthread_mutex_lock(&findings.lock);
    bool found = index < findings.count;
    if (found)
        *out_finding = findings.list[index];
    pthread_mutex_unlock(&findings.lock);
    return found;
}

uint64_t dp_finding_dropped(void) {
    pthread_mutex_lock(&findings.lock);
    uint64_t dropped = findings.dropped;
    pthread_mutex_unlock(&findings.lock);
    return dropped;
}

void dp_finding_set_limit(unsigned limit) {
    pthread_mutex_lock(&findings.lock);
    findings.limit = limit;
    pthread_mutex_unlock(&findings.lock);
}

void dp_finding_context(dp_finding *finding, const dp_core *core) {
    if (core->launch) {
        const dp_kernel_info *kernel = &core->launch->kernel;
        snprintf(finding->kernel, sizeof finding->kernel, "%s", kernel->name ? kernel->name : "?");
        finding->launch = core->launch->id;
        finding->launch_loc = kernel->launch;
    }
    finding->block = core->block_idx;
    finding->core = core->core_index;
    finding->on_cube = core->kind == DP_CORE_AIC;
}
