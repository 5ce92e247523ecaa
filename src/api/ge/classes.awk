# classes.awk - the C++ classes of operators, from the register of types and the list of types that only graphs have. POSIX awk.
#   awk -f classes.awk src/ops/aclop.tsv src/api/ge/types.tsv > all_ops.h

function trim(text) {
    gsub(/^ +| +$/, "", text)
    return text
}
function ends(column, one, many,    parts, count, i, words, name) {
    count = split(trim(column), parts, ";")
    for (i = 1; i <= count; i++) {
        name = trim(parts[i])
        if (name == "" || name == "-")
            continue
        sub(/\?$/, "", name)
        if (split(name, words, " ") == 2)
            name = words[2]
        if (sub(/\*$/, "", name))
            printf "    %s(%s, %s)\n", many, $1, name
        else
            printf "    %s(%s, %s)\n", one, $1, name
    }
}
function attributes(column,    parts, count, i, words, text, name) {
    count = split(trim(column), parts, ";")
    for (i = 1; i <= count; i++) {
        text = trim(parts[i])
        if (text == "" || text == "-")
            continue
        sub(/=.*/, "", text)
        split(trim(text), words, " ")
        name = words[2]
        sub(/\?$/, "", name)
        if (words[1] == "text")
            printf "    DP_GE_TEXT(%s, %s)\n", $1, name
        else
            printf "    DP_GE_ATTRIBUTE(%s, %s, %s)\n", $1, name, kinds[words[1]]
    }
}

BEGIN {
    FS = "\t"
    kinds["int"] = "int64_t"
    kinds["bool"] = "bool"
    kinds["float"] = "float"
    kinds["type"] = "ge::DataType"
    kinds["ints"] = "const std::vector<int64_t> &"
    kinds["floats"] = "const std::vector<float> &"
    kinds["tensor"] = "const ge::Tensor &"
    print "/* all_ops.h - operators of graphs. Made from src/ops/aclop.tsv and src/api/ge/types.tsv. */"
    print "#ifndef DOPPEL_OP_PROTO_ALL_OPS_H\n#define DOPPEL_OP_PROTO_ALL_OPS_H\n\n#include \"doppel/ge_op.hpp\"\n\nnamespace ge {\nnamespace op {\n"
}
FNR == 1 { next }
{
    printf "class %s : public ge::Operator {\n    DP_GE_CLASS(%s)\n", $1, $1
    ends($2, "DP_GE_INPUT", "DP_GE_INPUTS")
    ends($3, "DP_GE_OUTPUT", "DP_GE_OUTPUTS")
    attributes($4)
    print "};\n"
}
END { print "} // namespace op\n} // namespace ge\n\n#endif" }
