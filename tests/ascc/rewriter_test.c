/* The rewriter: exact output for small inputs, refusals with their line, hostile input, and a seeded fuzz loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "rewrite.h"

typedef struct outcome {
    rewrite_result result;
    text out, messages;
} outcome;

static outcome run_mode(const char *input, size_t size, bool is_c) {
    outcome o = {0};
    const rewrite_options options = {.name = "t.asc", .is_c = is_c, .has_launcher = true};
    o.result = rewrite(&options, input, size, &o.out, &o.messages);
    text_puts(&o.out, "");
    text_puts(&o.messages, "");
    return o;
}

static outcome run(const char *input) { return run_mode(input, strlen(input), false); }

static void outcome_free(outcome *o) {
    text_free(&o->out);
    text_free(&o->messages);
}

/* Everything after the line with the launcher's marker, which `input` must begin with. */
#define MARKER "__dp_ascc_prelude__\n"

static void expect(const char *input, const char *output) {
    char whole[8192];
    snprintf(whole, sizeof whole, MARKER "%s", input);
    outcome o = run(whole);
    assert_string_equal(o.messages.data, "");
    assert_int_equal(o.result, REWRITE_DONE);
    const char *newline = strchr(o.out.data, '\n');
    assert_non_null(newline);
    assert_string_equal(newline + 1, output);
    outcome_free(&o);
}

static void expect_error(const char *input, const char *message) {
    outcome o = run(input);
    assert_int_equal(o.result, REWRITE_FAILED);
    if (!strstr(o.messages.data, message))
        fail_msg("expected \"%s\" in \"%s\"", message, o.messages.data);
    outcome_free(&o);
}

/* Lines over 160 characters are broken behind a statement, with a marker that keeps the flags of a system header. */
static void test_long_lines_are_broken(void **state) {
    (void)state;
    char name[201], input[512], output[512];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    static const char *const flags[][2] = {{"", ""}, {" 1", ""}, {" 2", ""}, {" 1 3", " 3"}, {" 2 3 4", " 3 4"}, {" 3", " 3"}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        snprintf(input, sizeof input, "# 7 \"d/3.h\"%s\nint b; int %s; int c;\nint d;\n", flags[i][0], name);
        snprintf(output, sizeof output, "# 7 \"d/3.h\"%s\nint b; int %s;\n# 7 \"d/3.h\"%s\n int c;\nint d;\n", flags[i][0],
                 name, flags[i][1]);
        expect(input, output);
    }
}

static void test_text_without_kernels_is_untouched(void **state) {
    (void)state;
    static const char *const texts[] = {
        "int main() { return 1 << 2 >> 3 < 4 > 5; }\n",
        "std::cout << \"f<<<1, 2>>>(x)\" << '<' << x;\n",
        "auto s = R\"tag(f<<<1,2>>>(\n__gm__ )\" )tag\";\nint a = 1'000'000;\n",
        "S &operator<<<int>(S &, int); using T = A<B<C<int>>>;\n",
        "# 7 \"x.h\" 3\nint a;\n#pragma pack(1)\nint b; // f<<<1,2>>>()\n/* __gm__ */",
        "template <> struct A<::B> {}; int x = a<::b>::c; char c = '\\''; const char *u = u8\"\\\"<<<\";",
        "", "\n", "#", "# 12"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        outcome o = run(texts[i]);
        assert_int_equal(o.result, REWRITE_DONE);
        assert_string_equal(o.out.data, texts[i]);
        outcome_free(&o);
    }
}

