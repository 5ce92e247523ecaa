#include "aclop_text.h"

#include <ctype.h>
#include <math.h>

static const struct {
    const char *name;
    aclDataType type;
} types[] = {{"f32", ACL_FLOAT}, {"f16", ACL_FLOAT16}, {"f64", ACL_DOUBLE}, {"i8", ACL_INT8},   {"u8", ACL_UINT8},
             {"i16", ACL_INT16}, {"i32", ACL_INT32},   {"i64", ACL_INT64},  {"bool", ACL_BOOL}, {"u64", ACL_UINT64},
             {"bf16", ACL_BF16}};

static void put(void *to, aclDataType type, double value) {
    switch (type) {
    case ACL_FLOAT:
        *(float *)to = (float)value;
        break;
    case ACL_FLOAT16:
        *(aclFloat16 *)to = aclFloatToFloat16((float)value);
        break;
    case ACL_BF16: { /* the cases have numbers of that type only */
        const float number = (float)value;
        memcpy(to, (const char *)&number + 2, 2);
        break;
    }
    case ACL_DOUBLE:
        *(double *)to = value;
        break;
    default: {
        int64_t bits = (int64_t)value; /* little endian */
        memcpy(to, &bits, aclDataTypeSize(type));
    }
    }
}

static double take(const void *from, aclDataType type) {
    switch (type) {
    case ACL_FLOAT:
        return *(const float *)from;
    case ACL_FLOAT16:
        return aclFloat16ToFloat(*(const aclFloat16 *)from);
    case ACL_BF16: {
        float number = 0;
        memcpy((char *)&number + 2, from, 2);
        return number;
    }
    case ACL_DOUBLE:
        return *(const double *)from;
    case ACL_INT8:
        return *(const int8_t *)from;
    case ACL_UINT8:
    case ACL_BOOL:
        return *(const uint8_t *)from;
    case ACL_INT16:
        return *(const int16_t *)from;
    case ACL_INT32:
        return *(const int32_t *)from;
    default:
        return (double)*(const int64_t *)from;
    }
}

static const char *parse(const char *text, aclop_tensor *t) {
    *t = (aclop_tensor){.count = 1};
    if (*text == '@' || *text == '#' || *text == '-')
        t->mark = *text++;
    if (t->mark == '-') {
        t->desc = aclCreateTensorDesc(ACL_DT_UNDEFINED, 0, NULL, ACL_FORMAT_UNDEFINED);
        return text;
    }
    size_t kind = 0, length = strcspn(text, "[");
    while (kind < sizeof types / sizeof types[0] &&
           (strlen(types[kind].name) != length || strncmp(types[kind].name, text, length)))
        kind++;
    CHECK(kind < sizeof types / sizeof types[0]);
    t->type = types[kind].type;
    for (text += length + 1; *text != ']';) {
        t->dims[t->rank] = strtoll(text, (char **)&text, 10);
        t->count *= (size_t)t->dims[t->rank++];
        text += *text == ',';
    }
    text++;
    CHECK(*text == '=' && t->count <= ACLOP_VALUES);
    text++;
    for (size_t i = 0; i < t->count; i++)
        t->values[i] = strtod(text, (char **)&text);
    t->bytes = t->count * aclDataTypeSize(t->type);
    return text;
}

