/*
 * c_kernels.c - functions made for kernels: the typed launcher of a C kernel, and aclrtlaunch_<kernel> with its header.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

typedef struct parameter {
    text type; /* without the name */
    bool is_pointer;
} parameter;

typedef struct parameters {
    parameter *at;
    size_t count;
} parameters;

static void parameters_free(parameters *p) {
    for (size_t i = 0; i < p->count; i++)
        text_free(&p->at[i].type);
    free(p->at);
    memset(p, 0, sizeof *p);
}

static void put_type(const tokens *t, int32_t begin, int32_t end, text *out) {
    for (int32_t i = begin; i < end; i++)
        if (!is_space_word(t, i)) {
            if (out->size)
                text_puts(out, " ");
            tokens_join(t, i, i + 1, out);
        }
}

static bool add_parameter(unit *u, int32_t begin, int32_t end, parameters *out) {
    const tokens *t = &u->tokens;
    for (int32_t i = begin; i < end; i++) {
        if (token_is(t, i, '(') || token_is(t, i, '[') || token_is(t, i, '&') || token_is(t, i, '.')) {
            unit_error(u, begin, "a kernel parameter here must be a number, a struct by value or a plain pointer (written with "
                                 "'*', not as an array, reference or function)");
            return false;
        }
        if (token_is(t, i, '='))
            end = i;
    }
    if (end - begin >= 2 && t->at[end - 1].kind == TOK_WORD && !is_builtin_type_word(t, end - 1) &&
        !token_is(t, end - 2, PUNCT_SCOPE))
        end--;
    out->at = ascc_alloc(out->at, (out->count + 1) * sizeof *out->at);
    parameter *p = &out->at[out->count++];
    *p = (parameter){.is_pointer = false};
    put_type(t, begin, end, &p->type);
    for (int32_t i = begin; i < end; i++)
        p->is_pointer |= token_is(t, i, '*');
    return true;
}

static bool read_parameters(unit *u, const kernel *k, parameters *out) {
    const tokens *t = &u->tokens;
    const int32_t close = t->at[k->params].match;
    int32_t begin = k->params + 1, depth = 0;
    if (begin == close || (begin + 1 == close && token_is_word(t, begin, "void")))
        return true;
    for (int32_t i = begin; i <= close; i++) {
        if (t->at[i].match > i) {
            i = t->at[i].match;
            continue;
        }
        depth += token_is(t, i, '<') - token_is(t, i, '>');
        if (i == close || (token_is(t, i, ',') && depth == 0)) {
            if (!add_parameter(u, begin, i, out))
                return false;
            begin = i + 1;
        }
    }
    return true;
}

static void write_c_launcher(unit *u, const kernel *k, size_t index) {
    parameters p = {0};
    if (read_parameters(u, k, &p)) {
        text *out = edit_after(u, k->end);
        text_printf(out, " struct dp_ascc_args_%s {", k->name);
        for (size_t i = 0; i < p.count; i++)
            text_printf(out, " %s a%zu;", p.at[i].type.data, i);
        text_printf(out, " }; static void dp_ascc_entry_%s(const void *dp_raw) { const struct dp_ascc_args_%s *dp_p = dp_raw; "
                         "(void)dp_p; %s(", k->name, k->name, k->name);
        for (size_t i = 0; i < p.count; i++)
            text_printf(out, "%sdp_p->a%zu", i ? ", " : "", i);
        text_printf(out, "); } static __attribute__((unused)) int dp_ascc_launch_%s(dp_loc dp_where, long long dp_blocks, "
                         "long long dp_bytes, void *dp_stream", k->name);
        for (size_t i = 0; i < p.count; i++)
            text_printf(out, ", %s a%zu", p.at[i].type.data, i);
        text_printf(out, ") { struct dp_ascc_args_%s dp_args = {", k->name);
        for (size_t i = 0; i < p.count; i++)
            text_printf(out, "%s.a%zu = a%zu", i ? ", " : "", i, i);
        text_printf(out, "}; return dp_launch_from_source(dp_kernel_%zu_info(), \"%s\", dp_where, dp_blocks, dp_bytes, "
                         "dp_stream, dp_ascc_entry_%s, &dp_args, sizeof dp_args); }", index, k->name, k->name);
    }
    parameters_free(&p);
}

