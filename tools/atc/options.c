#include "options.h"

#include <stdio.h>
#include <string.h>

option_row options[] = {
    {"model", OPTION_USED, "FILE.onnx, the model", NULL},
    {"framework", OPTION_USED, "5 (ONNX)", NULL},
    {"output", OPTION_USED, "name of the file to write, without .om", NULL},
    {"soc_version", OPTION_USED, "the chip: Ascend910B3, Ascend310P3, ...", NULL},
    {"input_shape", OPTION_USED, "\"name:1,3,224,224;name:...\"; -1 is a dimension chosen for every run, 1~8 one with bounds", NULL},
    {"dynamic_batch_size", OPTION_USED, "\"1,2,4\": sizes for the dimensions that are -1 in input_shape", NULL},
    {"dynamic_image_size", OPTION_USED, "\"224,224;448,448\": height,width for inputs with two -1 in input_shape", NULL},
    {"dynamic_dims", OPTION_USED, "\"1,16;8,64\": a number for every -1 in input_shape, in their order", NULL},
    {"out_nodes", OPTION_USED, "\"node:0;other:1\", or names of values: what the model gives instead of its own outputs", NULL},
    {"input_format", OPTION_USED, "NCHW, NHWC, ND: where AIPP finds the channels; ONNX fixes the layout of the rest", NULL},
    {"insert_op_conf", OPTION_USED, "FILE with settings of AIPP: inputs become pictures (docs/pictures.md)", NULL},
    {"dump-graph", OPTION_USED, "FILE, or - for the terminal: the graph after each step", NULL},
    {"precision_mode", OPTION_USED, "must_keep_origin_dtype (unless given), force_fp16, allow_mix_precision, ...", NULL},
    {"precision_mode_v2", OPTION_USED, "origin (unless given), fp16, bf16, mixed_float16, mixed_bfloat16, cube_fp16in_fp32out", NULL},
    {"calibration", OPTION_USED, "FILE.npy or a folder of such: inputs to make int8 of convolutions with; accuracy is printed", NULL},
    {"calibration_method", OPTION_USED, "percentile (unless given) or minmax: how ranges are found", NULL},
    {"input_fp16_nodes", OPTION_USED, "\"name;name\": inputs that the program gives as half", NULL},
    {"output_type", OPTION_USED, "FP32, FP16, UINT8, or \"node:index:type;...\": the types of outputs", NULL},
    {"log", OPTION_ACCEPTED, "debug, info, warning, error, null", NULL},
    {"op_select_implmode", OPTION_ACCEPTED, "all kernels compute in float or better", NULL},
    {"optypelist_for_implmode", OPTION_ACCEPTED, "as above", NULL},
    {"core_type", OPTION_ACCEPTED, "there is one kind of core", NULL},
    {"weight", OPTION_REFUSED, "weights of Caffe models; ONNX models contain them or name their files", NULL},
    {"mode", OPTION_REFUSED, "only compiling (mode 0) is supported", NULL},
    {"om", OPTION_REFUSED, "goes with --mode=1 and 6, which are not supported", NULL},
    {"singleop", OPTION_REFUSED, "single operators need no compiling: call aclopCompileAndExecute", NULL},
    {"help", OPTION_USED, "this text", NULL},
    {"version", OPTION_USED, "the version", NULL},
    {NULL, OPTION_USED, NULL, NULL},
};

static option_row *find(const char *name, size_t length) {
    for (option_row *row = options; row->name; row++)
        if (strlen(row->name) == length && strncmp(row->name, name, length) == 0)
            return row;
    return NULL;
}

const char *option(const char *name) {
    return find(name, strlen(name))->value;
}

static void print_help(void) {
    static const char *const heads[] = {"used:", "accepted, without effect on a CPU:", "refused:"};
    puts("usage: atc --model=FILE.onnx --framework=5 --output=NAME --soc_version=CHIP [--input_shape=...]\n"
         "Compiles an ONNX model into NAME.om, which aclmdlLoadFromFile loads.\n");
    for (int kind = OPTION_USED; kind <= OPTION_REFUSED; kind++) {
        puts(heads[kind]);
        for (const option_row *row = options; row->name; row++)
            if ((int)row->kind == kind)
                printf("  --%-24s %s\n", row->name, row->help);
    }
}

static options_result wrong(const char *format, const char *detail, const char *more) {
    fputs("atc: ", stderr);
    fprintf(stderr, format, detail, more);
    fputs("\n", stderr);
    return OPTIONS_WRONG;
}

options_result options_read(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : NULL;
        if (strcmp(argv[i], "-h") == 0)
            name = "help";
        if (!name)
            return wrong("\"%s\" is no flag: flags are --name=value; see atc --help%s", argv[i], "");
        size_t length = strcspn(name, "=");
        option_row *row = find(name, length);
        if (!row)
            return wrong("there is no flag --%s; see atc --help%s", name, "");
        bool alone = strcmp(row->name, "help") == 0 || strcmp(row->name, "version") == 0;
        if (alone) {
            if (row->name[0] == 'h')
                print_help();
            else
                puts("atc (Doppel) " DOPPEL_VERSION);
            return OPTIONS_DONE;
        }
        if (name[length] == '=')
            row->value = name + length + 1;
        else if (i + 1 < argc)
            row->value = argv[++i];
        else
            return wrong("--%s has no value%s", row->name, "");
        bool default_mode = strcmp(row->name, "mode") == 0 && strcmp(row->value, "0") == 0;
        if (row->kind == OPTION_REFUSED && !default_mode)
            return wrong("--%s is refused: %s", row->name, row->help);
    }
    return OPTIONS_RUN;
}
