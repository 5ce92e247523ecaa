/* lines.h - from the map of a text detector (DB) to the boxes of lines of text. */
#ifndef DETECT_LINES_H
#define DETECT_LINES_H

enum { LINES_MOST = 256 };

/* A box that may be turned: corners top left, top right, bottom right, bottom left, as the text is read. */
typedef struct Line {
    float x[4], y[4];
    float score; /* mean of the map inside */
} Line;

/*
 * map: the probability that a pixel is text, height rows of `pitch` numbers, of which `width` count. Pixels above 0.3
 * are text; what hangs together is a line; its smallest box, if its mean is at least 0.6, is grown to the line's full
 * height. Boxes are in pixels of the map, in the order in which they are read. Returns how many there are, at most
 * LINES_MOST; -1: no memory.
 */
int LinesFind(const float *map, int width, int height, int pitch, Line *lines);

#endif
