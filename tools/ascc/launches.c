/*
 * launches.c - `callee<<<values>>>(arguments)`.
 *
 * In C++ the tokens of callee, values and arguments stay where they are; text is put around them:
 *     callee<<<b, x, s>>>(a)   ->   ::dp::launch(info, "callee", loc, callee, b, x, s)(a)
 * or ::dp::launch_through("callee", loc, callee, b, x, s)(a) if the callee is no kernel's name but an expression: a pointer to one.
 * In C the whole head becomes the name and first arguments of a function made for the kernel (c_kernels.c).
 */
#include <string.h>

#include "unit.h"

#define MAX_VALUES 5
#define MAX_TEMPLATE_LOOKAHEAD 4096

typedef struct launch {
    int32_t open;                      /* the "<<" of "<<<" */
    int32_t callee, name;              /* first token of the callee; its last name */
    int32_t template_open;             /* '<' of explicit template arguments, -1 if none */
    bool is_expression;                /* the callee is more than a qualified name: p->f, table[i], (*f) */
    int32_t value[MAX_VALUES][2];      /* [begin, end) tokens */
    int32_t value_count;
    int32_t close;                     /* first '>' of ">>>" */
} launch;

static bool is_launch_open(const tokens *t, int32_t i) {
    return token_is(t, i, PUNCT_SHIFT_LEFT) && token_is(t, i + 1, '<') && !token_is_word(t, i - 1, "operator");
}

static bool is_statement_word(const tokens *t, int32_t i) {
    static const char *const words[] = {"return", "else", "do", "case", "throw", "co_return", "goto"};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
        if (token_is_word(t, i, words[w]))
            return true;
    return false;
}

/* First token of the postfix expression that ends at i (a name, an index, a member, a call, parentheses), -1 if it is none. */
static int32_t postfix_begin(const tokens *t, int32_t i) {
    while (i >= 0) {
        if (token_is(t, i, ']') || token_is(t, i, ')')) {
            const bool is_group = token_is(t, i, ')');
            i = t->at[i].match;
            if (i < 0)
                return -1;
            const bool has_operand = i > 0 && ((t->at[i - 1].kind == TOK_WORD && !is_statement_word(t, i - 1)) || token_is(t, i - 1, ']') ||
                                               token_is(t, i - 1, ')'));
            if (!has_operand)
                return is_group ? i : -1;
            i--;
            continue;
        }
        if (t->at[i].kind != TOK_WORD || is_statement_word(t, i))
            return -1;
        if (token_is(t, i - 1, PUNCT_SCOPE) && (i < 2 || t->at[i - 2].kind != TOK_WORD))
            return i - 1;
        if (!token_is(t, i - 1, '.') && !token_is(t, i - 1, PUNCT_ARROW) && !token_is(t, i - 1, PUNCT_SCOPE))
            return i;
        i -= 2;
    }
    return -1;
}

static bool read_callee(unit *u, launch *l) {
    const tokens *t = &u->tokens;
    l->template_open = -1;
    l->name = l->open - 1;
    if (!u->options->is_c && !token_is(t, l->name, '>')) {
        l->callee = postfix_begin(t, l->name);
        for (int32_t i = l->callee; i >= 0 && i <= l->name; i++)
            l->is_expression |= t->at[i].kind != TOK_WORD && !token_is(t, i, PUNCT_SCOPE);
        if (l->is_expression)
            return true;
    }
    if (token_is(t, l->name, '>')) {
        l->template_open = angle_open(t, l->name);
        l->name = l->template_open - 1;
    }
    if (l->name < 0 || l->template_open == 0 || t->at[l->name].kind != TOK_WORD || is_statement_word(t, l->name)) {
        unit_error(u, l->open, "<<< must follow the name of a kernel, as in add<<<8, nullptr, stream>>>(x, y)");
        return false;
    }
    l->callee = l->name;
    while (token_is(t, l->callee - 1, PUNCT_SCOPE)) {
        const int32_t before = l->callee - 2;
        if (before < 0 || t->at[before].kind != TOK_WORD || is_statement_word(t, before)) {
            l->callee--;
            break;
        }
        l->callee = before;
    }
    if (token_is(t, l->callee - 1, '.') || token_is(t, l->callee - 1, PUNCT_ARROW) ||
        token_is_word(t, l->callee - 1, "template")) {
        unit_error(u, l->name, "a member function cannot be launched: make the kernel a function of a namespace");
        return false;
    }
    return true;
}