static void test_launches(void **state) {
    (void)state;
    expect("__global__ void f(int x);\nvoid g() { f<<<8, nullptr, s>>>(x); }\n",
           "           void f(int x);\nvoid g() {  ::dp::launch(*::dp_kernel_0_info(), \"f\", ::dp_loc{\"t.asc\", 3}, f, 8, "
           "nullptr, s)(x); }\n");
    /* Letters outside ASCII, as they are and as a preprocessor writes them. */
    expect("__global__ void gr\xc3\xb6\\u00dfe_\\U00006838(int x);\nvoid g() { gr\xc3\xb6\\u00dfe_\\U00006838<<<8, s>>>(x); }\n",
           "           void gr\xc3\xb6\\u00dfe_\\U00006838(int x);\nvoid g() {  ::dp::launch(*::dp_kernel_0_info(), "
           "\"gr\xc3\xb6\\\\u00dfe_\\\\U00006838\", ::dp_loc{\"t.asc\", 3}, gr\xc3\xb6\\u00dfe_\\U00006838, 8, s)(x); }\n");
    expect("__global__ void f(); void g() { if (a) f<<<n, s>>>(); else ::f<<<n + (b > c), s>>>(); }",
           "           void f(); void g() { if (a)  ::dp::launch(*::dp_kernel_0_info(), \"f\", ::dp_loc{\"t.asc\", 2}, f, n, "
           "s)(); else  ::dp::launch(*::dp_kernel_0_info(), \"::f\", ::dp_loc{\"t.asc\", 2}, ::f, n + (b > c), s)(); }");
    expect("namespace n { template <class T, int N> __global__ void f(T *p); }\nvoid g() { n::f<A<B<int>>, (1 > 0)> <<<1, 0,\n"
           " s>>>(0); }",
           "namespace n { template <class T, int N>            void f(T *p); }\nvoid g() {  ::dp::launch("
           "*::dp_kernel_0_info(), \"n::f<A<B<int>>, (1 > 0)>\", ::dp_loc{\"t.asc\", 3}, n::f<A<B<int>>, (1 > 0)> , 1, 0,\n"
           " s)(0); }");
    /* Template arguments that follow from the call, overloads, four values. */
    expect("template <class T> __global__ void f(T *p);\nvoid g() { f<<<1, 0, s>>>(p); }",
           "template <class T>            void f(T *p);\nvoid g() {  ::dp::launch_generic(*::dp_kernel_0_info(), \"f\", "
           "::dp_loc{\"t.asc\", 3}, [](auto... dp_args) { f(dp_args...); }, 1, 0, s)(p); }");
    expect("__global__ void f(int); __global__ void f(float);\nvoid g() { f<<<1, 0, s>>>(1.f); }",
           "           void f(int);            void f(float);\nvoid g() {  ::dp::launch_generic(*::dp_kernel_0_info(), \"f\", "
           "::dp_loc{\"t.asc\", 3}, [](auto... dp_args) { f(dp_args...); }, 1, 0, s)(1.f); }");
    expect("__global__ void f();\nvoid g() { f<<<n, 1, 0, s>>>(); }",
           "           void f();\nvoid g() {  ::dp::launch(*::dp_kernel_0_info(), \"f\", ::dp_loc{\"t.asc\", 3}, f, n, "
           "::dp::thread_block<(1)>{}, 0, s)(); }");
    /* Default arguments, also when another declaration has them. */
    expect("__global__ void f(int a, int b = (1, 2)); __global__ void f(int a, int b) {}\nvoid g() { f<<<1, 0, s>>>(x); }",
           "           void f(int a, int b = (1, 2));            void f(int a, int b) {}\nvoid g() {  "
           "::dp::launch_with_defaults(*::dp_kernel_0_info(), \"f\", ::dp_loc{\"t.asc\", 3}, [](auto... dp_args) { f(dp_args...); "
           "}, f, 1, 0, s)(x); }");
    /* Values that contain template arguments, comparisons and shifts. */
    expect("__global__ void f();\nvoid g() { f<<<m<int, 2>(x), a >> 1, q<3>::v>>>(); }",
           "           void f();\nvoid g() {  ::dp::launch(*::dp_kernel_0_info(), \"f\", ::dp_loc{\"t.asc\", 3}, f, "
           "m<int, 2>(x), a >> 1, q<3>::v)(); }");
    expect("__global__ void f();\nvoid g() { f<<<i < n, 0, s>>>(); }",
           "           void f();\nvoid g() {  ::dp::launch(*::dp_kernel_0_info(), \"f\", ::dp_loc{\"t.asc\", 3}, f, "
           "i < n, 0, s)(); }");
    /* A label before the callee must not become "::" + ":". */
    expect("__global__ void f();\nvoid g() { l:f<<<1, s>>>(); }",
           "           void f();\nvoid g() { l: ::dp::launch(*::dp_kernel_0_info(), \"f\", ::dp_loc{\"t.asc\", 3}, f, 1, "
           "s)(); }");
}

