#include "device/trace/trace.h"

#include "base/memory.h"
#include "device/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KERNELS = 64, MAX_WAITS = 256, WAITS_SHOWN = 3 };

/* Time one pipe stood idle because of one line of the program, over all cores of a kernel's launches. */
typedef struct wait_sum {
    unsigned pipe, for_pipe; /* for_pipe DP_PIPE_COUNT: for the scalar unit to issue */
    const char *file;
    uint32_t line;
    double us;
} wait_sum;

/* All launches of one kernel. */
typedef struct kernel_sum {
    const dp_trace_launch *sample;
    uint32_t launches;
    double us, here_us;
    double core_us;                 /* sum over cores of their length */
    double busy_us[DP_PIPE_COUNT];
    double moved_bytes[DP_PIPE_COUNT];
    uint64_t moves[DP_PIPE_COUNT];
    uint64_t vector_count, vector_repeats, vector_conflicts, vector_pairs;
    double vector_head_us;
    const char *conflict_file;
    uint32_t conflict_line;
    uint64_t instructions, faulted_cores;
    wait_sum waits[MAX_WAITS];
    uint32_t wait_count;
} kernel_sum;

static kernel_sum *sum_for(kernel_sum *sums, uint32_t *count, const dp_trace_launch *launch) {
    for (uint32_t i = 0; i < *count; i++)
        if (strcmp(sums[i].sample->name, launch->name) == 0 && sums[i].sample->blocks == launch->blocks)
            return &sums[i];
    if (*count == MAX_KERNELS)
        return NULL;
    kernel_sum *fresh = &sums[(*count)++];
    fresh->sample = launch;
    return fresh;
}

static void add_wait(kernel_sum *sum, const dp_trace_core *core, const dp_trace_event *e, unsigned pipe, double us) {
    const dp_trace_event *cause = e->cause ? &core->events[e->cause - 1] : NULL;
    unsigned for_pipe = cause ? cause->sync_src : DP_PIPE_COUNT;
    const char *file = cause ? cause->file : e->file;
    uint32_t line = cause ? cause->line : e->line;
    for (uint32_t i = 0; i < sum->wait_count; i++) {
        wait_sum *w = &sum->waits[i];
        if (w->pipe == pipe && w->for_pipe == for_pipe && w->line == line && w->file == file) {
            w->us += us;
            return;
        }
    }
    if (sum->wait_count < MAX_WAITS)
        sum->waits[sum->wait_count++] = (wait_sum){pipe, for_pipe, file, line, us};
}

static void add_event(kernel_sum *sum, const dp_trace_launch *launch, const dp_trace_core *core, const dp_trace_event *e) {
    sum->instructions++;
    if (e->bytes && e->pipe < DP_PIPE_COUNT) {
        sum->moved_bytes[e->pipe] += e->bytes;
        sum->moves[e->pipe]++;
    }
    if (e->pipe == DP_PIPE_V && e->repeats) {
        sum->vector_count++;
        sum->vector_repeats += e->repeats;
        sum->vector_pairs += e->src_space == DP_SPACE_UB;
        if (e->conflict) {
            sum->vector_conflicts++;
            sum->conflict_file = e->file;
            sum->conflict_line = e->line;
        }
        if (e->head)
            sum->vector_head_us += dp_trace_us(launch, (uint64_t)dp_cost_find(dp_insn_cost_row(e->op), e->dtype).fixed);
    }
    if (e->waited) {
        unsigned pipe = e->op == DP_OP_WAIT_FLAG ? DP_PIPE_S : e->op == DP_OP_SYNC_ALL ? DP_PIPE_S : e->pipe;
        if (pipe < DP_PIPE_COUNT)
            add_wait(sum, core, e, pipe, dp_trace_us(launch, e->waited));
    }
}

