/* acl_dvpp.h: work on pictures. Every call becomes a list of pieces, which one task draws. */
#include "api/acl_dvpp.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "media/values.h"
#include "runtime/device_memory.h"
#include "runtime/task.h"

typedef struct piece {
    dp_picture src, dst;
    dp_area from, to; /* to is what is drawn; a border goes around it */
    bool has_border;
    dp_border border;
    acldvppPicDesc *result; /* held */
} piece;

typedef struct job {
    dp_draw_options options;
    uint32_t n;
    piece pieces[];
} job;

static void free_job(job *j) {
    for (uint32_t i = 0; j && i < j->n; i++)
        dp_dvpp_release(j->pieces[i].result);
    dp_free(j);
}

/* All pieces are tried; the first failure is the task's. */
static dp_status run_job(void *payload) {
    const job *j = *(job **)payload;
    dp_status first = DP_OK;
    char sentence[512] = "";
    for (uint32_t i = 0; i < j->n; i++) {
        const piece *p = &j->pieces[i];
        const dp_area whole = dp_picture_area(&p->dst);
        dp_dvpp_report(DP_HOST_READ, &p->src, &p->from);
        dp_dvpp_report(DP_HOST_WRITE, &p->dst, p->has_border ? &whole : &p->to);
        dp_status status = dp_picture_draw(&p->src, &p->from, &p->dst, &p->to, &j->options);
        if (status == DP_OK && p->has_border)
            dp_picture_border(&p->dst, &p->to, &p->border);
        p->result->ret_code = dp_dvpp_ret_code(status);
        if (status != DP_OK && first == DP_OK) {
            first = status;
            snprintf(sentence, sizeof sentence, "%s", dp_fail_message());
        }
    }
    return first == DP_OK ? DP_OK : dp_fail(first, "%s", sentence);
}

static void end_job(void *payload) {
    free_job(*(job **)payload);
}

/* What a call brings for its pieces; NULL: it has no such thing. */
typedef struct request {
    acldvppRoiConfig *const *crops, *const *pastes;
    const acldvppBorderConfig *const *borders;
    bool resizes; /* otherwise sizes must be the same */
} request;

static dp_status take_area(const acldvppRoiConfig *handle, const dp_picture *picture, const char *argument,
                           dp_area *out) {
    const acldvppRoiConfig *roi = dp_object_get(DP_OBJECT_DVPP_ROI, handle, argument);
    if (!roi)
        return DP_ERR_ARGUMENT;
    if (roi->right < roi->left || roi->bottom < roi->top)
        return dp_fail(
            DP_ERR_ARGUMENT,
            "%s: left is %u and right %u, top %u and bottom %u, but right and bottom are the last pixels and "
            "must not be smaller",
            argument, roi->left, roi->right, roi->top, roi->bottom);
    uint64_t width = (uint64_t)roi->right - roi->left + 1, height = (uint64_t)roi->bottom - roi->top + 1;
    *out = (dp_area){.left = roi->left,
                     .top = roi->top,
                     .width = width > UINT32_MAX ? UINT32_MAX : (uint32_t)width,
                     .height = height > UINT32_MAX ? UINT32_MAX : (uint32_t)height};
    return dp_area_check(out, picture, argument);
}

/* The border's sides cut what is drawn out of the whole picture; a border of 0 everywhere draws all of it. */
static dp_status take_border(const acldvppBorderConfig *handle, piece *p) {
    const acldvppBorderConfig *b = dp_object_get(DP_OBJECT_DVPP_BORDER, handle, "borderConfig");
    if (!b)
        return DP_ERR_ARGUMENT;
    if ((uint64_t)b->left + b->right >= p->dst.width || (uint64_t)b->top + b->bottom >= p->dst.height)
        return dp_fail(
            DP_ERR_ARGUMENT,
            "borderConfig: borders of %u, %u, %u, %u (left, right, top, bottom) leave nothing of a picture of "
            "%u x %u",
            b->left, b->right, b->top, b->bottom, p->dst.width, p->dst.height);
    p->to = (dp_area){.left = b->left,
                      .top = b->top,
                      .width = p->dst.width - b->left - b->right,
                      .height = p->dst.height - b->top - b->bottom};
    p->has_border = true;
    p->border.kind = (int)b->type;
    for (int i = 0; i < 4; i++)
        p->border.value[i] = (uint8_t)(b->value[i] + 0.5);
    return DP_OK;
}

