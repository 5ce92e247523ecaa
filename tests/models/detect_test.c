/*
 * examples/detect on photographs: the same text, and the same boxes within a pixel, as with onnxruntime.
 *
 * test_detect PROGRAM expected.json MODELS PHOTOS DOPPEL; the first photograph once more under `doppel check`. Exit
 * status 77 when the models or the photographs are not there.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, PATH_BYTES = 4096 };
static const double cornerMost = 1, scoreMost = .01;

static char *read_file(const char *path, size_t *out_bytes) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        *out_bytes = (size_t)ftell(file);
        text = malloc(*out_bytes + 1);
        rewind(file);
        if (text && fread(text, 1, *out_bytes, file) == *out_bytes)
            text[*out_bytes] = '\0';
    }
    if (file)
        fclose(file);
    return text;
}

static cJSON *read_json(const char *path) {
    size_t bytes;
    char *text = read_file(path, &bytes);
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    free(text);
    return json;
}

static unsigned crc32(const unsigned char *bytes, size_t n) {
    unsigned crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}
static double number_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* The photograph under the folder, if it is the one that is meant: its path in `out`. */
static int find_photo(const char *folder, const cJSON *expected, char *out) {
    char command[2 * PATH_BYTES];
    snprintf(command, sizeof command, "find -L '%s' -name '%s' 2>/dev/null", folder, text_of(expected, "photo"));
    FILE *pipe = popen(command, "r");
    int found = 0;
    while (pipe && !found && fgets(out, PATH_BYTES, pipe)) {
        size_t bytes;
        out[strcspn(out, "\n")] = '\0';
        char *data = read_file(out, &bytes);
        found = data && crc32((unsigned char *)data, bytes) == strtoul(text_of(expected, "crc32"), NULL, 16);
        free(data);
    }
    if (pipe)
        pclose(pipe);
    return found;
}

static int same_thing(const cJSON *a, const cJSON *b) {
    const cJSON *p = cJSON_GetObjectItemCaseSensitive(a, "corners"),
                *q = cJSON_GetObjectItemCaseSensitive(b, "corners");
    int good = strcmp(text_of(a, "kind"), text_of(b, "kind")) == 0 &&
               strcmp(text_of(a, "text"), text_of(b, "text")) == 0 &&
               fabs(number_of(a, "score") - number_of(b, "score")) <= scoreMost;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            const cJSON *x = cJSON_GetArrayItem(cJSON_GetArrayItem(p, i), k);
            const cJSON *y = cJSON_GetArrayItem(cJSON_GetArrayItem(q, i), k);
            good &= x && y && fabs(x->valuedouble - y->valuedouble) <= cornerMost;
        }
    return good;
}

static int same_photo(const cJSON *expected, const cJSON *found) {
    const cJSON *a = cJSON_GetObjectItemCaseSensitive(expected, "found"),
                *b = cJSON_GetObjectItemCaseSensitive(found, "found");
    int n = cJSON_GetArraySize(a), good = b && n == cJSON_GetArraySize(b);
    for (int i = 0; i < n && good; i++)
        good = same_thing(cJSON_GetArrayItem(a, i), cJSON_GetArrayItem(b, i));
    if (!good) {
        char *x = cJSON_PrintUnformatted(a), *y = cJSON_PrintUnformatted(b);
        printf("%s: expected\n%s\nfound\n%s\n", text_of(expected, "photo"), x, y ? y : "nothing");
        cJSON_free(x);
        cJSON_free(y);
    }
    return good;
}

int main(int argc, char **argv) {
    char scratch[] = "/tmp/test_detect_XXXXXX", command[4 * PATH_BYTES], photo[PATH_BYTES], json[PATH_BYTES];
    if (argc != 6)
        return 2;
    cJSON *all = read_json(argv[2]);
    if (!all || !mkdtemp(scratch))
        return 1;
    snprintf(command, sizeof command, "%s/face_back.om", argv[3]);
    int wrong = 0, looked = 0, models = access(command, R_OK) == 0;
    const cJSON *expected;
    cJSON_ArrayForEach(expected, all) {
        if (!models || !find_photo(argv[4], expected, photo)) {
            printf("skipped: %s is not there\n", models ? text_of(expected, "photo") : command);
            continue;
        }
        snprintf(json, sizeof json, "%s/found.json", scratch);
        snprintf(command, sizeof command, "'%s' --models '%s' --out %s --json %s '%s' >/dev/null", argv[1], argv[3],
                 scratch, json, photo);
        int status = system(command);
        cJSON *found = status == 0 ? read_json(json) : NULL;
        if (!found || !same_photo(expected, cJSON_GetArrayItem(found, 0)))
            wrong++;
        else
            printf("%s: %d things, as expected\n", text_of(expected, "photo"),
                   cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(expected, "found")));
        cJSON_Delete(found);
        snprintf(command, sizeof command, "'%s' check '%s' --models '%s' --out %s '%s' >/dev/null", argv[5], argv[1],
                 argv[3], scratch, photo);
        if (looked++ == 0 && system(command) != 0) {
            printf("doppel check finds something\n");
            wrong++;
        }
    }
    cJSON_Delete(all);
    snprintf(command, sizeof command, "rm -r %s", scratch);
    if (system(command) != 0)
        return 1;
    return wrong ? 1 : looked ? 0 : SKIPPED;
}
