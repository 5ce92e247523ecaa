/*
 * hi_dvpp.h - pictures, second interface: cropping, resizing, pasting, borders and colours by channel and task number.
 *
 * Functions queue a task on a channel, write its number and return; hi_mpi_vpc_get_process_result waits for it and says
 * how it went. Their last argument, how long to wait for room in the queue, changes nothing: there is always room. They
 * return HI_SUCCESS or HI_FAILURE; aclGetRecentErrMsg has the sentence. A device must have been set (aclrtSetDevice).
 * docs/pictures.md has formats, strides and limits.
 *
 * Decoding, encoding and video by this interface are not there: acl/ops/acl_dvpp.h reads and writes files. Layouts of
 * structures and most values are Doppel's own: programs are built against this header.
 */
#ifndef HI_DVPP_H
#define HI_DVPP_H

#include "../acl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint8_t hi_u8;
typedef uint16_t hi_u16;
typedef uint32_t hi_u32;
typedef uint64_t hi_u64;
typedef int8_t hi_s8;
typedef int16_t hi_s16;
typedef int32_t hi_s32;
typedef int64_t hi_s64;
typedef float hi_float;
typedef double hi_double;
typedef char hi_char;
typedef void hi_void;
typedef enum hi_bool { HI_FALSE = 0, HI_TRUE = 1 } hi_bool;

#define HI_NULL 0L
#define HI_SUCCESS 0
#define HI_FAILURE (-1)

typedef hi_s32 hi_vpc_chn;

/* As acldvppPixelFormat counts them. */
typedef enum hi_pixel_format {
    HI_PIXEL_FORMAT_YUV_400 = 0,
    HI_PIXEL_FORMAT_YUV_SEMIPLANAR_420 = 1,
    HI_PIXEL_FORMAT_YVU_SEMIPLANAR_420 = 2,
    HI_PIXEL_FORMAT_YUV_SEMIPLANAR_422 = 3,
    HI_PIXEL_FORMAT_YVU_SEMIPLANAR_422 = 4,
    HI_PIXEL_FORMAT_YUV_SEMIPLANAR_444 = 5,
    HI_PIXEL_FORMAT_YVU_SEMIPLANAR_444 = 6,
    HI_PIXEL_FORMAT_YUYV_PACKED_422 = 7,
    HI_PIXEL_FORMAT_UYVY_PACKED_422 = 8,
    HI_PIXEL_FORMAT_YVYU_PACKED_422 = 9,
    HI_PIXEL_FORMAT_VYUY_PACKED_422 = 10,
    HI_PIXEL_FORMAT_YUV_PACKED_444 = 11,
    HI_PIXEL_FORMAT_RGB_888 = 12,
    HI_PIXEL_FORMAT_BGR_888 = 13,
    HI_PIXEL_FORMAT_ARGB_8888 = 14,
    HI_PIXEL_FORMAT_ABGR_8888 = 15,
    HI_PIXEL_FORMAT_RGBA_8888 = 16,
    HI_PIXEL_FORMAT_BGRA_8888 = 17,
    HI_PIXEL_FORMAT_YUV_SEMIPLANAR_440 = 61,
    HI_PIXEL_FORMAT_YVU_SEMIPLANAR_440 = 62,
    HI_PIXEL_FORMAT_FLOAT32 = 63,
    HI_PIXEL_FORMAT_BUTT = 64,
    HI_PIXEL_FORMAT_UNKNOWN = 65
} hi_pixel_format;

typedef enum hi_vpc_bord_type {
    HI_BORDER_CONSTANT = 0,
    HI_BORDER_REPLICATE = 1,
    HI_BORDER_REFLECT = 2,
    HI_BORDER_REFLECT_101 = 3
} hi_vpc_bord_type;

typedef enum hi_csc_matrix {
    HI_CSC_MATRIX_BT601_WIDE = 0,
    HI_CSC_MATRIX_BT601_NARROW = 1,
    HI_CSC_MATRIX_BT709_WIDE = 2,
    HI_CSC_MATRIX_BT709_NARROW = 3,
    HI_CSC_MATRIX_BT2020_WIDE = 4,
    HI_CSC_MATRIX_BT2020_NARROW = 5
} hi_csc_matrix;

typedef enum hi_mod_id { HI_ID_VPC = 0 } hi_mod_id;

typedef struct hi_csc_coefficient hi_csc_coefficient; /* of the user; refused */

typedef struct hi_vpc_chn_attr {
    hi_u32 attr; /* 0 */
} hi_vpc_chn_attr;

/* Sizes in pixels, strides in bytes across and in rows down. */
typedef struct hi_vpc_pic_info {
    hi_void *picture_address; /* device memory */
    hi_u32 picture_buffer_size;
    hi_u32 picture_width;
    hi_u32 picture_height;
    hi_u32 picture_width_stride;
    hi_u32 picture_height_stride;
    hi_pixel_format picture_format;
} hi_vpc_pic_info;

typedef struct hi_vpc_crop_region {
    hi_u32 top_offset;
    hi_u32 left_offset;
    hi_u32 crop_width;
    hi_u32 crop_height;
} hi_vpc_crop_region;

typedef struct hi_vpc_resize_info {
    hi_u32 resize_width;
    hi_u32 resize_height;
    hi_u32 interpolation; /* 0 bilinear, 1 nearest */
} hi_vpc_resize_info;

/* R G B A, or Y U V. */
typedef struct hi_vpc_scalar {
    hi_double val[4];
} hi_vpc_scalar;

