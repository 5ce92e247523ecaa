/* net.h - a compiled network with its buffers. */
#ifndef DETECT_NET_H
#define DETECT_NET_H

#include "acl/acl.h"
#include "acl/acl_mdl.h"

#include <stdbool.h>

enum { NET_OUTPUTS = 8 };

typedef struct Net {
    const char *name;
    uint32_t id;
    bool loaded;
    aclmdlDesc *desc;
    aclmdlDataset *inputs, *outputs;
    aclmdlIODims dims; /* of the input */
    aclDataType type;
    void *input; /* device memory */
    size_t inputBytes;
    int outputCount, runs;
    struct {
        void *device;
        float *host; /* the result of the last run */
        size_t bytes;
        aclmdlIODims dims;
    } output[NET_OUTPUTS];
} Net;

/* FOLDER/NAME.om, with one input; outputs are float32. */
bool NetLoad(const char *folder, const char *name, Net *net);
void NetFree(Net *net);
/* input: inputBytes in host memory, or, of a network with AIPP, a picture in device memory. */
bool NetRun(Net *net, const void *input);

/*
 * What goes into networks and comes out of them is written to files of a folder (NAME.RUN.in.bin, NAME.RUN.out0.bin),
 * or, with `replay`, outputs are read from there instead of being computed: to set another runtime's results beside
 * ours.
 */
void NetKeep(const char *folder, bool replay);

#endif
