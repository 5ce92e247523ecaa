/* acl_dvpp.h: areas, settings of resizing, encoding and borders, histograms and tables of values. */
#include "api/acl_dvpp.h"

#include <stdatomic.h>
#include <string.h>

/* Areas. */

acldvppRoiConfig *acldvppCreateRoiConfig(uint32_t left, uint32_t right, uint32_t top, uint32_t bottom) {
    dp_api_call call = DP_API_CALL();
    acldvppRoiConfig *object = dp_object_create(DP_OBJECT_DVPP_ROI, sizeof *object);
    if (object)
        *object = (acldvppRoiConfig){.left = left, .right = right, .top = top, .bottom = bottom};
    dp_api_end(&call, object ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return object;
}

aclError acldvppDestroyRoiConfig(acldvppRoiConfig *roiConfig) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_object_destroy(DP_OBJECT_DVPP_ROI, roiConfig, "roiConfig");
    return dp_api_end(&call, status == DP_OK ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppSetRoiConfig(acldvppRoiConfig *config, uint32_t left, uint32_t right, uint32_t top, uint32_t bottom) {
    dp_api_call call = DP_API_CALL();
    acldvppRoiConfig *object = dp_object_get(DP_OBJECT_DVPP_ROI, config, "config");
    if (object)
        *object = (acldvppRoiConfig){.left = left, .right = right, .top = top, .bottom = bottom};
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppSetRoiConfigLeft(acldvppRoiConfig *config, uint32_t left) {
    dp_api_call call = DP_API_CALL();
    acldvppRoiConfig *object = dp_object_get(DP_OBJECT_DVPP_ROI, config, "config");
    if (object)
        object->left = left;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppSetRoiConfigRight(acldvppRoiConfig *config, uint32_t right) {
    dp_api_call call = DP_API_CALL();
    acldvppRoiConfig *object = dp_object_get(DP_OBJECT_DVPP_ROI, config, "config");
    if (object)
        object->right = right;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppSetRoiConfigTop(acldvppRoiConfig *config, uint32_t top) {
    dp_api_call call = DP_API_CALL();
    acldvppRoiConfig *object = dp_object_get(DP_OBJECT_DVPP_ROI, config, "config");
    if (object)
        object->top = top;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppSetRoiConfigBottom(acldvppRoiConfig *config, uint32_t bottom) {
    dp_api_call call = DP_API_CALL();
    acldvppRoiConfig *object = dp_object_get(DP_OBJECT_DVPP_ROI, config, "config");
    if (object)
        object->bottom = bottom;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

/* Resizing. */

acldvppResizeConfig *acldvppCreateResizeConfig(void) {
    dp_api_call call = DP_API_CALL();
    acldvppResizeConfig *object = dp_object_create(DP_OBJECT_DVPP_RESIZE, sizeof *object);
    dp_api_end(&call, object ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return object;
}

aclError acldvppDestroyResizeConfig(acldvppResizeConfig *resizeConfig) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_object_destroy(DP_OBJECT_DVPP_RESIZE, resizeConfig, "resizeConfig");
    return dp_api_end(&call, status == DP_OK ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppSetResizeConfigInterpolation(acldvppResizeConfig *resizeConfig, uint32_t interpolation) {
    dp_api_call call = DP_API_CALL();
    acldvppResizeConfig *object = dp_object_get(DP_OBJECT_DVPP_RESIZE, resizeConfig, "resizeConfig");
    if (interpolation >= DP_INTERPOLATION_COUNT)
        return dp_api_bad_value(&call, "interpolation", interpolation,
                                "0 or 1 (bilinear), 2 (nearest), 3 (bicubic) or 4 (area)");
    if (object)
        object->interpolation = interpolation;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetResizeConfigInterpolation(const acldvppResizeConfig *resizeConfig) {
    dp_api_call call = DP_API_CALL();
    const acldvppResizeConfig *object = dp_object_get(DP_OBJECT_DVPP_RESIZE, resizeConfig, "resizeConfig");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->interpolation : 0;
}

/* JPEG encoding. */

acldvppJpegeConfig *acldvppCreateJpegeConfig(void) {
    dp_api_call call = DP_API_CALL();
    acldvppJpegeConfig *object = dp_object_create(DP_OBJECT_DVPP_JPEGE, sizeof *object);
    dp_api_end(&call, object ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return object;
}

aclError acldvppDestroyJpegeConfig(acldvppJpegeConfig *jpegeConfig) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_object_destroy(DP_OBJECT_DVPP_JPEGE, jpegeConfig, "jpegeConfig");
    return dp_api_end(&call, status == DP_OK ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppSetJpegeConfigLevel(acldvppJpegeConfig *jpegeConfig, uint32_t level) {
    dp_api_call call = DP_API_CALL();
    acldvppJpegeConfig *object = dp_object_get(DP_OBJECT_DVPP_JPEGE, jpegeConfig, "jpegeConfig");
    if (level > 100)
        return dp_api_bad_value(&call, "level", level, "1 to 100, the quality, or 0, which is 100");
    if (object)
        object->level = level;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetJpegeConfigLevel(const acldvppJpegeConfig *jpegeConfig) {
    dp_api_call call = DP_API_CALL();
    const acldvppJpegeConfig *object = dp_object_get(DP_OBJECT_DVPP_JPEGE, jpegeConfig, "jpegeConfig");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->level : 0;
}

/* Borders. */

acldvppBorderConfig *acldvppCreateBorderConfig(void) {
    dp_api_call call = DP_API_CALL();
    acldvppBorderConfig *object = dp_object_create(DP_OBJECT_DVPP_BORDER, sizeof *object);
    dp_api_end(&call, object ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return object;
}

aclError acldvppDestroyBorderConfig(acldvppBorderConfig *borderConfig) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_object_destroy(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    return dp_api_end(&call, status == DP_OK ? DP_OK : DP_ERR_ARGUMENT);
}

aclError acldvppSetBorderConfigTop(acldvppBorderConfig *borderConfig, uint32_t top) {
    dp_api_call call = DP_API_CALL();
    acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    if (object)
        object->top = top;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetBorderConfigTop(const acldvppBorderConfig *borderConfig) {
    dp_api_call call = DP_API_CALL();
    const acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->top : 0;
}

aclError acldvppSetBorderConfigBottom(acldvppBorderConfig *borderConfig, uint32_t bottom) {
    dp_api_call call = DP_API_CALL();
    acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    if (object)
        object->bottom = bottom;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetBorderConfigBottom(const acldvppBorderConfig *borderConfig) {
    dp_api_call call = DP_API_CALL();
    const acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->bottom : 0;
}

aclError acldvppSetBorderConfigLeft(acldvppBorderConfig *borderConfig, uint32_t left) {
    dp_api_call call = DP_API_CALL();
    acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    if (object)
        object->left = left;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetBorderConfigLeft(const acldvppBorderConfig *borderConfig) {
    dp_api_call call = DP_API_CALL();
    const acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->left : 0;
}

aclError acldvppSetBorderConfigRight(acldvppBorderConfig *borderConfig, uint32_t right) {
    dp_api_call call = DP_API_CALL();
    acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    if (object)
        object->right = right;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetBorderConfigRight(const acldvppBorderConfig *borderConfig) {
    dp_api_call call = DP_API_CALL();
    const acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->right : 0;
}

aclError acldvppSetBorderConfigBorderType(acldvppBorderConfig *borderConfig, acldvppBorderType borderType) {
    dp_api_call call = DP_API_CALL();
    acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    if ((unsigned)borderType >= DP_BORDER_COUNT)
        return dp_api_bad_value(&call, "borderType", borderType, "an acldvppBorderType (0 to 3)");
    if (object)
        object->type = borderType;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

acldvppBorderType acldvppGetBorderConfigBorderType(const acldvppBorderConfig *borderConfig) {
    dp_api_call call = DP_API_CALL();
    const acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->type : BORDER_CONSTANT;
}

aclError acldvppSetBorderConfigValue(acldvppBorderConfig *borderConfig, uint32_t index, double value) {
    dp_api_call call = DP_API_CALL();
    acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    if (index > 3)
        return dp_api_bad_value(&call, "index", index, "0 to 3");
    if (!(value >= 0 && value <= 255))
        return dp_api_fail(&call, ACL_ERROR_INVALID_PARAM, "value is %g, but must be 0 to 255", value);
    if (object)
        object->value[index] = value;
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

double acldvppGetBorderConfigValue(const acldvppBorderConfig *borderConfig, uint32_t index) {
    dp_api_call call = DP_API_CALL();
    const acldvppBorderConfig *object = dp_object_get(DP_OBJECT_DVPP_BORDER, borderConfig, "borderConfig");
    if (object && index > 3) {
        dp_api_bad_value(&call, "index", index, "0 to 3");
        return 0;
    }
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->value[index] : 0;
}
/* Histograms. */

static acldvppHist *get_hist(const acldvppHist *hist) {
    return dp_object_get(DP_OBJECT_DVPP_HIST, hist, "hist");
}

acldvppHist *acldvppCreateHist(void) {
    dp_api_call call = DP_API_CALL();
    acldvppHist *object = dp_object_create(DP_OBJECT_DVPP_HIST, sizeof *object);
    if (object)
        atomic_init(&object->references, 1);
    dp_api_end(&call, object ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return object;
}

aclError acldvppDestroyHist(acldvppHist *hist) {
    dp_api_call call = DP_API_CALL();
    acldvppHist *object = dp_object_take(DP_OBJECT_DVPP_HIST, hist, "hist");
    dp_dvpp_release_hist(object);
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

void dp_dvpp_release_hist(acldvppHist *hist) {
    if (hist && atomic_fetch_sub(&hist->references, 1) == 1)
        dp_free(hist);
}

aclError acldvppClearHist(acldvppHist *hist) {
    dp_api_call call = DP_API_CALL();
    acldvppHist *object = get_hist(hist);
    if (object) {
        memset(object->counts, 0, sizeof object->counts);
        object->ret_code = 0;
    }
    return dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetHistDims(acldvppHist *hist) {
    dp_api_call call = DP_API_CALL();
    const acldvppHist *object = get_hist(hist);
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->dims : 0;
}

aclError acldvppGetHistData(acldvppHist *hist, uint32_t dim, uint32_t **data, uint16_t *len) {
    dp_api_call call = DP_API_CALL();
    acldvppHist *object = get_hist(hist);
    if (!object)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (dim >= DP_DVPP_DIMS)
        return dp_api_bad_value(&call, "dim", dim, "0 to 2");
    if (!data || !len)
        return dp_api_null(&call, data ? "len" : "data", "an address");
    *data = object->counts[dim];
    *len = DP_DVPP_VALUES;
    return dp_api_end(&call, DP_OK);
}

uint32_t acldvppGetHistRetCode(acldvppHist *hist) {
    dp_api_call call = DP_API_CALL();
    const acldvppHist *object = get_hist(hist);
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? object->ret_code : UINT32_MAX;
}

/* Tables of values. */

acldvppLutMap *acldvppCreateLutMap(void) {
    dp_api_call call = DP_API_CALL();
    acldvppLutMap *object = dp_object_create(DP_OBJECT_DVPP_LUT, sizeof *object);
    dp_api_end(&call, object ? DP_OK : DP_ERR_OUT_OF_MEMORY);
    return object;
}

aclError acldvppDestroyLutMap(acldvppLutMap *lutMap) {
    dp_api_call call = DP_API_CALL();
    dp_status status = dp_object_destroy(DP_OBJECT_DVPP_LUT, lutMap, "lutMap");
    return dp_api_end(&call, status == DP_OK ? DP_OK : DP_ERR_ARGUMENT);
}

uint32_t acldvppGetLutMapDims(const acldvppLutMap *lutMap) {
    dp_api_call call = DP_API_CALL();
    const acldvppLutMap *object = dp_object_get(DP_OBJECT_DVPP_LUT, lutMap, "lutMap");
    dp_api_end(&call, object ? DP_OK : DP_ERR_ARGUMENT);
    return object ? DP_DVPP_DIMS : 0;
}

aclError acldvppGetLutMapData(const acldvppLutMap *lutMap, uint32_t dim, uint8_t **data, uint32_t *len) {
    dp_api_call call = DP_API_CALL();
    acldvppLutMap *object = dp_object_get(DP_OBJECT_DVPP_LUT, lutMap, "lutMap");
    if (!object)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    if (dim >= DP_DVPP_DIMS)
        return dp_api_bad_value(&call, "dim", dim, "0 to 2");
    if (!data || !len)
        return dp_api_null(&call, data ? "len" : "data", "an address");
    *data = object->values[dim];
    *len = DP_DVPP_VALUES;
    return dp_api_end(&call, DP_OK);
}
