#include "base/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#endif

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
enum { STACK_FACTOR = 4 };
#else
enum { STACK_FACTOR = 1 };
#endif

/* One page would be stepped over by functions with large frames. */
enum { GUARD_BYTES = 64 << 10 };

#if !defined(DP_FIBER_UCONTEXT) && (defined(__x86_64__) || defined(__aarch64__))
typedef struct machine {
    void *fiber_sp, *resumer_sp;
} machine;
#else
#define FIBER_USES_UCONTEXT 1
#include <ucontext.h>
typedef struct machine {
    ucontext_t fiber, resumer;
} machine;
#endif

struct dp_fiber {
    machine machine;
    uint8_t *mapping; /* guard pages, then the stack */
    size_t guard_bytes, stack_bytes;
    void (*entry)(void *);
    void *argument;
    bool armed;     /* the machine context stands in fiber_main, ready for an entry */
    bool suspended; /* in the middle of an entry */
#ifdef FIBER_ASAN
    void *fake_stack;
    const void *resumer_bottom;
    size_t resumer_bytes;
#endif
#ifdef FIBER_TSAN
    void *tsan, *tsan_resumer;
#endif
};

void dp_fiber_main(dp_fiber *fiber) __attribute__((noreturn, visibility("hidden")));

#if !defined(FIBER_USES_UCONTEXT)
/* Saves the callee-saved registers on this stack, stores its pointer in *save, and continues on `load`. */
void dp_fiber_switch(void **save, void *load) __attribute__((visibility("hidden")));
void dp_fiber_trampoline(void) __attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".text\n"
        ".hidden dp_fiber_switch\n"
        ".globl dp_fiber_switch\n"
        ".type dp_fiber_switch, @function\n"
        ".p2align 4\n"
        "dp_fiber_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size dp_fiber_switch, .-dp_fiber_switch\n"
        ".hidden dp_fiber_trampoline\n"
        ".globl dp_fiber_trampoline\n"
        ".type dp_fiber_trampoline, @function\n"
        "dp_fiber_trampoline:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n" /* unwinders stop here */
        "    movq %rbx, %rdi\n"
        "    call dp_fiber_main\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size dp_fiber_trampoline, .-dp_fiber_trampoline\n");

static void arm(dp_fiber *fiber) {
    uint64_t *sp = (uint64_t *)(void *)(fiber->mapping + fiber->guard_bytes + fiber->stack_bytes);
    *--sp = 0; /* the trampoline is entered with the stack on a 16-byte boundary */
    *--sp = 0;
    *--sp = (uint64_t)(uintptr_t)dp_fiber_trampoline;
    *--sp = 0;                          /* rbp */
    *--sp = (uint64_t)(uintptr_t)fiber; /* rbx */
    for (int i = 0; i < 4; i++)
        *--sp = 0;
    --sp;
    uint32_t mxcsr;
    uint16_t control;
    __asm__("stmxcsr %0" : "=m"(mxcsr));
    __asm__("fnstcw %0" : "=m"(control));
    *sp = mxcsr | (uint64_t)control << 32;
    fiber->machine.fiber_sp = sp;
}
#else
__asm__(".text\n"
        ".hidden dp_fiber_switch\n"
        ".globl dp_fiber_switch\n"
        ".type dp_fiber_switch, %function\n"
        ".p2align 4\n"
        "dp_fiber_switch:\n"
        "    sub sp, sp, #176\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mrs x9, fpcr\n"
        "    str x9, [sp, #160]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldr x9, [sp, #160]\n"
        "    msr fpcr, x9\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #176\n"
        "    ret\n"
        ".size dp_fiber_switch, .-dp_fiber_switch\n"
        ".hidden dp_fiber_trampoline\n"
        ".globl dp_fiber_trampoline\n"
        ".type dp_fiber_trampoline, %function\n"
        "dp_fiber_trampoline:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    mov x0, x19\n"
        "    bl dp_fiber_main\n"
        "    brk #0\n"
        "    .cfi_endproc\n"
        ".size dp_fiber_trampoline, .-dp_fiber_trampoline\n");

static void arm(dp_fiber *fiber) {
    uint64_t *sp = (uint64_t *)(void *)(fiber->mapping + fiber->guard_bytes + fiber->stack_bytes) - 22;
    for (int i = 0; i < 22; i++)
        sp[i] = 0;
    sp[0] = (uint64_t)(uintptr_t)fiber;                /* x19 */
    sp[11] = (uint64_t)(uintptr_t)dp_fiber_trampoline; /* x30 */
    uint64_t fpcr;
    __asm__("mrs %0, fpcr" : "=r"(fpcr));
    sp[20] = fpcr;
    fiber->machine.fiber_sp = sp;
}
#endif

static void switch_in(dp_fiber *fiber) {
    dp_fiber_switch(&fiber->machine.resumer_sp, fiber->machine.fiber_sp);
}
static void switch_out(dp_fiber *fiber) {
    dp_fiber_switch(&fiber->machine.fiber_sp, fiber->machine.resumer_sp);
}

#else

