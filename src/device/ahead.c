#include "device/ahead.h"

enum { LINE = 64, STEP_LINES = 8, STEP_STREAMS = 2, WINDOW_BYTES = 32 << 10 };

static inline __attribute__((always_inline)) void fetch(const uint8_t *line, bool writes) {
#if defined(__x86_64__)
    if (writes) /* what the compiler's builtin makes without -mprfchw leaves the line shared */
        __asm__ volatile("prefetchw %0" : : "m"(*line));
    else
        __builtin_prefetch(line, 0, 3);
#else
    if (writes)
        __builtin_prefetch(line, 1, 3);
    else
        __builtin_prefetch(line, 0, 3);
#endif
}

/* The usual step has no branch: a loop costs as much again as what it asks for. */
static inline __attribute__((always_inline)) void fetch_step(const uint8_t *line, bool writes) {
    fetch(line, writes), fetch(line + LINE, writes), fetch(line + 2 * LINE, writes), fetch(line + 3 * LINE, writes);
    line += 4 * LINE;
    fetch(line, writes), fetch(line + LINE, writes), fetch(line + 2 * LINE, writes), fetch(line + 3 * LINE, writes);
}

void dp_ahead_note(dp_ahead *ahead, bool writes, const uint8_t *addr, size_t bytes, const uint8_t *end) {
    unsigned at = 0;
    while (at < DP_AHEAD_STREAMS && (ahead->stream[at].expected != addr || ahead->stream[at].writes != writes))
        at++;
    bool continues = at < DP_AHEAD_STREAMS;
    if (!continues)
        at = ahead->oldest++ % DP_AHEAD_STREAMS;
    dp_ahead_stream *s = &ahead->stream[at];
    s->expected = s->next = addr + bytes;
    s->writes = writes;
    s->lines = 0;
    if (continues) {
        size_t room = end > s->next ? (size_t)(end - s->next) : 0, window = bytes < WINDOW_BYTES ? bytes : WINDOW_BYTES;
        s->lines = (uint32_t)(((window < room ? window : room) + LINE - 1) / LINE);
    }
    ahead->waiting = (ahead->waiting & ~(1u << at)) | (uint32_t)(s->lines != 0) << at;
}

/* Two streams a step, in turn: usually one that is read and one that is written. */
void dp_ahead_fetch(dp_ahead *ahead) {
    uint32_t candidates = ahead->waiting;
    for (unsigned served = 0; served < STEP_STREAMS && candidates; served++) {
        uint32_t later = candidates >> ahead->turn << ahead->turn;
        unsigned at = (unsigned)__builtin_ctz(later ? later : candidates);
        dp_ahead_stream *s = &ahead->stream[at];
        candidates &= ~(1u << at);
        ahead->turn = (uint8_t)(at + 1);
        if (DP_LIKELY(s->lines >= STEP_LINES)) {
            if (s->writes)
                fetch_step(s->next, true);
            else
                fetch_step(s->next, false);
            s->next += STEP_LINES * LINE;
            s->lines -= STEP_LINES;
        } else {
            for (; s->lines; s->lines--, s->next += LINE)
                fetch(s->next, s->writes);
        }
        if (!s->lines)
            ahead->waiting &= ~(1u << at);
    }
}
