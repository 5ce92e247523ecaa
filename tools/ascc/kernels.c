/*
 * kernels.c - finds the kernels (__global__ functions) of a unit and what is said about the cores they need.
 */
#include <stdlib.h>
#include <string.h>

#include "unit.h"

bool is_attribute_word(const tokens *t, int32_t i) {
    static const char *const words[] = {"__global__", "__aicore__", "__host__", "__host_aicore__", "__vector__", "__cube__",
                                        "__mix__", "__schedmode__", "__simd_vf__", "__simd_callee__", "__simt_vf__",
                                        "__launch_bounds__", "__VEC_SCOPE__", "__in_pipe__", "__out_pipe__", "__inout_pipe__",
                                        "__sync_alias__", "__check_sync_alias__", "__sync_noalias__",
                                        "KERNEL_TASK_TYPE_DEFAULT", "KERNEL_TASK_TYPE"};
    if (t->at[i].length < 7) /* "__mix__" */
        return false;
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
        if (token_is_word(t, i, words[w]))
            return true;
    return false;
}

bool attribute_has_arguments(const tokens *t, int32_t i) {
    static const char *const words[] = {"__mix__", "__schedmode__", "__launch_bounds__", "__in_pipe__", "__out_pipe__",
                                        "__inout_pipe__", "KERNEL_TASK_TYPE_DEFAULT", "KERNEL_TASK_TYPE"};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
        if (token_is_word(t, i, words[w]))
            return token_is(t, i + 1, '(') && t->at[i + 1].match > i;
    return false;
}

static char *joined(const tokens *t, int32_t begin, int32_t end) {
    text out = {0};
    tokens_join(t, begin, end, &out);
    text_add(&out, "", 0);
    return out.data;
}

/* Prepends the names of the named namespaces around token i; *out_internal is set inside an unnamed one. */
static void put_namespaces(const tokens *t, int32_t i, text *out, bool *out_internal, bool *out_c_linkage) {
    const int32_t around = t->at[i].parent;
    if (around < 0)
        return;
    put_namespaces(t, around, out, out_internal, out_c_linkage);
    if (t->at[around].brace == BRACE_LINKAGE)
        *out_c_linkage = true;
    if (t->at[around].brace != BRACE_NAMESPACE)
        return;
    int32_t name = around - 1;
    while (name > 0 && (t->at[name].kind == TOK_WORD || token_is(t, name, PUNCT_SCOPE)) && !token_is_word(t, name, "namespace"))
        name--;
    if (name + 1 == around)
        *out_internal = true;
    tokens_join(t, name + 1, around, out);
    text_puts(out, "::");
}

bool is_builtin_type_word(const tokens *t, int32_t i) {
    static const char *const words[] = {"int", "char", "short", "long", "unsigned", "signed", "float", "double", "bool",
                                        "void", "const", "volatile", "half"};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
        if (token_is_word(t, i, words[w]))
            return true;
    return false;
}

/* Parameter types without names, so that a declaration and its definition compare equal. */
static char *signature_of(const tokens *t, int32_t open) {
    text out = {0};
    const int32_t close = t->at[open].match;
    int32_t begin = open + 1, depth = 0;
    for (int32_t i = open + 1; i <= close; i++) {
        if (t->at[i].match > i) {
            i = t->at[i].match;
            continue;
        }
        depth += token_is(t, i, '<') - token_is(t, i, '>');
        if (i != close && !(token_is(t, i, ',') && depth <= 0))
            continue;
        int32_t end = i;
        for (int32_t j = begin; j < i; j++)
            if (token_is(t, j, '='))
                end = end == i ? j : end;
        if (end - begin >= 2 && t->at[end - 1].kind == TOK_WORD && !is_builtin_type_word(t, end - 1) &&
            !token_is(t, end - 2, PUNCT_SCOPE))
            end--;
        for (int32_t j = begin; j < end; j++)
            if (!is_space_word(t, j)) {
                tokens_join(t, j, j + 1, &out);
                text_puts(&out, " ");
            }
        text_puts(&out, ",");
        begin = i + 1;
    }
    text_add(&out, "", 0);
    return out.data;
}

static bool has_default_args(const tokens *t, int32_t open) {
    for (int32_t i = open + 1; i < t->at[open].match; i++) {
        if (token_is(t, i, '='))
            return true;
        if (t->at[i].match > i)
            i = t->at[i].match;
    }
    return false;
}

