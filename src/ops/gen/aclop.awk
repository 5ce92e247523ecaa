# aclop.awk - makes the table of operator types from its register aclop.tsv. POSIX awk.
#   awk -v out=DIR -f aclop.awk aclop.tsv
# writes DIR/aclop_types.c, DIR/aclop_types.inc (names, for the tester) and DIR/aclop-types.md.
#
# Columns: type, inputs, outputs, attributes, family, mapping, element types. Things of a list are separated by "; ":
#   x  a tensor        x*  a list of tensors        x?  may be missing
#   ints axis, int axis, number alpha   an input whose contents prepare reads; data filter: the same of a whole tensor
#   int axis = 0, bool, float, text, type, ints = 1 1 1 1   an attribute with a default (without one it must be given);
#   ending in ? it may be missing; == instead of = means that no other value is taken

function fail(text) {
    printf "aclop.tsv:%d: %s\n", NR, text > "/dev/stderr"
    failed = 1
    exit 1
}
function trim(text) {
    gsub(/^ +| +$/, "", text)
    return text
}
function bind_of(token) {
    token = trim(token)
    if (token == "-")
        return "{-2, 0}"
    if (token ~ /^-?[0-9.]+$/)
        return "{-1, " token "}"
    if (!(token in position))
        fail(type ": the mapping names " token ", which is no parameter")
    return "{" position[token] ", 0}"
}
function add_param(name, kind, written, trait) {
    if (name in position)
        fail(type ": two parameters are called " name)
    position[name] = n++
    params = params (params == "" ? "" : ", ") "{\"" name "\", DP_ARG_" kind ", " (written ? "true" : "false") "}"
    traits = traits (traits == "" ? "" : ", ") "{" trait "}"
}
# Adds the tensors and values of one column; returns how many.
function add_tensors(column, source,    tokens, count, i, name, flags, kind, words) {
    column = trim(column)
    if (column == "" || column == "-")
        return 0
    count = split(column, tokens, ";")
    for (i = 1; i <= count; i++) {
        name = trim(tokens[i])
        flags = ".source = DP_TYPED_" source
        if (sub(/\?$/, "", name))
            flags = flags ", .is_optional = true"
        kind = sub(/\*$/, "", name) ? "TENSOR_LIST" : "TENSOR"
        if (split(name, words, " ") == 2) {
            if (!(words[1] in value_kinds))
                fail(type ": unknown kind of input " words[1])
            kind = value_kinds[words[1]]
            name = words[2]
            flags = flags ", .is_value = true"
        }
        add_param(name, kind, source == "OUTPUT", flags)
    }
    return count
}
# ".has_default = true, ..." of the text after "=".
function default_of(kind, text,    parts, count, i, list) {
    if (kind == "TEXT")
        return ".text = \"" text "\""
    if (kind == "INT_LIST") {
        count = split(text, parts, " ")
        for (i = 1; i <= count; i++)
            list = list (i > 1 ? ", " : "") parts[i]
        return count ? ".list = (const int64_t[]){" list "}, .count = " count : ".count = 0"
    }
    return ".number = " (text == "true" ? 1 : text == "false" ? 0 : text)
}
function add_attributes(column,    tokens, count, i, text, flags, at, words, kind) {
    column = trim(column)
    if (column == "" || column == "-")
        return 0
    count = split(column, tokens, ";")
    for (i = 1; i <= count; i++) {
        text = trim(tokens[i])
        flags = ".source = DP_TYPED_ATTRIBUTE"
        at = index(text, "=")
        split(at ? substr(text, 1, at - 1) : text, words, " ")
        if (!(words[1] in attribute_kinds))
            fail(type ": unknown kind of attribute " words[1])
        kind = attribute_kinds[words[1]]
        if (sub(/\?$/, "", words[2]))
            flags = flags ", .is_optional = true"
        if (at) {
            flags = flags ", .has_default = true"
            if (substr(text, at + 1, 1) == "=") {
                flags = flags ", .is_fixed = true"
                at++
            }
            flags = flags ", " default_of(kind, trim(substr(text, at + 1)))
        }
        add_param(words[2], kind, 0, flags)
    }
    return count
}