static dp_status check_scale(const piece *p) {
    enum { LESS = 32, MORE = 16 };
    bool fits = p->from.width <= (uint64_t)p->to.width * LESS && p->from.height <= (uint64_t)p->to.height * LESS &&
                p->to.width <= (uint64_t)p->from.width * MORE && p->to.height <= (uint64_t)p->from.height * MORE;
    return fits ? DP_OK
                : dp_fail(DP_ERR_ARGUMENT,
                          "%u x %u pixels become %u x %u, but one step resizes by 1/%d to %d: do it in two",
                          p->from.width, p->from.height, p->to.width, p->to.height, LESS, MORE);
}

static bool overlap(const dp_picture *a, const dp_picture *b) {
    return a->data < b->data + dp_picture_bytes(b) && b->data < a->data + dp_picture_bytes(a);
}

static dp_status fill_piece(piece *p, const acldvppPicDesc *input, acldvppPicDesc *output, const request *r,
                            uint32_t i) {
    const acldvppPicDesc *in = dp_dvpp_picture(input, "inputDesc");
    acldvppPicDesc *out = in ? dp_dvpp_picture(output, "outputDesc") : NULL;
    if (!out)
        return DP_ERR_ARGUMENT;
    dp_status status = dp_dvpp_take(in, "inputDesc", &p->src);
    if (status == DP_OK)
        status = dp_dvpp_take(out, "outputDesc", &p->dst);
    if (status == DP_OK && overlap(&p->src, &p->dst))
        status = dp_fail(DP_ERR_ARGUMENT,
                         "outputDesc: its memory overlaps that of inputDesc: a picture is not changed in place");
    p->from = dp_picture_area(&p->src);
    p->to = dp_picture_area(&p->dst);
    if (status == DP_OK && r->crops)
        status = take_area(r->crops[i], &p->src, "cropArea", &p->from);
    if (status == DP_OK && r->pastes)
        status = take_area(r->pastes[i], &p->dst, "pasteArea", &p->to);
    if (status == DP_OK && r->borders)
        status = take_border(r->borders[i], p);
    if (status == DP_OK && !r->resizes && (p->from.width != p->to.width || p->from.height != p->to.height))
        status = dp_fail(DP_ERR_ARGUMENT,
                         "outputDesc: %u x %u pixels are to be filled from %u x %u, but this function does not resize",
                         p->to.width, p->to.height, p->from.width, p->from.height);
    if (status == DP_OK)
        status = check_scale(p);
    if (status != DP_OK)
        return status;
    dp_dvpp_hold(out);
    p->result = out;
    return DP_OK;
}

static dp_status take_options(const acldvppChannelDesc *channelDesc, const acldvppResizeConfig *resizeConfig,
                              bool has_config, dp_draw_options *out) {
    const acldvppChannelDesc *channel = dp_dvpp_channel(channelDesc, DVPP_CHNMODE_VPC);
    const acldvppResizeConfig *config =
        channel && has_config ? dp_object_get(DP_OBJECT_DVPP_RESIZE, resizeConfig, "resizeConfig") : NULL;
    if (!channel || (has_config && !config))
        return DP_ERR_ARGUMENT;
    *out = (dp_draw_options){.interpolation = config ? (int)config->interpolation : DP_INTERPOLATION_DEFAULT,
                             .colour_space = (int)channel->colour_space};
    return DP_OK;
}

static job *new_job(uint32_t pieces) {
    job *j = dp_alloc(DP_MEM_MEDIA, sizeof *j + pieces * sizeof j->pieces[0]);
    if (!j)
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to queue work on %u pictures: free some", pieces);
    return j;
}

static dp_status submit(job *j, aclrtStream stream) {
    dp_status status = dp_task_submit(stream, "picture", run_job, end_job, &j, sizeof j);
    if (status != DP_OK)
        free_job(j);
    return status;
}

/* One picture. config NULL and has_config false: the function takes none. */
static aclError one(dp_api_call call, const acldvppChannelDesc *channelDesc, const acldvppPicDesc *inputDesc,
                    acldvppPicDesc *outputDesc, const request *r, const acldvppResizeConfig *config, bool has_config,
                    aclrtStream stream) {
    call.stream = stream;
    dp_draw_options options;
    dp_status status = take_options(channelDesc, config, has_config, &options);
    if (status != DP_OK)
        return dp_api_end(&call, status);
    job *j = new_job(1);
    if (!j)
        return dp_api_end(&call, DP_ERR_OUT_OF_MEMORY);
    j->options = options;
    status = fill_piece(&j->pieces[0], inputDesc, outputDesc, r, 0);
    if (status != DP_OK) {
        free_job(j);
        return dp_api_end(&call, status);
    }
    j->n = 1;
    return dp_api_end(&call, submit(j, stream));
}