static void test_launches_through_pointers(void **state) {
    (void)state;
    expect("void g(void (*p)(int)) { p<<<8, s>>>(x); }",
           "void g(void (*p)(int)) {  ::dp::launch_through(\"p\", ::dp_loc{\"t.asc\", 2}, p, 8, s)(x); }");
    expect("void g() { if (a) t[i + 1]<<<8, 0, s>>>(x); o->q.f<<<n, 1, 0, s>>>(); (*p)<<<1, s>>>(); return at(3)<<<1, s>>>(); }",
           "void g() { if (a)  ::dp::launch_through(\"t[i + 1]\", ::dp_loc{\"t.asc\", 2}, t[i + 1], 8, 0, s)(x);  "
           "::dp::launch_through(\"o->q.f\", ::dp_loc{\"t.asc\", 2}, o->q.f, n, ::dp::thread_block<(1)>{}, 0, s)();  "
           "::dp::launch_through(\"(*p)\", ::dp_loc{\"t.asc\", 2}, (*p), 1, s)(); return  ::dp::launch_through(\"at(3)\", "
           "::dp_loc{\"t.asc\", 2}, at(3), 1, s)(); }");
    /* Kernels whose names are pointers are announced; not those that are only launched, or may be overloaded. */
    expect("namespace n { namespace { __global__ void f(); } }\nauto *p = n::f;", "namespace n { namespace {            void f(); } }\n"
           "auto *p = n::f; static const ::dp::known_kernel dp_known_kernel_0(&::n::f, ::dp_kernel_0_info());");
    expect("__global__ void f(); void f(int); auto p = static_cast<void (*)()>(f);",
           "           void f(); void f(int); auto p = static_cast<void (*)()>(f);");
    expect("template <int> __global__ void f(); auto p = f<1>;", "template <int>            void f(); auto p = f<1>;");
}

static void test_line_markers_set_file_and_line(void **state) {
    (void)state;
    expect("# 40 \"dir/a \\\"b\\\".asc\"\n__global__ void f();\n\nvoid g() { f\n<<<1,\n# 90 \"m.h\" 3\n s>>>(); }",
           "# 40 \"dir/a \\\"b\\\".asc\"\n           void f();\n\nvoid g() {  ::dp::launch(*::dp_kernel_0_info(), \"f\", "
           "::dp_loc{\"dir/a \\\"b\\\".asc\", 42}, f\n, 1,\n# 90 \"m.h\" 3\n s)(); }");
}

static void test_words_are_blanked(void **state) {
    (void)state;
    expect("__aicore__ inline void a(__gm__ uint8_t *p, __ubuf__ T (&r)[4], __cc__ float b[8]) { auto q = (__gm__ T *)p; }\n"
           "extern \"C\" __global__ [aicore] void k(GlobalTensor<__gm__ float> &t);\n"
           "struct S { __ubuf__ float *p; __gm__ T *next; }; using P = __gm__ float; inline __gm__ T *f() { return 0; }\n",
           "           inline void a(       uint8_t *p,          T (&r)[4],        float b[8]) { auto q = (       T *)p; }\n"
           "extern \"C\"                     void k(GlobalTensor<       float> &t);\n"
           "struct S {          float *p;        T *next; }; using P =        float; inline        T *f() { return 0; }\n");
    expect("__global__ __mix__(1, 2) __schedmode__(1) void f();", "                                          void f();");
    expect("void f() { auto p = reinterpret_cast<__ubuf__ T *>(q); __ubuf__ T *a = (__ubuf__ T *)p, *b; x.g<__gm__ T>(); }",
           "void f() { auto p = reinterpret_cast<         T *>(q);          T *a = (         T *)p, *b; x.g<       T>(); }");
}

