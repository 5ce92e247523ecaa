/*
 * acl_dvpp.h - what is inside the descriptions of pictures and their settings, between the files of this floor.
 */
#ifndef DOPPEL_API_ACL_DVPP_H
#define DOPPEL_API_ACL_DVPP_H

#define ENABLE_DVPP_INTERFACE
#include "acl/ops/acl_dvpp.h"
#include "api/api.h"
#include "api/object.h"
#include "base/memory.h"
#include "media/draw.h"
#include "media/file.h"
#include "runtime/report.h"

struct acldvppChannelDesc {
    bool is_open;
    bool has_mode;
    uint32_t mode; /* acldvppChannelMode, if has_mode: the only work that it takes */
    uint32_t colour_space, odd, width, height;
    uint64_t id;
};

/*
 * A task that is queued holds a reference, so that it can write what it found after the program destroyed its own. Its status is atomic:
 * one picture may be pasted into by several streams, and be asked for it meanwhile.
 */
struct acldvppPicDesc {
    _Atomic int references;
    bool in_batch;
    _Atomic uint32_t ret_code;
    dp_picture picture;
};

struct acldvppBatchPicDesc {
    uint32_t count;
    acldvppPicDesc *pictures[];
};

struct acldvppRoiConfig {
    uint32_t left, right, top, bottom; /* first and last pixel */
};

struct acldvppResizeConfig {
    uint32_t interpolation;
};

struct acldvppJpegeConfig {
    uint32_t level;
};

struct acldvppBorderConfig {
    uint32_t top, bottom, left, right;
    acldvppBorderType type;
    double value[4];
};

enum { DP_DVPP_VALUES = 256, DP_DVPP_DIMS = 3 };

struct acldvppHist {
    _Atomic int references;
    _Atomic uint32_t ret_code;
    uint32_t dims;
    uint32_t counts[DP_DVPP_DIMS][DP_DVPP_VALUES];
};

struct acldvppLutMap {
    uint8_t values[DP_DVPP_DIMS][DP_DVPP_VALUES];
};

/* The live channel that may do this kind of work; NULL with a sentence. */
const acldvppChannelDesc *dp_dvpp_channel(const acldvppChannelDesc *handle, acldvppChannelMode work);

/* The live description; NULL with a sentence. */
acldvppPicDesc *dp_dvpp_picture(const acldvppPicDesc *handle, const char *argument);
/* A copy that is complete and lies in device memory. */
dp_status dp_dvpp_take(const acldvppPicDesc *desc, const char *argument, dp_picture *out_picture);
void dp_dvpp_hold(acldvppPicDesc *desc);
void dp_dvpp_release(acldvppPicDesc *desc);   /* NULL is allowed */
void dp_dvpp_release_hist(acldvppHist *hist); /* NULL is allowed */

/* What a task's status is in a description. */
uint32_t dp_dvpp_ret_code(dp_status status);

/* For tasks, while they run: tells observers which bytes they read, or write; of a whole picture with what its strides leave over. */
void dp_dvpp_report(dp_host_event_kind kind, const dp_picture *picture, const dp_area *area);

#endif
