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
    {"mode", OPTION_USED, "0 compiles; 1 writes a model (--om) as JSON (--json); 3 checks one (--check_report); 6 says what is in one (--om)", NULL},
    {"om", OPTION_USED, "FILE.om for --mode=1 and 6; with --framework=5 --mode=1 takes a FILE.onnx", NULL},
    {"json", OPTION_USED, "FILE, or - for the terminal: where --mode=1 writes", NULL},
    {"check_report", OPTION_USED, "FILE, or -: where --mode=3 writes; check_result.json unless given", NULL},
    {"singleop", OPTION_USED, "FILE.json: single operators, each becomes a model in the folder --output", NULL},
    {"input_param_flag", OPTION_ACCEPTED, "inputs may always be given in any order of names", NULL},
    {"disable_reuse_memory", OPTION_ACCEPTED, "memory of values that are not alive together is always shared", NULL},
    {"fusion_switch_file", OPTION_ACCEPTED, "results do not depend on what is fused", NULL},
    {"enable_small_channel", OPTION_ACCEPTED, "layouts are chosen by the compiler", NULL},
    {"enable_single_stream", OPTION_ACCEPTED, "a model runs on one stream", NULL},
    {"buffer_optimize", OPTION_ACCEPTED, "buffers are the CPU's caches", NULL},
    {"auto_tune_mode", OPTION_ACCEPTED, "kernels need no tuning", NULL},
    {"aicore_num", OPTION_ACCEPTED, "the CPU's threads are used", NULL},
    {"op_debug_level", OPTION_ACCEPTED, "no files are left behind", NULL},
    {"debug_dir", OPTION_ACCEPTED, "as above", NULL},
    {"op_compiler_cache_mode", OPTION_ACCEPTED, "operators need no compiling", NULL},
    {"op_compiler_cache_dir", OPTION_ACCEPTED, "as above", NULL},
    {"virtual_type", OPTION_ACCEPTED, "devices are simulated", NULL},
    {"deterministic", OPTION_ACCEPTED, "results are the same every time", NULL},
    {"output_format", OPTION_ACCEPTED, "outputs have the layout of the model", NULL},
    {"save_original_model", OPTION_REFUSED, "it keeps Caffe models; the ONNX file is not touched", NULL},
    {"weight", OPTION_REFUSED, "weights of Caffe models; ONNX models contain them or name their files", NULL},
    {"is_input_adjust_hw_layout", OPTION_REFUSED, "inputs and outputs have plain layouts: convert in the program", NULL},
    {"is_output_adjust_hw_layout", OPTION_REFUSED, "as above", NULL},
    {"compress_weight_conf", OPTION_REFUSED, "weights are not compressed", NULL},
    {"keep_dtype", OPTION_REFUSED, "not supported: name whole modes with --precision_mode_v2", NULL},
    {"customize_dtypes", OPTION_REFUSED, "as above", NULL},
    {"op_name_map", OPTION_REFUSED, "operators have the names of the ONNX specification", NULL},
    {"ddk_version", OPTION_REFUSED, "there is one version", NULL},
    {"input_shape_range", OPTION_REFUSED, "write the bounds in --input_shape: \"x:1~8,3\"", NULL},
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
        if (row->kind == OPTION_REFUSED)
            return wrong("--%s is refused: %s", row->name, row->help);
    }
    return OPTIONS_RUN;
}