static void make(aclop_tensor *t, bool output) {
    if (t->mark == '-')
        return;
    t->desc = aclCreateTensorDesc(t->type, t->rank, t->dims, ACL_FORMAT_ND);
    CHECK(t->desc);
    if (t->mark)
        t->data = malloc(t->bytes + 1);
    else if (t->bytes)
        CHECK_OK(aclrtMalloc(&t->data, t->bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    memset(t->data, 0x5a, t->bytes);
    for (size_t i = 0; i < t->count && !output; i++)
        put((char *)t->data + i * aclDataTypeSize(t->type), t->type, t->values[i]);
    if (t->mark == '#')
        CHECK_OK(aclSetTensorConst(t->desc, t->data, t->bytes));
    t->buffer = t->mark == '#' ? aclCreateDataBuffer(NULL, 0) : aclCreateDataBuffer(t->data, t->bytes);
    CHECK(t->buffer);
}

static int parse_all(const char *text, bool output, aclop_tensor *tensors, aclTensorDesc **descs,
                     aclDataBuffer **buffers) {
    int n = 0;
    while (*text) {
        CHECK(n < ACLOP_OPERANDS);
        text = parse(text, &tensors[n]);
        make(&tensors[n], output);
        descs[n] = tensors[n].desc;
        buffers[n] = tensors[n].buffer;
        n++;
        CHECK(!*text || *text == ';');
        text += *text == ';';
    }
    return n;
}

static void set_list(aclopAttr *attr, const char *name, char kind, const char *value) {
    int64_t list[16];
    int n = 0;
    for (const char *at = value; *at;)
        list[n++] = strtoll(at, (char **)&at, 10);
    if (kind == 'I') {
        CHECK_OK(aclopSetAttrListInt(attr, name, n, list));
        return;
    }
    const int64_t *pairs[8];
    int twos[8];
    for (int i = 0; i < n / 2; i++) {
        pairs[i] = list + 2 * i;
        twos[i] = 2;
    }
    CHECK_OK(aclopSetAttrListListInt(attr, name, n / 2, twos, pairs));
}

static void set_attributes(aclopAttr *attr, const char *text) {
    char copy[512], *rest = copy, *one;
    snprintf(copy, sizeof copy, "%s", text);
    while ((one = strsep(&rest, ";")) && *one) {
        char *colon = strchr(one, ':'), kind = colon[1], *value = colon + 3;
        *colon = '\0';
        switch (kind) {
        case 'i':
            CHECK_OK(aclopSetAttrInt(attr, one, atoll(value)));
            break;
        case 'b':
            CHECK_OK(aclopSetAttrBool(attr, one, (uint8_t)atoi(value)));
            break;
        case 'f':
            CHECK_OK(aclopSetAttrFloat(attr, one, strtof(value, NULL)));
            break;
        case 's':
            CHECK_OK(aclopSetAttrString(attr, one, value));
            break;
        case 't':
            CHECK_OK(aclopSetAttrDataType(attr, one, (aclDataType)atoi(value)));
            break;
        default:
            set_list(attr, one, kind, value);
        }
    }
}

void aclop_begin(aclop_call *call, const char *type, const char *inputs, const char *attributes, const char *outputs) {
    *call = (aclop_call){.type = type, .attr = aclopCreateAttr()};
    CHECK(call->attr);
    set_attributes(call->attr, attributes);
    call->n_in = parse_all(inputs, false, call->in, call->in_desc, call->in_buffer);
    call->n_out = parse_all(outputs, true, call->out, call->out_desc, call->out_buffer);
}

static void release(aclop_tensor *t) {
    aclDestroyTensorDesc(t->desc);
    if (t->buffer)
        CHECK_OK(aclDestroyDataBuffer(t->buffer));
    if (t->mark)
        free(t->data);
    else if (t->data)
        CHECK_OK(aclrtFree(t->data));
}

void aclop_end(aclop_call *call) {
    for (int i = 0; i < call->n_in; i++)
        release(&call->in[i]);
    for (int i = 0; i < call->n_out; i++)
        release(&call->out[i]);
    aclopDestroyAttr(call->attr);
}

aclError aclop_run(aclop_call *call) {
    aclError code = aclopCompileAndExecute(call->type, call->n_in, (const aclTensorDesc *const *)call->in_desc,
                                           (const aclDataBuffer *const *)call->in_buffer, call->n_out,
                                           (const aclTensorDesc *const *)call->out_desc, call->out_buffer, call->attr,
                                           ACL_ENGINE_SYS, ACL_COMPILE_SYS, NULL, NULL);
    return code ? code : aclrtSynchronizeStream(NULL);
}

void aclop_check(aclop_call *call) {
    for (int k = 0; k < call->n_out; k++) {
        const aclop_tensor *t = &call->out[k];
        for (size_t i = 0; i < t->count && t->mark != '-'; i++) {
            double got = take((char *)t->data + i * aclDataTypeSize(t->type), t->type), want = t->values[i];
            double room = t->type == ACL_FLOAT16 ? 1e-3 : 2e-6;
            if (fabs(got - want) <= room * (1 + fabs(want)))
                continue;
            fprintf(stderr, "%s: output %d, element %zu is %.9g, but must be %.9g\n", call->type, k, i, got, want);
            _exit(1);
        }
        memset(t->data, 0x5a, t->bytes);
    }
}
