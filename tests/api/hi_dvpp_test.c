/* hi_dvpp.h: channels, tasks by number, their results; histograms and tables of values of both interfaces. */
#define ENABLE_DVPP_INTERFACE
#include "child.h"

#include <stdbool.h>

#include "acl/dvpp/hi_dvpp.h"
#include "acl/ops/acl_dvpp.h"

static hi_vpc_chn chn;

static void begin(void) {
    hi_vpc_chn_attr attr = {0};
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(hi_mpi_sys_init());
    CHECK_OK(hi_mpi_vpc_sys_create_chn(&chn, &attr));
}

static void end(void) {
    CHECK_OK(hi_mpi_vpc_destroy_chn(chn));
    CHECK_OK(hi_mpi_sys_exit());
    CHECK_OK(aclrtResetDevice(0));
    CHECK_OK(aclFinalize());
}

/* A BGR picture whose pixels say where they are; rows on 16 pixels as OpenCV makes them. */
static hi_vpc_pic_info bgr(hi_u32 width, hi_u32 height) {
    hi_vpc_pic_info p = {.picture_width = width,
                         .picture_height = height,
                         .picture_width_stride = (width + 15) / 16 * 48,
                         .picture_height_stride = height,
                         .picture_format = HI_PIXEL_FORMAT_BGR_888};
    p.picture_buffer_size = p.picture_width_stride * height;
    CHECK_OK(hi_mpi_dvpp_malloc(0, &p.picture_address, p.picture_buffer_size));
    for (hi_u32 y = 0; y < height; y++)
        for (hi_u32 x = 0; x < width; x++) {
            hi_u8 *pixel = (hi_u8 *)p.picture_address + y * p.picture_width_stride + 3 * x;
            pixel[0] = (hi_u8)x;
            pixel[1] = (hi_u8)y;
            pixel[2] = (hi_u8)(x ^ y);
        }
    return p;
}

static const hi_u8 *at(const hi_vpc_pic_info *p, hi_u32 x, hi_u32 y) {
    return (const hi_u8 *)p->picture_address + y * p->picture_width_stride + 3 * x;
}

static void wait_for(hi_u32 task) {
    if (hi_mpi_vpc_get_process_result(chn, task, -1) != HI_SUCCESS) {
        fprintf(stderr, "%s\n", aclGetRecentErrMsg());
        _exit(1);
    }
}

static bool said(const char *words) {
    const char *message = aclGetRecentErrMsg();
    if (!message || !strstr(message, words))
        fprintf(stderr, "said: %s\n", message ? message : "nothing");
    return message && strstr(message, words);
}