static void add_launch(kernel_sum *sum, const dp_trace_launch *launch) {
    sum->launches++;
    sum->us += dp_trace_us(launch, launch->cycles);
    sum->here_us += (double)(launch->end_ns - launch->begin_ns) / 1e3;
    for (uint32_t c = 0; c < launch->core_count; c++) {
        const dp_trace_core *core = launch->cores[c];
        uint64_t first = core->count ? core->events[0].start : 0;
        sum->core_us += dp_trace_us(launch, core->end - (first < core->end ? first : core->end));
        sum->faulted_cores += core->faulted;
        for (unsigned p = 0; p < DP_PIPE_COUNT; p++)
            sum->busy_us[p] += dp_trace_us(launch, core->busy[p]);
        for (uint32_t i = 0; i < core->count; i++)
            add_event(sum, launch, core, &core->events[i]);
    }
}

static int longest_first(const void *a, const void *b) {
    const wait_sum *x = a, *y = b;
    return x->us < y->us ? 1 : x->us > y->us ? -1 : 0;
}

static const char *short_name(const char *file) {
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash ? slash + 1 : file ? file : "?";
}

static void print_pipes(FILE *out, const kernel_sum *sum) {
    fprintf(out, "  pipe      busy/core us   share of the kernel\n");
    double cores = sum->sample->core_count * (double)sum->launches;
    for (unsigned p = 0; p < DP_PIPE_COUNT; p++) {
        if (sum->busy_us[p] == 0)
            continue;
        double share = sum->core_us > 0 ? sum->busy_us[p] / sum->core_us : 0;
        char bar[41];
        unsigned filled = share > 1 ? 40 : (unsigned)(share * 40 + 0.5);
        memset(bar, '.', 40);
        memset(bar, '#', filled);
        bar[40] = '\0';
        fprintf(out, "  %-8s %12.3f   %5.1f %%  %s\n", dp_pipe_name(p), sum->busy_us[p] / (cores > 0 ? cores : 1), share * 100, bar);
    }
}

static void print_waits(FILE *out, kernel_sum *sum) {
    if (sum->wait_count == 0)
        return;
    qsort(sum->waits, sum->wait_count, sizeof sum->waits[0], longest_first);
    double cores = sum->sample->core_count * (double)sum->launches;
    fprintf(out, "  longest bubbles (per core)\n");
    for (uint32_t i = 0; i < sum->wait_count && i < WAITS_SHOWN; i++) {
        const wait_sum *w = &sum->waits[i];
        if (w->for_pipe < DP_PIPE_COUNT)
            fprintf(out, "  %-8s idle %8.3f us waiting for %s, flag set at %s:%u\n", dp_pipe_name(w->pipe), w->us / cores,
                    dp_pipe_name(w->for_pipe), short_name(w->file), w->line);
        else
            fprintf(out, "  %-8s idle %8.3f us until the scalar unit issued %s:%u\n", dp_pipe_name(w->pipe), w->us / cores,
                    short_name(w->file), w->line);
    }
}

static void advise_copies(FILE *out, const kernel_sum *sum, double share[DP_PIPE_COUNT], bool *any) {
    double together = share[DP_PIPE_MTE2] + share[DP_PIPE_V] + share[DP_PIPE_MTE3];
    double most = 0;
    for (unsigned p = DP_PIPE_V; p < DP_PIPE_COUNT; p++)
        most = share[p] > most ? share[p] : most;
    if (together > 0.75 && together < 1.6 && most < 0.75) {
        fprintf(out, "  advice: the pipes take turns; a second buffer per queue (InitBuffer(queue, 2, bytes)) and several tiles "
                     "per block let copies and arithmetic overlap\n");
        *any = true;
    }
    for (unsigned p = DP_PIPE_MTE2; p <= DP_PIPE_MTE3; p++) {
        double average = sum->moves[p] ? sum->moved_bytes[p] / (double)sum->moves[p] : 0;
        if (average > 0 && average < 8192 && share[p] > 0.4) {
            fprintf(out, "  advice: %s moves %.0f bytes at a time; 16 KiB or more use the bandwidth better\n", dp_pipe_name(p), average);
            *any = true;
        }
    }
    if (share[DP_PIPE_MTE2] > 0.85 || share[DP_PIPE_MTE3] > 0.85) {
        fprintf(out, "  advice: bound by global memory; keep intermediate results in UB, move fewer bytes, or use a narrower type\n");
        *any = true;
    }
}