static void set_mix(unit *u, int32_t at, int mix, int *core_mix) {
    if (*core_mix >= 0 && *core_mix != mix)
        unit_error(u, at, "this contradicts what was said before about the cores of the kernel; keep one of them");
    *core_mix = mix;
}

static int mix_of_counts(unit *u, int32_t at) {
    const tokens *t = &u->tokens;
    const int32_t open = at + 1;
    static const struct {
        char cube, vector;
        int mix;
    } known[] = {{'1', '0', DP_MIX_AIC}, {'0', '1', DP_MIX_AIV}, {'1', '1', DP_MIX_AIC_1_1}, {'1', '2', DP_MIX_AIC_1_2}};
    if (token_is(t, open, '(') && t->at[open].match == open + 4 && t->at[open + 1].length == 1 && t->at[open + 3].length == 1)
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (token_text(t, open + 1)[0] == known[i].cube && token_text(t, open + 3)[0] == known[i].vector)
                return known[i].mix;
    unit_error(u, at, "__mix__(cube, vector) must be (1, 0), (0, 1), (1, 1) or (1, 2) on this chip");
    return DP_MIX_AIV;
}

static int mix_of_task_type(unit *u, int32_t at) {
    static const struct {
        const char *name;
        int mix;
    } known[] = {{"KERNEL_TYPE_AIV_ONLY", DP_MIX_AIV}, {"KERNEL_TYPE_AIC_ONLY", DP_MIX_AIC},
                 {"KERNEL_TYPE_MIX_AIV_1_0", DP_MIX_AIV}, {"KERNEL_TYPE_MIX_AIC_1_0", DP_MIX_AIC},
                 {"KERNEL_TYPE_MIX_AIC_1_1", DP_MIX_AIC_1_1}, {"KERNEL_TYPE_MIX_AIC_1_2", DP_MIX_AIC_1_2},
                 {"KERNEL_TYPE_AICORE", DP_MIX_AIC}, {"KERNEL_TYPE_VECTORCORE", DP_MIX_AIV}};
    const tokens *t = &u->tokens;
    const int32_t close = token_is(t, at + 1, '(') ? t->at[at + 1].match : -1;
    for (size_t i = 0; close > 0 && i < sizeof known / sizeof known[0]; i++)
        if (token_is_word(t, close - 1, known[i].name))
            return known[i].mix;
    unit_error(u, at, "the task type must be one of KERNEL_TYPE_AIV_ONLY, AIC_ONLY, MIX_AIV_1_0, MIX_AIC_1_0, MIX_AIC_1_1 or "
                      "MIX_AIC_1_2");
    return DP_MIX_AIV;
}

/* Task types inside the body apply to the whole kernel; per-key types must agree, because a launch has no key. */
static void read_body(unit *u, int32_t open, kernel *k) {
    const tokens *t = &u->tokens;
    for (int32_t i = open; i < t->at[open].match; i++)
        if (token_is_word(t, i, "KERNEL_TASK_TYPE_DEFAULT") || token_is_word(t, i, "KERNEL_TASK_TYPE"))
            set_mix(u, i, mix_of_task_type(u, i), &k->core_mix);
}

static void read_template_head(const tokens *t, int32_t open, int32_t close, kernel *k) {
    bool has_default = false, is_pack = false, any = false;
    int32_t required = 0, depth = 0;
    for (int32_t i = open + 1; i <= close; i++) {
        if (t->at[i].match > i) {
            i = t->at[i].match;
            any = true;
            continue;
        }
        if (i == close || (token_is(t, i, ',') && depth == 0)) {
            required += any && !has_default && !is_pack;
            has_default = any = false;
            continue;
        }
        any = true;
        depth += token_is(t, i, '<') - token_is(t, i, '>');
        has_default |= token_is(t, i, '=') && depth == 0;
        is_pack |= token_is(t, i, '.') && token_is(t, i + 1, '.') && depth == 0;
    }
    k->is_template = true;
    k->required_template_args = is_pack ? -1 : required;
}

/*
 * Reads the words before the name; returns the name's token, -1 if there is none, -2 for explicit instantiations and
 * specialisations. *out_stop is the last token looked at.
 */
