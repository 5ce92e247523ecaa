/*
 * Kernels that crash: the process ends as it would without the library, or as its own handler says, and before that one
 * sentence names the kernel, the block and what happened. Whichever thread runs the block.
 */
#include "child.h"

#include <signal.h>

#include "doppel/launch.h"

/* The sanitizers' own handlers end the process in their way. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) {
    return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0";
}
const char *__tsan_default_options(void) {
    return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0";
}

static volatile int sink;
#if defined(__x86_64__)
static volatile int zero;
#endif
static int *volatile wild = (int *)64;

__attribute__((noinline)) static int recurse(int depth) {
    volatile char frame[20000];
    frame[depth % 20000] = (char)depth;
    return depth < 0 ? 0 : recurse(depth + 1) + frame[depth % 100];
}

static void run_recursion(const void *args) {
    (void)args;
    sink = recurse(1);
}
__attribute__((no_sanitize_address, no_sanitize("undefined"))) static void run_wild(const void *args) {
    (void)args;
    *wild = 1;
}
#if defined(__x86_64__)
__attribute__((no_sanitize_address, no_sanitize("undefined"))) static void run_division(const void *args) {
    (void)args;
    sink = 1000 / zero;
}
#endif
#if defined(__x86_64__)
__attribute__((no_sanitize_address, no_sanitize("undefined"))) static void run_garbage(const void *args) {
    (void)args;
    int *volatile garbage = (int *)0x4141414141414140;
    *garbage = 1;
}
#endif
static void run_trap(const void *args) {
    (void)args;
    __builtin_trap();
}

static dp_kernel_entry entry;
static const char *name;
static uint32_t blocks;

static void launch(void) {
    const dp_kernel_info info = {.name = name, .launch = {"crash.asc", 7}};
    int args = 0;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(dp_launch_kernel(&info, blocks, NULL, entry, &args, sizeof args));
    aclrtSynchronizeStream(NULL);
    _exit(0); /* not reached: the kernel crashed */
}

static void own_handler(int number) {
    (void)number;
    _exit(42);
}
static void launch_with_handler(void) {
    struct sigaction action = {.sa_handler = own_handler};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    launch();
}
/* Not during a kernel: no sentence, the default action. */
static void crash_on_host(void) {
    entry = run_trap;
    const dp_kernel_info info = {.name = "unused"};
    CHECK_OK(aclrtSetDevice(0));
    CHECK(dp_launch_kernel(&info, 0, NULL, entry, NULL, 0) != ACL_SUCCESS);
    raise(SIGSEGV);
}

/* Runs body in a child; its status, and what it wrote to stderr in text. */
static int run(void (*body)(void), char *text, size_t text_bytes) {
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        static const int cmockas[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
        for (size_t i = 0; i < sizeof cmockas / sizeof cmockas[0]; i++)
            signal(cmockas[i], SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        body();
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    for (;;) {
        ssize_t got = read(ends[0], text + used, text_bytes - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_sentences(void **state) {
    (void)state;
    static const struct {
        dp_kernel_entry entry;
        const char *name, *says;
        int signal;
    } cases[] = {
        {run_recursion, "recursion", "(SIGSEGV): its stack overflowed: recursion without end", SIGSEGV},
        {run_wild, "wild", "(SIGSEGV): access through a raw pointer to 0x40, a NULL pointer", SIGSEGV},
#if defined(__x86_64__) /* arm64 divides by zero without a signal, and traps with SIGTRAP */
        {run_division, "division", "(SIGFPE): an integer division by zero", SIGFPE},
        {run_garbage, "garbage", "(SIGSEGV): access through a raw pointer to an address that cannot exist", SIGSEGV},
        {run_trap, "trap", "(SIGILL): an instruction that does not exist", SIGILL},
#endif
    };
    static char text[16384];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (blocks = 1; blocks <= 8; blocks += 7) {
            entry = cases[i].entry;
            name = cases[i].name;
            int status = run(launch, text, sizeof text);
            char begins[64];
            snprintf(begins, sizeof begins, "error: kernel %s crashed in block ", name);
            if (!strstr(text, begins) || !strstr(text, cases[i].says) || !WIFSIGNALED(status))
                print_error("%s: status %x, text:\n%s\n", name, status, text);
            assert_non_null(strstr(text, begins));
            assert_non_null(strstr(text, cases[i].says));
            assert_non_null(strstr(text, "launched at crash.asc:7"));
            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), cases[i].signal);
        }
    }
}

static void test_own_handler_goes_on(void **state) {
    (void)state;
    static char text[16384];
    entry = run_recursion;
    name = "recursion";
    for (blocks = 1; blocks <= 8; blocks += 7) {
        int status = run(launch_with_handler, text, sizeof text);
        assert_non_null(strstr(text, "its stack overflowed"));
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 42);
    }
}

static void test_host_crash_is_left_alone(void **state) {
    (void)state;
    static char text[16384];
    int status = run(crash_on_host, text, sizeof text);
    assert_null(strstr(text, "crashed"));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_own_handler_goes_on),
        cmocka_unit_test(test_host_crash_is_left_alone),
    };
    return cmocka_run_group_tests_name("api_crash", tests, NULL, NULL);
}
