#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/core.h"

/* One write for all lines, so that reports of different threads do not mix. */
static void print_report(const dp_core *core, dp_loc loc, const char *sentence) {
    char text[2048];
    int used = loc.line ? snprintf(text, sizeof text, "%s:%u: error: %s\n", loc.file ? loc.file : "?", loc.line, sentence)
                        : snprintf(text, sizeof text, "error: %s\n", sentence);
    if (used < 0)
        return;
    if ((size_t)used >= sizeof text)
        used = (int)sizeof text - 1;
    const dp_kernel_info *kernel = core->launch ? &core->launch->kernel : NULL;
    int more = snprintf(text + used, sizeof text - (size_t)used, "  kernel %s, block %u of %u (%s core %u)",
                        kernel && kernel->name ? kernel->name : "?", core->block_idx, core->block_num,
                        core->kind == DP_CORE_AIC ? "cube" : "vector", core->core_index);
    if (more > 0)
        used += more;
    if ((size_t)used < sizeof text && kernel && kernel->launch.line) {
        more = snprintf(text + used, sizeof text - (size_t)used, ", launched at %s:%u",
                        kernel->launch.file ? kernel->launch.file : "?", kernel->launch.line);
        if (more > 0)
            used += more;
    }
    if ((size_t)used > sizeof text - 2)
        used = (int)sizeof text - 2;
    text[used++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, text, (size_t)used);
    (void)ignored;
}

void dp_fault(dp_core *core, const dp_insn *insn, dp_loc loc, const char *format, ...) {
    char sentence[1024];
    int used = 0;
    if (insn) {
        loc = insn->loc;
        used = snprintf(sentence, sizeof sentence, "%s: ", dp_insn_name(insn->op));
    }
    va_list args;
    va_start(args, format);
    vsnprintf(sentence + used, sizeof sentence - (size_t)used, format, args);
    va_end(args);
    const dp_observer *observer = core->observer;
    if (!observer || !observer->prints_faults)
        print_report(core, loc, sentence);
    core->fault_loc = loc;
    if (observer && observer->fault)
        observer->fault(core, insn, sentence);
    core->fault_other = (dp_loc){NULL, 0};
    if (core->host && core->host->fault)
        core->host->fault(core, loc, sentence);
    if (core->host && core->host->abandon)
        core->host->abandon(core);
    abort(); /* a core without a scheduler has nowhere to go on */
}
