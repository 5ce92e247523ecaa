/* hi_dvpp.h: channels with a queue each, tasks by number. */
#include "acl/dvpp/hi_dvpp.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/memory.h"
#include "media/draw.h"
#include "media/values.h"
#include "runtime/device_memory.h"
#include "runtime/fork.h"
#include "runtime/stream.h"
#include "runtime/task.h"

enum { CHANNELS = 256, TASKS_MOST = 4096 };

/* Work for one output; tasks have one or more. */
typedef struct piece {
    dp_picture src, dst;
    dp_area from, to;
    bool has_border;
    dp_border border;
} piece;

/* In the list of its channel until somebody asks for it. */
typedef struct task {
    struct task *next;
    uint32_t number;
    bool is_done;
    dp_status status;
    char sentence[400];
    dp_draw_options options;
    hi_vpc_histogram_config *counts; /* where to count the first piece's source, or NULL */
    hi_vpc_lut_remap *map;           /* values of the first piece are replaced by these; own memory, or NULL */
    uint32_t n;
    piece pieces[];
} task;

typedef struct channel {
    bool is_open;
    void *stream;
    int colour_space;
    uint32_t last_number, n_tasks;
    task *tasks;
} channel;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dp_fork_part fork_part = {.floor = DP_FORK_API, .lock = &lock};
static channel channels[CHANNELS];

static void enter(void) {
    dp_fork_lock(&fork_part);
}

static hi_s32 end(dp_api_call *call, dp_status status) {
    return dp_api_end(call, status) == ACL_SUCCESS ? HI_SUCCESS : HI_FAILURE;
}

/* The open channel; NULL with a sentence. Under the lock. */
static channel *get_channel(hi_vpc_chn chn) {
    if (chn >= 0 && chn < CHANNELS && channels[chn].is_open)
        return &channels[chn];
    dp_fail(DP_ERR_ARGUMENT, "chn is %d, but must be the number of an open channel: see hi_mpi_vpc_sys_create_chn",
            chn);
    return NULL;
}

/* System, memory, channels. */

hi_s32 hi_mpi_sys_init(void) {
    dp_api_call call = DP_API_CALL();
    return end(&call, DP_OK);
}

hi_s32 hi_mpi_sys_exit(void) {
    dp_api_call call = DP_API_CALL();
    return end(&call, DP_OK);
}

hi_s32 hi_mpi_dvpp_malloc(hi_u32 dev_id, hi_void **dev_ptr, hi_u64 size) {
    dp_api_call call = DP_API_CALL();
    (void)dev_id; /* of the current device, as everywhere */
    if (!dev_ptr || !size)
        return end(&call,
                   dp_fail(DP_ERR_ARGUMENT, "%s", dev_ptr ? "size is 0, but must be at least 1" : "dev_ptr is NULL"));
    return end(&call, dp_device_memory_alloc(size, dev_ptr));
}

hi_s32 hi_mpi_dvpp_free(hi_void *dev_ptr) {
    dp_api_call call = DP_API_CALL();
    return end(&call, dev_ptr ? dp_device_memory_free(dev_ptr) : dp_fail(DP_ERR_ARGUMENT, "dev_ptr is NULL"));
}

/* chn -1: any that is free. */
static dp_status open_channel(hi_vpc_chn chn, const hi_vpc_chn_attr *attr, hi_vpc_chn *out_chn) {
    void *stream;
    if (!attr)
        return dp_fail(DP_ERR_ARGUMENT, "attr is NULL, but must be the address of an hi_vpc_chn_attr");
    if (chn < -1 || chn >= CHANNELS)
        return dp_fail(DP_ERR_ARGUMENT, "chn is %d, but must be 0 to %d", chn, CHANNELS - 1);
    dp_status status = dp_stream_create(0, &stream);
    if (status != DP_OK)
        return status;
    enter();
    int first = chn < 0 ? 0 : chn, last = chn < 0 ? CHANNELS - 1 : chn;
    while (first <= last && channels[first].is_open)
        first++;
    if (first <= last)
        channels[first] = (channel){.is_open = true, .stream = stream};
    pthread_mutex_unlock(&lock);
    if (first <= last) {
        *out_chn = first;
        return DP_OK;
    }
    dp_stream_destroy(stream, false);
    return chn < 0 ? dp_fail(DP_ERR_BUSY, "all %d channels are open: destroy one", CHANNELS)
                   : dp_fail(DP_ERR_BUSY, "chn is %d, but that channel is open already", chn);
}

