/* device.h - the device, and pictures on it: decoding, scaling, colours and encoding by DVPP. */
#ifndef DETECT_DEVICE_H
#define DETECT_DEVICE_H

#define ENABLE_DVPP_INTERFACE
#include "acl/acl.h"
#include "acl/ops/acl_dvpp.h"
#include "reading.h"

/* Prints what failed, and why, and returns false from the function. */
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != ACL_SUCCESS) {                                                                                   \
            fprintf(stderr, "%s: %s\n", #call, aclGetRecentErrMsg());                                                  \
            return false;                                                                                              \
        }                                                                                                              \
    } while (0)

typedef struct Device {
    bool started;
    aclrtContext context;
    aclrtStream stream;
    acldvppChannelDesc *channel;
} Device;

/* A picture in device memory: YUV 4:2:0 with interleaved chroma (NV12), or packed RGB. */
typedef struct Image {
    acldvppPicDesc *desc;
    void *data;
    int width, height;
} Image;

bool DeviceOpen(Device *device);
void DeviceClose(Device *device);

/* All of these are finished when they return; images are the caller's, also those of a call that failed. */

/* From a JPEG or PNG file to NV12. */
bool ImageDecode(Device *device, const char *path, Image *out);
/*
 * The picture as large as it fits into width x height (both even) with its proportions kept, at the upper left of a
 * black picture of that size. *fitWidth x *fitHeight: the part that it takes.
 */
bool ImageFit(Device *device, const Image *from, int width, int height, Image *out, int *fitWidth, int *fitHeight);
/* To RGB in host memory, and from it to NV12. */
bool ImageToPicture(Device *device, const Image *from, Picture *out);
bool ImageFromPicture(Device *device, const Picture *from, Image *out);
/* NV12 to a JPEG file. */
bool ImageEncode(Device *device, const Image *from, const char *path);
void ImageFree(Image *image);

#endif
