#include "reading.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const float upright = 1.5f; /* so much higher than wide: the line stands */

static float Side(const Line *l, int a, int b) {
    return hypotf(l->x[a] - l->x[b], l->y[a] - l->y[b]);
}
static float WidthOf(const Line *l) {
    return fmaxf(Side(l, 0, 1), Side(l, 3, 2));
}
static float HeightOf(const Line *l) {
    return fmaxf(Side(l, 0, 3), Side(l, 1, 2));
}

/* Corners in the order in which the text runs: a standing line from its upper right corner, as if turned to the left.
 */
static Line Straight(const Line *l, bool upsideDown) {
    Line out = *l;
    int from = HeightOf(l) >= upright * WidthOf(l) ? 1 : 0;
    from += upsideDown ? 2 : 0;
    for (int i = 0; i < 4; i++) {
        out.x[i] = l->x[(i + from) % 4];
        out.y[i] = l->y[(i + from) % 4];
    }
    return out;
}

float LineProportion(const Line *line) {
    Line l = Straight(line, false);
    float height = HeightOf(&l);
    return height > 0 ? WidthOf(&l) / height : 1;
}

static float Clamp(float x, int most) {
    return x < 0 ? 0 : x > (float)most ? (float)most : x;
}

/* The colours at a place between pixels, added to sum. */
static void Sample(const Picture *p, float x, float y, float *sum) {
    x = Clamp(x, p->width - 1);
    y = Clamp(y, p->height - 1);
    int x0 = (int)x, y0 = (int)y, x1 = x0 + (x0 + 1 < p->width), y1 = y0 + (y0 + 1 < p->height);
    float u = x - (float)x0, v = y - (float)y0;
    for (int c = 0; c < 3; c++) {
        float a = p->pixels[3 * (y0 * p->width + x0) + c], b = p->pixels[3 * (y0 * p->width + x1) + c];
        float d = p->pixels[3 * (y1 * p->width + x0) + c], e = p->pixels[3 * (y1 * p->width + x1) + c];
        float top = a + u * (b - a), bottom = d + u * (e - d);
        sum[c] += top + v * (bottom - top);
    }
}

/* Boxes are rectangles, so three corners say all. Large text is averaged: n x n samples per pixel. */
void LineCut(const Picture *picture, const Line *line, bool upsideDown, int height, int width, int used, float *out) {
    Line l = Straight(line, upsideDown);
    int n = (int)ceilf(HeightOf(&l) / (float)height), plane = height * width;
    n = n < 1 ? 1 : n > 8 ? 8 : n;
    memset(out, 0, (size_t)(3 * plane) * sizeof *out);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < used; x++) {
            float sum[3] = {0};
            for (int k = 0; k < n * n; k++) {
                float u = ((float)x + ((float)(k % n) + 0.5f) / (float)n) / (float)used;
                float v = ((float)y + ((float)(k / n) + 0.5f) / (float)n) / (float)height;
                Sample(picture, l.x[0] + u * (l.x[1] - l.x[0]) + v * (l.x[3] - l.x[0]),
                       l.y[0] + u * (l.y[1] - l.y[0]) + v * (l.y[3] - l.y[0]), sum);
            }
            for (int c = 0; c < 3; c++)
                out[c * plane + y * width + x] = sum[2 - c] / (float)(n * n) / 127.5f - 1;
        }
}

bool AlphabetRead(const char *path, Alphabet *a) {
    memset(a, 0, sizeof *a);
    FILE *file = fopen(path, "rb");
    long bytes = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    a->text = bytes > 0 ? malloc((size_t)bytes + 1) : NULL;
    a->characters = bytes > 0 ? malloc(((size_t)bytes + 2) * sizeof *a->characters) : NULL;
    bool good = a->text && a->characters && fseek(file, 0, SEEK_SET) == 0 &&
                fread(a->text, 1, (size_t)bytes, file) == (size_t)bytes;
    if (good) {
        a->text[bytes] = '\0';
        a->characters[a->count++] = ""; /* nothing */
        for (char *at = a->text; *at; a->count++) {
            char *end = at + strcspn(at, "\r\n");
            a->characters[a->count] = at;
            at = end + strspn(end, "\r\n");
            *end = '\0';
        }
        a->characters[a->count++] = " ";
    } else {
        fprintf(stderr, "%s: cannot be read\n", path);
        AlphabetFree(a);
    }
    if (file)
        fclose(file);
    return good;
}

void AlphabetFree(Alphabet *a) {
    free(a->text);
    free(a->characters);
    memset(a, 0, sizeof *a);
}

float TextDecode(const Alphabet *a, const float *rows, int steps, int classes, char *text, size_t textBytes) {
    size_t used = 0;
    float sum = 0;
    int count = 0, before = 0;
    *text = '\0';
    for (int t = 0; t < steps; t++) {
        const float *row = rows + (size_t)t * (size_t)classes;
        int best = 0;
        for (int c = 1; c < classes; c++)
            if (row[c] > row[best])
                best = c;
        if (best && best != before && best < a->count && used + strlen(a->characters[best]) < textBytes) {
            used += (size_t)snprintf(text + used, textBytes - used, "%s", a->characters[best]);
            sum += row[best];
            count++;
        }
        before = best;
    }
    return count ? sum / (float)count : 0;
}