void kernels_write_c_launchers(unit *u) {
    for (size_t i = 0; i < u->kernel_count; i++) {
        const kernel *k = &u->kernels[i];
        if (k->is_launched || (u->options->header_dir && k->is_defined && !k->is_internal))
            write_c_launcher(u, k, i);
    }
}

/* The parameters after (blockDim, stream): pointers as void *, so that callers need none of the kernel's types. */
static void put_host_parameters(const parameters *p, text *out) {
    for (size_t i = 0; i < p->count; i++)
        text_printf(out, ", %s dp_a%zu", p->at[i].is_pointer ? "void *" : p->at[i].type.data, i);
}

static void write_header(unit *u, const kernel *k, const parameters *p) {
    text path = {0}, header = {0}, old = {0};
    text_printf(&path, "%s/aclrtlaunch_%s.h", u->options->header_dir, k->name);
    text_printf(&header,
                "/* Made by ascc from %s. */\n"
                "#ifndef ACLRTLAUNCH_%s_H\n#define ACLRTLAUNCH_%s_H\n\n#include <stdint.h>\n\n"
                "#ifndef ACLRT_LAUNCH_KERNEL\n#define ACLRT_LAUNCH_KERNEL(kernel) aclrtlaunch_##kernel\n#endif\n\n"
                "#ifdef __cplusplus\nextern \"C\"\n#endif\n"
                "/* Starts blockDim blocks of the kernel on the stream (an aclrtStream); 0 or an aclError. */\n"
                "uint32_t aclrtlaunch_%s(uint32_t blockDim, void *stream",
                token_file(&u->tokens, k->name_token), k->name, k->name, k->name);
    put_host_parameters(p, &header);
    text_puts(&header, ");\n\n#endif\n");
    const bool same = text_read(&old, path.data) && old.size == header.size &&
                      memcmp(old.data, header.data, old.size) == 0;
    if (!same && !text_write(&header, path.data))
        unit_error(u, k->name_token, "cannot write %s: %s", path.data, strerror(errno));
    text_free(&path);
    text_free(&header);
    text_free(&old);
}

static void write_host_entry(unit *u, const kernel *k, size_t index, text *out) {
    const bool is_c = u->options->is_c;
    parameters p = {0};
    if (read_parameters(u, k, &p)) {
        write_header(u, k, &p);
        text_printf(out, "\n%suint32_t aclrtlaunch_%s(uint32_t blockDim, void *stream",
                    is_c ? "" : "extern \"C\" __attribute__((visibility(\"default\"))) ", k->name);
        put_host_parameters(&p, out);
        if (is_c)
            text_printf(out, ") { return (uint32_t)dp_ascc_launch_%s((dp_loc){\"\", 0}, blockDim, 0, stream", k->name);
        else
            text_printf(out, ") { return (uint32_t)::dp::launch(*::dp_kernel_%zu_info(), \"%s\", ::dp_loc{\"\", 0}, ::%s, "
                             "blockDim, 0, stream).run(", index, k->name, k->path);
        for (size_t i = 0; i < p.count; i++)
            text_printf(out, "%s(%s)dp_a%zu", i || is_c ? ", " : "", p.at[i].type.data, i);
        text_puts(out, "); }\n");
    }
    parameters_free(&p);
}

void kernels_write_host_entries(unit *u, text *out) {
    for (size_t i = 0; i < u->kernel_count; i++) {
        const kernel *k = &u->kernels[i];
        if (!k->is_defined || k->is_internal || k->is_template || k->is_overloaded || !k->is_global_scope)
            continue;
        if (out->size == 0)
            text_puts(out, "\n# 1 \"<aclrtlaunch>\"");
        write_host_entry(u, k, i, out);
    }
}
