# aclnn.awk - makes everything public about an operator from its row of signatures.tsv. POSIX awk.
#   awk -v out=DIR -f aclnn.awk signatures.tsv
# writes DIR/include/aclnnop/aclnn_<header>.h, DIR/aclnn_glue.c, DIR/aclnn_callers.inc (for the tester) and DIR/operators.md.

function fail(text) {
    printf "signatures.tsv:%d: %s\n", NR, text > "/dev/stderr"
    failed = 1
    exit 1
}
function trim(text) {
    sub(/^ +/, "", text)
    sub(/ +$/, "", text)
    return text
}
# Kind of a parameter by its C type, and the member of the value that carries it.
function kind_of(type) {
    sub(/^const /, "", type)
    if (type in kinds)
        return kinds[type]
    fail("unknown type " type)
}
function member_of(kind) {
    if (kind == "DP_ARG_INTEGER" || kind == "DP_ARG_TYPE")
        return "integer"
    return kind == "DP_ARG_REAL" ? "real" : "pointer"
}
# "{param, number}, " of one argument of a mapping.
function bind_of(token) {
    token = trim(token)
    if (token == "-")
        return "{-2, 0}"
    if (token ~ /^-?[0-9.]+$/)
        return "{-1, " token "}"
    if (!(token in position))
        fail(op ": the mapping names " token ", which is no parameter")
    return "{" position[token] ", 0}"
}
# A declaration in lines of up to 116 characters.
function wrapped(text,    parts, n, i, line, all) {
    n = split(text, parts, ", ")
    line = parts[1]
    for (i = 2; i <= n; i++) {
        if (length(line) + length(parts[i]) > 113) {
            all = all line ",\n"
            line = "    " parts[i]
        } else
            line = line ", " parts[i]
    }
    return all line
}
function words_of(types) {
    if (types == "num")
        return "floating point, integers (not uint64), bool"
    if (types == "float")
        return "floating point"
    if (types == "half")
        return "float, half, bfloat16"
    if (types == "int")
        return "integers, bool"
    return types == "real" ? "floating point, integers, bool" : types == "all" ? "any" : types
}

