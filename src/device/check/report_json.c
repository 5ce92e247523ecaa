#include <inttypes.h>

#include <unistd.h>

#include "device/check/state.h"

/* Length of the UTF-8 sequence at s, 0 if it is none. */
static unsigned utf8_length(const unsigned char *s) {
    unsigned n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    for (unsigned i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

static void print_string(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        unsigned n = utf8_length(s);
        if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if (*s < 0x20)
            fprintf(out, "\\u%04x", *s);
        else if (!n)
            fputs("\\ufffd", out);
        else
            fwrite(s, 1, n, out);
        s += n ? n : 1;
    }
    fputc('"', out);
}

static void print_text(FILE *out, const char *key, const char *text) {
    char shown[512];
    fprintf(out, ", \"%s\": ", key);
    print_string(out, dp_check_report_text(text, shown, sizeof shown));
}

static void print_loc(FILE *out, dp_loc loc) {
    fputs("\"file\": ", out);
    if (loc.line)
        print_string(out, dp_check_report_path(loc.file));
    else
        fputs("null", out);
    fprintf(out, ", \"line\": %" PRIu32, loc.line);
}

static void print_place(FILE *out, const char *key, const dp_check_place *place) {
    fprintf(out, ",\n     \"%s\": {", key);
    print_loc(out, place->loc);
    if (place->op >= 0)
        print_text(out, "instruction", dp_insn_name((unsigned)place->op));
    if (place->pipe >= 0)
        print_text(out, "pipe", dp_pipe_name((unsigned)place->pipe));
    print_text(out, "what", place->what);
    fputc('}', out);
}

static void print_finding(FILE *out, const dp_finding *f) {
    fprintf(out, "    {\"kind\": \"%s\", \"count\": %" PRIu64, dp_check_kind_name(f->kind), f->count);
    print_text(out, "sentence", f->sentence);
    print_place(out, "place", &f->place);
    if (f->has_other)
        print_place(out, "other", &f->other);
    if (f->kernel[0]) {
        fprintf(out, ",\n     \"kernel\": ");
        print_string(out, f->kernel);
        fprintf(out, ", \"launch\": %" PRIu64 ", \"block\": %" PRIu32 ", \"core\": %" PRIu32 ", \"core_kind\": \"%s\"", f->launch,
                f->block, f->core, f->on_cube ? "cube" : "vector");
        fprintf(out, ", \"launched\": {");
        print_loc(out, f->launch_loc);
        fputc('}', out);
    }
    if (f->memory[0])
        print_text(out, "memory", f->memory);
    if (f->cure[0])
        print_text(out, "cure", f->cure);
    fputc('}', out);
}

void dp_check_report_json(FILE *out) {
    dp_check_totals totals = dp_check_total();
    fprintf(out, "  {\"pid\": %ld, \"launches\": %" PRIu64 ", \"instructions\": %" PRIu64 ", \"not_shown\": %" PRIu64
                 ", \"complete\": %s,\n   \"findings\": [\n",
            (long)getpid(), totals.launches, totals.instructions, dp_finding_dropped(),
            totals.no_memory || totals.lost_spans ? "false" : "true");
    dp_finding f;
    for (unsigned i = 0; dp_finding_at(i, &f); i++) {
        if (i)
            fputs(",\n", out);
        print_finding(out, &f);
    }
    fputs("\n   ]}\n", out);
}
