#include "device/trace/trace.h"

#include "device/core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* One picture: the first blocks of the longest kernel, a row per pipe, with a time axis. Plain SVG 1.1, nothing external. */

enum { LEFT = 110, TOP = 92, ROW = 26, BAR = 20, WIDTH = 1180, PLOT = WIDTH - LEFT - 24, CORES = 2, GAP = 26, MAX_RECTS = 4000 };

static const char *colour_of(unsigned pipe) {
    static const char *const colours[DP_PIPE_COUNT] = {
        [DP_PIPE_S] = "#8d99ae", [DP_PIPE_V] = "#3a86c8", [DP_PIPE_M] = "#7b2cbf", [DP_PIPE_MTE1] = "#b5838d",
        [DP_PIPE_MTE2] = "#2a9d5c", [DP_PIPE_MTE3] = "#e07a2f", [DP_PIPE_FIX] = "#b5179e"};
    return pipe < DP_PIPE_COUNT ? colours[pipe] : "#000000";
}

static void text_escaped(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
    }
}

static const dp_trace_launch *longest(const dp_trace_record *record) {
    const dp_trace_launch *best = NULL;
    for (const dp_trace_launch *l = record->launches; l; l = l->next)
        if (l->core_count && (!best || l->cycles > best->cycles))
            best = l;
    return best;
}

static bool pipe_used(const dp_trace_launch *launch, unsigned pipe) {
    for (uint32_t c = 0; c < launch->core_count && c < CORES; c++)
        if (launch->cores[c]->busy[pipe])
            return true;
    return false;
}

/* The window: as much of the kernel as shows about 120 pipe instructions of the first core, the whole if it is shorter. */
static uint64_t window_cycles(const dp_trace_launch *launch) {
    const dp_trace_core *core = launch->cores[0];
    uint32_t seen = 0;
    for (uint32_t i = 0; i < core->count; i++) {
        const dp_trace_event *e = &core->events[i];
        if (e->pipe != DP_PIPE_S && e->pipe < DP_PIPE_COUNT && e->end > e->start && ++seen == 120)
            return e->end;
    }
    return core->end ? core->end : 1;
}

/* A round step that gives 5 to 12 ticks. */
static double tick_step(double span_us) {
    double step = 1e-3;
    while (span_us / step > 12) {
        if (span_us / (step * 2) <= 12)
            return step * 2;
        if (span_us / (step * 5) <= 12)
            return step * 5;
        step *= 10;
    }
    return step;
}

static void axis(FILE *out, double span_us, unsigned bottom) {
    double step = tick_step(span_us);
    for (double t = 0; t <= span_us * 1.0001; t += step) {
        double x = LEFT + t / span_us * PLOT;
        fprintf(out, "<line x1='%.1f' y1='%d' x2='%.1f' y2='%u' stroke='#e3e6ea'/>\n", x, TOP - 10, x, bottom);
        fprintf(out, "<text x='%.1f' y='%d' text-anchor='middle' fill='#667'>%g us</text>\n", x, TOP - 16, t);
    }
}

static void bars(FILE *out, const dp_trace_core *core, unsigned pipe, unsigned y, uint64_t span) {
    unsigned drawn = 0;
    for (uint32_t i = 0; i < core->count && drawn < MAX_RECTS; i++) {
        const dp_trace_event *e = &core->events[i];
        if (e->pipe != pipe || e->end == e->start || e->start >= span || e->op == DP_OP_WAIT_FLAG || e->op == DP_OP_SET_FLAG)
            continue;
        uint64_t end = e->end < span ? e->end : span;
        double x = LEFT + (double)e->start / (double)span * PLOT, width = (double)(end - e->start) / (double)span * PLOT;
        fprintf(out, "<rect x='%.2f' y='%u' width='%.2f' height='%d' fill='%s' stroke='#fff' stroke-width='0.5'><title>", x, y,
                width < 0.4 ? 0.4 : width, BAR, colour_of(pipe));
        text_escaped(out, dp_insn_name(e->op));
        fprintf(out, " line %u, %llu cycles", e->line, (unsigned long long)(e->end - e->start));
        if (e->bytes)
            fprintf(out, ", %u bytes", e->bytes);
        fputs("</title></rect>\n", out);
        if (width > 7.0 * (double)strlen(dp_insn_name(e->op))) {
            fprintf(out, "<text x='%.1f' y='%u' text-anchor='middle' fill='#fff'>", x + width / 2, y + 14);
            text_escaped(out, dp_insn_name(e->op));
            fputs("</text>\n", out);
        }
        drawn++;
    }
}

static void draw(FILE *out, const dp_trace_launch *launch) {
    unsigned pipes = 0, cores = launch->core_count < CORES ? launch->core_count : CORES;
    for (unsigned p = 0; p < DP_PIPE_COUNT; p++)
        pipes += pipe_used(launch, p);
    unsigned bottom = TOP + cores * (pipes * ROW + GAP), height = bottom + 24;
    uint64_t span = window_cycles(launch);
    fprintf(out, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%u' viewBox='0 0 %d %u' "
                 "font-family='DejaVu Sans, Noto Sans, Helvetica, sans-serif' font-size='11'>\n", WIDTH, height, WIDTH, height);
    fprintf(out, "<rect width='100%%' height='100%%' fill='#fff'/>\n<text x='20' y='28' font-size='17' fill='#223'>");
    text_escaped(out, launch->name);
    fprintf(out, "</text>\n<text x='20' y='48' fill='#667'>%u blocks, estimated %.2f us in all; here: the first %.2f us of the "
                 "first %u block%s on %s. An estimate from public figures, not cycle-accurate.</text>\n", launch->blocks,
            dp_trace_us(launch, launch->cycles), dp_trace_us(launch, span), cores, cores == 1 ? "" : "s", launch->chip->name);
    axis(out, dp_trace_us(launch, span), bottom - 8);
    unsigned y = TOP;
    for (unsigned c = 0; c < cores; c++) {
        fprintf(out, "<text x='20' y='%u' font-weight='bold' fill='#223'>block %u</text>\n", y + 11, launch->cores[c]->block_idx);
        y += 18;
        for (unsigned p = 0; p < DP_PIPE_COUNT; p++) {
            if (!pipe_used(launch, p))
                continue;
            fprintf(out, "<text x='%d' y='%u' text-anchor='end' fill='#445'>%s</text>\n", LEFT - 10, y + 14, dp_pipe_name(p));
            fprintf(out, "<rect x='%d' y='%u' width='%d' height='%d' fill='#f4f5f7'/>\n", LEFT, y, PLOT, BAR);
            bars(out, launch->cores[c], p, y, span);
            y += ROW;
        }
        y += GAP - 18;
    }
    fputs("</svg>\n", out);
}

bool dp_trace_write_svg(const dp_trace_record *record, const char *path) {
    const dp_trace_launch *launch = longest(record);
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "doppel: trace: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    if (launch)
        draw(out, launch);
    else
        fputs("<svg xmlns='http://www.w3.org/2000/svg' width='400' height='40'><text x='10' y='24'>no kernel was launched</text></svg>\n", out);
    bool good = !ferror(out);
    return fclose(out) == 0 && good;
}