hi_s32 hi_mpi_vpc_sys_create_chn(hi_vpc_chn *chn, const hi_vpc_chn_attr *attr) {
    dp_api_call call = DP_API_CALL();
    return end(&call, chn ? open_channel(-1, attr, chn)
                          : dp_fail(DP_ERR_ARGUMENT, "chn is NULL, but must be the address of a number"));
}

hi_s32 hi_mpi_vpc_create_chn(hi_vpc_chn chn, const hi_vpc_chn_attr *attr) {
    dp_api_call call = DP_API_CALL();
    hi_vpc_chn opened;
    return end(&call, chn < 0 ? dp_fail(DP_ERR_ARGUMENT, "chn is %d, but must be 0 to %d", chn, CHANNELS - 1)
                              : open_channel(chn, attr, &opened));
}

static void free_task(task *t) {
    dp_free(t->map);
    dp_free(t);
}

hi_s32 hi_mpi_vpc_destroy_chn(hi_vpc_chn chn) {
    dp_api_call call = DP_API_CALL();
    enter();
    channel *c = get_channel(chn);
    channel taken = c ? *c : (channel){0};
    if (c)
        *c = (channel){0};
    pthread_mutex_unlock(&lock);
    if (!c)
        return end(&call, DP_ERR_ARGUMENT);
    dp_status status = dp_stream_destroy(taken.stream, false); /* waits: after it no task runs */
    for (task *t = taken.tasks, *next; t; t = next) {
        next = t->next;
        free_task(t);
    }
    return end(&call, status);
}

hi_s32 hi_mpi_sys_set_chn_csc_matrix(hi_mod_id mod_id, hi_s32 chn, hi_csc_matrix matrix,
                                     hi_csc_coefficient *coefficient) {
    dp_api_call call = DP_API_CALL();
    if (mod_id != HI_ID_VPC || coefficient)
        return end(&call, dp_fail(DP_ERR_UNSUPPORTED, "only mod_id HI_ID_VPC with coefficient NULL is supported"));
    if ((unsigned)matrix >= DP_COLOUR_SPACE_COUNT)
        return end(&call, dp_fail(DP_ERR_ARGUMENT, "matrix is %d, but must be an hi_csc_matrix (0 to 5)", (int)matrix));
    enter();
    channel *c = get_channel(chn);
    if (c)
        c->colour_space = (int)matrix;
    pthread_mutex_unlock(&lock);
    return end(&call, c ? DP_OK : DP_ERR_ARGUMENT);
}

/* Tasks. */

static dp_status work(task *t) {
    dp_status status = DP_OK;
    if (t->counts) {
        uint32_t counts[DP_VALUE_CHANNELS][DP_VALUES] = {{0}};
        dp_picture_count(&t->pieces[0].src, counts);
        memcpy(t->counts->histogram_y_or_r, counts[0], sizeof counts[0]);
        memcpy(t->counts->histogram_u_or_g, counts[1], sizeof counts[1]);
        memcpy(t->counts->histogram_v_or_b, counts[2], sizeof counts[2]);
        return DP_OK;
    }
    if (t->map) {
        uint8_t tables[DP_VALUE_CHANNELS][DP_VALUES];
        memcpy(tables[0], t->map->map_value_y_or_r, DP_VALUES);
        memcpy(tables[1], t->map->map_value_u_or_g, DP_VALUES);
        memcpy(tables[2], t->map->map_value_v_or_b, DP_VALUES);
        return dp_picture_map(&t->pieces[0].src, &t->pieces[0].dst, tables);
    }
    for (uint32_t i = 0; i < t->n && status == DP_OK; i++) {
        const piece *p = &t->pieces[i];
        status = dp_picture_draw(&p->src, &p->from, &p->dst, &p->to, &t->options);
        if (status == DP_OK && p->has_border)
            dp_picture_border(&p->dst, &p->to, &p->border);
    }
    return status;
}

/* A failure is the task's, not the stream's: others go on. */
static dp_status run_task(void *payload) {
    task *t = *(task **)payload;
    dp_status status = work(t);
    enter();
    t->status = status;
    if (status != DP_OK)
        snprintf(t->sentence, sizeof t->sentence, "%s", dp_fail_message());
    t->is_done = true;
    pthread_mutex_unlock(&lock);
    return DP_OK;
}

