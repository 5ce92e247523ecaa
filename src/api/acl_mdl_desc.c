/* acl_mdl.h: descriptions of models. */
#include <string.h>

#include "api/acl_mdl.h"
#include "api/object.h"

aclDataType dp_mdl_type(int element) {
    static const int8_t types[DP_EL_COUNT] = {
        [DP_I8] = ACL_INT8,      [DP_U8] = ACL_UINT8,         [DP_I16] = ACL_INT16,       [DP_U16] = ACL_UINT16,
        [DP_I32] = ACL_INT32,    [DP_U32] = ACL_UINT32,       [DP_I64] = ACL_INT64,       [DP_U64] = ACL_UINT64,
        [DP_F16] = ACL_FLOAT16,  [DP_BF16] = ACL_BF16,        [DP_F32] = ACL_FLOAT,       [DP_F64] = ACL_DOUBLE,
        [DP_EL_BOOL] = ACL_BOOL, [DP_EL_C64] = ACL_COMPLEX64, [DP_EL_C128] = ACL_COMPLEX128};
    return element >= 0 && element < DP_EL_COUNT && element != DP_I4 ? (aclDataType)types[element] : ACL_DT_UNDEFINED;
}

aclmdlDesc *aclmdlCreateDesc(void) {
    dp_api_call call = DP_API_CALL();
    aclmdlDesc *desc = dp_object_create(DP_OBJECT_MODEL_DESC, sizeof *desc);
    if (desc)
        desc->arena.kind = DP_MEM_GRAPH;
    dp_api_end(&call, desc ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return desc;
}

aclError aclmdlDestroyDesc(aclmdlDesc *modelDesc) {
    dp_api_call call = DP_API_CALL();
    aclmdlDesc *desc = dp_object_take(DP_OBJECT_MODEL_DESC, modelDesc, "modelDesc");
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    dp_arena_free(&desc->arena);
    dp_free(desc);
    return dp_api_end(&call, DP_OK);
}

static dp_status no_memory(void) {
    return dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the description of a model: free some");
}

/* 0 when the product is not known, or larger than any memory. */
static size_t bytes_of(int element, int rank, const int64_t *dims) {
    size_t bytes = dp_element_bytes(element);
    for (int d = 0; d < rank; d++)
        if (dims[d] < 0 || dims[d] == DP_SHAPES_ANY || __builtin_mul_overflow(bytes, (size_t)dims[d], &bytes))
            return 0;
    return rank < 0 ? 0 : bytes;
}

static dp_status describe_end(dp_arena *arena, const dp_value *value, dp_mdl_end *end) {
    const dp_tensor *t = &value->tensor;
    *end = (dp_mdl_end){.name = dp_arena_text(arena, value->name), .element = t->element, .rank = t->rank < 0 ? 0 : t->rank};
    memcpy(end->dims, t->dims, sizeof end->dims);
    end->bytes = bytes_of(t->element, t->rank, t->dims);
    return end->name ? DP_OK : no_memory();
}

/* An input: dims that may change are unknown; the bytes are the most of all gears, or of the bounds. */
static void describe_open(const dp_shapes *shapes, int input, dp_mdl_end *end) {
    const dp_declared *declared = &shapes->inputs[input];
    end->rank = declared->rank;
    end->bytes = bytes_of(end->element, declared->rank, declared->most);
    for (int d = 0; d < declared->rank; d++)
        end->dims[d] = dp_declared_is_open(declared, d) ? DP_UNKNOWN : declared->least[d];
    for (int g = 0; g < shapes->n_gears; g++) {
        dp_tensor gear = {.rank = 0};
        dp_shapes_gear(shapes, g, input, &gear);
        size_t bytes = bytes_of(end->element, gear.rank, gear.dims);
        end->bytes = g == 0 || bytes > end->bytes ? bytes : end->bytes;
    }
}

/* An output: that of the gear in which it is largest. */
static void describe_largest(const dp_model_file *file, int output, dp_mdl_end *end) {
    for (int v = 1; v < dp_model_file_shapes(file)->n_gears; v++) {
        const dp_tensor *t = &dp_model_file_variant(file, v)->graph->outputs[output]->tensor;
        size_t bytes = bytes_of(t->element, t->rank, t->dims);
        if (bytes <= end->bytes)
            continue;
        end->bytes = bytes;
        memcpy(end->dims, t->dims, sizeof end->dims);
    }
}

/* The input that takes the numbers of a gear. */
static void describe_gears(const dp_shapes *shapes, dp_mdl_end *end) {
    static char name[] = ACL_DYNAMIC_TENSOR_NAME;
    *end = (dp_mdl_end){.name = name, .element = DP_I64, .rank = 1, .dims = {shapes->n_numbers}};
    end->bytes = (size_t)shapes->n_numbers * sizeof(int64_t);
}

static dp_status copy_shapes(dp_arena *arena, const dp_shapes *from, dp_shapes *to) {
    *to = *from;
    to->inputs = dp_arena_copy(arena, from->inputs, (size_t)from->n_inputs * sizeof *from->inputs);
    to->numbers = dp_arena_copy(arena, from->numbers, (size_t)from->n_gears * (size_t)from->n_numbers * sizeof *from->numbers);
    return to->inputs && to->numbers ? DP_OK : no_memory();
}

static dp_status describe(aclmdlDesc *d, const dp_model_file *file) {
    const dp_shapes *shapes = dp_model_file_shapes(file);
    const dp_graph *graph = dp_model_file_variant(file, 0)->graph;
    bool gears = dp_mdl_has_gears(shapes);
    d->counts[DP_MDL_INPUTS] = (size_t)graph->n_inputs + gears;
    d->counts[DP_MDL_OUTPUTS] = (size_t)graph->n_outputs;
    for (int side = 0; side < 2; side++)
        if (!(d->ends[side] = dp_arena_alloc(&d->arena, d->counts[side] * sizeof *d->ends[side] + 1)))
            return no_memory();
    dp_status status = copy_shapes(&d->arena, shapes, &d->shapes);
    for (int i = 0; i < graph->n_inputs && status == DP_OK; i++) {
        status = describe_end(&d->arena, graph->inputs[i], &d->ends[DP_MDL_INPUTS][i]);
        if (shapes->n_inputs)
            describe_open(shapes, i, &d->ends[DP_MDL_INPUTS][i]);
    }
    if (gears)
        describe_gears(shapes, &d->ends[DP_MDL_INPUTS][graph->n_inputs]);
    for (int i = 0; i < graph->n_outputs && status == DP_OK; i++) {
        status = describe_end(&d->arena, graph->outputs[i], &d->ends[DP_MDL_OUTPUTS][i]);
        if (!shapes->is_source)
            describe_largest(file, i, &d->ends[DP_MDL_OUTPUTS][i]);
    }
    return status;
}

dp_status dp_mdl_describe(aclmdlDesc *desc, const dp_model_file *file, uint32_t model_id) {
    aclmdlDesc made = {.arena = {.kind = DP_MEM_GRAPH}, .model_id = model_id};
    dp_status status = describe(&made, file);
    if (status != DP_OK) {
        dp_arena_free(&made.arena);
        return status;
    }
    dp_arena_free(&desc->arena);
    *desc = made;
    return DP_OK;
}

/* Readers. */

aclmdlDesc *dp_mdl_desc(const aclmdlDesc *modelDesc) {
    return dp_object_get(DP_OBJECT_MODEL_DESC, modelDesc, "modelDesc");
}

const dp_mdl_end *dp_mdl_find(const aclmdlDesc *modelDesc, int side, size_t index) {
    const aclmdlDesc *desc = dp_mdl_desc(modelDesc);
    if (!desc)
        return NULL;
    if (index < desc->counts[side])
        return &desc->ends[side][index];
    dp_fail(DP_ERR_ARGUMENT, "index is %zu, but the model has %zu %s%s", index, desc->counts[side],
            side == DP_MDL_INPUTS ? "inputs" : "outputs", desc->ends[DP_MDL_INPUTS] ? "" : ": call aclmdlGetDesc first");
    return NULL;
}

static size_t count_of(dp_api_call call, const aclmdlDesc *modelDesc, int side) {
    const aclmdlDesc *desc = dp_mdl_desc(modelDesc);
    dp_api_end(&call, desc ? DP_OK : DP_ERR_ARGUMENT);
    return desc ? desc->counts[side] : 0;
}
size_t aclmdlGetNumInputs(aclmdlDesc *modelDesc) {
    return count_of(DP_API_CALL(), modelDesc, DP_MDL_INPUTS);
}
size_t aclmdlGetNumOutputs(aclmdlDesc *modelDesc) {
    return count_of(DP_API_CALL(), modelDesc, DP_MDL_OUTPUTS);
}

static size_t size_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index) {
    const dp_mdl_end *e = dp_mdl_find(modelDesc, side, index);
    dp_api_end(&call, e ? DP_OK : DP_ERR_ARGUMENT);
    return e ? e->bytes : 0;
}
size_t aclmdlGetInputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    return size_of(DP_API_CALL(), modelDesc, DP_MDL_INPUTS, index);
}
size_t aclmdlGetOutputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    return size_of(DP_API_CALL(), modelDesc, DP_MDL_OUTPUTS, index);
}

