#include <inttypes.h>
#include <stdio.h>

#include "device/check/state.h"
#include "device/gm.h"
#include "device/queue.h"

const char *dp_describe_count(uint64_t value, char text[32]) {
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, value), out = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

void dp_describe_local(const dp_core *core, unsigned space, const void *addr, size_t bytes, char *text, size_t text_bytes) {
    char size[32], whole[32], at[32];
    const dp_core_memory *memory = &core->memory[space];
    size_t offset = (size_t)((const uint8_t *)addr - memory->base);
    dp_buffer_info info;
    if (dp_buffer_find_at(core, space, addr, &info)) {
        char buffer[160];
        dp_buffer_describe(&info, buffer, sizeof buffer);
        snprintf(text, text_bytes, "%s bytes at offset %s of %s bytes, %s", dp_describe_count(bytes, size),
                 dp_describe_count((uint64_t)((const uint8_t *)addr - info.addr), at), dp_describe_count(info.size_bytes, whole),
                 buffer);
        return;
    }
    const char *what = offset >= core->local_top[space] ? ", a variable in core memory or dynamic UB" : "";
    snprintf(text, text_bytes, "%s bytes at %s offset %s%s", dp_describe_count(bytes, size), dp_space_name(space),
             dp_describe_count(offset, at), what);
}

void dp_describe_gm(const void *addr, size_t bytes, char *text, size_t text_bytes) {
    char size[32], whole[32], at[32];
    dp_gm_range range;
    dp_gm_story story;
    int used = 0;
    if (dp_gm_find(addr, &range))
        used = snprintf(text, text_bytes, "%s bytes at offset %s of GM allocation %" PRIu64 " (%s bytes)",
                        dp_describe_count(bytes, size),
                        dp_describe_count((uint64_t)((const uint8_t *)addr - range.base), at), range.id,
                        dp_describe_count(range.size_bytes, whole));
    else if (dp_gm_find_before(addr, &range))
        used = snprintf(text, text_bytes, "%s bytes that start %s bytes after the end of GM allocation %" PRIu64 " (%s bytes)",
                        dp_describe_count(bytes, size),
                        dp_describe_count((uint64_t)((const uint8_t *)addr - range.base) - range.size_bytes, at), range.id,
                        dp_describe_count(range.size_bytes, whole));
    else
        used = snprintf(text, text_bytes, "%s bytes at 0x%" PRIxPTR ", not in device memory", dp_describe_count(bytes, size),
                        (uintptr_t)addr);
    dp_loc loc;
    char where[128];
    const void *inside = dp_gm_find(addr, &range) || dp_gm_find_before(addr, &range) ? range.base : addr;
    if (used > 0 && (size_t)used < text_bytes && dp_gm_story_of(inside, &story) && story.alloc_caller &&
        dp_source_line(story.alloc_caller, &loc, where, sizeof where))
        snprintf(text + used, text_bytes - (size_t)used, ", allocated at %s:%u", loc.file, loc.line);
}

static void clause(dp_check_place *place, const char *verb) {
    if (place->op < 0)
        snprintf(place->what, sizeof place->what, "an earlier instruction %s", verb);
    else if (place->pipe >= 0)
        snprintf(place->what, sizeof place->what, "%s on %s %s", dp_insn_name((unsigned)place->op),
                 dp_pipe_name((unsigned)place->pipe), verb);
    else
        snprintf(place->what, sizeof place->what, "%s %s", dp_insn_name((unsigned)place->op), verb);
}

dp_check_place dp_place_of_site(uint32_t site, int pipe, const char *verb) {
    dp_site at = dp_site_at(site);
    dp_check_place place = {.loc = at.loc, .pipe = pipe, .op = site ? at.op : -1};
    clause(&place, verb);
    return place;
}

dp_check_place dp_place_of_insn(const dp_insn *insn, int pipe, const char *verb) {
    dp_check_place place = {.loc = insn->loc, .pipe = pipe, .op = insn->op};
    clause(&place, verb);
    return place;
}

dp_check_place dp_place_of_loc(dp_loc loc, const char *what) {
    dp_check_place place = {.loc = loc, .pipe = -1, .op = -1};
    snprintf(place.what, sizeof place.what, "%s", what);
    return place;
}

dp_check_place dp_place_of_caller(const void *return_address, const char *what) {
    dp_check_place place = {.pipe = -1, .op = -1};
    char where[100];
    if (!return_address)
        snprintf(place.what, sizeof place.what, "%s", what);
    else if (dp_source_line(return_address, &place.loc, where, sizeof where))
        snprintf(place.what, sizeof place.what, "%s", what);
    else
        snprintf(place.what, sizeof place.what, "%s, called from %s", what, where);
    return place;
}