/* angles: read `name<...>` as template arguments, so that their commas and '>' do not count. */
static bool read_values(const tokens *t, launch *l, bool angles) {
    l->value_count = 0;
    int32_t begin = l->open + 2;
    for (int32_t i = begin; i < t->count; i++) {
        const bool is_end = token_is(t, i, '>') && token_is(t, i + 1, '>') && token_is(t, i + 2, '>') && token_is(t, i + 3, '(');
        if (is_end || token_is(t, i, ',')) {
            if (l->value_count < MAX_VALUES) {
                l->value[l->value_count][0] = begin;
                l->value[l->value_count][1] = i;
            }
            l->value_count++;
            begin = i + 1;
            l->close = i;
            if (is_end)
                return true;
        } else if (t->at[i].match > i) {
            i = t->at[i].match;
        } else if (token_is(t, i, ';') || token_is(t, i, '{') || token_is(t, i, '}') || token_is(t, i, ')') ||
                   token_is(t, i, ']') || is_launch_open(t, i)) {
            return false;
        } else if (angles && t->at[i].kind == TOK_WORD && token_is(t, i + 1, '<')) {
            const int32_t close = angle_close(t, i + 1, i + MAX_TEMPLATE_LOOKAHEAD);
            if (close > 0 && (token_is(t, close + 1, '(') || token_is(t, close + 1, '{') || token_is(t, close + 1, ',') ||
                              token_is(t, close + 1, PUNCT_SCOPE)))
                i = close;
        }
    }
    return false;
}

static bool read_launch(unit *u, launch *l) {
    const tokens *t = &u->tokens;
    if (!read_callee(u, l))
        return false;
    if (!read_values(t, l, true) && !read_values(t, l, false)) {
        unit_error(u, l->open, "this <<< has no >>>( that closes it in the same statement: a launch is written "
                               "kernel<<<blocks, dynamic_ub, stream>>>(arguments)");
        return false;
    }
    if (l->value_count < 2 || l->value_count > 4) {
        unit_error(u, l->open, "%d value%s between <<< and >>>; expected <<<blocks, stream>>> or <<<blocks, dynamic_ub, "
                               "stream>>>", (int)l->value_count, l->value_count == 1 ? "" : "s");
        return false;
    }
    for (int32_t v = 0; v < l->value_count; v++)
        if (l->value[v][0] == l->value[v][1]) {
            unit_error(u, l->open, "value %d between <<< and >>> is empty", (int)v + 1);
            return false;
        }
    if (t->at[l->close + 3].match < 0) {
        unit_error(u, l->close + 3, "the argument list of this launch is not closed");
        return false;
    }
    return true;
}

static int32_t count_template_args(const tokens *t, const launch *l) {
    int32_t count = 0, depth = 0;
    for (int32_t i = l->template_open + 1; i < l->open - 1; i++) {
        count += count == 0;
        if (t->at[i].match > i)
            i = t->at[i].match;
        else if (token_is(t, i, ',') && depth == 0)
            count++;
        else
            depth += token_is(t, i, '<') - token_is(t, i, '>');
    }
    return count;
}

/* True if the callee as written names one function, so that its parameter types can be taken from it. */
static bool is_single_function(const unit *u, const launch *l, const kernel *k) {
    if (k->is_overloaded)
        return false;
    if (!k->is_template)
        return true;
    return l->template_open >= 0 && k->required_template_args >= 0 &&
           count_template_args(&u->tokens, l) >= k->required_template_args;
}

/* What stands for "<<<" in `middle`, then the values and what stands for ">>>". */
static void finish_in_cpp(unit *u, const launch *l, text *middle, const char *between) {
    const tokens *t = &u->tokens;
    text_puts(middle, between);
    if (l->value_count == 4) {
        text_puts(edit_before(u, l->value[1][0]), "::dp::thread_block<(");
        text_puts(edit_after(u, l->value[1][1] - 1), ")>{}");
    }
    text_puts(edit_replace(u, t->at[l->close].start, t->at[l->close + 2].start + 1), ")");
}

