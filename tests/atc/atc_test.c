/* atc as a program: what it prints and writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <cJSON.h>

#include "graph/model_file.h"
#include "graph/onnx_make.h"
#include "graph/program.h"

static char folder[] = "/tmp/doppel_atc_XXXXXX";
static char output[1 << 16];

/* Runs atc in the folder with these flags; its exit status, and all that it says in `output`. */
static int atc(const char *flags) {
    char command[4096];
    snprintf(command, sizeof command, "cd %s && " ATC " %s 2>&1", folder, flags);
    FILE *pipe = popen(command, "r");
    size_t n = fread(output, 1, sizeof output - 1, pipe);
    output[n] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static void works(const char *flags, const char *word) {
    if (atc(flags) != 0 || !strstr(output, word))
        fail_msg("atc %s: \"%s\" is not in: %s", flags, word, output);
}
static void fails(const char *flags, const char *word) {
    if (atc(flags) != 1 || !strstr(output, word))
        fail_msg("atc %s: \"%s\" is not in: %s", flags, word, output);
}

static void write_text(const char *name, const char *text, size_t bytes) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(text, 1, bytes, file) == bytes);
    fclose(file);
}
static cJSON *read_json(const char *name) {
    static char text[1 << 16];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    return json;
}

static int set_up(void **state) {
    (void)state;
    size_t bytes;
    maker *m = make_begin(17);
    assert_non_null(mkdtemp(folder));
    make_input(m, "x", 1, 2, (int64_t[]){-1, 4});
    make_node(m, "Relu", "x", "r");
    make_node(m, "Softmax", "r", "\"y\"");
    make_integer(m, "axis", -1);
    make_output(m, "r");
    make_output(m, "\"y\"");
    void *file = make_end(m, &bytes);
    write_text("net.onnx", file, bytes);
    free(file);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

#define COMPILE "--model=net.onnx --framework=5 --output=net --soc_version=Ascend310 "

static void flags_are_checked(void **state) {
    (void)state;
    works("--help", "--dynamic_batch_size");
    works("--version", "Doppel");
    works(COMPILE "--input_shape=x:2,4 --log=info --input_format=ND --op_select_implmode=high_performance --mode=0",
          "success");
    works("--model net.onnx --framework 5 --output net --soc_version Ascend910B3 --input_shape x:2,4", "success");
    fails("", "--model is missing");
    fails("net.onnx", "is no flag");
    fails("--modle=net.onnx", "there is no flag --modle");
    fails("--model", "has no value");
    fails("--model=net.caffemodel --framework=0 --output=net --soc_version=Ascend310", "Caffe");
    fails("--model=net.pb --framework=3 --output=net --soc_version=Ascend310", "TensorFlow");
    fails("--model=net.air --framework=1 --output=net --soc_version=Ascend310", "MindSpore");
    fails("--model=net.onnx --framework=5 --output=net --soc_version=Ascend1", "Ascend1");
    fails(COMPILE "--input_shape=x:2,4 --weight=w", "--weight is refused");
    fails(COMPILE, "input_shape");
    fails("--mode=4", "--mode is \"4\"");
}

static void models_are_described(void **state) {
    (void)state;
    works(COMPILE "--input_shape=x:-1,4 --dynamic_batch_size=1,8", "2 of 2 shapes");
    works("--mode=6 --om=net.om", "gears: 1; 8");
    assert_non_null(strstr(output, "input: x f32 [-1, 4]"));
    assert_non_null(strstr(output, "gear 1: 2 nodes\n  input: x f32 [1, 4]\n  output: r f32 [1, 4]\n"));
    assert_non_null(strstr(output, "gear 8: 2 nodes\n  input: x f32 [8, 4]\n  output: r f32 [8, 4]\n"));
    works("--mode=1 --om=net.om --json=net.json", "success");
    cJSON *json = read_json("net.json");
    const cJSON *graphs = cJSON_GetObjectItem(json, "graph");
    assert_int_equal(cJSON_GetArraySize(graphs), 2);
    const cJSON *op = cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetArrayItem(graphs, 1), "op"), 0);
    assert_string_equal(cJSON_GetObjectItem(op, "type")->valuestring, "Relu");
    cJSON_Delete(json);
    works("--mode=1 --framework=5 --om=net.onnx --json=net.json", "success");
    json = read_json("net.json");
    cJSON_Delete(json);
    works("--mode=3 --framework=5 --model=net.onnx --check_report=report.json", "success");
    json = read_json("report.json");
    assert_string_equal(cJSON_GetObjectItem(json, "result")->valuestring, "success");
    cJSON_Delete(json);
    fails("--mode=3 --framework=5 --model=net.om", "net.om: the ");
    fails("--framework=5 --model=net.om --output=x --soc_version=Ascend310", "no ONNX model");
    fails("--mode=1 --om=net.om", "--json is missing");
    fails("--mode=1 --om=net.onnx --json=-", "--framework=5 --om=net.onnx");
    fails("--mode=6 --om=net.onnx", "is an ONNX file");
    fails("--mode=1 --om=nothing.om --json=x", "nothing.om");
    fails("--mode=1 --om=net.om --json=/nowhere/x", "/nowhere/x");
    fails("--mode=6", "--om is missing");
    write_text("vendor.om", "IMODxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 30);
    fails("--mode=6 --om=vendor.om", "vendor");
}