static int32_t read_specifiers(unit *u, int32_t begin, kernel *k, bool *out_c_linkage, int32_t *out_stop) {
    const tokens *t = &u->tokens;
    for (int32_t i = begin; i < t->count; i++) {
        *out_stop = i;
        if (token_is(t, i, ';') || token_is(t, i, '{'))
            return -1;
        if (token_is_word(t, i, "template")) {
            const int32_t close = token_is(t, i + 1, '<') ? angle_close(t, i + 1, t->count) : -1;
            if (close < 0 || close == i + 2)
                return -2; /* an explicit instantiation or specialisation: the primary template says it all */
            read_template_head(t, i + 1, close, k);
            i = close;
        } else if (token_is_word(t, i, "extern") && t->at[i + 1].kind == TOK_STRING) {
            *out_c_linkage = true;
        } else if (token_is_word(t, i, "static")) {
            k->is_internal = true;
        } else if (token_is_word(t, i, "__cube__") || token_is_word(t, i, "__vector__")) {
            set_mix(u, i, token_is_word(t, i, "__cube__") ? DP_MIX_AIC : DP_MIX_AIV, &k->core_mix);
        } else if (attribute_has_arguments(t, i) || token_is_word(t, i, "__attribute__") || token_is_word(t, i, "alignas") ||
                   token_is_word(t, i, "__mix__")) {
            if (token_is_word(t, i, "__mix__"))
                set_mix(u, i, mix_of_counts(u, i), &k->core_mix);
            if (token_is_word(t, i, "__schedmode__"))
                k->sched_mode = token_is(t, i + 1, '(') && t->at[i + 1].match == i + 3 && token_text(t, i + 2)[0] == '1';
            i = token_is(t, i + 1, '(') && t->at[i + 1].match > i ? t->at[i + 1].match : i;
        } else if (t->at[i].kind == TOK_WORD && token_is(t, i + 1, '(')) {
            return t->at[i + 1].match > i ? i : -1;
        } else if (t->at[i].kind == TOK_WORD && token_is(t, i + 1, '<')) {
            const int32_t close = angle_close(t, i + 1, t->count);
            if (close > 0 && token_is(t, close + 1, '('))
                return -2;
        }
    }
    return -1;
}

static void merge(unit *u, kernel *fresh, int32_t name) {
    for (size_t i = 0; i < u->kernel_count; i++) {
        kernel *k = &u->kernels[i];
        if (strcmp(k->path, fresh->path) != 0)
            continue;
        if (strcmp(k->signature, fresh->signature) != 0) {
            k->is_overloaded = fresh->is_overloaded = true;
            continue;
        }
        if (fresh->core_mix >= 0)
            set_mix(u, name, fresh->core_mix, &k->core_mix);
        k->sched_mode |= fresh->sched_mode;
        k->is_internal |= fresh->is_internal;
        k->has_default_args |= fresh->has_default_args;
        if (fresh->is_template && fresh->required_template_args < k->required_template_args)
            k->required_template_args = fresh->required_template_args;
        if (fresh->is_defined && !k->is_defined) {
            k->is_defined = true;
            k->name_token = fresh->name_token;
            k->params = fresh->params;
        }
        free(fresh->path);
        free(fresh->signature);
        return;
    }
    if (u->kernel_count == u->kernel_capacity) {
        u->kernel_capacity = u->kernel_capacity ? u->kernel_capacity * 2 : 16;
        u->kernels = ascc_alloc(u->kernels, u->kernel_capacity * sizeof *u->kernels);
    }
    u->kernels[u->kernel_count++] = *fresh;
}

