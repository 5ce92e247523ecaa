/*
 * input.h - what goes into a model: the options --input, --layout, --colour, --mean, --scale and --resize.
 */
#ifndef DOPPEL_TOOLS_INPUT_H
#define DOPPEL_TOOLS_INPUT_H

#include "model.h"
#include "raster.h"

typedef enum input_layout { LAYOUT_GUESS, LAYOUT_NCHW, LAYOUT_NHWC } input_layout;

typedef struct input_options {
    const char *sources[MODEL_ENDS]; /* as they were written: NAME=FILE, or FILE */
    int n_sources;
    input_layout layout;
    bool is_bgr, has_scale;
    double mean[3], scale[3];
    raster_fit fit;
} input_options;

/* The lines of a help text about these options. */
extern const char input_usage[];

/*
 * Takes one of these options at argv[*at], moving *at to its value. 1: taken, 0: none of them, -1: wrong, said on
 * stderr under the name `command`.
 */
int input_option(const char *command, int argc, char **argv, int *at, input_options *options);

/*
 * Fills the host sides of the model's inputs. Inputs that no source names get random numbers in [0, 1) when `random` is
 * set (the same in every run), else that is an error. False, said on stderr.
 */
bool input_fill(model *m, const input_options *options, bool random);

#endif