TEST(resize_crop_border) {
    begin();
    hi_vpc_pic_info src = bgr(64, 40), half = bgr(32, 20), framed = bgr(70, 50);
    hi_u32 first, second;
    CHECK_OK(hi_mpi_vpc_resize(chn, &src, &half, .5, .5, 1, &first, -1));
    CHECK_OK(hi_mpi_vpc_copy_make_border(chn, &src, &framed,
                                         (hi_vpc_make_border_info){.top = 4,
                                                                   .bottom = 6,
                                                                   .left = 1,
                                                                   .right = 5,
                                                                   .border_type = HI_BORDER_CONSTANT,
                                                                   .scalar_value = {{10, 20, 30, 0}}},
                                         &second, -1));
    CHECK(first != second);
    wait_for(second); /* in any order */
    wait_for(first);
    for (hi_u32 y = 0; y < 20; y++)
        for (hi_u32 x = 0; x < 32; x++)
            CHECK(memcmp(at(&half, x, y), at(&src, 2 * x, 2 * y), 3) == 0);
    CHECK(memcmp(at(&framed, 0, 0), (hi_u8[]){30, 20, 10}, 3) == 0 &&
          memcmp(at(&framed, 1, 4), at(&src, 0, 0), 3) == 0 && memcmp(at(&framed, 64, 43), at(&src, 63, 39), 3) == 0 &&
          memcmp(at(&framed, 65, 43), at(&framed, 0, 0), 3) == 0);
    hi_vpc_crop_resize_region region = {
        .dest_pic_info = half,
        .crop_region = {.top_offset = 10, .left_offset = 7, .crop_width = 32, .crop_height = 20},
        .resize_info = {.resize_width = 32, .resize_height = 20, .interpolation = 0}};
    CHECK_OK(hi_mpi_vpc_crop_resize(chn, &src, &region, 1, &first, -1));
    wait_for(first);
    CHECK(memcmp(at(&half, 3, 4), at(&src, 10, 14), 3) == 0);
    hi_vpc_crop_resize_border_region around = {.dest_pic_info = framed,
                                               .crop_region = region.crop_region,
                                               .resize_info = region.resize_info,
                                               .dest_top_offset = 5,
                                               .dest_left_offset = 9,
                                               .border_type = HI_BORDER_REPLICATE};
    CHECK_OK(hi_mpi_vpc_crop_resize_make_border(chn, &src, &around, 1, &first, 0));
    wait_for(first);
    CHECK(memcmp(at(&framed, 0, 0), at(&src, 7, 10), 3) == 0 && memcmp(at(&framed, 69, 49), at(&src, 38, 29), 3) == 0);

    CHECK(hi_mpi_vpc_get_process_result(chn, first, -1) == HI_FAILURE && said("no such task")); /* asked for once */
    region.crop_region.crop_width = 60;
    CHECK(hi_mpi_vpc_crop_resize(chn, &src, &region, 1, &first, -1) == HI_FAILURE && said("crop_region"));
    CHECK(hi_mpi_vpc_resize(chn, &src, &half, .25, .5, 0, &first, -1) == HI_FAILURE && said("fx is 0.25"));
    CHECK(hi_mpi_vpc_resize(chn, &src, &half, 0, 0, 7, &first, -1) == HI_FAILURE && said("interpolation is 7"));
    CHECK(hi_mpi_vpc_resize(chn + 1, &src, &half, 0, 0, 0, &first, -1) == HI_FAILURE && said("open channel"));
    half.picture_buffer_size = 100;
    CHECK(hi_mpi_vpc_resize(chn, &src, &half, 0, 0, 0, &first, -1) == HI_FAILURE && said("size is 100"));
    CHECK_OK(hi_mpi_dvpp_free(src.picture_address));
    CHECK_OK(hi_mpi_dvpp_free(half.picture_address));
    CHECK_OK(hi_mpi_dvpp_free(framed.picture_address));
    end();
}

TEST(colours_and_values) {
    begin();
    hi_vpc_pic_info src = bgr(64, 40), rgb = bgr(64, 40);
    hi_u32 task;
    rgb.picture_format = HI_PIXEL_FORMAT_RGB_888;
    CHECK_OK(hi_mpi_sys_set_chn_csc_matrix(HI_ID_VPC, chn, HI_CSC_MATRIX_BT709_WIDE, 0));
    CHECK_OK(hi_mpi_vpc_convert_color(chn, &src, &rgb, &task, -1));
    wait_for(task);
    CHECK(at(&rgb, 9, 5)[0] == at(&src, 9, 5)[2] && at(&rgb, 9, 5)[2] == 9);

    static hi_vpc_histogram_config counts;
    static hi_vpc_lut_remap map;
    CHECK_OK(hi_mpi_vpc_calc_hist(chn, &src, &counts, &task, -1));
    wait_for(task);
    CHECK(counts.histogram_v_or_b[9] == 40 && counts.histogram_u_or_g[5] == 64 && counts.histogram_v_or_b[64] == 0);
    for (int i = 0; i < 256; i++) {
        map.map_value_y_or_r[i] = (hi_u8)(255 - i);
        map.map_value_u_or_g[i] = (hi_u8)i;
        map.map_value_v_or_b[i] = (hi_u8)(i / 2);
    }
    CHECK_OK(hi_mpi_vpc_equalize_hist(chn, &rgb, &src, &map, &task, -1));
    CHECK(hi_mpi_vpc_get_process_result(chn, task, -1) == HI_FAILURE && said("must be alike"));
    src.picture_format = HI_PIXEL_FORMAT_RGB_888;
    CHECK_OK(hi_mpi_vpc_equalize_hist(chn, &rgb, &src, &map, &task, -1));
    wait_for(task);
    CHECK(at(&src, 9, 5)[0] == 255 - (9 ^ 5) && at(&src, 9, 5)[1] == 5 && at(&src, 9, 5)[2] == 4);
    CHECK_OK(hi_mpi_dvpp_free(src.picture_address));
    CHECK_OK(hi_mpi_dvpp_free(rgb.picture_address));
    end();
}