static task *new_task(uint32_t pieces) {
    if (!pieces || pieces > TASKS_MOST) {
        dp_fail(DP_ERR_ARGUMENT, "count is %u, but must be 1 to %d", pieces, TASKS_MOST);
        return NULL;
    }
    task *t = dp_alloc(DP_MEM_MEDIA, sizeof *t + pieces * sizeof t->pieces[0]);
    if (!t)
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory to queue work on %u pictures: free some", pieces);
    return t;
}

/* Takes a task over that was filled with `status`: queues it, or frees it. */
static dp_status submit(hi_vpc_chn chn, task *t, dp_status status, hi_u32 *task_id) {
    if (status == DP_OK && !task_id)
        status = dp_fail(DP_ERR_ARGUMENT, "task_id is NULL, but must be the address of a number");
    if (status == DP_OK) {
        enter();
        channel *c = get_channel(chn);
        status = c ? DP_OK : DP_ERR_ARGUMENT;
        if (c && c->n_tasks == TASKS_MOST)
            status =
                dp_fail(DP_ERR_BUSY, "%d tasks of the channel wait to be asked for: call hi_mpi_vpc_get_process_result",
                        TASKS_MOST);
        if (status == DP_OK) {
            t->options.colour_space = c->colour_space;
            t->number = c->last_number + 1;
            status = dp_task_submit(c->stream, "picture", run_task, NULL, &t, sizeof t);
        }
        if (status == DP_OK) {
            *task_id = c->last_number = t->number;
            t->next = c->tasks;
            c->tasks = t;
            c->n_tasks++;
        }
        pthread_mutex_unlock(&lock);
    }
    if (status != DP_OK)
        free_task(t);
    return status;
}

static dp_status take_picture(const hi_vpc_pic_info *info, const char *argument, dp_picture *out) {
    if (!info)
        return dp_fail(DP_ERR_ARGUMENT, "%s is NULL, but must be the address of an hi_vpc_pic_info", argument);
    *out = (dp_picture){.format = (int)info->picture_format,
                        .width = info->picture_width,
                        .height = info->picture_height,
                        .width_stride = info->picture_width_stride,
                        .height_stride = info->picture_height_stride,
                        .data = info->picture_address,
                        .size_bytes = info->picture_buffer_size};
    dp_status status = dp_picture_complete(out, argument);
    return status == DP_OK ? dp_device_memory_check(argument, out->data, dp_picture_bytes(out)) : status;
}

/* A whole picture into a whole picture. */
static dp_status fill(piece *p, const hi_vpc_pic_info *source, const hi_vpc_pic_info *dest) {
    dp_status status = take_picture(source, "source_pic", &p->src);
    if (status == DP_OK)
        status = take_picture(dest, "dest_pic", &p->dst);
    if (status != DP_OK)
        return status;
    if (p->src.data < p->dst.data + dp_picture_bytes(&p->dst) && p->dst.data < p->src.data + dp_picture_bytes(&p->src))
        return dp_fail(DP_ERR_ARGUMENT,
                       "dest_pic: its memory overlaps that of source_pic: a picture is not changed in place");
    p->from = dp_picture_area(&p->src);
    p->to = dp_picture_area(&p->dst);
    return DP_OK;
}

static dp_status cut(piece *p, const hi_vpc_crop_region *region) {
    p->from = (dp_area){region->left_offset, region->top_offset, region->crop_width, region->crop_height};
    return dp_area_check(&p->from, &p->src, "crop_region");
}

/* Where the resized part goes. */
static dp_status put(piece *p, const hi_vpc_resize_info *resize, hi_u32 left, hi_u32 top) {
    p->to = (dp_area){left, top, resize->resize_width, resize->resize_height};
    return dp_area_check(&p->to, &p->dst, "resize_info at the offset in dest_pic");
}

static dp_status frame(piece *p, hi_vpc_bord_type type, const hi_vpc_scalar *scalar) {
    if ((unsigned)type >= DP_BORDER_COUNT)
        return dp_fail(DP_ERR_ARGUMENT, "border_type is %d, but must be an hi_vpc_bord_type (0 to 3)", (int)type);
    p->has_border = true;
    p->border.kind = (int)type;
    for (int i = 0; i < 4 && type == HI_BORDER_CONSTANT; i++) {
        double value = scalar->val[i];
        p->border.value[i] = (uint8_t)(value > 0 ? (value < 255 ? value + 0.5 : 255) : 0);
    }
    return DP_OK;
}