static void test_variables(void **state) {
    (void)state;
    expect("void f() { __ubuf__ float buf[N * 2][4]; buf[0][0] = 1; }",
           "void f() { ::dp::local_array<float[N * 2][4], ::DP_SPACE_UB> dp_local_buf{::dp_loc{\"t.asc\", 2}}; float (&buf)"
           "[N * 2][4] __attribute__((unused)) = dp_local_buf.value;  buf[0][0] = 1; }");
    expect("void f() { for (;;) { const A<B, 2> __cbuf__ x; } }",
           "void f() { for (;;) { ::dp::local_array<const A<B, 2>, ::DP_SPACE_L1> dp_local_x{::dp_loc{\"t.asc\", 2}}; "
           "const A<B, 2> (&x) __attribute__((unused)) = dp_local_x.value;  } }");
    expect("void f() { extern __ubuf__ uint8_t dyn[]; }",
           "void f() { uint8_t *const dyn __attribute__((unused)) = static_cast<uint8_t *>(::dp_dynamic_ub(::dp_loc{\"t.asc\","
           " 2})); }");
    /* Lines inside a replaced declaration stay. */
    outcome o = run(MARKER "void f() { __ubuf__ float\n a[2],\n b; }\nint x;");
    assert_int_equal(o.result, REWRITE_DONE);
    assert_non_null(strstr(o.out.data, "\n\n }\nint x;"));
    assert_non_null(strstr(o.out.data, "float (&b) "));
    outcome_free(&o);
}

static void test_kernel_descriptions(void **state) {
    (void)state;
    outcome o = run(MARKER "__global__ __cube__ void a(); __global__ __mix__(1, 2) __schedmode__(1) void b();\n"
                           "extern \"C\" __global__ void c() { KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1); }\n"
                           "static __global__ void d();");
    assert_string_equal(o.messages.data, "");
    assert_int_equal(o.result, REWRITE_DONE);
    assert_non_null(strstr(o.out.data, "dp_kernel_0 __attribute__((unused)) = {\"a\", 1, 0, 0, 0, {\"t.asc\", 2}, {\"\", 0}};"));
    assert_non_null(strstr(o.out.data, "dp_kernel_1 __attribute__((unused)) = {\"b\", 3, 1, 0, 0, {\"t.asc\", 2}, {\"\", 0}};"));
    assert_non_null(strstr(o.out.data, "dp_kernel_2 __attribute__((unused)) = {\"c\", 2, 0, 0, 0, {\"t.asc\", 3}, {\"\", 0}};"));
    assert_non_null(strstr(o.out.data, "const dp_kernel_info dp_kernel_info_of_c = "));
    assert_null(strstr(o.out.data, "dp_kernel_info_of_d"));
    assert_null(strstr(o.out.data, "KERNEL_TASK_TYPE_DEFAULT"));
    outcome_free(&o);
}

static void test_c_launch(void **state) {
    (void)state;
    static const char source[] = MARKER "__global__ void f(__gm__ float *x, const int n) { }\n"
                                        "void g(void) { f<<<8, 0, s>>>(x, 3); }\nint y;\n";
    outcome o = run_mode(source, strlen(source), true);
    assert_string_equal(o.messages.data, "");
    assert_int_equal(o.result, REWRITE_DONE);
    assert_non_null(strstr(o.out.data, "struct dp_ascc_args_f { float * a0; const int a1; };"));
    assert_non_null(strstr(o.out.data, " dp_ascc_launch_f(((dp_loc){\"t.asc\", 3}), (8), "));
    assert_non_null(strstr(o.out.data, "(s), x, 3); }\nint y;\n"));
    outcome_free(&o);
}