/* The first interface's histograms and tables. */
TEST(values_by_descriptions) {
    begin();
    aclrtStream stream;
    CHECK_OK(aclrtCreateStream(&stream));
    acldvppChannelDesc *channel = acldvppCreateChannelDesc();
    CHECK_OK(acldvppCreateChannel(channel));
    hi_vpc_pic_info memory[2] = {bgr(64, 40), bgr(64, 40)};
    acldvppPicDesc *desc[2];
    for (int i = 0; i < 2; i++) {
        desc[i] = acldvppCreatePicDesc();
        CHECK_OK(acldvppSetPicDescData(desc[i], memory[i].picture_address));
        CHECK_OK(acldvppSetPicDescSize(desc[i], memory[i].picture_buffer_size));
        CHECK_OK(acldvppSetPicDescFormat(desc[i], PIXEL_FORMAT_BGR_888));
        CHECK_OK(acldvppSetPicDescWidth(desc[i], 64));
        CHECK_OK(acldvppSetPicDescHeight(desc[i], 40));
    }
    acldvppHist *hist = acldvppCreateHist();
    CHECK_OK(acldvppVpcCalcHistAsync(channel, desc[0], hist, NULL, stream));
    acldvppLutMap *map = acldvppCreateLutMap();
    uint32_t *counts, length;
    uint16_t short_length;
    uint8_t *values;
    for (uint32_t dim = 0; dim < acldvppGetLutMapDims(map); dim++) {
        CHECK_OK(acldvppGetLutMapData(map, dim, &values, &length));
        CHECK(length == 256);
        for (uint32_t i = 0; i < length; i++)
            values[i] = (uint8_t)(i + dim);
    }
    CHECK_OK(acldvppVpcEqualizeHistAsync(channel, desc[0], desc[1], map, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_OK(acldvppGetHistData(hist, 2, &counts, &short_length));
    CHECK(acldvppGetHistDims(hist) == 3 && acldvppGetHistRetCode(hist) == 0 && short_length == 256 && counts[9] == 40);
    CHECK(at(&memory[1], 9, 5)[0] == 11 && at(&memory[1], 9, 5)[1] == 6 && at(&memory[1], 9, 5)[2] == (9 ^ 5));
    CHECK_OK(acldvppClearHist(hist));
    CHECK(counts[9] == 0);
    CHECK(acldvppVpcPyrDownAsync(channel, desc[0], desc[1], NULL, stream) == ACL_ERROR_API_NOT_SUPPORT);
    CHECK_OK(acldvppDestroyHist(hist));
    CHECK_OK(acldvppDestroyLutMap(map));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(acldvppDestroyPicDesc(desc[i]));
        CHECK_OK(hi_mpi_dvpp_free(memory[i].picture_address));
    }
    CHECK_OK(acldvppDestroyChannel(channel));
    CHECK_OK(acldvppDestroyChannelDesc(channel));
    CHECK_OK(aclrtDestroyStream(stream));
    end();
}

TEST(channels_by_number) {
    begin();
    hi_vpc_chn_attr attr = {0};
    CHECK_OK(hi_mpi_vpc_create_chn(200, &attr));
    CHECK(hi_mpi_vpc_create_chn(200, &attr) == HI_FAILURE && said("open already"));
    CHECK(hi_mpi_vpc_create_chn(256, &attr) == HI_FAILURE && hi_mpi_vpc_create_chn(-1, &attr) == HI_FAILURE);
    CHECK(hi_mpi_vpc_sys_create_chn(NULL, &attr) == HI_FAILURE && hi_mpi_vpc_sys_create_chn(&chn, NULL) == HI_FAILURE);
    hi_vpc_pic_info src = bgr(64, 40), half = bgr(32, 20);
    hi_u32 task;
    for (int i = 0; i < 50; i++) /* nobody asks for these */
        CHECK_OK(hi_mpi_vpc_resize(200, &src, &half, 0, 0, 0, &task, -1));
    CHECK_OK(hi_mpi_vpc_destroy_chn(200));
    CHECK(hi_mpi_vpc_destroy_chn(200) == HI_FAILURE);
    CHECK_OK(hi_mpi_dvpp_free(src.picture_address));
    CHECK_OK(hi_mpi_dvpp_free(half.picture_address));
    CHECK(hi_mpi_dvpp_free(NULL) == HI_FAILURE && hi_mpi_dvpp_malloc(0, NULL, 5) == HI_FAILURE);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resize_crop_border),
        cmocka_unit_test(colours_and_values),
        cmocka_unit_test(values_by_descriptions),
        cmocka_unit_test(channels_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
