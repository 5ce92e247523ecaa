/* Every allocation fails once while pictures are described, queued and drawn: calls answer with a code, nothing stays
 * behind. */
#define ENABLE_DVPP_INTERFACE
#include "child.h"

#include "acl/dvpp/hi_dvpp.h"
#include "acl/ops/acl_dvpp.h"
#include "base/memory.h"

static void *memory[2];
static aclrtStream stream;

static void describe(acldvppPicDesc *desc, int i) {
    acldvppSetPicDescData(desc, memory[i]);
    acldvppSetPicDescSize(desc, 64 * 64 * 3);
    acldvppSetPicDescFormat(desc, i ? PIXEL_FORMAT_RGB_888 : PIXEL_FORMAT_YUV_SEMIPLANAR_420);
    acldvppSetPicDescWidth(desc, i ? 32 : 64);
    acldvppSetPicDescHeight(desc, i ? 32 : 64);
}

/* Whatever fails is left out, and the rest is given back. */
static int first_interface(void) {
    int failures = 0;
    acldvppChannelDesc *channel = acldvppCreateChannelDesc();
    failures += !channel || acldvppCreateChannel(channel);
    acldvppBatchPicDesc *src = acldvppCreateBatchPicDesc(1), *dst = acldvppCreateBatchPicDesc(2);
    acldvppRoiConfig *area = acldvppCreateRoiConfig(0, 31, 2, 61), *areas[2] = {area, area};
    acldvppResizeConfig *config = acldvppCreateResizeConfig();
    acldvppHist *hist = acldvppCreateHist();
    uint32_t count = 2;
    failures += !src + !dst + !area + !config + !hist;
    if (channel && src && dst && area && config) {
        describe(acldvppGetPicDesc(src, 0), 0);
        describe(acldvppGetPicDesc(dst, 0), 1);
        describe(acldvppGetPicDesc(dst, 1), 1);
        failures += acldvppVpcBatchCropResizeAsync(channel, src, &count, 1, dst, areas, config, stream) != 0;
        failures += hist && acldvppVpcCalcHistAsync(channel, acldvppGetPicDesc(src, 0), hist, NULL, stream);
    }
    failures += aclrtSynchronizeStream(stream) != 0;
    aclrtStreamAbort(stream);
    if (channel) {
        acldvppDestroyChannel(channel);
        CHECK_OK(acldvppDestroyChannelDesc(channel));
    }
    failures += (src && acldvppDestroyBatchPicDesc(src)) + (dst && acldvppDestroyBatchPicDesc(dst));
    failures += (area && acldvppDestroyRoiConfig(area)) + (config && acldvppDestroyResizeConfig(config));
    return failures + (hist && acldvppDestroyHist(hist));
}

static int second_interface(void) {
    hi_vpc_chn chn;
    hi_vpc_chn_attr attr = {0};
    hi_vpc_pic_info src = {memory[0], 64 * 64 * 3, 64, 64, 64, 64, HI_PIXEL_FORMAT_YUV_SEMIPLANAR_420};
    hi_vpc_pic_info dst = {memory[1], 64 * 64 * 3, 32, 32, 96, 32, HI_PIXEL_FORMAT_RGB_888};
    static hi_vpc_lut_remap map;
    hi_u32 task;
    if (hi_mpi_vpc_sys_create_chn(&chn, &attr))
        return 1;
    int failures =
        hi_mpi_vpc_resize(chn, &src, &dst, 0, 0, 0, &task, -1) || hi_mpi_vpc_get_process_result(chn, task, -1);
    dst.picture_format = src.picture_format;
    dst.picture_width_stride = 64;
    dst.picture_width = dst.picture_height = dst.picture_height_stride = 64;
    failures +=
        hi_mpi_vpc_equalize_hist(chn, &src, &dst, &map, &task, -1) || hi_mpi_vpc_get_process_result(chn, task, -1);
    return failures + (hi_mpi_vpc_destroy_chn(chn) != 0);
}

static void walk(int (*program)(void)) {
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    for (int i = 0; i < 2; i++)
        CHECK_OK(acldvppMalloc(&memory[i], 64 * 64 * 3));
    CHECK(program() == 0 && program() == 0);
    size_t before = dp_mem_stats_of(DP_MEM_MEDIA).live_blocks;
    long i = 1;
    for (bool reached = true; reached && i < 500; i++) {
        dp_mem_fail_after(i);
        int failures = program();
        reached = dp_mem_fail_after_left() == 0;
        dp_mem_fail_after(0);
        CHECK(failures == 0 || reached);
        for (int k = 0; k < 50 && dp_mem_stats_of(DP_MEM_MEDIA).live_blocks != before; k++)
            usleep(1000); /* workers may still be letting go */
        CHECK(dp_mem_stats_of(DP_MEM_MEDIA).live_blocks == before);
        CHECK(program() == 0); /* afterwards all is as before */
    }
    CHECK(i > 10 && i < 500);
    for (int k = 0; k < 2; k++)
        CHECK_OK(acldvppFree(memory[k]));
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_OK(aclrtResetDevice(0));
    CHECK_OK(aclFinalize());
}

TEST(descriptions_and_streams) {
    walk(first_interface);
}

TEST(channels_and_tasks) {
    walk(second_interface);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptions_and_streams),
        cmocka_unit_test(channels_and_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
