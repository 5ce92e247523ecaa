#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUALITY = 92 };

bool DeviceOpen(Device *d) {
    memset(d, 0, sizeof *d);
    CHECK(aclInit(NULL));
    d->started = true;
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateContext(&d->context, 0));
    CHECK(aclrtCreateStream(&d->stream));
    d->channel = acldvppCreateChannelDesc();
    CHECK(acldvppCreateChannel(d->channel));
    return true;
}

void DeviceClose(Device *d) {
    if (d->channel) {
        acldvppDestroyChannel(d->channel);
        acldvppDestroyChannelDesc(d->channel);
    }
    if (d->stream)
        aclrtDestroyStream(d->stream);
    if (d->context)
        aclrtDestroyContext(d->context);
    if (d->started) {
        aclrtResetDevice(0);
        aclFinalize();
    }
}

static int RoundUp(int value, int to) {
    return (value + to - 1) / to * to;
}

static bool IsRgb(acldvppPixelFormat format) {
    return format == PIXEL_FORMAT_RGB_888;
}

/* Memory and description of a picture; rows are widthStride pixels apart, planes heightStride rows. */
static bool Make(Image *image, acldvppPixelFormat format, int width, int height, int widthStride, int heightStride) {
    int rowBytes = IsRgb(format) ? 3 * widthStride : widthStride;
    size_t bytes = (size_t)rowBytes * (size_t)heightStride * (IsRgb(format) ? 2 : 3) / 2;
    image->width = width;
    image->height = height;
    CHECK(acldvppMalloc(&image->data, bytes));
    image->desc = acldvppCreatePicDesc();
    acldvppSetPicDescData(image->desc, image->data);
    acldvppSetPicDescFormat(image->desc, format);
    acldvppSetPicDescWidth(image->desc, (uint32_t)width);
    acldvppSetPicDescHeight(image->desc, (uint32_t)height);
    acldvppSetPicDescWidthStride(image->desc, (uint32_t)rowBytes);
    acldvppSetPicDescHeightStride(image->desc, (uint32_t)heightStride);
    acldvppSetPicDescSize(image->desc, (uint32_t)bytes);
    return true;
}

void ImageFree(Image *image) {
    if (image->desc)
        acldvppDestroyPicDesc(image->desc);
    if (image->data)
        acldvppFree(image->data);
    memset(image, 0, sizeof *image);
}

static bool ReadFile(const char *path, void **host, uint32_t *bytes) {
    errno = 0;
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    bool good = size > 0 && size < INT32_MAX && fseek(file, 0, SEEK_SET) == 0 && (*host = malloc((size_t)size)) &&
                fread(*host, 1, (size_t)size, file) == (size_t)size;
    if (!good)
        fprintf(stderr, "%s: %s\n", path, errno ? strerror(errno) : "it is empty, or not a file");
    if (file)
        fclose(file);
    *bytes = (uint32_t)size;
    return good;
}

/* JPEG: strides of the decoder are multiples of 128 and 16. */
static bool DecodeJpeg(Device *d, const void *host, const void *data, uint32_t bytes, Image *out) {
    uint32_t width, height;
    int32_t components;
    CHECK(acldvppJpegGetImageInfo(host, bytes, &width, &height, &components));
    if (!Make(out, PIXEL_FORMAT_YUV_SEMIPLANAR_420, (int)width, (int)height, RoundUp((int)width, 128),
              RoundUp((int)height, 16)))
        return false;
    CHECK(acldvppJpegDecodeAsync(d->channel, data, bytes, out->desc, d->stream));
    CHECK(aclrtSynchronizeStream(d->stream));
    return true;
}

/* PNG: to RGB, then to NV12. */
static bool DecodePng(Device *d, const void *host, const void *data, uint32_t bytes, Image *out) {
    uint32_t width, height;
    int32_t components;
    Image rgb = {0};
    CHECK(acldvppPngGetImageInfo(host, bytes, &width, &height, &components));
    int w = (int)width, h = (int)height;
    bool good = Make(&rgb, PIXEL_FORMAT_RGB_888, w, h, RoundUp(w, 128), RoundUp(h, 16)) &&
                acldvppPngDecodeAsync(d->channel, data, bytes, rgb.desc, d->stream) == ACL_SUCCESS &&
                Make(out, PIXEL_FORMAT_YUV_SEMIPLANAR_420, w, h, RoundUp(w, 16), RoundUp(h, 2)) &&
                acldvppVpcConvertColorAsync(d->channel, rgb.desc, out->desc, d->stream) == ACL_SUCCESS &&
                aclrtSynchronizeStream(d->stream) == ACL_SUCCESS;
    if (!good)
        fprintf(stderr, "PNG: %s\n", aclGetRecentErrMsg());
    ImageFree(&rgb);
    return good;
}