static void advise(FILE *out, const kernel_sum *sum) {
    double share[DP_PIPE_COUNT];
    bool any = false;
    for (unsigned p = 0; p < DP_PIPE_COUNT; p++)
        share[p] = sum->core_us > 0 ? sum->busy_us[p] / sum->core_us : 0;
    advise_copies(out, sum, share, &any);
    if (sum->vector_count && sum->vector_head_us > 0.5 * sum->busy_us[DP_PIPE_V] && share[DP_PIPE_V] > 0.2) {
        fprintf(out, "  advice: vector instructions are short (%.1f repeats on average) and pay their start-up each time; work on "
                     "larger tiles\n", (double)sum->vector_repeats / (double)sum->vector_count);
        any = true;
    }
    if (sum->vector_conflicts * 4 > sum->vector_count) {
        fprintf(out, "  advice: both sources of %s:%u start in the same UB bank group (%llu of %llu instructions); move one by 32 to "
                     "480 bytes\n", short_name(sum->conflict_file), sum->conflict_line,
                (unsigned long long)sum->vector_conflicts, (unsigned long long)sum->vector_count);
        any = true;
    }
    if (share[DP_PIPE_S] > 0.5) {
        fprintf(out, "  advice: the scalar unit is busy %.0f %% of the time; replace element-by-element work with vector "
                     "instructions\n", share[DP_PIPE_S] * 100);
        any = true;
    }
    if (sum->sample->core_count < sum->sample->chip->vector_cores && sum->us > 0) {
        fprintf(out, "  advice: %u of the chip's %u vector cores are used\n", sum->sample->core_count,
                sum->sample->chip->vector_cores);
        any = true;
    }
    if (!any)
        fprintf(out, "  advice: none\n");
}

static void print_kernel(FILE *out, kernel_sum *sum) {
    const dp_trace_launch *l = sum->sample;
    fprintf(out, "\n%s<<<%u>>>, launched %u time%s from %s:%u\n", l->name, l->blocks, sum->launches,
            sum->launches == 1 ? "" : "s", short_name(l->launch.file), l->launch.line);
    fprintf(out, "  estimated %.3f us a launch on %s (here: %.3f us), %llu instructions\n", sum->us / sum->launches,
            l->chip->name, sum->here_us / sum->launches, (unsigned long long)sum->instructions);
    if (sum->faulted_cores)
        fprintf(out, "  %llu core%s ended in a fault: the figures stop there\n", (unsigned long long)sum->faulted_cores,
                sum->faulted_cores == 1 ? "" : "s");
    print_pipes(out, sum);
    print_waits(out, sum);
    advise(out, sum);
}

bool dp_trace_write_text(const dp_trace_record *record, const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "doppel: trace: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    kernel_sum *sums = dp_alloc(DP_MEM_TRACE, MAX_KERNELS * sizeof *sums);
    uint32_t count = 0, left_out = 0;
    for (const dp_trace_launch *l = record->launches; sums && l; l = l->next) {
        kernel_sum *sum = sum_for(sums, &count, l);
        if (sum)
            add_launch(sum, l);
        else
            left_out++;
    }
    fprintf(out, "Pipelines of %u launch%s: an estimate from public figures, not cycle-accurate.\n", record->launch_count,
            record->launch_count == 1 ? "" : "es");
    for (uint32_t i = 0; i < count; i++)
        print_kernel(out, &sums[i]);
    if (left_out)
        fprintf(out, "\n%u launches of further kernels are only in trace.json\n", left_out);
    if (record->dropped)
        fprintf(out, "\n%llu instructions were not recorded: the trace was full\n", (unsigned long long)record->dropped);
    dp_free(sums);
    bool good = !ferror(out);
    return fclose(out) == 0 && good;
}
