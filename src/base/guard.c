/*
 * guard.c - one frame with a handler for every exception.
 *
 * Unwinding asks each frame's personality routine, named in its unwind information, whether it has a handler. The frame
 * below is written in assembler because C has no way to name a routine of one's own. The C++ library is not needed: its
 * functions are used when the program has it.
 */
#include "base/guard.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__) || defined(__aarch64__)
#include <unwind.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define WEAK __attribute__((weak))

/* NULL when fn returned, else the exception that left it. */
HIDDEN void *dp_guard_call(void (*fn)(void *), void *argument);
HIDDEN extern const char dp_guard_landing[];
HIDDEN _Unwind_Reason_Code dp_guard_personality(int version, _Unwind_Action actions, uint64_t class,
                                                struct _Unwind_Exception *exception, struct _Unwind_Context *context);

#if defined(__x86_64__)
__asm__(".text\n"
        ".hidden dp_guard_call\n"
        ".globl dp_guard_call\n"
        ".type dp_guard_call, @function\n"
        "dp_guard_call:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x1b, dp_guard_personality\n"
        "    pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "    movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "    movq %rdi, %rax\n"
        "    movq %rsi, %rdi\n"
        "    call *%rax\n"
        "    xorl %eax, %eax\n"
        ".hidden dp_guard_landing\n"
        ".globl dp_guard_landing\n"
        "dp_guard_landing:\n"
        "    popq %rbp\n"
        ".cfi_def_cfa %rsp, 8\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size dp_guard_call, . - dp_guard_call\n");
#else
__asm__(".text\n"
        ".hidden dp_guard_call\n"
        ".globl dp_guard_call\n"
        ".type dp_guard_call, %function\n"
        "dp_guard_call:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x1b, dp_guard_personality\n"
        "    stp x29, x30, [sp, -16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset x29, -16\n"
        ".cfi_offset x30, -8\n"
        "    mov x29, sp\n"
        "    mov x2, x0\n"
        "    mov x0, x1\n"
        "    blr x2\n"
        "    mov x0, 0\n"
        ".hidden dp_guard_landing\n"
        ".globl dp_guard_landing\n"
        "dp_guard_landing:\n"
        "    ldp x29, x30, [sp], 16\n"
        ".cfi_def_cfa_offset 0\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size dp_guard_call, . - dp_guard_call\n");
#endif

/* A thread that ends inside the call (pthread_exit, cancellation) goes on unwinding. */
_Unwind_Reason_Code dp_guard_personality(int version, _Unwind_Action actions, uint64_t class,
                                         struct _Unwind_Exception *exception, struct _Unwind_Context *context) {
    (void)class;
    if (version != 1 || (actions & _UA_FORCE_UNWIND))
        return _URC_CONTINUE_UNWIND;
    if (actions & _UA_SEARCH_PHASE)
        return _URC_HANDLER_FOUND;
    if (!(actions & _UA_HANDLER_FRAME))
        return _URC_CONTINUE_UNWIND;
    _Unwind_SetGR(context, __builtin_eh_return_data_regno(0), (uintptr_t)exception);
    _Unwind_SetIP(context, (uintptr_t)dp_guard_landing);
    return _URC_INSTALL_CONTEXT;
}

/* The C++ ABI's, from the program's C++ library. */
WEAK void *__cxa_begin_catch(void *exception);
WEAK void __cxa_end_catch(void);
WEAK void *__cxa_current_exception_type(void);
WEAK char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status);

/* A type_info is its virtual table's address and its name, which has a '*' in front when the type is local to one file.
 */
static void name_type(const void *type_info, char *type, size_t type_bytes) {
    const char *name = ((const char *const *)type_info)[1];
    name += *name == '*';
    int status = -1;
    char *plain = __cxa_demangle ? __cxa_demangle(name, NULL, NULL, &status) : NULL;
    snprintf(type, type_bytes, "%s", plain && status == 0 ? plain : name);
    free(plain);
}

bool dp_call_guarded(void (*fn)(void *argument), void *argument, char *type, size_t type_bytes) {
    struct _Unwind_Exception *exception = dp_guard_call(fn, argument);
    if (DP_LIKELY(!exception))
        return true;
    type[0] = '\0';
    /* "GNUCC++" or "CLNGC++", and a byte that tells exceptions that other threads share */
    const uint32_t is_cxx = 0x432b2b; /* "C++" */
    if (((uint32_t)(exception->exception_class >> 8) & 0xffffff) == is_cxx && __cxa_begin_catch && __cxa_end_catch) {
        __cxa_begin_catch(exception);
        const void *type_info = __cxa_current_exception_type ? __cxa_current_exception_type() : NULL;
        if (type_info)
            name_type(type_info, type, type_bytes);
        __cxa_end_catch();
    } else {
        _Unwind_DeleteException(exception);
    }
    return false;
}

#else
bool dp_call_guarded(void (*fn)(void *argument), void *argument, char *type, size_t type_bytes) {
    (void)type, (void)type_bytes;
    fn(argument);
    return true;
}
#endif