/* makecontext passes ints only: the pointer travels in two halves. */
static void enter(unsigned low, unsigned high) {
    dp_fiber_main((dp_fiber *)((uintptr_t)low | (uintptr_t)((uint64_t)high << 32)));
}

static void arm(dp_fiber *fiber) {
    getcontext(&fiber->machine.fiber);
    fiber->machine.fiber.uc_stack.ss_sp = fiber->mapping + fiber->guard_bytes;
    fiber->machine.fiber.uc_stack.ss_size = fiber->stack_bytes;
    fiber->machine.fiber.uc_link = NULL;
    uint64_t address = (uintptr_t)fiber;
    makecontext(&fiber->machine.fiber, (void (*)(void))enter, 2, (unsigned)address, (unsigned)(address >> 32));
}

static void switch_in(dp_fiber *fiber) {
    swapcontext(&fiber->machine.resumer, &fiber->machine.fiber);
}
static void switch_out(dp_fiber *fiber) {
    swapcontext(&fiber->machine.fiber, &fiber->machine.resumer);
}

#endif

/* `last`: the fiber's frames will not be returned to. */
static void leave(dp_fiber *fiber, bool last) {
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(last ? NULL : &fiber->fake_stack, fiber->resumer_bottom, fiber->resumer_bytes);
#endif
#ifdef FIBER_TSAN
    __tsan_switch_to_fiber(fiber->tsan_resumer, 0);
#endif
    (void)last;
    switch_out(fiber);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &fiber->resumer_bottom, &fiber->resumer_bytes);
#endif
}

/* One loop for all entries of a fiber: a fiber that finished need not be set up again. */
void dp_fiber_main(dp_fiber *fiber) {
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(NULL, &fiber->resumer_bottom, &fiber->resumer_bytes);
#endif
    for (;;) {
        fiber->entry(fiber->argument);
        fiber->suspended = false;
        leave(fiber, false);
    }
}

dp_fiber *dp_fiber_create(size_t stack_bytes) {
    dp_fiber *fiber = dp_alloc(DP_MEM_DEVICE, sizeof *fiber);
    if (!fiber)
        return NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    fiber->guard_bytes = (GUARD_BYTES + page - 1) / page * page;
    fiber->stack_bytes = (stack_bytes * STACK_FACTOR + page - 1) / page * page;
    void *mapping = mmap(NULL, fiber->guard_bytes + fiber->stack_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED)
        goto fail;
    fiber->mapping = mapping;
    if (mprotect(mapping, fiber->guard_bytes, PROT_NONE) != 0)
        goto fail;
    return fiber;
fail:
    dp_fiber_destroy(fiber);
    return NULL;
}

/* The sanitizers' idea of the stack is dropped together with its frames. */
static void forget_frames(dp_fiber *fiber) {
#ifdef FIBER_ASAN
    if (fiber->mapping)
        __asan_unpoison_memory_region(fiber->mapping + fiber->guard_bytes, fiber->stack_bytes);
#endif
#ifdef FIBER_TSAN
    if (fiber->tsan)
        __tsan_destroy_fiber(fiber->tsan);
    fiber->tsan = NULL;
#endif
    fiber->armed = false;
    fiber->suspended = false;
}

void dp_fiber_destroy(dp_fiber *fiber) {
    if (!fiber)
        return;
    forget_frames(fiber);
    if (fiber->mapping)
        munmap(fiber->mapping, fiber->guard_bytes + fiber->stack_bytes);
    dp_free(fiber);
}

void dp_fiber_start(dp_fiber *fiber, void (*entry)(void *), void *argument) {
    fiber->entry = entry;
    fiber->argument = argument;
    fiber->suspended = true;
    if (fiber->armed)
        return;
    arm(fiber);
    fiber->armed = true;
#ifdef FIBER_TSAN
    fiber->tsan = __tsan_create_fiber(0);
#endif
}

bool dp_fiber_resume(dp_fiber *fiber) {
#ifdef FIBER_TSAN
    fiber->tsan_resumer = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->tsan, 0);
#endif
#ifdef FIBER_ASAN
    void *own_fake_stack;
    __sanitizer_start_switch_fiber(&own_fake_stack, fiber->mapping + fiber->guard_bytes, fiber->stack_bytes);
#endif
    switch_in(fiber);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(own_fake_stack, NULL, NULL);
#endif
    if (!fiber->suspended && !fiber->armed)
        forget_frames(fiber);
    return fiber->suspended;
}

void dp_fiber_yield(dp_fiber *fiber) {
    leave(fiber, false);
}

void dp_fiber_exit(dp_fiber *fiber) {
    fiber->armed = false;
    fiber->suspended = false;
    leave(fiber, true);
    __builtin_unreachable();
}

void dp_fiber_abandon(dp_fiber *fiber) {
    forget_frames(fiber);
}

bool dp_fiber_is_guard(const dp_fiber *fiber, const void *address) {
    uintptr_t offset = (uintptr_t)address - (uintptr_t)fiber->mapping;
    return offset < fiber->guard_bytes;
}