static dp_status choose(task *t, hi_u32 interpolation) {
    if (interpolation > 1)
        return dp_fail(DP_ERR_ARGUMENT, "interpolation is %u, but must be 0 (bilinear) or 1 (nearest)", interpolation);
    t->options.interpolation = interpolation ? DP_INTERPOLATION_NEAREST : DP_INTERPOLATION_BILINEAR;
    return DP_OK;
}

static hi_s32 one(dp_api_call call, hi_vpc_chn chn, task *t, dp_status status, hi_u32 *task_id) {
    if (!t)
        return end(&call, DP_ERR_OUT_OF_MEMORY);
    t->n = 1;
    return end(&call, submit(chn, t, status, task_id));
}

hi_s32 hi_mpi_vpc_resize(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic, hi_vpc_pic_info *dest_pic, hi_double fx,
                         hi_double fy, hi_u32 interpolation, hi_u32 *task_id, hi_s32 milli_sec) {
    dp_api_call call = DP_API_CALL();
    (void)milli_sec;
    task *t = new_task(1);
    dp_status status = t ? fill(&t->pieces[0], source_pic, dest_pic) : DP_OK;
    if (t && status == DP_OK)
        status = choose(t, interpolation);
    const piece *p = t ? t->pieces : NULL;
    if (t && status == DP_OK &&
        ((fx != 0 && !(fabs(fx * p->from.width - p->to.width) <= 1)) ||
         (fy != 0 && !(fabs(fy * p->from.height - p->to.height) <= 1))))
        status = dp_fail(DP_ERR_ARGUMENT, "fx is %g and fy %g, but %u x %u pixels become %u x %u", fx, fy,
                         p->from.width, p->from.height, p->to.width, p->to.height);
    return one(call, chn, t, status, task_id);
}

static dp_status check_same_size(const piece *p) {
    if (p->from.width == p->to.width && p->from.height == p->to.height)
        return DP_OK;
    return dp_fail(DP_ERR_ARGUMENT,
                   "dest_pic: %u x %u pixels are to be filled from %u x %u, but this function does not resize",
                   p->to.width, p->to.height, p->from.width, p->from.height);
}

hi_s32 hi_mpi_vpc_convert_color(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic, hi_vpc_pic_info *dest_pic,
                                hi_u32 *task_id, hi_s32 milli_sec) {
    dp_api_call call = DP_API_CALL();
    (void)milli_sec;
    task *t = new_task(1);
    dp_status status = t ? fill(&t->pieces[0], source_pic, dest_pic) : DP_OK;
    if (t && status == DP_OK)
        status = check_same_size(&t->pieces[0]);
    return one(call, chn, t, status, task_id);
}

hi_s32 hi_mpi_vpc_copy_make_border(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic, hi_vpc_pic_info *dest_pic,
                                   hi_vpc_make_border_info make_border_info, hi_u32 *task_id, hi_s32 milli_sec) {
    dp_api_call call = DP_API_CALL();
    (void)milli_sec;
    task *t = new_task(1);
    dp_status status = t ? fill(&t->pieces[0], source_pic, dest_pic) : DP_OK;
    if (t && status == DP_OK) {
        piece *p = &t->pieces[0];
        const hi_vpc_make_border_info *b = &make_border_info;
        if ((uint64_t)p->src.width + b->left + b->right != p->dst.width ||
            (uint64_t)p->src.height + b->top + b->bottom != p->dst.height)
            status =
                dp_fail(DP_ERR_ARGUMENT,
                        "dest_pic has %u x %u pixels, but %u x %u with borders of %u, %u, %u, %u (left, right, top, "
                        "bottom) are to fill it",
                        p->dst.width, p->dst.height, p->src.width, p->src.height, b->left, b->right, b->top, b->bottom);
        p->to = (dp_area){b->left, b->top, p->src.width, p->src.height};
        if (status == DP_OK)
            status = frame(p, b->border_type, &b->scalar_value);
    }
    return one(call, chn, t, status, task_id);
}

/* Lists of regions: of one source, or of several with so many each. */

typedef struct regions {
    const hi_vpc_crop_region_info *crop; /* one of these */
    const hi_vpc_crop_resize_region *resize;
    const hi_vpc_crop_resize_paste_region *paste;
    const hi_vpc_crop_resize_border_region *border;
} regions;