/* Returns the last token that belongs to the declaration's head. */
static int32_t collect_one(unit *u, int32_t i) {
    const tokens *t = &u->tokens;
    kernel k = {.core_mix = -1};
    bool c_linkage = false;
    int32_t stop = i;
    const int32_t name = read_specifiers(u, statement_begin(t, i), &k, &c_linkage, &stop);
    if (name == -2)
        return i;
    if (name < 0) {
        unit_error(u, i, "__global__ must stand before a function: no name with a parameter list follows it");
        return stop > i ? stop : i;
    }
    k.name_token = name;
    k.params = name + 1;
    k.has_default_args = has_default_args(t, k.params);
    int32_t after = t->at[k.params].match + 1;
    while (after < t->count && (t->at[after].kind == TOK_WORD || t->at[after].match > after) && !token_is(t, after, '{'))
        after = t->at[after].match > after ? t->at[after].match + 1 : after + 1;
    k.is_defined = token_is(t, after, '{') && t->at[after].match > after;
    k.end = k.is_defined ? t->at[after].match : after;
    if (k.is_defined)
        read_body(u, after, &k);
    text path = {0};
    put_namespaces(t, name, &path, &k.is_internal, &c_linkage);
    int32_t first = name;
    while (first - 2 >= 0 && token_is(t, first - 1, PUNCT_SCOPE) && t->at[first - 2].kind == TOK_WORD)
        first -= 2;
    tokens_join(t, first, name + 1, &path);
    k.path = path.data;
    const char *scope = strrchr(k.path, ':');
    k.name = scope ? scope + 1 : k.path;
    k.is_global_scope = !scope || c_linkage;
    k.signature = k.params < t->count ? signature_of(t, k.params) : joined(t, 0, 0);
    merge(u, &k, name);
    return name > i ? name : i;
}

void kernels_collect(unit *u) {
    for (int32_t i = 0; i < u->tokens.count; i++)
        if (token_is_word(&u->tokens, i, "__global__"))
            i = collect_one(u, i);
}

void kernels_check_cores(unit *u) {
    for (size_t i = 0; i < u->kernel_count && u->options->core_condition; i++)
        if (u->kernels[i].is_defined && u->kernels[i].core_mix >= 0 && u->kernels[i].core_mix != DP_MIX_AIV)
            unit_error(u, u->kernels[i].name_token,
                       "kernel %s runs on cube cores too, but %s decides by a core macro what is compiled, and a source is compiled once, for "
                       "vector cores: decide with \"if ASCEND_IS_AIC\" and \"if ASCEND_IS_AIV\"",
                       u->kernels[i].path, u->options->core_condition);
}

/* True if `path` ends with the qualified name `callee` at a component border. */
static bool path_ends_with(const char *path, const char *callee) {
    const size_t p = strlen(path), c = strlen(callee);
    return c <= p && strcmp(path + p - c, callee) == 0 && (c == p || path[p - c - 1] == ':');
}

/* True if the word at `name` also stands somewhere where it is not launched: something of that name is declared. */
static bool is_used_otherwise(const tokens *t, int32_t name) {
    const token *n = &t->at[name];
    for (int32_t i = 0; i < t->count; i++)
        if (t->at[i].length == n->length && t->at[i].kind == TOK_WORD && memcmp(token_text(t, i), token_text(t, name), n->length) == 0 &&
            !(token_is(t, i + 1, PUNCT_SHIFT_LEFT) && token_is(t, i + 2, '<')))
            return true;
    return false;
}

const kernel *kernel_find(unit *u, int32_t callee_begin, int32_t name, bool *out_is_pointer) {
    const tokens *t = &u->tokens;
    text callee = {0};
    *out_is_pointer = false;
    for (int32_t i = callee_begin; i <= name; i++)
        if (!(i == callee_begin && token_is(t, i, PUNCT_SCOPE)))
            text_add(&callee, token_text(t, i), t->at[i].length);
    kernel *found = NULL;
    bool unsure = false;
    for (size_t i = 0; i < u->kernel_count; i++) {
        kernel *k = &u->kernels[i];
        if (!path_ends_with(k->path, callee.data))
            continue;
        if (!found)
            found = k;
        else if (found->core_mix != k->core_mix || found->sched_mode != k->sched_mode ||
                 (strcmp(found->path, k->path) != 0 && found->is_template != k->is_template))
            unsure = true;
    }
    if (found && !unsure)
        found->is_launched = true;
    else if (unsure)
        unit_error(u, name, "several kernels named %s need different cores, and it is not clear which one is launched: write "
                            "its full name or give them different names", callee.data);
    else if (!u->options->is_c && !token_is(t, name + 1, '<') && is_used_otherwise(t, name))
        *out_is_pointer = true;
    else
        unit_error(u, name,
                   "%s is launched but no kernel of that name is declared here: declare it as \"__global__ __aicore__ void %s"
                   "(...)\"%s",
                   callee.data, callee.data, u->options->is_c ? " (in C, a launch through a pointer is not supported)" : "");
    text_free(&callee);
    return unsure ? NULL : found;
}

