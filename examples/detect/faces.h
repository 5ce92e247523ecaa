/* faces.h - what BlazeFace's numbers mean: boxes and six points of faces. */
#ifndef DETECT_FACES_H
#define DETECT_FACES_H

enum { FACE_POINTS = 6, FACES_MOST = 64, FACE_ANCHORS = 896 };

/* In parts of the network's input, 0 to 1: the box, and right eye, left eye, nose, mouth, right ear, left ear. */
typedef struct Face {
    float score;
    float left, top, right, bottom;
    float x[FACE_POINTS], y[FACE_POINTS];
} Face;

/*
 * The network gives scores (before the sigmoid) and boxes for 16 x 16 places with two anchors each, and for 8 x 8
 * places with six: near 512, then far 384; a box has 16 numbers, in pixels of its input of `side` x `side`. Overlapping
 * boxes are averaged, weighted by their scores. Faces come best first. Returns how many there are, at most FACES_MOST.
 */
int FacesFind(const float *nearScores, const float *nearBoxes, const float *farScores, const float *farBoxes, int side,
              float threshold, Face *faces);

#endif
