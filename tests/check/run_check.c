#include "run_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *read_file(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    while (text) {
        size_t n = fread(text + used, 1, room - used - 1, file);
        used += n;
        if (!n)
            break;
        if (used + 1 == room)
            text = realloc(text, room *= 2);
    }
    fclose(file);
    if (text)
        text[used] = '\0';
    return text;
}

static check_result run(const char *command, const char *json) {
    check_result result = {0};
    char out[64], err[64], line[4096];
    snprintf(out, sizeof out, "/tmp/doppel_test_%ld.out", (long)getpid());
    snprintf(err, sizeof err, "/tmp/doppel_test_%ld.err", (long)getpid());
    snprintf(line, sizeof line, "{ %s ; } >%s 2>%s", command, out, err);
    int status = system(line);
    result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    result.output = read_file(out);
    result.text = read_file(err);
    char *text = json ? read_file(json) : NULL;
    if (text)
        result.json = cJSON_ParseWithOpts(text, NULL, true);
    free(text);
    unlink(out);
    unlink(err);
    if (json)
        unlink(json);
    return result;
}

check_result check_run(const char *command) {
    char json[64], line[4000];
    snprintf(json, sizeof json, "/tmp/doppel_test_%ld.json", (long)getpid());
    unlink(json);
    snprintf(line, sizeof line, "%s check --json %s %s", DOPPEL, json, command);
    return run(line, json);
}

check_result check_shell(const char *command) { return run(command, NULL); }

void check_free(check_result *result) {
    free(result->text);
    free(result->output);
    cJSON_Delete(result->json);
    *result = (check_result){0};
}

static const cJSON *processes(const check_result *result) { return cJSON_GetObjectItem(result->json, "processes"); }

int check_count(const check_result *result) {
    int count = 0;
    const cJSON *process;
    cJSON_ArrayForEach(process, processes(result)) count += cJSON_GetArraySize(cJSON_GetObjectItem(process, "findings"));
    return count;
}

const cJSON *check_finding(const check_result *result, int index) {
    const cJSON *process;
    cJSON_ArrayForEach(process, processes(result)) {
        const cJSON *list = cJSON_GetObjectItem(process, "findings");
        if (index < cJSON_GetArraySize(list))
            return cJSON_GetArrayItem(list, index);
        index -= cJSON_GetArraySize(list);
    }
    return NULL;
}

static const cJSON *member(const cJSON *object, const char *path) {
    char name[64];
    while (object && *path) {
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        object = cJSON_GetObjectItem(object, name);
        path += n + (path[n] == '.');
    }
    return object;
}

const char *check_string(const cJSON *finding, const char *path) {
    const char *text = cJSON_GetStringValue(member(finding, path));
    return text ? text : "";
}

int check_number(const cJSON *finding, const char *path) {
    const cJSON *item = member(finding, path);
    return cJSON_IsNumber(item) ? (int)item->valuedouble : 0;
}