/* A word that may stand before a call; any other word before `name(` makes it a declaration. */
static bool precedes_call(const tokens *t, int32_t i) {
    static const char *const words[] = {"return", "else", "do", "case", "throw", "co_return", "and", "or", "not"};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
        if (token_is_word(t, i, words[w]))
            return true;
    return false;
}

/* Its name is used as a pointer, and names nothing but it. */
static bool is_used_as_pointer(const unit *u, const kernel *k) {
    const tokens *t = &u->tokens;
    const size_t length = strlen(k->name);
    bool used = false;
    for (int32_t i = 1; i < t->count; i++) {
        if (t->at[i].length != length || t->at[i].kind != TOK_WORD || memcmp(token_text(t, i), k->name, length) != 0 ||
            token_is(t, i - 1, '.') || token_is(t, i - 1, PUNCT_ARROW) || token_is(t, i + 1, PUNCT_SCOPE) || token_is(t, i + 1, '<') ||
            token_is(t, i + 1, PUNCT_SHIFT_LEFT))
            continue;
        if (!token_is(t, i + 1, '('))
            used = true;
        else if ((t->at[i - 1].kind == TOK_WORD && !precedes_call(t, i - 1)) || token_is(t, i - 1, '*') || token_is(t, i - 1, '&')) {
            int32_t begin = statement_begin(t, i), is_kernel = 0;
            for (; begin < i; begin++)
                is_kernel |= token_is_word(t, begin, "__global__");
            if (!is_kernel)
                return false; /* a host function of the same name, perhaps */
        }
    }
    return used;
}

void kernels_write_known(unit *u, text *out) {
    for (size_t i = 0; i < u->kernel_count && !u->options->is_c; i++) {
        const kernel *k = &u->kernels[i];
        if (k->is_template || k->is_overloaded || !is_used_as_pointer(u, k))
            continue;
        text_printf(out, " static const ::dp::known_kernel dp_known_kernel_%zu(&::", i);
        for (const char *p = k->path; *p; p++) /* an unnamed namespace left "::" behind its outer one's */
            if (!(p[0] == ':' && p[1] == ':' && (p == k->path || p[-1] == ':')))
                text_add(out, p, 1);
            else
                p++;
        text_printf(out, ", ::dp_kernel_%zu_info());", i);
    }
}

static void put_symbol(const kernel *k, text *out) {
    text_puts(out, "dp_kernel_info_of_");
    for (const char *p = k->path; *p; p++)
        if (*p != ' ')
            text_add(out, *p == ':' ? "_" : p, 1);
}

/*
 * One constant per kernel. A kernel defined in another unit leaves its description under a weak symbol, because only its
 * definition may say which cores it needs.
 */
void kernels_write_prelude(unit *u, text *out) {
    const bool is_c = u->options->is_c;
    for (size_t i = 0; i < u->kernel_count; i++) {
        const kernel *k = &u->kernels[i];
        const bool shared = !k->is_internal && !k->is_template && !k->is_overloaded;
        text value = {0};
        text_puts(&value, "{\"");
        text_escaped(&value, k->path, strlen(k->path));
        text_printf(&value, "\", %d, %d, 0, 0, {\"", k->core_mix < 0 ? DP_MIX_AIV : k->core_mix, k->sched_mode);
        const char *file = token_file(&u->tokens, k->name_token);
        text_escaped(&value, file, strlen(file));
        text_printf(&value, "\", %u}, {\"\", 0}}", u->tokens.at[k->name_token].line);
        text_printf(out, " static const dp_kernel_info dp_kernel_%zu __attribute__((unused)) = %s;", i, value.data);
        if (shared) {
            text_puts(out, is_c ? " extern const dp_kernel_info " : " extern \"C\" { extern const dp_kernel_info ");
            put_symbol(k, out);
            text_puts(out, " __attribute__((weak, visibility(\"default\")));");
            if (k->is_defined) {
                text_puts(out, " const dp_kernel_info ");
                put_symbol(k, out);
                text_printf(out, " = %s;", value.data);
            }
            text_puts(out, is_c ? "" : " }");
        }
        text_printf(out, " static inline const dp_kernel_info *dp_kernel_%zu_info(void) { return ", i);
        if (shared && !k->is_defined) {
            text_puts(out, "&");
            put_symbol(k, out);
            text_puts(out, " ? &");
            put_symbol(k, out);
            text_puts(out, " : ");
        }
        text_printf(out, "&dp_kernel_%zu; }", i);
        text_free(&value);
    }
}