static void test_refusals_name_file_line_and_reason(void **state) {
    (void)state;
    static const struct {
        const char *input, *message;
    } cases[] = {
        {"\n\nvoid g() { f<<<1, 0, s>>>(x); }", "t.asc:3: error: f is launched but no kernel of that name"},
        {"__global__ void f();\nvoid g() { f<<<1>>>(); }", "t.asc:2: error: 1 value between <<< and >>>"},
        {"__global__ void f();\nvoid g() { f<<<1, 2, 3, 4, 5>>>(); }", "t.asc:2: error: 5 values"},
        {"__global__ void f();\nvoid g() { f<<<1, , s>>>(); }", "value 2 between <<< and >>> is empty"},
        {"__global__ void f();\nvoid g() { f<<<1, 2; }", "t.asc:2: error: this <<< has no >>>( that closes it"},
        {"__global__ void f();\nvoid g() { f<<<1, 2>>>; }", "has no >>>("},
        {"void g() { <<<1, 2>>>(); }", "<<< must follow the name of a kernel"},
        {"__global__ void f();\nvoid g() { o.f<int><<<1, 2>>>(); }", "a member function cannot be launched"},
        {"__global__ void f();\nvoid g() { []<<<1, 2>>>(); }", "<<< must follow the name of a kernel"},
        {"__global__ int x;", "__global__ must stand before a function"},
        {"__global__ __mix__(2, 1) void f();", "__mix__(cube, vector) must be"},
        {"__global__ __cube__ void f() { KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY); }", "contradicts"},
        {"void f() { static __ubuf__ float x[4]; }", "must be an ordinary local variable"},
        {"__ubuf__ float x[4];", "must be an ordinary local variable"},
        {"void f() { __gm__ float x[4]; }", "cannot live in __gm__ memory"},
        {"void f() { __ubuf__ float x[2] = {1}; }", "cannot be initialised here"},
        {"void f() { __ubuf__ float x[]; }", "x needs a size"},
        {"struct S { __ubuf__ float x[4]; };", "a member cannot live in another memory"},
        {"void f() { alignas(64) __ubuf__ float x[4]; }", "a larger alignment"},
        {"__global__ __cube__ void f(int); __global__ void f(float);\nvoid g() { f<<<1, 0, s>>>(1); }", "need different cores"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_error(cases[i].input, cases[i].message);
    /* Many errors are cut off, and the rest is counted. */
    text many = {0};
    for (int i = 0; i < 50; i++)
        text_puts(&many, "void g() { f<<<1>>>(); }\n");
    outcome o = run(many.data);
    assert_non_null(strstr(o.messages.data, "30 more errors are not shown"));
    outcome_free(&o);
    text_free(&many);
}

static void test_launcher_is_asked_for(void **state) {
    (void)state;
    static const char source[] = "__global__ void f();";
    rewrite_options options = {.name = "t.cpp"};
    text out = {0}, messages = {0};
    assert_int_equal(rewrite(&options, source, strlen(source), &out, &messages), REWRITE_NEEDS_LAUNCHER);
    options.has_launcher = true; /* but the text has no marker */
    assert_int_equal(rewrite(&options, source, strlen(source), &out, &messages), REWRITE_FAILED);
    assert_non_null(strstr(messages.data, "launcher header"));
    text_free(&out);
    text_free(&messages);
}

/* Of the processor: what else runs on the machine is not to blame. */
static double seconds_of(const char *input, size_t size, rewrite_result *result) {
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    outcome o = run_mode(input, size, false);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    *result = o.result;
    outcome_free(&o);
    return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
}

static void test_hostile_shapes_end_quickly(void **state) {
    (void)state;
    static const char *const units[] = {"f<<<", "a<a<", "(", "{", "__ubuf__ a ", "__gm__ a<", ">>>(", "\"", "R\"(", "/*", "'",
                                        "template<", "__global__ ", "a,", "{a}", "f<<<a,(", "::", "# 1 \"a\"\n", "<:", "%>",
                                        "__ubuf__ a;", "{__ubuf__ int a[2];}", "g<a>", "><<<", "a::b<", "\\", "R\"abcdefghijklmnopqrstu("};
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        text t = {0};
        text_puts(&t, "__global__ void f(); void g() { f<<<1, ");
        while (t.size < 1u << 20)
            text_puts(&t, units[u]);
        rewrite_result result;
        const double seconds = seconds_of(t.data, t.size, &result);
        if (seconds > 5)
            fail_msg("1 MB of \"%s\" took %.1f s", units[u], seconds);
        text_free(&t);
    }
}

static void test_deep_templates_and_long_lines(void **state) {
    (void)state;
    text t = {0};
    text_puts(&t, MARKER "template <class T> __global__ void f(T *p); void g() { f<");
    for (int i = 0; i < 100; i++)
        text_puts(&t, "A<");
    text_puts(&t, "int");
    for (int i = 0; i < 101; i++)
        text_puts(&t, ">");
    text_puts(&t, "<<<1, 0, s>>>(p); }");
    while (t.size < 1u << 20)
        text_puts(&t, " int a(int x) { return x < 3 ? x >> 1 : x << 2; }");
    rewrite_result result;
    assert_true(seconds_of(t.data, t.size, &result) < 5);
    assert_int_equal(result, REWRITE_DONE);
    text_free(&t);
}

static uint64_t random_state = 0x9e3779b97f4a7c15u;
static uint32_t random_number(uint32_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % below;
}

/* Random token soup and damaged programs: any result is fine, a crash or a changed line count is not. */
static void test_fuzz(void **state) {
    (void)state;
    static const char *const words[] = {"f", "<<<", ">>>", "(", ")", "{", "}", "[", "]", "<", ">", ",", ";", "::", "__global__",
                                        "__ubuf__", "__gm__", "extern", "template", "\"C\"", "\"", "'", "\n", "# 3 \"q\"\n",
                                        "=", "*", "&", "float", "x", "1", "operator", "static", "namespace", "struct", "->",
                                        "R\"(", ")\"", "/*", "*/", "//", "\\", "KERNEL_TASK_TYPE_DEFAULT", "__mix__", "[aicore]",
                                        ":", "?", "return", "void", MARKER, "\x80", "\x01", "<:", "using", "sizeof"};
    static const char seed_text[] = MARKER "namespace n { template <class T, int N = 4> __global__ __aicore__ void k(__gm__ T *p) {"
                                           " __ubuf__ T a[N][2]; extern __ubuf__ int d[]; a[0][0] = d[0]; } }\n"
                                           "# 3 \"b.h\"\nextern \"C\" __global__ __mix__(1, 2) void m(int a, const S s);\n"
                                           "int main() { n::k<float><<<b<3>(1), nullptr, s>>>(p); m<<<8, s>>>(1, {2}); }\n";
    for (int round = 0; round < 20000; round++) {
        text t = {0};
        if (round % 2) {
            const uint32_t count = 1 + random_number(60);
            for (uint32_t i = 0; i < count; i++) {
                text_puts(&t, words[random_number(sizeof words / sizeof words[0])]);
                text_puts(&t, random_number(2) ? " " : "");
            }
        } else {
            text_add(&t, seed_text, sizeof seed_text - 1);
            for (uint32_t hits = 1 + random_number(4); hits > 0; hits--) {
                const uint32_t at = random_number((uint32_t)t.size);
                if (random_number(2))
                    t.data[at] = seed_text[random_number(sizeof seed_text - 1)];
                else
                    t.size = at + 1;
            }
        }
        char *exact = malloc(t.size ? t.size : 1); /* no byte behind the end: sanitizers notice overreads */
        assert_non_null(exact);
        memcpy(exact, t.data, t.size);
        outcome o = run_mode(exact, t.size, random_number(4) == 0);
        if (o.result == REWRITE_DONE) {
            size_t before = 0, after = 0, length = 0, longest = 0;
            for (size_t i = 0; i < t.size; i++) {
                before += exact[i] == '\n';
                length = exact[i] == '\n' ? 0 : length + 1;
                longest = length > longest ? length : longest;
            }
            for (size_t i = 0; i < o.out.size; i++)
                after += o.out.data[i] == '\n';
            assert_true(after == before || (longest >= 160 && after > before && (after - before) % 2 == 0));
        } else {
            assert_true(o.messages.size > 0 || o.result == REWRITE_NEEDS_LAUNCHER);
        }
        outcome_free(&o);
        free(exact);
        text_free(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_lines_are_broken),
        cmocka_unit_test(test_text_without_kernels_is_untouched),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_launches_through_pointers),
        cmocka_unit_test(test_line_markers_set_file_and_line),
        cmocka_unit_test(test_words_are_blanked),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_kernel_descriptions),
        cmocka_unit_test(test_c_launch),
        cmocka_unit_test(test_refusals_name_file_line_and_reason),
        cmocka_unit_test(test_launcher_is_asked_for),
        cmocka_unit_test(test_hostile_shapes_end_quickly),
        cmocka_unit_test(test_deep_templates_and_long_lines),
        cmocka_unit_test(test_fuzz),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