static dp_status fill_region(task *t, const hi_vpc_pic_info *source, const regions *all, uint32_t i) {
    piece *p = &t->pieces[i];
    const hi_vpc_pic_info *dest = all->crop     ? &all->crop[i].dest_pic_info
                                  : all->resize ? &all->resize[i].dest_pic_info
                                  : all->paste  ? &all->paste[i].dest_pic_info
                                                : &all->border[i].dest_pic_info;
    const hi_vpc_crop_region *region = all->crop     ? &all->crop[i].crop_region
                                       : all->resize ? &all->resize[i].crop_region
                                       : all->paste  ? &all->paste[i].crop_region
                                                     : &all->border[i].crop_region;
    const hi_vpc_resize_info *resize = all->resize  ? &all->resize[i].resize_info
                                       : all->paste ? &all->paste[i].resize_info
                                       : all->crop  ? NULL
                                                    : &all->border[i].resize_info;
    dp_status status = fill(p, source, dest);
    if (status == DP_OK)
        status = cut(p, region);
    if (status == DP_OK && !resize)
        status = check_same_size(p);
    if (status == DP_OK && resize)
        status = choose(t, resize->interpolation);
    if (status == DP_OK && resize)
        status = put(p, resize,
                     all->paste    ? all->paste[i].dest_left_offset
                     : all->border ? all->border[i].dest_left_offset
                                   : 0,
                     all->paste    ? all->paste[i].dest_top_offset
                     : all->border ? all->border[i].dest_top_offset
                                   : 0);
    if (status == DP_OK && all->border)
        status = frame(p, all->border[i].border_type, &all->border[i].scalar_value);
    return status;
}

static hi_s32 many(dp_api_call call, hi_vpc_chn chn, const hi_vpc_pic_info *const *sources, uint32_t n_sources,
                   const hi_u32 *counts, const regions *all, hi_u32 *task_id) {
    if ((!all->crop && !all->resize && !all->paste && !all->border) || !sources || !counts)
        return end(&call, dp_fail(DP_ERR_ARGUMENT, "the list of %s is NULL",
                                  sources && counts ? "regions" : "pictures or of their counts"));
    uint64_t total = 0;
    for (uint32_t i = 0; i < n_sources; i++)
        total += counts[i];
    task *t = new_task(total > UINT32_MAX ? UINT32_MAX : (uint32_t)total);
    if (!t)
        return end(&call, DP_ERR_ARGUMENT);
    dp_status status = DP_OK;
    for (uint32_t i = 0; i < n_sources && status == DP_OK; i++)
        for (uint32_t k = 0; k < counts[i] && status == DP_OK; k++)
            status = fill_region(t, sources[i], all, t->n++);
    return end(&call, submit(chn, t, status, task_id));
}

hi_s32 hi_mpi_vpc_crop(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic, hi_vpc_crop_region_info crop_info[],
                       hi_u32 count, hi_u32 *task_id, hi_s32 milli_sec) {
    (void)milli_sec;
    return many(DP_API_CALL(), chn, &source_pic, 1, &count, &(regions){.crop = crop_info}, task_id);
}

hi_s32 hi_mpi_vpc_crop_resize(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                              hi_vpc_crop_resize_region crop_resize_info[], hi_u32 count, hi_u32 *task_id,
                              hi_s32 milli_sec) {
    (void)milli_sec;
    return many(DP_API_CALL(), chn, &source_pic, 1, &count, &(regions){.resize = crop_resize_info}, task_id);
}

hi_s32 hi_mpi_vpc_crop_resize_paste(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                    hi_vpc_crop_resize_paste_region crop_resize_paste_info[], hi_u32 count,
                                    hi_u32 *task_id, hi_s32 milli_sec) {
    (void)milli_sec;
    return many(DP_API_CALL(), chn, &source_pic, 1, &count, &(regions){.paste = crop_resize_paste_info}, task_id);
}

hi_s32 hi_mpi_vpc_crop_resize_make_border(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                          hi_vpc_crop_resize_border_region crop_resize_make_border_info[], hi_u32 count,
                                          hi_u32 *task_id, hi_s32 milli_sec) {
    (void)milli_sec;
    return many(DP_API_CALL(), chn, &source_pic, 1, &count, &(regions){.border = crop_resize_make_border_info},
                task_id);
}