aclError acldvppVpcResizeAsync(acldvppChannelDesc *channelDesc, acldvppPicDesc *inputDesc, acldvppPicDesc *outputDesc,
                               acldvppResizeConfig *resizeConfig, aclrtStream stream) {
    return one(DP_API_CALL(), channelDesc, inputDesc, outputDesc, &(request){.resizes = true}, resizeConfig, true,
               stream);
}

aclError acldvppVpcCropAsync(acldvppChannelDesc *channelDesc, acldvppPicDesc *inputDesc, acldvppPicDesc *outputDesc,
                             acldvppRoiConfig *cropArea, aclrtStream stream) {
    return one(DP_API_CALL(), channelDesc, inputDesc, outputDesc, &(request){.crops = &cropArea, .resizes = true}, NULL,
               false, stream);
}

aclError acldvppVpcCropResizeAsync(acldvppChannelDesc *channelDesc, acldvppPicDesc *inputDesc,
                                   acldvppPicDesc *outputDesc, acldvppRoiConfig *cropArea,
                                   acldvppResizeConfig *resizeConfig, aclrtStream stream) {
    return one(DP_API_CALL(), channelDesc, inputDesc, outputDesc, &(request){.crops = &cropArea, .resizes = true},
               resizeConfig, true, stream);
}

aclError acldvppVpcCropAndPasteAsync(acldvppChannelDesc *channelDesc, acldvppPicDesc *inputDesc,
                                     acldvppPicDesc *outputDesc, acldvppRoiConfig *cropArea,
                                     acldvppRoiConfig *pasteArea, aclrtStream stream) {
    return one(DP_API_CALL(), channelDesc, inputDesc, outputDesc,
               &(request){.crops = &cropArea, .pastes = &pasteArea, .resizes = true}, NULL, false, stream);
}

aclError acldvppVpcCropResizePasteAsync(acldvppChannelDesc *channelDesc, acldvppPicDesc *inputDesc,
                                        acldvppPicDesc *outputDesc, acldvppRoiConfig *cropArea,
                                        acldvppRoiConfig *pasteArea, acldvppResizeConfig *resizeConfig,
                                        aclrtStream stream) {
    return one(DP_API_CALL(), channelDesc, inputDesc, outputDesc,
               &(request){.crops = &cropArea, .pastes = &pasteArea, .resizes = true}, resizeConfig, true, stream);
}

aclError acldvppVpcConvertColorAsync(acldvppChannelDesc *channelDesc, acldvppPicDesc *inputDesc,
                                     acldvppPicDesc *outputDesc, aclrtStream stream) {
    return one(DP_API_CALL(), channelDesc, inputDesc, outputDesc, &(request){0}, NULL, false, stream);
}

aclError acldvppVpcMakeBorderAsync(const acldvppChannelDesc *channelDesc, const acldvppPicDesc *inputDesc,
                                   acldvppPicDesc *outputDesc, const acldvppBorderConfig *borderConfig,
                                   aclrtStream stream) {
    return one(DP_API_CALL(), channelDesc, inputDesc, outputDesc, &(request){.borders = &borderConfig}, NULL, false,
               stream);
}

/* Batches: picture i of the sources gives roiNums[i] pictures. */

static dp_status fill_batch(job *j, const acldvppBatchPicDesc *src, const uint32_t *counts, uint32_t n_counts,
                            const acldvppBatchPicDesc *dst, const request *r) {
    for (uint32_t i = 0; i < n_counts; i++)
        for (uint32_t k = 0; k < counts[i]; k++) {
            dp_status status = fill_piece(&j->pieces[j->n], src->pictures[i], dst->pictures[j->n], r, j->n);
            if (status != DP_OK) {
                char sentence[512];
                snprintf(sentence, sizeof sentence, "%s", dp_fail_message());
                return dp_fail(status, "picture %u: %s", j->n, sentence);
            }
            j->n++;
        }
    return DP_OK;
}

static dp_status check_batch(const acldvppBatchPicDesc *src, const uint32_t *counts, uint32_t n_counts,
                             const acldvppBatchPicDesc *dst) {
    uint64_t total = 0;
    if (!counts)
        return dp_fail(DP_ERR_ARGUMENT, "roiNums is NULL, but must have a number for each source");
    if (n_counts != src->count)
        return dp_fail(DP_ERR_ARGUMENT, "size is %u, but srcBatchPicDescs has %u pictures", n_counts, src->count);
    for (uint32_t i = 0; i < n_counts; i++)
        total += counts[i];
    if (total != dst->count)
        return dp_fail(DP_ERR_ARGUMENT, "roiNums adds up to %llu, but dstBatchPicDescs has %u pictures",
                       (unsigned long long)total, dst->count);
    return DP_OK;
}

