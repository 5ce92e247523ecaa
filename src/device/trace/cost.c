#include "device/trace/trace.h"

#include "base/log.h"
#include "device/core.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The table is part of the library, so that a trace needs no installed data file. */
__asm__(".section .rodata\n"
        ".global dp_cost_table_begin\n.global dp_cost_table_end\n"
        ".hidden dp_cost_table_begin\n.hidden dp_cost_table_end\n"
        "dp_cost_table_begin:\n.incbin \"device/trace/cost.tsv\"\n"
        "dp_cost_table_end:\n.byte 0\n"
        ".previous\n");
extern const char dp_cost_table_begin[], dp_cost_table_end[];

#define MAX_ROWS 128

typedef struct row {
    char name[64], dtype[16];
    dp_cost cost;
    double rate;      /* bytes per cycle, 0 = not given */
    double gib_per_s; /* of "rate X->Y" rows */
} row;

static row rows[MAX_ROWS];
static unsigned row_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* First number of a cell such as "23-24", "307-347" (the middle), "2-5x", "unknown" (fallback). */
static double number(const char *cell, double fallback) {
    char *end;
    double low = strtod(cell, &end);
    if (end == cell)
        return fallback;
    if (*end == '-') {
        double high = strtod(end + 1, &end);
        if (high > low)
            return (low + high) / 2;
    }
    return low;
}

static void read_line(char *line) {
    char *cell[8] = {0};
    unsigned n = 0;
    for (char *at = line; at && n < 8;) {
        cell[n++] = at;
        at = strchr(at, '\t');
        if (at)
            *at++ = '\0';
    }
    if (n < 6 || strcmp(cell[0], "op") == 0)
        return;
    for (char *save = NULL, *name = strtok_r(cell[0], ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        if (row_count == MAX_ROWS)
            return;
        row *r = &rows[row_count++];
        snprintf(r->name, sizeof r->name, "%s", name);
        snprintf(r->dtype, sizeof r->dtype, "%s", cell[1]);
        r->cost = (dp_cost){number(cell[2], 0), number(cell[3], 0)};
        r->rate = number(cell[4], 0);
        r->gib_per_s = strstr(cell[4], "GiB/s") ? r->rate : 0;
    }
}

static char *read_file(const char *path) {
    FILE *in = fopen(path, "r");
    if (!in) {
        dp_log("trace", DP_LOG_ERROR, "DOPPEL_COSTS=%s cannot be read; using the built-in table", path);
        return NULL;
    }
    char *text = calloc(1, 1 << 16);
    size_t got = text ? fread(text, 1, (1 << 16) - 1, in) : 0;
    fclose(in);
    if (text)
        text[got] = '\0';
    return text;
}

static void load(void) {
    const char *path = getenv("DOPPEL_COSTS");
    char *text = path && *path ? read_file(path) : NULL;
    if (!text)
        text = strndup(dp_cost_table_begin, (size_t)(dp_cost_table_end - dp_cost_table_begin));
    if (!text)
        return;
    for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        read_line(line);
    free(text);
}

static const row *find(const char *name) {
    pthread_once(&once, load);
    for (unsigned i = 0; i < row_count; i++)
        if (strcasecmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

dp_cost dp_cost_find(const char *name, unsigned dtype) {
    (void)dtype; /* the public figures give one row per operation; 16-bit types fit twice the lanes in a repeat */
    const row *r = find(name);
    if (!r)
        r = find("vadd");
    return r ? r->cost : (dp_cost){24, 2};
}

void dp_cost_copy(const dp_chip *chip, unsigned dst_space, unsigned src_space, double *out_bytes_per_cycle,
                  double *out_latency) {
    char name[64];
    snprintf(name, sizeof name, "rate %s->%s", dp_space_name(src_space), dp_space_name(dst_space));
    const row *rate = find(name);
    double gib_per_s = rate && rate->gib_per_s > 0 ? rate->gib_per_s : 100.0;
    *out_bytes_per_cycle = gib_per_s * 1073741824.0 / (chip->clock_mhz * 1e6);
    const row *latency = find(dst_space == DP_SPACE_GM ? "GM write latency" : src_space == DP_SPACE_GM ? "GM read latency" : "UB pass");
    *out_latency = latency ? latency->cost.fixed : 12;
}
