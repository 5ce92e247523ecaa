#include "reference.h"

#include <math.h>

/* Built with -ffp-contract=off: the kernels round after each multiplication, so must this. */

static float luminance(const uint8_t *planes, size_t plane_size, size_t at) {
    const float red = 0.299f * planes[at], green = 0.587f * planes[plane_size + at];
    const float blue = 0.114f * planes[2 * plane_size + at];
    return (red + green) + blue;
}

/* a + 2 b + c in the order of the kernel. */
static float weigh(float a, float b, float c) { return (b * 2.0f + a) + c; }

/* Magnitude to byte, through half as the kernel goes: values below 256 keep eleven significant bits. */
static uint8_t to_byte(float magnitude, float threshold) {
    if (!(magnitude >= threshold))
        return 0;
    float limited = magnitude < 255.0f ? magnitude : 255.0f;
    int exponent;
    frexpf(limited, &exponent);
    if (limited > 0.0f)
        limited = ldexpf(rintf(ldexpf(limited, 11 - exponent)), exponent - 11);
    return (uint8_t)rintf(limited);
}

size_t ReferenceCompare(const uint8_t *planes, const uint8_t *edges, uint32_t width, const EdgesTiling *tiling) {
    const size_t plane_size = (size_t)(tiling->rows + 2) * tiling->pitch;
    size_t wrong = 0;
    for (uint32_t y = 0; y < tiling->rows; y++) {
        for (uint32_t x = 0; x < width; x++) {
            float p[3][3];
            for (uint32_t dy = 0; dy < 3; dy++)
                for (uint32_t dx = 0; dx < 3; dx++)
                    p[dy][dx] = luminance(planes, plane_size, (size_t)(y + dy) * tiling->pitch + x + dx);
            const float gx = weigh(p[0][2], p[1][2], p[2][2]) - weigh(p[0][0], p[1][0], p[2][0]);
            const float gy = weigh(p[2][0], p[2][1], p[2][2]) - weigh(p[0][0], p[0][1], p[0][2]);
            const float magnitude = sqrtf(gx * gx + gy * gy);
            wrong += edges[(size_t)y * tiling->pitch + x] != to_byte(magnitude, tiling->threshold);
        }
    }
    return wrong;
}

size_t ReferenceCount(const uint8_t *edges, uint32_t width, const EdgesTiling *tiling) {
    size_t count = 0;
    for (uint32_t y = 0; y < tiling->rows; y++)
        for (uint32_t x = 0; x < width; x++)
            count += edges[(size_t)y * tiling->pitch + x] != 0;
    return count;
}
