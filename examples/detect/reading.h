/* reading.h - pieces of a photograph as input of a text recogniser, and its output as text. */
#ifndef DETECT_READING_H
#define DETECT_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lines.h"

/* height x width x 3 bytes, R G B; owned. */
typedef struct Picture {
    int width, height;
    uint8_t *pixels;
} Picture;

/* How wide a line is for its height, as it is cut out; lines that stand upright are laid on their side first. */
float LineProportion(const Line *line);

/*
 * Cuts the box out and straightens it: 3 x height x width numbers from -1 to 1, blue, green, red as PaddleOCR's
 * networks want them. Text takes `used` of the columns, the others are 0. upsideDown: turned by half a turn.
 */
void LineCut(const Picture *picture, const Line *line, bool upsideDown, int height, int width, int used, float *out);

/* The characters of a recogniser: its class 0 is nothing, class i line i of a file, the last one a blank. */
typedef struct Alphabet {
    char *text; /* of the file */
    const char **characters;
    int count;
} Alphabet;
bool AlphabetRead(const char *path, Alphabet *alphabet); /* false after printing why */
void AlphabetFree(Alphabet *alphabet);

/*
 * CTC: of `steps` rows of `classes` probabilities the best class each, repeated ones once, without nothing. Returns the
 * mean probability of what was taken, 0 when there is no text.
 */
float TextDecode(const Alphabet *alphabet, const float *rows, int steps, int classes, char *text, size_t textBytes);

#endif