static aclError many(dp_api_call call, const acldvppChannelDesc *channelDesc,
                     const acldvppBatchPicDesc *srcBatchPicDescs, const uint32_t *roiNums, uint32_t size,
                     const acldvppBatchPicDesc *dstBatchPicDescs, const request *r, const acldvppResizeConfig *config,
                     bool has_config, aclrtStream stream) {
    call.stream = stream;
    dp_draw_options options;
    dp_status status = take_options(channelDesc, config, has_config, &options);
    if (status != DP_OK)
        return dp_api_end(&call, status);
    const acldvppBatchPicDesc *src = dp_object_get(DP_OBJECT_DVPP_BATCH, srcBatchPicDescs, "srcBatchPicDescs");
    const acldvppBatchPicDesc *dst =
        src ? dp_object_get(DP_OBJECT_DVPP_BATCH, dstBatchPicDescs, "dstBatchPicDescs") : NULL;
    if (!dst)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    status = check_batch(src, roiNums, size, dst);
    if (status != DP_OK)
        return dp_api_end(&call, status);
    job *j = new_job(dst->count);
    if (!j)
        return dp_api_end(&call, DP_ERR_OUT_OF_MEMORY);
    j->options = options;
    status = fill_batch(j, src, roiNums, size, dst, r);
    if (status == DP_OK)
        return dp_api_end(&call, submit(j, stream));
    free_job(j);
    return dp_api_end(&call, status);
}

static aclError null_list(dp_api_call *call, const char *argument) {
    return dp_api_null(call, argument, "a list with an entry for each picture of dstBatchPicDescs");
}

aclError acldvppVpcBatchCropAsync(acldvppChannelDesc *channelDesc, acldvppBatchPicDesc *srcBatchPicDescs,
                                  uint32_t *roiNums, uint32_t size, acldvppBatchPicDesc *dstBatchPicDescs,
                                  acldvppRoiConfig **cropAreas, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    if (!cropAreas)
        return null_list(&call, "cropAreas");
    return many(call, channelDesc, srcBatchPicDescs, roiNums, size, dstBatchPicDescs,
                &(request){.crops = cropAreas, .resizes = true}, NULL, false, stream);
}

aclError acldvppVpcBatchCropResizeAsync(acldvppChannelDesc *channelDesc, acldvppBatchPicDesc *srcBatchPicDescs,
                                        uint32_t *roiNums, uint32_t size, acldvppBatchPicDesc *dstBatchPicDescs,
                                        acldvppRoiConfig **cropAreas, acldvppResizeConfig *resizeConfig,
                                        aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    if (!cropAreas)
        return null_list(&call, "cropAreas");
    return many(call, channelDesc, srcBatchPicDescs, roiNums, size, dstBatchPicDescs,
                &(request){.crops = cropAreas, .resizes = true}, resizeConfig, true, stream);
}

aclError acldvppVpcBatchCropAndPasteAsync(acldvppChannelDesc *channelDesc, acldvppBatchPicDesc *srcBatchPicDescs,
                                          uint32_t *roiNums, uint32_t size, acldvppBatchPicDesc *dstBatchPicDescs,
                                          acldvppRoiConfig **cropAreas, acldvppRoiConfig **pasteAreas,
                                          aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    if (!cropAreas || !pasteAreas)
        return null_list(&call, cropAreas ? "pasteAreas" : "cropAreas");
    return many(call, channelDesc, srcBatchPicDescs, roiNums, size, dstBatchPicDescs,
                &(request){.crops = cropAreas, .pastes = pasteAreas, .resizes = true}, NULL, false, stream);
}

aclError acldvppVpcBatchCropResizePasteAsync(acldvppChannelDesc *channelDesc, acldvppBatchPicDesc *srcBatchPicDescs,
                                             uint32_t *roiNums, uint32_t size, acldvppBatchPicDesc *dstBatchPicDescs,
                                             acldvppRoiConfig **cropAreas, acldvppRoiConfig **pasteAreas,
                                             acldvppResizeConfig *resizeConfig, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    if (!cropAreas || !pasteAreas)
        return null_list(&call, cropAreas ? "pasteAreas" : "cropAreas");
    return many(call, channelDesc, srcBatchPicDescs, roiNums, size, dstBatchPicDescs,
                &(request){.crops = cropAreas, .pastes = pasteAreas, .resizes = true}, resizeConfig, true, stream);
}

