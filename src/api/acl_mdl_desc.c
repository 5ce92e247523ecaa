/* acl_mdl.h: descriptions of models. */
#include <string.h>

#include "api/acl_mdl.h"
#include "api/object.h"

/* One input or output. */
typedef struct end {
    char *name;
    int element, rank;
    int64_t dims[DP_TENSOR_DIMS];
    size_t bytes;
} end;

struct aclmdlDesc {
    dp_arena arena;
    end *ends[2]; /* inputs, outputs */
    size_t counts[2];
};

enum { INPUTS, OUTPUTS };

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

static dp_status describe_ends(dp_arena *arena, dp_value *const *values, int n, end **out_ends) {
    end *ends = dp_arena_alloc(arena, (size_t)n * sizeof *ends);
    for (int i = 0; ends && i < n; i++) {
        const dp_tensor *t = &values[i]->tensor;
        ends[i] = (end){dp_arena_text(arena, values[i]->name), t->element, t->rank, {0}, dp_value_bytes(values[i])};
        memcpy(ends[i].dims, t->dims, sizeof ends[i].dims);
        if (!ends[i].name)
            ends = NULL;
    }
    *out_ends = ends;
    return ends ? DP_OK : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the description of a model: free some");
}

dp_status dp_mdl_describe(aclmdlDesc *desc, const dp_model_file *file) {
    const dp_graph *graph = dp_model_file_variant(file, 0)->graph;
    dp_arena arena = {.kind = DP_MEM_GRAPH};
    end *inputs, *outputs;
    dp_status status = describe_ends(&arena, graph->inputs, graph->n_inputs, &inputs);
    if (status == DP_OK)
        status = describe_ends(&arena, graph->outputs, graph->n_outputs, &outputs);
    if (status != DP_OK) {
        dp_arena_free(&arena);
        return status;
    }
    dp_arena_free(&desc->arena);
    *desc = (aclmdlDesc){arena, {inputs, outputs}, {(size_t)graph->n_inputs, (size_t)graph->n_outputs}};
    return DP_OK;
}

/* Readers. */

static aclmdlDesc *get(const aclmdlDesc *modelDesc) {
    return dp_object_get(DP_OBJECT_MODEL_DESC, modelDesc, "modelDesc");
}

/* Input or output `index`, or NULL with a sentence. */
static const end *get_end(const aclmdlDesc *modelDesc, int side, size_t index) {
    const aclmdlDesc *desc = get(modelDesc);
    if (!desc)
        return NULL;
    if (index < desc->counts[side])
        return &desc->ends[side][index];
    dp_fail(DP_ERR_ARGUMENT, "index is %zu, but the model has %zu %s%s", index, desc->counts[side],
            side == INPUTS ? "inputs" : "outputs", desc->ends[INPUTS] ? "" : ": call aclmdlGetDesc first");
    return NULL;
}

static size_t count_of(dp_api_call call, const aclmdlDesc *modelDesc, int side) {
    const aclmdlDesc *desc = get(modelDesc);
    dp_api_end(&call, desc ? DP_OK : DP_ERR_ARGUMENT);
    return desc ? desc->counts[side] : 0;
}
size_t aclmdlGetNumInputs(aclmdlDesc *modelDesc) {
    return count_of(DP_API_CALL(), modelDesc, INPUTS);
}
size_t aclmdlGetNumOutputs(aclmdlDesc *modelDesc) {
    return count_of(DP_API_CALL(), modelDesc, OUTPUTS);
}

static size_t size_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index) {
    const end *e = get_end(modelDesc, side, index);
    dp_api_end(&call, e ? DP_OK : DP_ERR_ARGUMENT);
    return e ? e->bytes : 0;
}
size_t aclmdlGetInputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    return size_of(DP_API_CALL(), modelDesc, INPUTS, index);
}
size_t aclmdlGetOutputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    return size_of(DP_API_CALL(), modelDesc, OUTPUTS, index);
}

static aclError dims_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index, aclmdlIODims *dims) {
    const end *e = get_end(modelDesc, side, index);
    if (!e)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (!dims)
        return dp_api_null(&call, "dims", "the address of an aclmdlIODims");
    memset(dims, 0, sizeof *dims);
    strncpy(dims->name, e->name, sizeof dims->name - 1);
    dims->dimCount = (size_t)e->rank;
    memcpy(dims->dims, e->dims, (size_t)e->rank * sizeof(int64_t));
    return dp_api_end(&call, DP_OK);
}
aclError aclmdlGetInputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_of(DP_API_CALL(), modelDesc, INPUTS, index, dims);
}
aclError aclmdlGetInputDimsV2(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_of(DP_API_CALL(), modelDesc, INPUTS, index, dims);
}
aclError aclmdlGetOutputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_of(DP_API_CALL(), modelDesc, OUTPUTS, index, dims);
}
aclError aclmdlGetCurOutputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return dims_of(DP_API_CALL(), modelDesc, OUTPUTS, index, dims);
}

static const char *name_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index) {
    const end *e = get_end(modelDesc, side, index);
    dp_api_end(&call, e ? DP_OK : DP_ERR_ARGUMENT);
    return e ? e->name : "";
}
const char *aclmdlGetInputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    return name_of(DP_API_CALL(), modelDesc, INPUTS, index);
}
const char *aclmdlGetOutputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    return name_of(DP_API_CALL(), modelDesc, OUTPUTS, index);
}

static aclError index_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, const char *name, size_t *index) {
    const aclmdlDesc *desc = get(modelDesc);
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
                       side == INPUTS ? "input" : "output");
}
aclError aclmdlGetInputIndexByName(const aclmdlDesc *modelDesc, const char *name, size_t *index) {
    return index_of(DP_API_CALL(), modelDesc, INPUTS, name, index);
}
aclError aclmdlGetOutputIndexByName(const aclmdlDesc *modelDesc, const char *name, size_t *index) {
    return index_of(DP_API_CALL(), modelDesc, OUTPUTS, name, index);
}

static aclDataType type_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index) {
    const end *e = get_end(modelDesc, side, index);
    dp_api_end(&call, e ? DP_OK : DP_ERR_ARGUMENT);
    return e ? dp_mdl_type(e->element) : ACL_DT_UNDEFINED;
}
aclDataType aclmdlGetInputDataType(const aclmdlDesc *modelDesc, size_t index) {
    return type_of(DP_API_CALL(), modelDesc, INPUTS, index);
}
aclDataType aclmdlGetOutputDataType(const aclmdlDesc *modelDesc, size_t index) {
    return type_of(DP_API_CALL(), modelDesc, OUTPUTS, index);
}

/* Models of ONNX files have no formats of their own: NCHW with four dims, as the vendor reports them, ND otherwise. */
static aclFormat format_of(dp_api_call call, const aclmdlDesc *modelDesc, int side, size_t index) {
    const end *e = get_end(modelDesc, side, index);
    dp_api_end(&call, e ? DP_OK : DP_ERR_ARGUMENT);
    return !e ? ACL_FORMAT_UNDEFINED : e->rank == 4 ? ACL_FORMAT_NCHW : ACL_FORMAT_ND;
}
aclFormat aclmdlGetInputFormat(const aclmdlDesc *modelDesc, size_t index) {
    return format_of(DP_API_CALL(), modelDesc, INPUTS, index);
}
aclFormat aclmdlGetOutputFormat(const aclmdlDesc *modelDesc, size_t index) {
    return format_of(DP_API_CALL(), modelDesc, OUTPUTS, index);
}