bool ImageDecode(Device *d, const char *path, Image *out) {
    void *host = NULL, *data = NULL;
    uint32_t bytes;
    memset(out, 0, sizeof *out);
    bool good = ReadFile(path, &host, &bytes);
    if (good)
        good = acldvppMalloc(&data, bytes) == ACL_SUCCESS &&
               aclrtMemcpy(data, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS;
    if (good) {
        bool isPng = bytes > 4 && memcmp(host, "\x89PNG", 4) == 0;
        good = isPng ? DecodePng(d, host, data, bytes, out) : DecodeJpeg(d, host, data, bytes, out);
    }
    if (data)
        acldvppFree(data);
    free(host);
    return good;
}

/* Luma 0, chroma in the middle. */
static bool Blacken(const Image *image) {
    size_t luma = (size_t)acldvppGetPicDescWidthStride(image->desc) * acldvppGetPicDescHeightStride(image->desc);
    CHECK(aclrtMemset(image->data, luma, 0, luma));
    CHECK(aclrtMemset((char *)image->data + luma, luma / 2, 128, luma / 2));
    return true;
}

/* The area [0, width) x [0, height): DVPP names the last column and row, which are odd. */
static acldvppRoiConfig *Area(int width, int height) {
    return acldvppCreateRoiConfig(0, (uint32_t)width - 1, 0, (uint32_t)height - 1);
}

static int Even(double size, int most) {
    int even = (int)(size / 2 + 0.5) * 2;
    return even < 2 ? 2 : even > most ? most : even;
}

bool ImageFit(Device *d, const Image *from, int width, int height, Image *out, int *fitWidth, int *fitHeight) {
    double byWidth = (double)width / from->width, byHeight = (double)height / from->height;
    double by = byWidth < byHeight ? byWidth : byHeight;
    memset(out, 0, sizeof *out);
    *fitWidth = Even(from->width * by, width);
    *fitHeight = Even(from->height * by, height);
    if (!Make(out, PIXEL_FORMAT_YUV_SEMIPLANAR_420, width, height, RoundUp(width, 16), RoundUp(height, 2)) ||
        !Blacken(out))
        return false;
    acldvppRoiConfig *crop = Area(from->width & ~1, from->height & ~1), *paste = Area(*fitWidth, *fitHeight);
    aclError code = acldvppVpcCropAndPasteAsync(d->channel, from->desc, out->desc, crop, paste, d->stream);
    acldvppDestroyRoiConfig(crop);
    acldvppDestroyRoiConfig(paste);
    CHECK(code);
    CHECK(aclrtSynchronizeStream(d->stream));
    return true;
}

bool ImageToPicture(Device *d, const Image *from, Picture *out) {
    Image rgb = {0};
    size_t row = 3 * (size_t)from->width, stride = 3 * (size_t)RoundUp(from->width, 16);
    *out = (Picture){from->width, from->height, malloc(row * (size_t)from->height)};
    bool good = out->pixels &&
                Make(&rgb, PIXEL_FORMAT_RGB_888, from->width, from->height, RoundUp(from->width, 16),
                     RoundUp(from->height, 2)) &&
                acldvppVpcConvertColorAsync(d->channel, from->desc, rgb.desc, d->stream) == ACL_SUCCESS &&
                aclrtSynchronizeStream(d->stream) == ACL_SUCCESS &&
                aclrtMemcpy2d(out->pixels, row, rgb.data, stride, row, (size_t)from->height,
                              ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS;
    if (!good)
        fprintf(stderr, "to RGB: %s\n", aclGetRecentErrMsg());
    ImageFree(&rgb);
    return good;
}

bool ImageFromPicture(Device *d, const Picture *from, Image *out) {
    Image rgb = {0};
    int w = from->width, h = from->height;
    size_t row = 3 * (size_t)w, stride = 3 * (size_t)RoundUp(w, 16);
    memset(out, 0, sizeof *out);
    bool good =
        Make(&rgb, PIXEL_FORMAT_RGB_888, w, h, RoundUp(w, 16), RoundUp(h, 2)) &&
        aclrtMemcpy2d(rgb.data, stride, from->pixels, row, row, (size_t)h, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS &&
        Make(out, PIXEL_FORMAT_YUV_SEMIPLANAR_420, w, h, RoundUp(w, 16), RoundUp(h, 2)) &&
        acldvppVpcConvertColorAsync(d->channel, rgb.desc, out->desc, d->stream) == ACL_SUCCESS &&
        aclrtSynchronizeStream(d->stream) == ACL_SUCCESS;
    if (!good)
        fprintf(stderr, "from RGB: %s\n", aclGetRecentErrMsg());
    ImageFree(&rgb);
    return good;
}

static bool WriteFile(const char *path, const void *host, size_t bytes) {
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(host, 1, bytes, file) == bytes;
    if ((file && fclose(file) != 0) || !good) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    return true;
}

bool ImageEncode(Device *d, const Image *from, const char *path) {
    uint32_t bytes = 0;
    void *data = NULL, *host = NULL;
    acldvppJpegeConfig *config = acldvppCreateJpegeConfig();
    acldvppSetJpegeConfigLevel(config, QUALITY);
    bool good = acldvppJpegPredictEncSize(from->desc, config, &bytes) == ACL_SUCCESS &&
                acldvppMalloc(&data, bytes) == ACL_SUCCESS &&
                acldvppJpegEncodeAsync(d->channel, from->desc, data, &bytes, config, d->stream) == ACL_SUCCESS &&
                aclrtSynchronizeStream(d->stream) == ACL_SUCCESS && (host = malloc(bytes)) &&
                aclrtMemcpy(host, bytes, data, bytes, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS;
    if (good)
        good = WriteFile(path, host, bytes);
    else
        fprintf(stderr, "%s: %s\n", path, aclGetRecentErrMsg());
    acldvppDestroyJpegeConfig(config);
    if (data)
        acldvppFree(data);
    free(host);
    return good;
}