void dp_mdl_write_dims(const char *name, int rank, const int64_t *dims, aclmdlIODims *out_dims) {
    memset(out_dims, 0, sizeof *out_dims);
    strncpy(out_dims->name, name, sizeof out_dims->name - 1);
    out_dims->dimCount = rank > 0 ? (size_t)rank : 0;
    if (rank > 0)
        memcpy(out_dims->dims, dims, (size_t)rank * sizeof(int64_t));
}

static aclError dims_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index, aclmdlIODims *dims) {
    const dp_mdl_end *e = dp_mdl_find(modelDesc, side, index);
    if (!e)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dims)
        return dp_api_null(&call, "dims", "the address of an aclmdlIODims");
    dp_mdl_write_dims(e->name, e->rank, e->dims, dims);
    return dp_api_end(&call, DP_OK);
}
aclError aclmdlGetInputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_of(DP_API_CALL(), modelDesc, DP_MDL_INPUTS, index, dims);
}
aclError aclmdlGetInputDimsV2(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_of(DP_API_CALL(), modelDesc, DP_MDL_INPUTS, index, dims);
}
aclError aclmdlGetOutputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_of(DP_API_CALL(), modelDesc, DP_MDL_OUTPUTS, index, dims);
}
static const char *name_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index) {
    const dp_mdl_end *e = dp_mdl_find(modelDesc, side, index);
    dp_api_end(&call, e ? DP_OK : DP_ERR_ARGUMENT);
    return e ? e->name : "";
}
const char *aclmdlGetInputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    return name_of(DP_API_CALL(), modelDesc, DP_MDL_INPUTS, index);
}
const char *aclmdlGetOutputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    return name_of(DP_API_CALL(), modelDesc, DP_MDL_OUTPUTS, index);
}

