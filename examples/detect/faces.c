#include "faces.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static const float overlapMost = 0.3f; /* of two boxes: intersection over union */

static Face Decode(const float *box, float score, int anchor, int places, int each, int side) {
    int place = anchor / each;
    float x = ((float)(place % places) + 0.5f) / (float)places, y = ((float)(place / places) + 0.5f) / (float)places;
    float scale = 1 / (float)side, cx = box[0] * scale + x, cy = box[1] * scale + y;
    float w = box[2] * scale, h = box[3] * scale;
    Face face = {score, cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, {0}, {0}};
    for (int i = 0; i < FACE_POINTS; i++) {
        face.x[i] = box[4 + 2 * i] * scale + x;
        face.y[i] = box[5 + 2 * i] * scale + y;
    }
    return face;
}

static int Gather(const float *scores, const float *boxes, int places, int each, int side, float threshold, Face *out) {
    int n = 0;
    for (int i = 0; i < places * places * each; i++) {
        float score = 1 / (1 + expf(-scores[i]));
        if (score >= threshold)
            out[n++] = Decode(boxes + 16 * i, score, i, places, each, side);
    }
    return n;
}

static int BestFirst(const void *a, const void *b) {
    float x = ((const Face *)a)->score, y = ((const Face *)b)->score;
    return (x < y) - (x > y);
}

static float Overlap(const Face *a, const Face *b) {
    float w = fminf(a->right, b->right) - fmaxf(a->left, b->left);
    float h = fminf(a->bottom, b->bottom) - fmaxf(a->top, b->top);
    float both = w > 0 && h > 0 ? w * h : 0;
    float all = (a->right - a->left) * (a->bottom - a->top) + (b->right - b->left) * (b->bottom - b->top) - both;
    return all > 0 ? both / all : 0;
}

static void Add(float *to, float value, float weight) {
    *to += value * weight;
}

/* The mean of the best candidate and of those that overlap it, which are used up. */
static Face Merge(const Face *all, bool *used, int first, int n) {
    Face sum = {.score = all[first].score};
    float weights = 0;
    for (int i = first; i < n; i++) {
        if (used[i] || (i != first && Overlap(&all[first], &all[i]) <= overlapMost))
            continue;
        float w = all[i].score;
        used[i] = true;
        weights += w;
        Add(&sum.left, all[i].left, w);
        Add(&sum.top, all[i].top, w);
        Add(&sum.right, all[i].right, w);
        Add(&sum.bottom, all[i].bottom, w);
        for (int k = 0; k < FACE_POINTS; k++) {
            Add(&sum.x[k], all[i].x[k], w);
            Add(&sum.y[k], all[i].y[k], w);
        }
    }
    float *numbers[] = {&sum.left, &sum.top, &sum.right, &sum.bottom};
    for (int i = 0; i < 4; i++)
        *numbers[i] /= weights;
    for (int k = 0; k < FACE_POINTS; k++) {
        sum.x[k] /= weights;
        sum.y[k] /= weights;
    }
    return sum;
}

int FacesFind(const float *nearScores, const float *nearBoxes, const float *farScores, const float *farBoxes, int side,
              float threshold, Face *faces) {
    Face all[FACE_ANCHORS];
    bool used[FACE_ANCHORS] = {false};
    int found = 0, n = Gather(nearScores, nearBoxes, 16, 2, side, threshold, all);
    n += Gather(farScores, farBoxes, 8, 6, side, threshold, all + n);
    qsort(all, (size_t)n, sizeof all[0], BestFirst);
    for (int i = 0; i < n && found < FACES_MOST; i++)
        if (!used[i])
            faces[found++] = Merge(all, used, i, n);
    return found;
}
