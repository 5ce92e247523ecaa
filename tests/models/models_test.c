/*
 * Real models against what onnxruntime makes of them: expected.tsv, which make.js has written.
 *
 * test_models FOLDER-OF-TABLES MODELS; exit status 77 when none of the models is there.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doppel/compile.h"
#include "model.h"

enum { SKIPPED = 77, LINE = 4096, PATH_BYTES = 4096, INPUTS = 8 };
/* Differences, of an output's largest magnitude. */
static const double most = 1e-4;

typedef struct row {
    char name[64], package[64], file[128], inputs[512];
} row;

static unsigned crc32(unsigned crc, const unsigned char *bytes, size_t n) {
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

/* As make.js does. */
static void fill_numbers(float *out, size_t count, uint64_t seed, double low, double high) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        out[i] = (float)(low + (high - low) * (double)(state >> 40) / 16777216);
    }
}

static bool check_file(const char *path, unsigned long bytes, unsigned long crc) {
    unsigned char buffer[1 << 16];
    FILE *file = fopen(path, "rb");
    unsigned sum = 0;
    unsigned long total = 0;
    for (size_t n; file && (n = fread(buffer, 1, sizeof buffer, file)) > 0; total += n)
        sum = crc32(sum, buffer, n);
    if (file)
        fclose(file);
    return total == bytes && sum == crc;
}

/* One input's word: NAME=DIMS=VALUES. */
typedef struct spec {
    char name[64], dims[64], values[64];
} spec;

static int parse_inputs(const char *text, spec *specs) {
    int n = 0, used = 0;
    while (n < INPUTS &&
           sscanf(text, " %63[^= ]=%63[^= ]=%63[^ ]%n", specs[n].name, specs[n].dims, specs[n].values, &used) == 3) {
        text += used;
        n++;
    }
    return n;
}

static bool compile(const char *onnx, const char *om, const spec *specs, int n) {
    char shapes[1024] = "", message[1024];
    for (int i = 0; i < n; i++) {
        if (strcmp(specs[i].dims, "scalar") == 0)
            continue;
        size_t used = strlen(shapes);
        snprintf(shapes + used, sizeof shapes - used, "%s%s:%s", used ? ";" : "", specs[i].name, specs[i].dims);
        for (char *c = shapes + used; *c; c++)
            if (*c == 'x' && c > strrchr(shapes, ':'))
                *c = ',';
    }
    dp_compile_options o = {.model = onnx, .output = om, .input_shape = shapes};
    if (dp_compile_model(&o, message, sizeof message))
        return true;
    printf("  %s\n", message);
    return false;
}

static bool fill(model *m, const spec *specs, int n) {
    for (int i = 0; i < n; i++) {
        model_end *e = NULL;
        for (int k = 0; k < m->n_inputs; k++)
            if (strcmp(m->inputs[k].name, specs[i].name) == 0)
                e = &m->inputs[k];
        int low, high;
        if (!e) {
            printf("  the model has no input \"%s\"\n", specs[i].name);
            return false;
        }
        if (strcmp(specs[i].values, "zeros") == 0)
            memset(e->host, 0, e->bytes);
        else if (sscanf(specs[i].values, "%d..%d", &low, &high) == 2)
            fill_numbers(e->host, e->count, (uint64_t)i + 1, low, high);
        else
            ((int64_t *)e->host)[0] = atoll(specs[i].values);
    }
    return true;
}

/* A line of expected.tsv: "output", number, dims, largest magnitude, places and values. */
static bool check_output(const model *m, char *line) {
    char *rest = line, dims[128];
    strtok_r(line, "\t", &rest);
    int k = atoi(strtok_r(NULL, "\t", &rest));
    const char *shape = strtok_r(NULL, "\t", &rest);
    double magnitude = atof(strtok_r(NULL, "\t", &rest)), worst = 0;
    if (k >= m->n_outputs)
        return false;
    const model_end *e = &m->outputs[k];
    if (strcmp(model_shape_text(e->dims, e->rank, dims, sizeof dims), shape) != 0) {
        printf("  output %d is %s, expected %s\n", k, dims, shape);
        return false;
    }
    for (char *one = strtok_r(NULL, " \n", &rest); one; one = strtok_r(NULL, " \n", &rest)) {
        size_t place = strtoul(one, &one, 10);
        double got = place < e->count ? model_number(e->type, e->host, place) : NAN;
        double error = fabs(got - atof(one + 1));
        worst = error <= worst ? worst : error; /* NaN stays */
    }
    printf("  output %d: largest difference %.2g of %.3g\n", k, worst, magnitude);
    return worst <= most * magnitude + 1e-6;
}

static bool open_model(const row *r, const char *onnx, model *m) {
    char om[] = "/tmp/test_models_XXXXXX.om";
    spec specs[INPUTS];
    int n = parse_inputs(r->inputs, specs), file = mkstemps(om, 3);
    if (file < 0)
        return false;
    close(file);
    bool good = compile(onnx, om, specs, n) && model_open("test_models", om, &(model_choice){.workers = 0}, m) &&
                fill(m, specs, n) && model_run(m);
    unlink(om);
    return good;
}

static bool find_row(FILE *table, const char *name, row *r) {
    char line[LINE];
    rewind(table);
    while (fgets(line, sizeof line, table))
        if (sscanf(line, "%63[^\t]\t%63[^\t]\t%127[^\t]\t%511[^\n]", r->name, r->package, r->file, r->inputs) == 4 &&
            strcmp(r->name, name) == 0)
            return true;
    return false;
}

/* The table's last line has the checksum of all before it. */
static bool check_table(FILE *file) {
    char line[LINE];
    unsigned sum = 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "crc32\t", 6) == 0) {
            rewind(file);
            return strtoul(line + 6, NULL, 16) == sum;
        }
        sum = crc32(sum, (unsigned char *)line, strlen(line));
    }
    return false;
}

int main(int argc, char **argv) {
    char path[PATH_BYTES], line[LINE], name[64];
    if (argc != 3)
        return 2;
    snprintf(path, sizeof path, "%s/models.tsv", argv[1]);
    FILE *table = fopen(path, "r");
    snprintf(path, sizeof path, "%s/expected.tsv", argv[1]);
    FILE *expected = fopen(path, "r");
    if (!table || !expected || !check_table(expected)) {
        printf("models.tsv and expected.tsv cannot be read, or expected.tsv does not have its checksum\n");
        return 1;
    }
    int looked = 0, wrong = 0;
    bool open = false, failed = false;
    model m = {0};
    while (fgets(line, sizeof line, expected)) {
        unsigned long bytes, crc;
        row r;
        if (sscanf(line, "model\t%63s\t%lu\t%lx", name, &bytes, &crc) == 3) {
            wrong += failed;
            model_close(&m);
            open = failed = false;
            if (!find_row(table, name, &r))
                return 1;
            snprintf(path, sizeof path, "%s/%s", argv[2], strrchr(r.file, '/') + 1);
            if (access(path, R_OK) != 0) {
                printf("%s: skipped, %s is not there\n", name, path);
                continue;
            }
            printf("%s\n", name);
            looked++;
            open = check_file(path, bytes, crc) && open_model(&r, path, &m);
            failed = !open;
            if (failed)
                printf("  it is another file, or does not compile and run\n");
        } else if (open && strncmp(line, "output\t", 7) == 0) {
            failed |= !check_output(&m, line);
        }
    }
    wrong += failed;
    model_close(&m);
    fclose(table);
    fclose(expected);
    printf("%d models, %d wrong\n", looked, wrong);
    return wrong ? 1 : looked ? 0 : SKIPPED;
}