/* Names in an aclmdlIODims end after 127 characters; this is the whole one. */
const char *aclmdlGetTensorRealName(const aclmdlDesc *modelDesc, const char *name) {
    dp_api_call call = DP_API_CALL();
    const aclmdlDesc *desc = dp_mdl_desc(modelDesc);
    if (!desc || !name) {
        if (desc)
            dp_api_null(&call, "name", "a name");
        else
            dp_api_end(&call, DP_ERR_ARGUMENT);
        return NULL;
    }
    size_t most = sizeof ((aclmdlIODims *)0)->name - 1;
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < desc->counts[side]; i++) {
            const char *real = desc->ends[side][i].name;
            if (strcmp(real, name) == 0 || (strlen(name) == most && strncmp(real, name, most) == 0)) {
                dp_api_end(&call, DP_OK);
                return real;
            }
        }
    }
    dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "name is \"%.128s\", which is the name of no input or output", name);
    return NULL;
}

static aclError index_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, const char *name, size_t *index) {
    const aclmdlDesc *desc = dp_mdl_desc(modelDesc);
    if (!desc)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!name || !index)
        return dp_api_null(&call, name ? "index" : "name", name ? "the address of a size_t" : "a name");
    for (size_t i = 0; i < desc->counts[side]; i++) {
        if (strcmp(desc->ends[side][i].name, name) == 0) {
            *index = i;
            return dp_api_end(&call, DP_OK);
        }
    }
    return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "name is \"%.128s\", which is the name of no %s", name,
                       side == DP_MDL_INPUTS ? "input" : "output");
}
aclError aclmdlGetInputIndexByName(const aclmdlDesc *modelDesc, const char *name, size_t *index) {
    return index_of(DP_API_CALL(), modelDesc, DP_MDL_INPUTS, name, index);
}
aclError aclmdlGetOutputIndexByName(const aclmdlDesc *modelDesc, const char *name, size_t *index) {
    return index_of(DP_API_CALL(), modelDesc, DP_MDL_OUTPUTS, name, index);
}

static aclDataType type_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index) {
    const dp_mdl_end *e = dp_mdl_find(modelDesc, side, index);
    dp_api_end(&call, e ? DP_OK : DP_ERR_ARGUMENT);
    return e ? dp_mdl_type(e->element) : ACL_DT_UNDEFINED;
}
aclDataType aclmdlGetInputDataType(const aclmdlDesc *modelDesc, size_t index) {
    return type_of(DP_API_CALL(), modelDesc, DP_MDL_INPUTS, index);
}
aclDataType aclmdlGetOutputDataType(const aclmdlDesc *modelDesc, size_t index) {
    return type_of(DP_API_CALL(), modelDesc, DP_MDL_OUTPUTS, index);
}

/* Models of ONNX files have no formats of their own: NCHW with four dims, as the vendor reports them, ND otherwise. */
static aclFormat format_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index) {
    const dp_mdl_end *e = dp_mdl_find(modelDesc, side, index);
    dp_api_end(&call, e ? DP_OK : DP_ERR_ARGUMENT);
    return !e ? ACL_FORMAT_UNDEFINED : e->rank == 4 ? ACL_FORMAT_NCHW : ACL_FORMAT_ND;
}
aclFormat aclmdlGetInputFormat(const aclmdlDesc *modelDesc, size_t index) {
    return format_of(DP_API_CALL(), modelDesc, DP_MDL_INPUTS, index);
}
aclFormat aclmdlGetOutputFormat(const aclmdlDesc *modelDesc, size_t index) {
    return format_of(DP_API_CALL(), modelDesc, DP_MDL_OUTPUTS, index);
}