BEGIN {
    FS = "\t"
    split("aclTensor* DP_ARG_TENSOR aclScalar* DP_ARG_SCALAR aclIntArray* DP_ARG_INT_LIST aclFloatArray* DP_ARG_FLOAT_LIST " \
          "aclBoolArray* DP_ARG_BOOL_LIST aclTensorList* DP_ARG_TENSOR_LIST aclScalarList* DP_ARG_SCALAR_LIST " \
          "int64_t DP_ARG_INTEGER int32_t DP_ARG_INTEGER int8_t DP_ARG_INTEGER int DP_ARG_INTEGER bool DP_ARG_INTEGER " \
          "uint64_t DP_ARG_INTEGER aclDataType DP_ARG_TYPE double DP_ARG_REAL float DP_ARG_REAL char* DP_ARG_TEXT", pairs, " ")
    for (i = 1; i in pairs; i += 2)
        kinds[pairs[i]] = pairs[i + 1]
    sets["num"] = "DP_SET_NUM"; sets["float"] = "DP_EL_FLOATS"; sets["int"] = "DP_SET_INT"
    sets["all"] = "DP_SET_ALL"; sets["real"] = "DP_SET_REAL"; sets["half"] = "DP_SET_HALF"
    glue = out "/aclnn_glue.c"
    callers = out "/aclnn_callers.inc"
    doc = out "/operators.md"
    print "/* Made from src/ops/signatures.tsv: the entry points of all operators. */" > glue
    print "#include \"api/aclnn.h\"\n" > glue
    print "# Operators\n\nMade from `src/ops/signatures.tsv`. A mapping shows how the parameters go into the family's function.\n" > doc
    print "| operator | header | family | mapping | element types |\n|---|---|---|---|---|" > doc
    print "/* Made from src/ops/signatures.tsv: one caller per operator. */" > callers
}
NR == 1 { next }
{
    op = $1; header = $2; family = $4; mapping = $5; types = $6
    if (op != "-" && ++times[op] > 1)
        fail(op " has two rows")
    file = out "/include/aclnnop/aclnn_" header ".h"
    if (!(header in seen)) {
        seen[header] = file
        guard = toupper(header)
        print "/*" > file
        print " * aclnn_" header ".h - made from the register of operators; see docs/operators.md." > file
        print " *" > file
        print " * GetWorkspaceSize checks shapes and types and makes an executor; the second call queues the work on `stream` (NULL = the" > file
        print " * default stream) and uses the executor up. workspace may be NULL when its size is 0. All objects may be destroyed when the" > file
        print " * second call has returned. Codes: aclnn_base.h; aclGetRecentErrMsg names the parameter, the dimension and what was expected." > file
        print " */" > file
        print "#ifndef ACLNNOP_ACLNN_" guard "_H\n#define ACLNNOP_ACLNN_" guard "_H\n\n#include \"aclnn/aclnn_base.h\"\n" > file
        print "#ifdef __cplusplus\nextern \"C\" {\n#endif\n" > file
        if (op != "-")
            print "#include \"aclnnop/aclnn_" header ".h\"" > glue
    }
    if (op == "-") {
        print "/* No operator of this header is offered yet. */\n" > file
        next
    }
    if (family == "host") {
        n = split($3, parameters, ";")
        declared = ""
        for (i = 1; i <= n; i++) {
            p = trim(parameters[i])
            sub(/\* /, " *", p)
            declared = declared (i > 1 ? ", " : "") p
        }
        print "/* Answers at once, on the host. */" > file
        print wrapped("ACL_FUNC_VISIBILITY aclnnStatus aclnn" op "(" declared ");") "\n" > file
        print "| aclnn" op " | aclnn_" header ".h | host | | |" > doc
        next
    }
    if (!(types in sets))
        fail(op ": unknown set of types " types)

    n = split($3, parameters, ";")
    split("", position)
    declared = values = meta = letters = ""
    for (i = 1; i <= n; i++) {
        p = trim(parameters[i])
        match(p, /[A-Za-z0-9_]+$/)
        name[i] = substr(p, RSTART)
        type = trim(substr(p, 1, RSTART - 1))
        k[i] = kind_of(type)
        position[name[i]] = i - 1
        letters = letters (k[i] == "DP_ARG_TYPE" ? "D" : k[i] == "DP_ARG_TEXT" ? "X" : substr(k[i], 8, 1)) (k[i] ~ /LIST/ ? "l" : "") ":" name[i] ","
        written[i] = 0
        spaced = type
        sub(/\*$/, " *", spaced)
        declared = declared spaced (type ~ /\*$/ ? "" : " ") name[i] ", "
        values = values (i > 1 ? ", " : "") "{." member_of(k[i]) " = " name[i] "}"
        cast = k[i] == "DP_ARG_REAL" ? "(" type ")a[" (i - 1) "].real" : member_of(k[i]) == "integer" ? "(" type ")a[" (i - 1) "].integer" : "(" type ")(uintptr_t)a[" (i - 1) "].pointer"
        arguments[i] = cast
    }

    open = index(mapping, "(")
    arrow = index(mapping, ") -> ")
    if (!open || !arrow)
        fail(op ": the mapping must be function(arguments) -> outputs")
    fn = substr(mapping, 1, open - 1)
    inside = trim(substr(mapping, open + 1, arrow - open - 1))
    n_in = inside == "" ? 0 : split(inside, in_tokens, ",")
    n_out = split(substr(mapping, arrow + 5), out_tokens, ",")
    binds = ""
    for (i = 1; i <= n_in; i++)
        binds = binds bind_of(in_tokens[i]) ", "
    for (i = 1; i <= n_out; i++) {
        binds = binds bind_of(out_tokens[i]) ", "
        t = trim(out_tokens[i])
        if (t in position)
            written[position[t] + 1] = 1
    }
    for (i = 1; i <= n; i++)
        meta = meta "{\"" name[i] "\", " k[i] ", " (written[i] ? "true" : "false") "}" (i < n ? ", " : "")

    print "/* " mapping "; element types: " words_of(types) ". */" > file
    first = "ACL_FUNC_VISIBILITY aclnnStatus aclnn" op
    print wrapped(first "GetWorkspaceSize(" declared "uint64_t *workspaceSize, aclOpExecutor **executor);") > file
    print wrapped(first "(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);") "\n" > file

    symbol = "dp_" family "_" fn
    if (!(symbol in known)) {
        known[symbol] = 1
        print "extern const dp_function " symbol ";" > glue
    }
    print "static const dp_param params_" op "[] = {" meta "};" > glue
    print "static const dp_bind binds_" op "[] = {" binds "};" > glue
    print "static const dp_operator op_" op " = {\"" op "\", &" symbol ", params_" op ", binds_" op ", " sets[types] ", " n ", " n_in ", " n_out "};" > glue
    print "aclnnStatus aclnn" op "GetWorkspaceSize(" declared "uint64_t *workspaceSize, aclOpExecutor **executor) {" > glue
    print "    const dp_aclnn_value dp_given[] = {" values "};" > glue
    print "    return dp_aclnn_prepare(&op_" op ", dp_given, workspaceSize, executor, __func__, __builtin_return_address(0));\n}" > glue
    print "aclnnStatus aclnn" op "(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream) {" > glue
    print "    return dp_aclnn_run(&op_" op ", workspace, workspaceSize, executor, stream, __func__, __builtin_return_address(0));\n}\n" > glue

    call = ""
    for (i = 1; i <= n; i++)
        call = call arguments[i] ", "
    print "#include \"aclnnop/aclnn_" header ".h\"" > callers
    print "static aclnnStatus prepare_" op "(const caller_value *a, uint64_t *size, aclOpExecutor **executor) {" > callers
    print "    return aclnn" op "GetWorkspaceSize(" call "size, executor);\n}" > callers
    rows[++count] = op
    told[count] = family "\", \"" types "\", \"" mapping "\", \"" letters
    shown = mapping
    gsub(/\|/, "\\|", shown)
    print "| aclnn" op " | aclnn_" header ".h | " family " | `" shown "` | " words_of(types) " |" > doc
}
END {
    if (failed)
        exit 1
    for (h in seen)
        print "#ifdef __cplusplus\n}\n#endif\n\n#endif" > seen[h]
    print "const dp_operator *const dp_operators[] = {" > glue
    print "static const caller callers[] = {" > callers
    for (i = 1; i <= count; i++) {
        print "    &op_" rows[i] "," > glue
        print "    {\"" rows[i] "\", prepare_" rows[i] ", aclnn" rows[i] ", \"" told[i] "\"}," > callers
    }
    print "};\nconst unsigned dp_operators_count = " count ";" > glue
    print "};" > callers
    print "\n" count " operators." > doc
}
