/* drawing.h - boxes, points and words on a picture (cairo). */
#ifndef DETECT_DRAWING_H
#define DETECT_DRAWING_H

#include "reading.h"

typedef struct Drawing Drawing;

/* A copy of the picture to draw on; NULL: no memory. */
Drawing *DrawingOpen(const Picture *picture);
/* A closed line around four corners; words on a dark strip above the first one, or `beside` the second one where there
 * is room. */
void DrawingBox(Drawing *drawing, const float *x, const float *y, const char *words, bool beside);
void DrawingPoint(Drawing *drawing, float x, float y);
/* Writes it back into the picture it came from, and frees it. */
void DrawingClose(Drawing *drawing, Picture *picture);

#endif