aclError acldvppVpcBatchCropResizeMakeBorderAsync(acldvppChannelDesc *channelDesc,
                                                  acldvppBatchPicDesc *srcBatchPicDescs, uint32_t *roiNums,
                                                  uint32_t size, acldvppBatchPicDesc *dstBatchPicDescs,
                                                  acldvppRoiConfig **cropAreas, acldvppBorderConfig **borderCfgs,
                                                  acldvppResizeConfig *resizeConfig, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    if (!cropAreas || !borderCfgs)
        return null_list(&call, cropAreas ? "borderCfgs" : "cropAreas");
    return many(
        call, channelDesc, srcBatchPicDescs, roiNums, size, dstBatchPicDescs,
        &(request){.crops = cropAreas, .borders = (const acldvppBorderConfig *const *)borderCfgs, .resizes = true},
        resizeConfig, true, stream);
}

/* Values. */

typedef struct count_job {
    dp_picture picture;
    acldvppHist *hist; /* held */
} count_job;

static dp_status run_count(void *payload) {
    const count_job *j = payload;
    memset(j->hist->counts, 0, sizeof j->hist->counts);
    j->hist->dims = dp_picture_count(&j->picture, j->hist->counts);
    j->hist->ret_code = 0;
    return DP_OK;
}

static void end_count(void *payload) {
    dp_dvpp_release_hist(((count_job *)payload)->hist);
}

aclError acldvppVpcCalcHistAsync(acldvppChannelDesc *channelDesc, acldvppPicDesc *srcPicDesc, acldvppHist *hist,
                                 void *reserve, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    (void)reserve;
    const acldvppPicDesc *desc =
        dp_dvpp_channel(channelDesc, DVPP_CHNMODE_VPC) ? dp_dvpp_picture(srcPicDesc, "srcPicDesc") : NULL;
    count_job j = {.hist = desc ? dp_object_get(DP_OBJECT_DVPP_HIST, hist, "hist") : NULL};
    if (!j.hist)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    dp_status status = dp_dvpp_take(desc, "srcPicDesc", &j.picture);
    if (status != DP_OK)
        return dp_api_end(&call, status);
    atomic_fetch_add(&j.hist->references, 1);
    status = dp_task_submit(stream, "picture", run_count, end_count, &j, sizeof j);
    if (status != DP_OK)
        dp_dvpp_release_hist(j.hist);
    return dp_api_end(&call, status);
}

typedef struct map_job {
    dp_picture src, dst;
    acldvppPicDesc *result; /* held */
    uint8_t tables[DP_DVPP_DIMS][DP_DVPP_VALUES];
} map_job;

static dp_status run_map(void *payload) {
    const map_job *j = *(map_job **)payload;
    dp_status status = dp_picture_map(&j->src, &j->dst, j->tables);
    j->result->ret_code = dp_dvpp_ret_code(status);
    return status;
}

static void end_map(void *payload) {
    map_job *j = *(map_job **)payload;
    dp_dvpp_release(j->result);
    dp_free(j);
}

aclError acldvppVpcEqualizeHistAsync(const acldvppChannelDesc *channelDesc, const acldvppPicDesc *inputDesc,
                                     acldvppPicDesc *outputDesc, const acldvppLutMap *lutMap, aclrtStream stream) {
    dp_api_call call = DP_API_CALL();
    call.stream = stream;
    const acldvppPicDesc *in =
        dp_dvpp_channel(channelDesc, DVPP_CHNMODE_VPC) ? dp_dvpp_picture(inputDesc, "inputDesc") : NULL;
    acldvppPicDesc *out = in ? dp_dvpp_picture(outputDesc, "outputDesc") : NULL;
    const acldvppLutMap *map = out ? dp_object_get(DP_OBJECT_DVPP_LUT, lutMap, "lutMap") : NULL;
    if (!map)
        return dp_api_end(&call, DP_ERR_ARGUMENT);
    map_job *j = dp_alloc(DP_MEM_MEDIA, sizeof *j);
    dp_status status =
        j ? dp_dvpp_take(in, "inputDesc", &j->src) : dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory: free some");
    if (status == DP_OK)
        status = dp_dvpp_take(out, "outputDesc", &j->dst);
    if (status != DP_OK) {
        dp_free(j);
        return dp_api_end(&call, status);
    }
    memcpy(j->tables, map->values, sizeof j->tables);
    j->result = out;
    dp_dvpp_hold(out);
    status = dp_task_submit(stream, "picture", run_map, end_map, &j, sizeof j);
    if (status != DP_OK)
        end_map(&j);
    return dp_api_end(&call, status);
}