typedef struct hi_vpc_make_border_info {
    hi_u32 top;
    hi_u32 bottom;
    hi_u32 left;
    hi_u32 right;
    hi_vpc_bord_type border_type;
    hi_vpc_scalar scalar_value;
} hi_vpc_make_border_info;

typedef struct hi_vpc_crop_region_info {
    hi_vpc_pic_info dest_pic_info;
    hi_vpc_crop_region crop_region;
} hi_vpc_crop_region_info;

typedef struct hi_vpc_crop_resize_region {
    hi_vpc_pic_info dest_pic_info;
    hi_vpc_crop_region crop_region;
    hi_vpc_resize_info resize_info;
} hi_vpc_crop_resize_region;

typedef struct hi_vpc_crop_resize_paste_region {
    hi_vpc_pic_info dest_pic_info;
    hi_vpc_crop_region crop_region;
    hi_vpc_resize_info resize_info;
    hi_u32 dest_top_offset;
    hi_u32 dest_left_offset;
} hi_vpc_crop_resize_paste_region;

typedef struct hi_vpc_crop_resize_border_region {
    hi_vpc_pic_info dest_pic_info;
    hi_vpc_crop_region crop_region;
    hi_vpc_resize_info resize_info;
    hi_u32 dest_top_offset;
    hi_u32 dest_left_offset;
    hi_vpc_bord_type border_type;
    hi_vpc_scalar scalar_value;
} hi_vpc_crop_resize_border_region;

/* How often each value occurs. */
typedef struct hi_vpc_histogram_config {
    hi_u32 histogram_y_or_r[256];
    hi_u32 histogram_u_or_g[256];
    hi_u32 histogram_v_or_b[256];
} hi_vpc_histogram_config;

typedef struct hi_vpc_lut_remap {
    hi_u8 map_value_y_or_r[256];
    hi_u8 map_value_u_or_g[256];
    hi_u8 map_value_v_or_b[256];
} hi_vpc_lut_remap;

/* Once per process before and after the others. */
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_sys_init(void);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_sys_exit(void);

/* Device memory; dev_id must be the current device. */
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_dvpp_malloc(hi_u32 dev_id, hi_void **dev_ptr, hi_u64 size);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_dvpp_free(hi_void *dev_ptr);

/* A channel with a number of the system's choice, or of the caller's (0 to 255). Destroying waits for its tasks. */
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_sys_create_chn(hi_vpc_chn *chn, const hi_vpc_chn_attr *attr);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_create_chn(hi_vpc_chn chn, const hi_vpc_chn_attr *attr);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_destroy_chn(hi_vpc_chn chn);
/* mod_id must be HI_ID_VPC, coefficient NULL. */
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_sys_set_chn_csc_matrix(hi_mod_id mod_id, hi_s32 chn, hi_csc_matrix matrix,
                                                         hi_csc_coefficient *coefficient);

/* Sizes of dest_pic count; fx and fy, if not 0, must agree with them. */
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_resize(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                             hi_vpc_pic_info *dest_pic, hi_double fx, hi_double fy,
                                             hi_u32 interpolation, hi_u32 *task_id, hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_convert_color(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                                    hi_vpc_pic_info *dest_pic, hi_u32 *task_id, hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_copy_make_border(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                                       hi_vpc_pic_info *dest_pic,
                                                       hi_vpc_make_border_info make_border_info, hi_u32 *task_id,
                                                       hi_s32 milli_sec);
/* `count` regions of one picture. */
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_crop(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                           hi_vpc_crop_region_info crop_info[], hi_u32 count, hi_u32 *task_id,
                                           hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_crop_resize(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                                  hi_vpc_crop_resize_region crop_resize_info[], hi_u32 count,
                                                  hi_u32 *task_id, hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_crop_resize_paste(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                                        hi_vpc_crop_resize_paste_region crop_resize_paste_info[],
                                                        hi_u32 count, hi_u32 *task_id, hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_crop_resize_make_border(
    hi_vpc_chn chn, const hi_vpc_pic_info *source_pic, hi_vpc_crop_resize_border_region crop_resize_make_border_info[],
    hi_u32 count, hi_u32 *task_id, hi_s32 milli_sec);
/* Of pic_num pictures, count[i] regions of each, one after the other. */
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_batch_crop_resize_paste(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic[],
                                                              hi_u32 pic_num,
                                                              hi_vpc_crop_resize_paste_region crop_resize_paste_info[],
                                                              hi_u32 count[], hi_u32 *task_id, hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_batch_crop_resize_make_border(
    hi_vpc_chn chn, const hi_vpc_pic_info *source_pic[], hi_u32 pic_num,
    hi_vpc_crop_resize_border_region crop_resize_make_border_info[], hi_u32 count[], hi_u32 *task_id, hi_s32 milli_sec);

ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_calc_hist(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                                hi_vpc_histogram_config *hist_config, hi_u32 *task_id,
                                                hi_s32 milli_sec);
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_equalize_hist(hi_vpc_chn chn, const hi_vpc_pic_info *source_pic,
                                                    hi_vpc_pic_info *dest_pic, const hi_vpc_lut_remap *lut_remap,
                                                    hi_u32 *task_id, hi_s32 milli_sec);

/* Waits at most milli_sec (-1: as long as it takes, 0: not at all) for a task of the channel. A task is asked for once.
 */
ACL_FUNC_VISIBILITY hi_s32 hi_mpi_vpc_get_process_result(hi_vpc_chn chn, hi_u32 task_id, hi_s32 milli_sec);

#ifdef __cplusplus
}
#endif

#endif
