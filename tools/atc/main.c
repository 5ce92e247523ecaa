/* atc: compiles a model into a file that aclmdlLoadFromFile loads. Exit status 0 when it did, 1 otherwise. */
#include <stdio.h>
#include <string.h>

#include "doppel/compile.h"
#include "options.h"

static const char *framework_name(const char *value) {
    static const char *const names[] = {"Caffe", "MindSpore", NULL, "TensorFlow"};
    return strlen(value) == 1 && value[0] >= '0' && value[0] <= '3' ? names[value[0] - '0'] : NULL;
}

/* Whether all these flags are given; a sentence if not. */
static bool have(int n, const char *const *names, const char *with) {
    for (int i = 0; i < n; i++) {
        if (option(names[i]))
            continue;
        fprintf(stderr, "atc: --%s is missing%s; see atc --help\n", names[i], with);
        return false;
    }
    return true;
}

static bool check_framework(void) {
    const char *framework = option("framework");
    if (strcmp(framework, "5") == 0)
        return true;
    const char *name = framework_name(framework);
    if (name)
        fprintf(stderr, "atc: --framework=%s is %s, which Doppel does not read: convert the model to ONNX (5)\n",
                framework, name);
    else
        fprintf(stderr, "atc: --framework is \"%s\", but must be 5 (ONNX)\n", framework);
    return false;
}

static int finish(bool fine, const char *message) {
    if (fine) {
        fputs(message, stdout);
        puts("ATC run success");
        return 0;
    }
    fprintf(stderr, "atc: %s\nATC run failed\n", message);
    return 1;
}

/* An ONNX file where a compiled one is wanted. */
static bool is_compiled(const char *path) {
    size_t n = strlen(path);
    if (n < 5 || strcmp(path + n - 5, ".onnx") != 0)
        return true;
    fprintf(stderr, "atc: %s is an ONNX file: see what is in it with --mode=1 --framework=5 --om=%s --json=-\n", path,
            path);
    return false;
}

/* --mode=1, 3 and 6. */
static int describe(const char *mode) {
    char message[2048];
    if (strcmp(mode, "1") == 0) {
        bool onnx = option("framework") != NULL;
        if (!have(2, (const char *const[]){"om", "json"}, " with --mode=1") || (onnx && !check_framework()) ||
            (!onnx && !is_compiled(option("om"))))
            return 1;
        bool fine = dp_describe_model(option("om"), onnx, option("json"), message, sizeof message);
        return finish(fine, message);
    }
    if (strcmp(mode, "3") == 0) {
        if (!have(2, (const char *const[]){"model", "framework"}, " with --mode=3") || !check_framework())
            return 1;
        const char *report = option("check_report") ? option("check_report") : "check_result.json";
        bool fine = dp_check_model(option("model"), report, message, sizeof message);
        return finish(fine, message);
    }
    if (strcmp(mode, "6") == 0) {
        if (!have(1, (const char *const[]){"om"}, " with --mode=6") || !is_compiled(option("om")))
            return 1;
        bool fine = dp_describe_model(option("om"), false, NULL, message, sizeof message);
        return finish(fine, message);
    }
    fprintf(stderr, "atc: --mode is \"%s\", but must be 0 (compile), 1 (JSON), 3 (check) or 6 (what is in a model)\n",
            mode);
    return 1;
}

static int compile_operators(void) {
    char message[2048];
    if (!have(2, (const char *const[]){"output", "soc_version"}, " with --singleop"))
        return 1;
    bool fine =
        dp_compile_operators(option("singleop"), option("output"), option("soc_version"), message, sizeof message);
    return finish(fine, message);
}

/* One line per shape, when there are several. */
static void show_progress(void *data, int done, int all) {
    (void)data;
    if (all > 1)
        fprintf(stderr, "atc: %d of %d shapes compiled\n", done, all);
}

int main(int argc, char **argv) {
    char message[2048];
    options_result result = options_read(argc, argv);
    if (result != OPTIONS_RUN)
        return result == OPTIONS_DONE ? 0 : 1;
    if (option("mode") && strcmp(option("mode"), "0") != 0)
        return describe(option("mode"));
    if (option("singleop"))
        return compile_operators();
    if (!have(4, (const char *const[]){"model", "framework", "output", "soc_version"}, "") || !check_framework())
        return 1;
    dp_compile_options compile = {.model = option("model"),
                                  .output = option("output"),
                                  .input_shape = option("input_shape"),
                                  .soc_version = option("soc_version"),
                                  .precision_mode = option("precision_mode"),
                                  .precision_mode_v2 = option("precision_mode_v2"),
                                  .calibration = option("calibration"),
                                  .calibration_method = option("calibration_method"),
                                  .input_fp16_nodes = option("input_fp16_nodes"),
                                  .output_type = option("output_type"),
                                  .dynamic_batch_size = option("dynamic_batch_size"),
                                  .dynamic_image_size = option("dynamic_image_size"),
                                  .dynamic_dims = option("dynamic_dims"),
                                  .out_nodes = option("out_nodes"),
                                  .progress = show_progress,
                                  .insert_op_conf = option("insert_op_conf"),
                                  .input_format = option("input_format"),
                                  .dump_graph = option("dump-graph")};
    bool fine = dp_compile_model(&compile, message, sizeof message);
    return finish(fine, message);
}
