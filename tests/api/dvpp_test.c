/* acl_dvpp.h as programs use it: a photograph comes in, is resized, cut, pasted, converted, and goes out again. */
#define ENABLE_DVPP_INTERFACE
#include "child.h"

#include "acl/ops/acl_dvpp.h"
#include "media/make.h"

static aclrtStream stream;
static acldvppChannelDesc *channel;

static void begin(void) {
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    channel = acldvppCreateChannelDesc();
    CHECK(channel);
    CHECK_OK(acldvppCreateChannel(channel));
}

static void end(void) {
    CHECK_OK(acldvppDestroyChannel(channel));
    CHECK_OK(acldvppDestroyChannelDesc(channel));
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_OK(aclrtResetDevice(0));
    CHECK_OK(aclFinalize());
}

/* The message of the last failure names what it should. */
static bool said(const char *words) {
    const char *message = aclGetRecentErrMsg();
    if (!message || !strstr(message, words))
        fprintf(stderr, "said: %s\n", message ? message : "nothing");
    return message && strstr(message, words);
}

static void *on_device(const void *bytes, size_t n) {
    void *memory = NULL;
    CHECK_OK(acldvppMalloc(&memory, n));
    CHECK_OK(aclrtMemcpy(memory, n, bytes, n, ACL_MEMCPY_HOST_TO_DEVICE));
    return memory;
}

static acldvppPicDesc *new_desc(acldvppPixelFormat format, uint32_t width, uint32_t height, uint32_t width_stride,
                                uint32_t height_stride, uint32_t size) {
    acldvppPicDesc *desc = acldvppCreatePicDesc();
    void *memory = NULL;
    CHECK(desc);
    CHECK_OK(acldvppMalloc(&memory, size));
    CHECK_OK(aclrtMemset(memory, size, 0, size));
    CHECK_OK(acldvppSetPicDescData(desc, memory));
    CHECK_OK(acldvppSetPicDescSize(desc, size));
    CHECK_OK(acldvppSetPicDescFormat(desc, format));
    CHECK_OK(acldvppSetPicDescWidth(desc, width));
    CHECK_OK(acldvppSetPicDescHeight(desc, height));
    CHECK_OK(acldvppSetPicDescWidthStride(desc, width_stride));
    CHECK_OK(acldvppSetPicDescHeightStride(desc, height_stride));
    return desc;
}

static void free_desc(acldvppPicDesc *desc) {
    CHECK_OK(acldvppFree(acldvppGetPicDescData(desc)));
    CHECK_OK(acldvppDestroyPicDesc(desc));
}