static const char *const operators =
    "[{\"op\": \"Add\", \"input_desc\": [{\"format\": \"ND\", \"shape\": [2, 3], \"type\": \"float\"},"
    "{\"format\": \"ND\", \"shape\": [3], \"type\": \"float\"}], \"output_desc\": "
    "[{\"format\": \"ND\", \"shape\": [2, 3], \"type\": \"float\"}]},"
    "{\"op\": \"Tile\", \"input_desc\": [{\"shape\": [2], \"type\": \"int32\"}, {\"shape\": [1], "
    "\"type\": \"int64\", \"const_value\": [3]}], \"output_desc\": [{\"shape\": [6], \"type\": \"int32\"}]},"
    "{\"op\": \"Cast\", \"input_desc\": [{\"shape\": [2], \"type\": \"float\"}], \"output_desc\": "
    "[{\"shape\": [2], \"type\": \"int32\"}], \"attr\": [{\"name\": \"dst_type\", \"type\": \"int\", \"value\": 3}]}]";

static void run_file(const char *name, void *const *inputs, void *output_at) {
    char path[256];
    dp_model_file *file;
    dp_program *program;
    snprintf(path, sizeof path, "%s/ops/%s", folder, name);
    assert_int_equal(dp_model_file_open(path, &file), DP_OK);
    assert_int_equal(dp_program_new(dp_model_file_variant(file, 0)->graph, &program), DP_OK);
    void *work = aligned_alloc(64, dp_program_work_bytes(program) / 64 * 64 + 64);
    assert_int_equal(dp_program_run(program, inputs, &output_at, work), DP_OK);
    free(work);
    dp_program_free(program);
    dp_model_file_close(file);
}

static void single_operators(void **state) {
    (void)state;
    float a[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20, 30}, sum[6], c[] = {1.5f, -2.5f};
    int32_t x[] = {7, 8}, tiled[6], cast[2];
    write_text("ops.json", operators, strlen(operators));
    works("--singleop=ops.json --output=ops --soc_version=Ascend310", "success");
    run_file("0_Add.om", (void *[]){a, b}, sum);
    assert_true(sum[0] == 11 && sum[5] == 36);
    run_file("1_Tile.om", (void *[]){x}, tiled);
    assert_true(tiled[0] == 7 && tiled[5] == 8);
    run_file("2_Cast.om", (void *[]){c}, cast);
    assert_true(cast[0] == 1 && cast[1] == -2);
    static const struct {
        const char *text, *word;
    } wrong[] = {
        {"", "list of 1"},
        {"{}", "list of 1"},
        {"[]", "list of 1"},
        {"[{}]", "\"op\""},
        {"[{\"op\": \"../x\"}]", "\"op\""},
        {"[{\"op\": \"NoSuchType\"}]", "NoSuchType"},
        {"[{\"op\": \"Relu\", \"input_desc\": [{\"shape\": [2], \"type\": \"flaot\"}]}]", "flaot"},
        {"[{\"op\": \"Relu\", \"input_desc\": [{\"shape\": [-1], \"type\": \"float\"}]}]", "open dimension"},
        {"[{\"op\": \"Relu\", \"input_desc\": [{\"shape\": [1.5], \"type\": \"float\"}]}]", "whole number"},
        {"[{\"op\": \"Relu\", \"input_desc\": [{\"shape\": [4e15, 4e15], \"type\": \"float\"}]}]", "Relu"},
        {"[{\"op\": \"Relu\", \"input_desc\": [{\"shape\": [2], \"type\": \"float\"}], \"output_desc\": [{\"shape\": "
         "[3], \"type\": "
         "\"float\"}]}]",
         "Relu"},
        {"[{\"op\": \"Cast\", \"input_desc\": [{\"shape\": [2], \"type\": \"float\"}], \"output_desc\": [{\"shape\": "
         "[2], \"type\": "
         "\"int32\"}], \"attr\": [{\"name\": \"dst_type\", \"type\": \"blob\", \"value\": 3}]}]",
         "blob"},
        {"[{\"op\": \"Tile\", \"input_desc\": [{\"shape\": [2], \"type\": \"float\"}, {\"shape\": [1], \"type\": "
         "\"int64\", "
         "\"const_value\": [1, 2]}]}]",
         "const_value"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_text("wrong.json", wrong[i].text, strlen(wrong[i].text));
        fails("--singleop=wrong.json --output=ops --soc_version=Ascend310", wrong[i].word);
    }
    fails("--singleop=nothing.json --output=ops --soc_version=Ascend310", "nothing.json");
    fails("--singleop=ops.json --soc_version=Ascend310", "--output is missing");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(flags_are_checked), cmocka_unit_test(models_are_described),
                                       cmocka_unit_test(single_operators)};
    return cmocka_run_group_tests_name("atc", tests, set_up, tear_down);
}
