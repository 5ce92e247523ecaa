#include "device/trace/trace.h"

#include "device/core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The Trace Event format, as ui.perfetto.dev and chrome://tracing read it: ts and dur in microseconds, numeric ids. */

enum { PID_HOST = 1, PID_STREAMS = 2, PID_CORES = 100, MAX_CORES_SHOWN = 64 };

typedef struct writer {
    FILE *out;
    bool any;
} writer;

static void escaped(FILE *out, const char *text) {
    for (; text && *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
}

static void open_event(writer *w, const char *phase, const char *name) {
    fprintf(w->out, "%s{\"ph\":\"%s\",\"name\":\"", w->any ? ",\n" : "\n", phase);
    escaped(w->out, name);
    fputc('"', w->out);
    w->any = true;
}

static void name_of(writer *w, const char *what, unsigned pid, unsigned tid, const char *name) {
    open_event(w, "M", what);
    fprintf(w->out, ",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"", pid, tid);
    escaped(w->out, name);
    fputs("\"}}", w->out);
}

static void span(writer *w, const char *name, unsigned pid, unsigned tid, double ts, double duration) {
    open_event(w, "X", name);
    fprintf(w->out, ",\"pid\":%u,\"tid\":%u,\"ts\":%.4f,\"dur\":%.4f", pid, tid, ts, duration);
}

static void place(writer *w, const char *file, uint32_t line) {
    if (!file || !line)
        return;
    fputs(",\"at\":\"", w->out);
    escaped(w->out, file);
    fprintf(w->out, ":%u\"", line);
}

static void core_events(writer *w, const dp_trace_launch *launch, const dp_trace_core *core, double origin) {
    unsigned pid = PID_CORES + core->core_index;
    for (uint32_t i = 0; i < core->count; i++) {
        const dp_trace_event *e = &core->events[i];
        if (e->pipe >= DP_PIPE_COUNT || (e->end == e->start && e->op != DP_OP_SET_FLAG && e->op != DP_OP_WAIT_FLAG))
            continue;
        if (e->end == e->start && e->implied)
            continue;
        span(w, dp_insn_name(e->op), pid, e->pipe, origin + dp_trace_us(launch, e->start),
             dp_trace_us(launch, e->end - e->start));
        fprintf(w->out, ",\"args\":{\"cycles\":%llu,\"block\":%u", (unsigned long long)(e->end - e->start), core->block_idx);
        if (e->bytes)
            fprintf(w->out, ",\"bytes\":%u", e->bytes);
        if (e->repeats)
            fprintf(w->out, ",\"repeats\":%u", e->repeats);
        if (e->waited)
            fprintf(w->out, ",\"waited_cycles\":%llu", (unsigned long long)e->waited);
        place(w, e->file, e->line);
        fputs("}}", w->out);
    }
}

static void core_names(writer *w, uint32_t cores) {
    for (uint32_t c = 0; c < cores; c++) {
        char name[64];
        snprintf(name, sizeof name, "core %u (estimated)", c);
        name_of(w, "process_name", PID_CORES + c, 0, name);
        for (unsigned p = 0; p < DP_PIPE_COUNT; p++)
            name_of(w, "thread_name", PID_CORES + c, p, dp_pipe_name(p));
    }
}

bool dp_trace_write_json(const dp_trace_record *record, const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "doppel: trace: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    writer w = {.out = out};
    fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"note\":\"host calls are measured; cores and streams are an estimate "
          "of the chip, not cycle-accurate\"},\n\"traceEvents\":[", out);
    name_of(&w, "process_name", PID_HOST, 0, "host (measured)");
    name_of(&w, "process_name", PID_STREAMS, 0, "streams (estimated)");
    for (uint32_t i = 0; i < record->call_count; i++) {
        const dp_trace_host_call *c = &record->calls[i];
        span(&w, c->name ? c->name : "call", PID_HOST, (unsigned)(c->thread & 0x7fffffff),
             (double)(int64_t)(c->begin_ns - record->start_ns) / 1e3, (double)(int64_t)(c->end_ns - c->begin_ns) / 1e3);
        fprintf(out, ",\"args\":{\"status\":%d}}", c->status);
    }
    uint32_t cores = 0;
    double stream_free[64] = {0};
    for (const dp_trace_launch *l = record->launches; l; l = l->next) {
        double begin = (double)(int64_t)(l->begin_ns - record->start_ns) / 1e3, *busy = &stream_free[l->stream_id % 64];
        double origin = begin > *busy ? begin : *busy;
        *busy = origin + dp_trace_us(l, l->cycles);
        span(&w, l->name, PID_STREAMS, l->stream_id, origin, dp_trace_us(l, l->cycles));
        fprintf(out, ",\"args\":{\"blocks\":%u,\"estimated_us\":%.3f,\"here_us\":%.3f", l->blocks, dp_trace_us(l, l->cycles),
                (double)(l->end_ns - l->begin_ns) / 1e3);
        place(&w, l->launch.file, l->launch.line);
        fputs("}}", out);
        for (uint32_t c = 0; c < l->core_count && c < MAX_CORES_SHOWN; c++) {
            core_events(&w, l, l->cores[c], origin);
            cores = l->cores[c]->core_index + 1 > cores ? l->cores[c]->core_index + 1 : cores;
        }
    }
    core_names(&w, cores < MAX_CORES_SHOWN ? cores : MAX_CORES_SHOWN);
    fputs("\n]}\n", out);
    bool good = !ferror(out);
    return fclose(out) == 0 && good;
}