BEGIN {
    FS = "\t"
    split("ints INT_LIST int INTEGER number SCALAR data TENSOR", pairs, " ")
    for (i = 1; i in pairs; i += 2)
        value_kinds[pairs[i]] = pairs[i + 1]
    split("int INTEGER bool INTEGER float REAL text TEXT type TYPE ints INT_LIST floats FLOAT_LIST", pairs2, " ")
    for (i = 1; i in pairs2; i += 2)
        attribute_kinds[pairs2[i]] = pairs2[i + 1]
    split("num DP_SET_NUM float DP_EL_FLOATS int DP_SET_INT all DP_SET_ALL real DP_SET_REAL half DP_SET_HALF", pairs3, " ")
    for (i = 1; i in pairs3; i += 2)
        sets[pairs3[i]] = pairs3[i + 1]
    code = out "/aclop_types.c"
    names = out "/aclop_types.inc"
    doc = out "/aclop-types.md"
    print "/* Made from src/ops/aclop.tsv: the operator types. */\n#include \"ops/typed/typed.h\"\n" > code
    print "/* Made from src/ops/aclop.tsv. */" > names
    print "# Operator types\n\nMade from `src/ops/aclop.tsv`. `x*` is a list of tensors, `x?` may be missing; `ints`, `int` and" > doc
    print "`number` inputs are read when the operator is called; `==` means that no other value is taken.\n" > doc
    print "| type | inputs | outputs | attributes | computed as |\n|---|---|---|---|---|" > doc
}
NR == 1 { next }
{
    type = $1
    n = 0
    params = traits = ""
    split("", position)
    if (NF != 7 || !($7 in sets))
        fail(type ": seven columns, the last a set of types")
    if (type in seen)
        fail(type " stands twice")
    seen[type] = 1
    n_inputs = add_tensors($2, "INPUT")
    n_outputs = add_tensors($3, "OUTPUT")
    n_attributes = add_attributes($4)
    open = index($6, "(")
    arrow = index($6, ") -> ")
    if (!open || !arrow)
        fail(type ": the mapping must be function(arguments) -> outputs")
    symbol = "dp_" $5 "_" substr($6, 1, open - 1)
    inside = trim(substr($6, open + 1, arrow - open - 1))
    n_in = inside == "" ? 0 : split(inside, in_tokens, ",")
    n_out = split(substr($6, arrow + 5), out_tokens, ",")
    binds = ""
    for (i = 1; i <= n_in; i++)
        binds = binds bind_of(in_tokens[i]) ", "
    for (i = 1; i <= n_out; i++)
        binds = binds bind_of(out_tokens[i]) ", "
    if (!(symbol in known)) {
        known[symbol] = 1
        print "extern const dp_function " symbol ";" > code
    }
    print "static const dp_param params_" type "[] = {" params "};" > code
    print "static const dp_typed_trait traits_" type "[] = {" traits "};" > code
    print "static const dp_bind binds_" type "[] = {" binds "};" > code
    rows[++count] = "{{\"" type "\", &" symbol ", params_" type ", binds_" type ", " sets[$7] ", " n ", " n_in ", " n_out "}, traits_" \
                    type ", " n_inputs ", " n_outputs ", " n_attributes "},"
    print "\"" type "\"," > names
    print "| " type " | " $2 " | " $3 " | " ($4 == "-" ? "" : $4) " | `" $6 "` |" > doc
}
END {
    if (failed)
        exit 1
    print "\nconst dp_typed dp_typed_all[] = {" > code
    for (i = 1; i <= count; i++)
        print "    " rows[i] > code
    print "};\nconst unsigned dp_typed_count = " count ";" > code
    print "\n" count " types." > doc
}