hi_s32 hi_mpi_vpc_batch_crop_resize_paste(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic[], hi_u32 pic_num,
                                          hi_vpc_crop_resize_paste_region crop_resize_paste_info[], hi_u32 count[],
                                          hi_u32 *task_id, hi_s32 milli_sec) {
    (void)milli_sec;
    return many(DP_API_CALL(), chn, source_pic, pic_num, count, &(regions){.paste = crop_resize_paste_info}, task_id);
}

hi_s32 hi_mpi_vpc_batch_crop_resize_make_border(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic[], hi_u32 pic_num,
                                                hi_vpc_crop_resize_border_region crop_resize_make_border_info[],
                                                hi_u32 count[], hi_u32 *task_id, hi_s32 milli_sec) {
    (void)milli_sec;
    return many(DP_API_CALL(), chn, source_pic, pic_num, count, &(regions){.border = crop_resize_make_border_info},
                task_id);
}

hi_s32 hi_mpi_vpc_calc_hist(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic, hi_vpc_histogram_config *hist_config,
                            hi_u32 *task_id, hi_s32 milli_sec) {
    dp_api_call call = DP_API_CALL();
    (void)milli_sec;
    task *t = new_task(1);
    dp_status status = t ? take_picture(source_pic, "source_pic", &t->pieces[0].src) : DP_OK;
    if (t && status == DP_OK && !hist_config)
        status = dp_fail(DP_ERR_ARGUMENT, "hist_config is NULL, but must be the address of an hi_vpc_histogram_config");
    if (t)
        t->counts = hist_config;
    return one(call, chn, t, status, task_id);
}

hi_s32 hi_mpi_vpc_equalize_hist(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic, hi_vpc_pic_info *dest_pic,
                                const hi_vpc_lut_remap *lut_remap, hi_u32 *task_id, hi_s32 milli_sec) {
    dp_api_call call = DP_API_CALL();
    (void)milli_sec;
    task *t = new_task(1);
    dp_status status = t ? fill(&t->pieces[0], source_pic, dest_pic) : DP_OK;
    if (t && status == DP_OK && !lut_remap)
        status = dp_fail(DP_ERR_ARGUMENT, "lut_remap is NULL, but must be the address of an hi_vpc_lut_remap");
    if (t && status == DP_OK) {
        t->map = dp_alloc(DP_MEM_MEDIA, sizeof *t->map);
        if (t->map)
            *t->map = *lut_remap;
        else
            status = dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a table of values: free some");
    }
    return one(call, chn, t, status, task_id);
}

/* Results. */

/* Takes a done task out of its channel. *out_known: there is such a task, done or not. */
static task *take_done(hi_vpc_chn chn, hi_u32 task_id, void **out_stream, bool *out_known) {
    task *found = NULL;
    enter();
    channel *c = get_channel(chn);
    *out_known = false;
    for (task **at = c ? &c->tasks : NULL; at && *at; at = &(*at)->next) {
        if ((*at)->number != task_id)
            continue;
        *out_known = true;
        *out_stream = c->stream;
        if ((*at)->is_done) {
            found = *at;
            *at = found->next;
            c->n_tasks--;
        }
        break;
    }
    if (c && !*out_known)
        dp_fail(DP_ERR_ARGUMENT, "task_id is %u, but no such task of channel %d waits to be asked for", task_id, chn);
    pthread_mutex_unlock(&lock);
    return found;
}

hi_s32 hi_mpi_vpc_get_process_result(hi_vpc_chn chn, hi_u32 task_id, hi_s32 milli_sec) {
    dp_api_call call = DP_API_CALL();
    void *stream = NULL;
    bool known;
    task *t = take_done(chn, task_id, &stream, &known);
    if (!known)
        return end(&call, DP_ERR_ARGUMENT);
    dp_status status = DP_OK;
    if (!t) {
        status = milli_sec ? dp_stream_synchronise(stream, milli_sec) : DP_OK;
        t = take_done(chn, task_id, &stream, &known);
    }
    if (!t)
        return end(&call, status != DP_OK
                              ? status
                              : dp_fail(DP_ERR_BUSY, "task %u of channel %d is not done yet", task_id, chn));
    status = t->status == DP_OK ? DP_OK : dp_fail(t->status, "task %u: %s", task_id, t->sentence);
    free_task(t);
    return end(&call, status);
}