/* A JPEG of this size, decoded as the samples do: the strides are what the description says afterwards. */
static acldvppPicDesc *decoded(uint32_t width, uint32_t height) {
    size_t n;
    uint8_t *jpeg = make_jpeg(width, height, &(make_jpeg_options){.across = 2, .down = 2}, &n);
    uint32_t size = 0, w = 0, h = 0;
    int32_t components = 0;
    acldvppJpegFormat format = ACL_JPEG_CSS_UNKNOWN;
    CHECK_OK(acldvppJpegGetImageInfo(jpeg, (uint32_t)n, &w, &h, &components));
    CHECK_OK(acldvppJpegGetImageInfoV2(jpeg, (uint32_t)n, &w, &h, &components, &format));
    CHECK(w == width && h == height && components == 3 && format == ACL_JPEG_CSS_420);
    CHECK_OK(acldvppJpegPredictDecSize(jpeg, (uint32_t)n, PIXEL_FORMAT_YUV_SEMIPLANAR_420, &size));
    CHECK(size == (width + 127) / 128 * 128 * ((height + 15) / 16 * 16) * 3 / 2);
    void *bytes = on_device(jpeg, n);
    acldvppPicDesc *desc = new_desc(PIXEL_FORMAT_YUV_SEMIPLANAR_420, 0, 0, 0, 0, size);
    CHECK_OK(acldvppJpegDecodeAsync(channel, bytes, (uint32_t)n, desc, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(acldvppGetPicDescRetCode(desc) == 0 && acldvppGetPicDescWidth(desc) == width &&
          acldvppGetPicDescHeight(desc) == height && acldvppGetPicDescWidthStride(desc) % 128 == 0 &&
          acldvppGetPicDescHeightStride(desc) % 16 == 0 && acldvppGetPicDescSize(desc) == size);
    CHECK_OK(acldvppFree(bytes));
    free(jpeg);
    return desc;
}

/* Mean of the luma over an area, in host memory as device memory is. */
static double mean_luma(const acldvppPicDesc *desc, uint32_t left, uint32_t top, uint32_t width, uint32_t height) {
    const uint8_t *data = acldvppGetPicDescData(desc);
    double sum = 0;
    for (uint32_t y = top; y < top + height; y++)
        for (uint32_t x = left; x < left + width; x++)
            sum += data[y * acldvppGetPicDescWidthStride(desc) + x];
    return sum / width / height;
}

static bool near(double a, double b) {
    return a - b < 1.5 && b - a < 1.5;
}

TEST(decode_resize_convert_encode) {
    begin();
    acldvppPicDesc *photo = decoded(320, 240),
                   *small = new_desc(PIXEL_FORMAT_YUV_SEMIPLANAR_420, 160, 120, 160, 120, 160 * 180);
    acldvppResizeConfig *config = acldvppCreateResizeConfig();
    for (uint32_t i = 0; i < 5; i++) {
        CHECK_OK(acldvppSetResizeConfigInterpolation(config, i));
        CHECK(acldvppGetResizeConfigInterpolation(config) == i);
        CHECK_OK(acldvppVpcResizeAsync(channel, photo, small, config, stream));
        CHECK_OK(aclrtSynchronizeStream(stream));
        CHECK(near(mean_luma(photo, 0, 0, 320, 240), mean_luma(small, 0, 0, 160, 120)));
    }
    acldvppPicDesc *rgb = new_desc(PIXEL_FORMAT_RGB_888, 160, 120, 480, 120, 480 * 120);
    CHECK_OK(acldvppVpcConvertColorAsync(channel, small, rgb, stream));
    acldvppJpegeConfig *quality = acldvppCreateJpegeConfig();
    CHECK_OK(acldvppSetJpegeConfigLevel(quality, 95));
    CHECK(acldvppGetJpegeConfigLevel(quality) == 95);
    uint32_t room = 0, width, height;
    CHECK_OK(acldvppJpegPredictEncSize(rgb, quality, &room));
    void *file = NULL;
    CHECK_OK(acldvppMalloc(&file, room));
    uint32_t n = room;
    CHECK_OK(acldvppJpegEncodeAsync(channel, rgb, file, &n, quality, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(n > 1000 && n < room);
    uint8_t *yuv = libjpeg_yuv(file, n, &width, &height);
    double sum = 0;
    for (uint32_t i = 0; i < width * height; i++)
        sum += yuv[i];
    CHECK(width == 160 && height == 120 && near(sum / width / height, mean_luma(small, 0, 0, 160, 120)));
    free(yuv);
    CHECK_OK(acldvppFree(file));
    CHECK_OK(acldvppDestroyJpegeConfig(quality));
    CHECK_OK(acldvppDestroyResizeConfig(config));
    free_desc(rgb);
    free_desc(small);
    free_desc(photo);
    end();
}

TEST(crop_and_paste) {
    begin();
    acldvppPicDesc *photo = decoded(320, 240),
                   *out = new_desc(PIXEL_FORMAT_YUV_SEMIPLANAR_420, 128, 128, 128, 128, 128 * 192);
    acldvppRoiConfig *from = acldvppCreateRoiConfig(32, 159, 64, 127), *to = acldvppCreateRoiConfig(0, 0, 0, 0);
    CHECK_OK(acldvppSetRoiConfig(to, 16, 79, 32, 63));
    CHECK_OK(acldvppVpcCropAndPasteAsync(channel, photo, out, from, to, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(near(mean_luma(photo, 32, 64, 128, 64), mean_luma(out, 16, 32, 64, 32)) &&
          mean_luma(out, 0, 0, 128, 32) == 0);
    CHECK_OK(acldvppVpcCropAsync(channel, photo, out, from, stream)); /* 128 x 64 fill 128 x 128 */
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK(near(mean_luma(photo, 32, 64, 128, 64), mean_luma(out, 0, 0, 128, 128)));
    CHECK_OK(acldvppSetRoiConfigRight(from, 320));
    CHECK(acldvppVpcCropAsync(channel, photo, out, from, stream) == ACL_ERROR_INVALID_PARAM && said("cropArea"));
    CHECK_OK(acldvppSetRoiConfigRight(from, 31));
    CHECK(acldvppVpcCropAsync(channel, photo, out, from, stream) == ACL_ERROR_INVALID_PARAM && said("right"));
    CHECK_OK(acldvppDestroyRoiConfig(from));
    CHECK_OK(acldvppDestroyRoiConfig(to));
    free_desc(out);
    free_desc(photo);
    end();
}

/* Two sources, three results with borders. */
TEST(batches) {
    begin();
    acldvppPicDesc *photos[2] = {decoded(200, 100), decoded(64, 64)};
    acldvppBatchPicDesc *src = acldvppCreateBatchPicDesc(2), *dst = acldvppCreateBatchPicDesc(3);
    void *memory[3];
    for (uint32_t i = 0; i < 2; i++) {
        acldvppPicDesc *p = acldvppGetPicDesc(src, i);
        CHECK_OK(acldvppSetPicDescData(p, acldvppGetPicDescData(photos[i])));
        CHECK_OK(acldvppSetPicDescSize(p, acldvppGetPicDescSize(photos[i])));
        CHECK_OK(acldvppSetPicDescFormat(p, PIXEL_FORMAT_YUV_SEMIPLANAR_420));
        CHECK_OK(acldvppSetPicDescWidth(p, acldvppGetPicDescWidth(photos[i])));
        CHECK_OK(acldvppSetPicDescHeight(p, acldvppGetPicDescHeight(photos[i])));
        CHECK_OK(acldvppSetPicDescWidthStride(p, acldvppGetPicDescWidthStride(photos[i])));
        CHECK_OK(acldvppSetPicDescHeightStride(p, acldvppGetPicDescHeightStride(photos[i])));
    }
    for (uint32_t i = 0; i < 3; i++) {
        acldvppPicDesc *p = acldvppGetPicDesc(dst, i);
        CHECK_OK(acldvppMalloc(&memory[i], 96 * 144));
        CHECK_OK(acldvppSetPicDescData(p, memory[i]));
        CHECK_OK(acldvppSetPicDescSize(p, 96 * 144));
        CHECK_OK(acldvppSetPicDescFormat(p, PIXEL_FORMAT_YVU_SEMIPLANAR_420));
        CHECK_OK(acldvppSetPicDescWidth(p, 96));
        CHECK_OK(acldvppSetPicDescHeight(p, 96));
    }
    acldvppRoiConfig *areas[3] = {acldvppCreateRoiConfig(0, 99, 0, 99), acldvppCreateRoiConfig(100, 199, 0, 99),
                                  acldvppCreateRoiConfig(0, 63, 0, 63)};
    acldvppBorderConfig *border = acldvppCreateBorderConfig(), *borders[3] = {border, border, border};
    CHECK_OK(acldvppSetBorderConfigTop(border, 8));
    CHECK_OK(acldvppSetBorderConfigLeft(border, 16));
    CHECK_OK(acldvppSetBorderConfigBorderType(border, BORDER_CONSTANT));
    CHECK_OK(acldvppSetBorderConfigValue(border, 0, 77));
    CHECK(acldvppGetBorderConfigValue(border, 0) == 77 && acldvppGetBorderConfigTop(border) == 8);
    CHECK(acldvppSetBorderConfigValue(border, 4, 1) && acldvppSetBorderConfigValue(border, 0, -1));
    acldvppResizeConfig *config = acldvppCreateResizeConfig();
    uint32_t counts[2] = {2, 1};
    CHECK_OK(acldvppVpcBatchCropResizeMakeBorderAsync(channel, src, counts, 2, dst, areas, borders, config, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    for (uint32_t i = 0; i < 3; i++) {
        const uint8_t *data = memory[i];
        double sum = 0;
        for (uint32_t y = 8; y < 96; y++)
            for (uint32_t x = 16; x < 96; x++)
                sum += data[y * 96 + x];
        CHECK(data[0] == 77 && data[8 * 96 + 15] == 77 && data[7 * 96 + 95] == 77);
        CHECK(near(sum / 80 / 88, mean_luma(photos[i / 2], i == 1 ? 100 : 0, 0, i == 2 ? 64 : 100, i == 2 ? 64 : 100)));
        CHECK(acldvppGetPicDescRetCode(acldvppGetPicDesc(dst, i)) == 0);
    }
    counts[0] = 1;
    CHECK(acldvppVpcBatchCropAsync(channel, src, counts, 2, dst, areas, stream) && said("roiNums adds up to 2"));
    CHECK(acldvppVpcBatchCropAsync(channel, src, counts, 1, dst, areas, stream) && said("size is 1"));
    CHECK(acldvppDestroyPicDesc(acldvppGetPicDesc(dst, 0)) && said("belongs to a batch"));
    CHECK(acldvppGetPicDesc(dst, 3) == NULL && said("index is 3"));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(acldvppFree(memory[i]));
        CHECK_OK(acldvppDestroyRoiConfig(areas[i]));
    }
    CHECK_OK(acldvppDestroyBorderConfig(border));
    CHECK_OK(acldvppDestroyResizeConfig(config));
    CHECK_OK(acldvppDestroyBatchPicDesc(src));
    CHECK_OK(acldvppDestroyBatchPicDesc(dst));
    free_desc(photos[0]);
    free_desc(photos[1]);
    end();
}

TEST(png) {
    begin();
    size_t n;
    uint8_t *rgba, *png = make_png(45, 30, 4, 8, true, false, &rgba, &n);
    uint32_t width, height, size = 0;
    int32_t components;
    CHECK_OK(acldvppPngGetImageInfo(png, (uint32_t)n, &width, &height, &components));
    CHECK(width == 45 && height == 30 && components == 4);
    CHECK_OK(acldvppPngPredictDecSize(png, (uint32_t)n, PIXEL_FORMAT_RGBA_8888, &size));
    void *bytes = on_device(png, n);
    acldvppPicDesc *desc = new_desc(PIXEL_FORMAT_RGBA_8888, 0, 0, 0, 0, size);
    CHECK_OK(acldvppPngDecodeAsync(channel, bytes, (uint32_t)n, desc, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    for (uint32_t y = 0; y < 30; y++)
        CHECK(memcmp((uint8_t *)acldvppGetPicDescData(desc) + y * acldvppGetPicDescWidthStride(desc), rgba + y * 180,
                     180) == 0);
    CHECK_OK(acldvppFree(bytes));
    free_desc(desc);
    free(png);
    free(rgba);
    end();
}

/* What is wrong with the bytes is found by the task: the stream and the description tell. */
TEST(damaged_files_fail_the_stream) {
    begin();
    size_t n;
    uint8_t *jpeg = make_jpeg(64, 64, &(make_jpeg_options){.across = 2, .down = 2}, &n);
    void *bytes = on_device(jpeg, n);
    acldvppPicDesc *desc = new_desc(PIXEL_FORMAT_YUV_SEMIPLANAR_420, 0, 0, 0, 0, 128 * 64 * 3 / 2);
    CHECK_OK(acldvppJpegDecodeAsync(channel, bytes, (uint32_t)n / 2, desc, stream));
    CHECK(aclrtSynchronizeStream(stream) == ACL_ERROR_INVALID_PARAM && said("not a JPEG that can be decoded"));
    CHECK(acldvppGetPicDescRetCode(desc) == ACL_ERROR_INVALID_PARAM);
    CHECK_OK(aclrtStreamAbort(stream));
    CHECK(acldvppJpegDecodeAsync(channel, bytes, 1 << 30, desc, stream) != ACL_SUCCESS && said("data"));
    CHECK(acldvppJpegDecodeAsync(channel, jpeg, (uint32_t)n, desc, stream) != ACL_SUCCESS && said("data"));
    CHECK(acldvppJpegDecodeAsync(channel, NULL, (uint32_t)n, desc, stream) == ACL_ERROR_INVALID_PARAM &&
          said("data is NULL"));
    CHECK_OK(acldvppSetPicDescSize(desc, 1 << 30));
    CHECK(acldvppJpegDecodeAsync(channel, bytes, (uint32_t)n, desc, stream) != ACL_SUCCESS && said("outputDesc"));
    uint32_t width, height, size;
    int32_t components;
    CHECK(acldvppJpegGetImageInfo("no JPEG", 7, &width, &height, &components) == ACL_ERROR_INVALID_PARAM &&
          said("not a JPEG"));
    CHECK(acldvppJpegPredictDecSize(jpeg, (uint32_t)n, PIXEL_FORMAT_RGB_888, &size) == ACL_ERROR_API_NOT_SUPPORT);
    CHECK_OK(acldvppSetPicDescSize(desc, 128 * 64 * 3 / 2));
    CHECK_OK(acldvppJpegDecodeAsync(channel, bytes, (uint32_t)n, desc, stream)); /* and it still works */
    void *memory = acldvppGetPicDescData(desc);
    CHECK_OK(acldvppDestroyPicDesc(desc)); /* before the task may have run: it holds its own */
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_OK(acldvppFree(memory));
    CHECK_OK(acldvppFree(bytes));
    free(jpeg);
    end();
}

/*
 * A picture whose size the program has set may be used, and asked for, while it is being decoded; and several streams may draw into one
 * picture. (What the thread sanitizer makes of it is the point.)
 */
TEST(descriptions_are_used_while_work_is_queued) {
    begin();
    size_t n;
    uint8_t *jpeg = make_jpeg(64, 64, &(make_jpeg_options){.across = 2, .down = 2}, &n);
    void *bytes = on_device(jpeg, n);
    acldvppPicDesc *photo = new_desc(PIXEL_FORMAT_YUV_SEMIPLANAR_420, 64, 64, 128, 64, 128 * 64 * 3 / 2),
                   *out = new_desc(PIXEL_FORMAT_YUV_SEMIPLANAR_420, 64, 64, 64, 64, 64 * 64 * 3 / 2);
    acldvppRoiConfig *all = acldvppCreateRoiConfig(0, 63, 0, 63), *left = acldvppCreateRoiConfig(0, 31, 0, 63),
                     *right = acldvppCreateRoiConfig(32, 63, 0, 63);
    aclrtStream other;
    aclrtEvent decoded;
    CHECK_OK(aclrtCreateStream(&other));
    CHECK_OK(aclrtCreateEvent(&decoded));
    CHECK_OK(acldvppJpegDecodeAsync(channel, bytes, (uint32_t)n, photo, stream));
    CHECK_OK(aclrtRecordEvent(decoded, stream));
    CHECK_OK(aclrtStreamWaitEvent(other, decoded));
    CHECK_OK(acldvppVpcCropAndPasteAsync(channel, photo, out, all, left, stream));
    CHECK_OK(acldvppVpcCropAndPasteAsync(channel, photo, out, all, right, other));
    CHECK(acldvppGetPicDescRetCode(photo) == 0 && acldvppGetPicDescWidth(photo) == 64);
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_OK(aclrtSynchronizeStream(other));
    CHECK(acldvppGetPicDescRetCode(out) == 0 && near(mean_luma(photo, 0, 0, 64, 64), mean_luma(out, 0, 0, 32, 64)) &&
          near(mean_luma(photo, 0, 0, 64, 64), mean_luma(out, 32, 0, 32, 64)));
    CHECK_OK(aclrtDestroyEvent(decoded));
    CHECK_OK(aclrtDestroyStream(other));
    CHECK_OK(acldvppDestroyRoiConfig(all));
    CHECK_OK(acldvppDestroyRoiConfig(left));
    CHECK_OK(acldvppDestroyRoiConfig(right));
    free_desc(photo);
    free_desc(out);
    CHECK_OK(acldvppFree(bytes));
    free(jpeg);
    end();
}

TEST(channels) {
    begin();
    acldvppPicDesc *photo = decoded(64, 64), *out = new_desc(PIXEL_FORMAT_YUV_SEMIPLANAR_420, 32, 32, 32, 32, 32 * 48);
    acldvppResizeConfig *config = acldvppCreateResizeConfig();
    acldvppChannelDesc *other = acldvppCreateChannelDesc();
    CHECK(acldvppVpcResizeAsync(other, photo, out, config, stream) == ACL_ERROR_INVALID_PARAM &&
          said("acldvppCreateChannel"));
    CHECK(acldvppDestroyChannel(other) == ACL_ERROR_INVALID_PARAM);
    CHECK_OK(acldvppSetChannelDescMode(other, DVPP_CHNMODE_JPEGD));
    CHECK_OK(acldvppCreateChannel(other));
    CHECK(acldvppCreateChannel(other) == ACL_ERROR_INVALID_PARAM &&
          acldvppDestroyChannelDesc(other) == ACL_ERROR_INVALID_PARAM);
    CHECK(acldvppVpcResizeAsync(other, photo, out, config, stream) == ACL_ERROR_INVALID_PARAM &&
          said("DVPP_CHNMODE_JPEGD"));
    uint32_t matrix = ACL_DVPP_CSC_MATRIX_BT709_NARROW, got = 0;
    uint64_t id = 0;
    size_t bytes = 0;
    CHECK_OK(acldvppSetChannelDescParam(other, ACL_DVPP_CSC_MATRIX_UINT32, 4, &matrix));
    CHECK_OK(acldvppGetChannelDescParam(other, ACL_DVPP_CSC_MATRIX_UINT32, 4, &bytes, &got));
    CHECK(got == matrix && bytes == 4);
    CHECK_OK(acldvppGetChannelDescParam(other, ACL_DVPP_CHANNEL_ID_UINT64, 8, &bytes, &id));
    CHECK(bytes == 8 && id == acldvppGetChannelDescChannelId(other));
    matrix = 6;
    CHECK(acldvppSetChannelDescParam(other, ACL_DVPP_CSC_MATRIX_UINT32, 4, &matrix) && said("at most 5"));
    CHECK_OK(acldvppDestroyChannel(other));
    CHECK_OK(acldvppDestroyChannelDesc(other));
    CHECK(acldvppVpcResizeAsync(other, photo, out, config, stream) == ACL_ERROR_INVALID_PARAM && said("channelDesc"));
    CHECK(acldvppVpcResizeAsync(channel, photo, photo, config, stream) == ACL_ERROR_INVALID_PARAM && said("overlaps"));
    CHECK_OK(acldvppSetPicDescWidthStride(out, 40));
    CHECK(acldvppVpcResizeAsync(channel, photo, out, config, stream) == ACL_ERROR_INVALID_PARAM &&
          said("multiple of 16"));
    CHECK_OK(acldvppSetPicDescWidthStride(out, 32));
    CHECK_OK(acldvppSetPicDescFormat(out, PIXEL_FORMAT_RGB_565));
    CHECK(acldvppVpcResizeAsync(channel, photo, out, config, stream) == ACL_ERROR_API_NOT_SUPPORT &&
          said("pixel format is 31"));
    CHECK(aclvdecCreateChannelDesc() == NULL && said("no video"));
    CHECK_OK(acldvppDestroyResizeConfig(config));
    free_desc(out);
    free_desc(photo);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_resize_convert_encode),
        cmocka_unit_test(crop_and_paste),
        cmocka_unit_test(batches),
        cmocka_unit_test(png),
        cmocka_unit_test(damaged_files_fail_the_stream),
        cmocka_unit_test(descriptions_are_used_while_work_is_queued),
        cmocka_unit_test(channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
