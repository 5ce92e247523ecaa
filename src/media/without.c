/* What stands for the libraries that were not found when Doppel was built. */
#include "media/file.h"

#define WITHOUT(library, package)                                                                                      \
    dp_fail(DP_ERR_UNSUPPORTED,                                                                                        \
            "this Doppel was built without " library " (" package "), so that it knows no such files")

#ifndef DP_HAVE_JPEG
dp_status dp_jpeg_info(const void *bytes, size_t size_bytes, const char *argument, dp_file_info *out_info) {
    (void)bytes, (void)size_bytes, (void)argument, (void)out_info;
    return WITHOUT("libjpeg", "libjpeg-dev");
}
dp_status dp_jpeg_decode(const void *bytes, size_t size_bytes, dp_jpeg_odd odd, dp_picture *picture) {
    (void)bytes, (void)size_bytes, (void)odd, (void)picture;
    return WITHOUT("libjpeg", "libjpeg-dev");
}
dp_status dp_jpeg_encode(const dp_picture *picture, int quality, void *out_bytes, size_t room_bytes,
                         size_t *out_size_bytes) {
    (void)picture, (void)quality, (void)out_bytes, (void)room_bytes, (void)out_size_bytes;
    return WITHOUT("libjpeg", "libjpeg-dev");
}
#endif

#ifndef DP_HAVE_PNG
dp_status dp_png_info(const void *bytes, size_t size_bytes, const char *argument, dp_file_info *out_info) {
    (void)bytes, (void)size_bytes, (void)argument, (void)out_info;
    return WITHOUT("libpng", "libpng-dev");
}
dp_status dp_png_decode(const void *bytes, size_t size_bytes, dp_picture *picture) {
    (void)bytes, (void)size_bytes, (void)picture;
    return WITHOUT("libpng", "libpng-dev");
}
#endif
