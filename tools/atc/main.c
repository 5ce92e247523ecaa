/* atc: compiles a model into a file that aclmdlLoadFromFile loads. Exit status 0 when it did, 1 otherwise. */
#include <stdio.h>
#include <string.h>

#include "doppel/compile.h"
#include "options.h"

static const char *framework_name(const char *value) {
    static const char *const names[] = {"Caffe", "MindSpore", NULL, "TensorFlow"};
    return strlen(value) == 1 && value[0] >= '0' && value[0] <= '3' ? names[value[0] - '0'] : NULL;
}

static int check(void) {
    static const char *const needed[] = {"model", "framework", "output", "soc_version"};
    for (int i = 0; i < 4; i++) {
        if (!option(needed[i])) {
            fprintf(stderr, "atc: --%s is missing; see atc --help\n", needed[i]);
            return 1;
        }
    }
    const char *framework = option("framework");
    if (strcmp(framework, "5") == 0)
        return 0;
    const char *name = framework_name(framework);
    if (name)
        fprintf(stderr, "atc: --framework=%s is %s, which Doppel does not read: convert the model to ONNX (5)\n",
                framework, name);
    else
        fprintf(stderr, "atc: --framework is \"%s\", but must be 5 (ONNX)\n", framework);
    return 1;
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
    if (check())
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
    if (dp_compile_model(&compile, message, sizeof message)) {
        fputs(message, stdout);
        puts("ATC run success");
        return 0;
    }
    fprintf(stderr, "atc: %s\nATC run failed\n", message);
    return 1;
}
