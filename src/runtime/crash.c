#define _GNU_SOURCE
#include "runtime/crash.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/core.h"
#include "runtime/launch_state.h"

enum { SIGNAL_STACK_BYTES = 64 << 10, NEAR_BYTES = 1 << 20 };

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { CRASH_SIGNALS = sizeof crash_signals / sizeof crash_signals[0] };

static struct sigaction previous[CRASH_SIGNALS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local void *signal_stack; /* ours, NULL when the thread had one */

/* What the address is to the core, as the end of a sentence. */
static void describe_address(const dp_core *core, const char *address, char *text, size_t text_bytes) {
    for (unsigned space = 0; space < DP_SPACE_COUNT; space++) {
        const char *base = (const char *)core->memory[space].base;
        if (!base || space == DP_SPACE_GM)
            continue;
        const char *end = base + core->memory[space].size_bytes;
        if (address >= end && address - end < NEAR_BYTES) {
            snprintf(text, text_bytes, "%zu bytes past the end of %s", (size_t)(address - end), dp_space_name(space));
            return;
        }
        if (address < base && base - address <= NEAR_BYTES) {
            snprintf(text, text_bytes, "%zu bytes before the start of %s", (size_t)(base - address),
                     dp_space_name(space));
            return;
        }
    }
    snprintf(text, text_bytes, (uintptr_t)address < 4096 ? "a NULL pointer" : "memory the process does not have");
}

/* snprintf of numbers and strings allocates nothing; write is all that is left to a process in this state. */
static void tell(const dp_core *core, int number, const siginfo_t *info) {
    char what[256], near_text[96], text[1024];
    if (number == SIGFPE) {
        snprintf(what, sizeof what, "an integer division by zero, or one that overflows");
    } else if (number == SIGILL) {
        snprintf(what, sizeof what, "an instruction that does not exist, as after __builtin_trap()");
    } else if (info->si_code == SI_KERNEL) { /* x86-64 does not say which address it was */
        snprintf(what, sizeof what,
                 "access through a raw pointer to an address that cannot exist, such as overwritten or uninitialised data; "
                 "tensors check their accesses, pointers do not");
    } else if (dp_seat_overflowed(core, info->si_addr)) {
        snprintf(what, sizeof what,
                 "its stack overflowed: recursion without end, or local arrays of more than %u KiB in all; keep large "
                 "arrays in UB or global memory",
                 DP_KERNEL_STACK_BYTES >> 10);
    } else {
        describe_address(core, info->si_addr, near_text, sizeof near_text);
        snprintf(what, sizeof what, "access through a raw pointer to %p, %s; tensors check their accesses, pointers do not",
                 info->si_addr, near_text);
    }
    const dp_kernel_info *kernel = core->launch ? &core->launch->kernel : NULL;
    const char *name = kernel && kernel->name ? kernel->name : "?";
    int used = snprintf(text, sizeof text - 1, "error: kernel %s crashed in block %u of %u (%s): %s\n", name,
                        core->block_idx, core->block_num, number == SIGSEGV  ? "SIGSEGV"
                                                          : number == SIGBUS ? "SIGBUS"
                                                          : number == SIGFPE ? "SIGFPE"
                                                                             : "SIGILL",
                        what);
    if (used > 0 && (size_t)used < sizeof text - 1 && kernel && kernel->launch.line)
        used += snprintf(text + used, sizeof text - (size_t)used, "  launched at %s:%u\n",
                         kernel->launch.file ? kernel->launch.file : "?", kernel->launch.line);
    size_t length = used < 0 ? 0 : (size_t)used < sizeof text - 1 ? (size_t)used : sizeof text - 1;
    ssize_t ignored = write(STDERR_FILENO, text, length);
    (void)ignored;
}

/* The handler that was there before ours goes on; without one the instruction is run again and ends the process. */
static void pass_on(const struct sigaction *before, int number, siginfo_t *info, void *context) {
    bool from_instruction = info->si_code > 0;
    if (!(before->sa_flags & SA_SIGINFO) && (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN)) {
        if (before->sa_handler == SIG_IGN && !from_instruction)
            return;
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(number, &standard, NULL);
        if (!from_instruction)
            raise(number); /* arrives when this handler returns */
        return;
    }
    pthread_sigmask(SIG_BLOCK, &before->sa_mask, NULL); /* undone by the return from the signal */
    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(number, info, context);
    else
        before->sa_handler(number);
}

static void on_crash(int number, siginfo_t *info, void *context) {
    const dp_core *core = dp_core_current();
    if (core && info->si_code > 0)
        tell(core, number, info);
    for (int i = 0; i < CRASH_SIGNALS; i++)
        if (crash_signals[i] == number)
            pass_on(&previous[i], number, info, context);
}

static void install(void) {
    struct sigaction ours = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < CRASH_SIGNALS; i++) {
        sigaction(crash_signals[i], NULL, &previous[i]); /* before ours can run */
        sigaction(crash_signals[i], &ours, NULL);
    }
}

void dp_crash_thread_begins(void) {
    pthread_once(&once, install);
    stack_t had;
    if (signal_stack || sigaltstack(NULL, &had) != 0 || !(had.ss_flags & SS_DISABLE))
        return;
    void *memory = mmap(NULL, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return; /* an overflow then ends the process without a sentence */
    stack_t fresh = {.ss_sp = memory, .ss_size = SIGNAL_STACK_BYTES};
    if (sigaltstack(&fresh, NULL) != 0) {
        munmap(memory, SIGNAL_STACK_BYTES);
        return;
    }
    signal_stack = memory;
}

void dp_crash_thread_ends(void) {
    stack_t now;
    if (!signal_stack)
        return;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == signal_stack)
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    munmap(signal_stack, SIGNAL_STACK_BYTES);
    signal_stack = NULL;
}

void dp_crash_unblock(sigset_t *set) {
    for (int i = 0; i < CRASH_SIGNALS; i++)
        sigdelset(set, crash_signals[i]);
}
