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
static inline __attribute__((always_inline)) void fetch_lines(const uint8_t *line, uint32_t lines, bool writes) {
    if (lines == STEP_LINES) {
        fetch(line, writes), fetch(line + LINE, writes), fetch(line + 2 * LINE, writes), fetch(line + 3 * LINE, writes);
        line += 4 * LINE;
        fetch(line, writes), fetch(line + LINE, writes), fetch(line + 2 * LINE, writes), fetch(line + 3 * LINE, writes);
        return;
    }
    for (uint32_t k = 0; k < lines; k++)
        fetch(line + k * LINE, writes);
}

static uint32_t lines_left(const dp_ahead_stream *s) { return (uint32_t)((s->stop - s->next + LINE - 1) / LINE); }

void dp_ahead_note(dp_ahead *ahead, bool writes, const uint8_t *addr, size_t bytes, const uint8_t *end) {
    dp_ahead_stream *s = NULL;
    for (unsigned i = 0; i < DP_AHEAD_STREAMS && !s; i++) {
        if (ahead->stream[i].expected == addr && ahead->stream[i].writes == writes)
            s = &ahead->stream[i];
    }
    bool continues = s != NULL;
    if (!s)
        s = &ahead->stream[ahead->oldest++ % DP_AHEAD_STREAMS];
    ahead->lines -= lines_left(s);
    s->expected = s->next = s->stop = addr + bytes;
    s->writes = writes;
    if (continues) {
        size_t room = end > s->next ? (size_t)(end - s->next) : 0, window = bytes < WINDOW_BYTES ? bytes : WINDOW_BYTES;
        s->stop = s->next + (window < room ? window : room);
        ahead->lines += lines_left(s);
    }
}

/* Two streams a step, in turn: usually one that is read and one that is written. */
void dp_ahead_fetch(dp_ahead *ahead) {
    unsigned served = 0;
    for (unsigned i = 0; i < DP_AHEAD_STREAMS && served < STEP_STREAMS; i++) {
        dp_ahead_stream *s = &ahead->stream[ahead->turn++ % DP_AHEAD_STREAMS];
        uint32_t left = lines_left(s), take = left < STEP_LINES ? left : STEP_LINES;
        if (!take)
            continue;
        if (s->writes)
            fetch_lines(s->next, take, true);
        else
            fetch_lines(s->next, take, false);
        s->next = take == left ? s->stop : s->next + take * LINE;
        ahead->lines -= take;
        served++;
    }
}