static void rewrite_in_cpp(unit *u, const launch *l, const kernel *k) {
    const tokens *t = &u->tokens;
    const bool single = is_single_function(u, l, k), defaults = single && k->has_default_args;
    text name = {0};
    tokens_join(t, l->callee, l->open, &name);
    text *head = edit_before(u, l->callee);
    text_printf(head, " ::dp::%s(*::dp_kernel_%zu_info(), \"",
                defaults ? "launch_with_defaults" : single ? "launch" : "launch_generic", (size_t)(k - u->kernels));
    text_escaped(head, name.data, name.size);
    text_puts(head, "\", ");
    put_loc(u, l->name, head);
    const bool lambda = !single || defaults;
    text_puts(head, lambda ? ", [](auto... dp_args) { " : ", ");
    text between = {0};
    text_puts(&between, lambda ? "(dp_args...); }, " : ", ");
    if (defaults) /* once more, for the parameter types */
        text_printf(&between, "%s, ", name.data);
    finish_in_cpp(u, l, edit_replace(u, t->at[l->open].start, t->at[l->open + 1].start + 1), between.data);
    text_free(&between);
    text_free(&name);
}

static void rewrite_pointer(unit *u, const launch *l) {
    const tokens *t = &u->tokens;
    text name = {0};
    tokens_join(t, l->callee, l->open, &name);
    text *head = edit_before(u, l->callee);
    text_puts(head, " ::dp::launch_through(\"");
    text_escaped(head, name.data, name.size);
    text_puts(head, "\", ");
    put_loc(u, l->name, head);
    text_puts(head, ", ");
    finish_in_cpp(u, l, edit_replace(u, t->at[l->open].start, t->at[l->open + 1].start + 1), ", ");
    text_free(&name);
}

static void rewrite_in_c(unit *u, const launch *l, const kernel *k) {
    const tokens *t = &u->tokens;
    if (l->value_count == 4) {
        unit_error(u, l->open, "<<<grid, block, dynamic_ub, stream>>> starts a thread kernel, which needs the SIMT cores of a "
                               "newer chip; write <<<blocks, dynamic_ub, stream>>>");
        return;
    }
    text value[3] = {{0}};
    for (int32_t v = 0; v < l->value_count; v++)
        tokens_join(t, l->value[v][0], l->value[v][1], &value[v]);
    const int32_t arguments = l->close + 3;
    text *head = edit_replace(u, t->at[l->callee].start, t->at[arguments].start + 1);
    text_printf(head, " dp_ascc_launch_%s(", k->name);
    put_loc(u, l->name, head);
    /* Class 5 is "pointer" in gcc and clang alike. */
    text_printf(head, ", (%s), __builtin_choose_expr(__builtin_classify_type(%s) == 5, 0, (%s)), ", value[0].data,
                value[1].data, value[1].data);
    if (l->value_count == 3)
        text_printf(head, "(%s)", value[2].data);
    else
        text_printf(head, "__builtin_choose_expr(__builtin_classify_type(%s) == 5, (%s), (void *)0)", value[1].data,
                    value[1].data);
    text_puts(head, t->at[arguments].match == arguments + 1 ? "" : ", ");
    for (int32_t v = 0; v < 3; v++)
        text_free(&value[v]);
}

void launches_rewrite(unit *u) {
    const tokens *t = &u->tokens;
    for (int32_t i = 0; i < t->count; i++) {
        if (!is_launch_open(t, i))
            continue;
        launch l = {.open = i};
        if (!read_launch(u, &l))
            continue;
        bool is_pointer = l.is_expression;
        const kernel *k = is_pointer ? NULL : kernel_find(u, l.callee, l.name, &is_pointer);
        if (is_pointer)
            rewrite_pointer(u, &l);
        else if (!k)
            continue;
        else if (u->options->is_c)
            rewrite_in_c(u, &l, k);
        else
            rewrite_in_cpp(u, &l, k);
    }
}
