/*
 * model.h - a compiled model as `doppel run`, `bench`, `profile` and `compare` use it: loaded, described, with buffers.
 */
#ifndef DOPPEL_TOOLS_MODEL_H
#define DOPPEL_TOOLS_MODEL_H

#include <stdbool.h>

#include "acl/acl.h"
#include "acl/acl_mdl.h"

enum { MODEL_ENDS = 64 }; /* inputs or outputs */

/* What is the user's to choose about a model. */
typedef struct model_choice {
    int workers;                    /* 0: one per processor */
    const char *shapes[MODEL_ENDS]; /* "NAME:1,3,640,640" of inputs with open dimensions */
    int n_shapes;
} model_choice;

/* One input or output; sizes of outputs with open dimensions are known after a run. */
typedef struct model_end {
    const char *name;
    aclDataType type;
    int rank;
    const int64_t *dims;
    size_t bytes, count;
    bool has_aipp; /* static: the input is a picture of this format and size */
    aclAippInputFormat aipp;
    int aipp_width, aipp_height;
    bool is_open; /* an output whose size a run finds: its memory is the library's until then */
    void *device;
    void *host; /* as many bytes; inputs: what goes in; outputs: what came out of the last model_run */
    aclmdlIODims shape;
} model_end;

typedef struct model {
    const char *command; /* for messages */
    bool started;        /* the runtime is */
    bool loaded;
    bool has_gears; /* compiled for a list of sizes; one is chosen */
    uint32_t id;
    double load_ms;
    aclmdlDesc *desc;
    aclmdlDataset *in, *out;
    int n_inputs, n_outputs;
    model_end inputs[MODEL_ENDS], outputs[MODEL_ENDS];
} model;

/* Starts the runtime, loads the model and makes its buffers. False, said on stderr under the name `command`. */
bool model_open(const char *command, const char *path, const model_choice *choice, model *out);
void model_close(model *m); /* also what a failed model_open left */

/* Copies the inputs to the device, without outputs back: bench runs model_execute again and again. */
bool model_fill(model *m);
bool model_execute(model *m);
/* fill, execute, and the outputs back. */
bool model_run(model *m);

/* argv[*at] is --threads or --shape: takes it with its value into *choice. 1: taken, 0: none of them, -1: wrong, said
 * on stderr. */
int model_option(const char *command, int argc, char **argv, int *at, model_choice *choice);
/* The lines of a help text about these options. */
extern const char model_usage[];

/* "float32", or "type 27"; NumPy's spelling ("<f4"), NULL for types that it does not have. */
const char *model_type_name(aclDataType type);
const char *model_type_descr(aclDataType type);
/* "1x3x224x224", "scalar". Returns text. */
const char *model_shape_text(const int64_t *dims, int rank, char *text, size_t text_bytes);
/* Element i of an array as a number; the real part of complex ones. */
double model_number(aclDataType type, const void *data, size_t i);
/* Sets it, rounding to nearest; false when the type cannot hold the number (integers). */
bool model_set_number(aclDataType type, void *data, size_t i, double value);

double model_clock_ms(void);

#endif
