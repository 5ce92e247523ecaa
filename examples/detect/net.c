#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

static const char *keepFolder;
static bool keepReplays;

void NetKeep(const char *folder, bool replay) {
    keepFolder = folder;
    keepReplays = replay;
}

static bool AddBuffer(aclmdlDataset *set, void **memory, size_t bytes) {
    CHECK(aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(*memory, bytes)));
    return true;
}

static bool MakeBuffers(Net *n) {
    n->outputCount = (int)aclmdlGetNumOutputs(n->desc);
    if (aclmdlGetNumInputs(n->desc) != 1 || n->outputCount > NET_OUTPUTS) {
        fprintf(stderr, "%s.om: one input and at most %d outputs are expected\n", n->name, NET_OUTPUTS);
        return false;
    }
    n->type = aclmdlGetInputDataType(n->desc, 0);
    n->inputs = aclmdlCreateDataset();
    n->outputs = aclmdlCreateDataset();
    n->inputBytes = aclmdlGetInputSizeByIndex(n->desc, 0);
    CHECK(aclmdlGetInputDims(n->desc, 0, &n->dims));
    if (!AddBuffer(n->inputs, &n->input, n->inputBytes))
        return false;
    for (int i = 0; i < n->outputCount; i++) {
        n->output[i].bytes = aclmdlGetOutputSizeByIndex(n->desc, (size_t)i);
        n->output[i].host = malloc(n->output[i].bytes);
        CHECK(aclmdlGetOutputDims(n->desc, (size_t)i, &n->output[i].dims));
        if (!n->output[i].host || !AddBuffer(n->outputs, &n->output[i].device, n->output[i].bytes))
            return false;
    }
    return true;
}

bool NetLoad(const char *folder, const char *name, Net *n) {
    char path[4096];
    memset(n, 0, sizeof *n);
    n->name = name;
    snprintf(path, sizeof path, "%s/%s.om", folder, name);
    CHECK(aclmdlLoadFromFile(path, &n->id));
    n->loaded = true;
    n->desc = aclmdlCreateDesc();
    CHECK(aclmdlGetDesc(n->desc, n->id));
    return MakeBuffers(n);
}

static void FreeSet(aclmdlDataset *set) {
    for (size_t i = 0; set && i < aclmdlGetDatasetNumBuffers(set); i++)
        aclDestroyDataBuffer(aclmdlGetDatasetBuffer(set, i));
    if (set)
        aclmdlDestroyDataset(set);
}

void NetFree(Net *n) {
    FreeSet(n->inputs);
    FreeSet(n->outputs);
    for (int i = 0; i < n->outputCount; i++) {
        if (n->output[i].device)
            aclrtFree(n->output[i].device);
        free(n->output[i].host);
    }
    if (n->input)
        aclrtFree(n->input);
    if (n->desc)
        aclmdlDestroyDesc(n->desc);
    if (n->loaded)
        aclmdlUnload(n->id);
    memset(n, 0, sizeof *n);
}

/* Reads or writes one file of the folder; true when there is none to keep. */
static bool Keep(const Net *n, const char *what, void *data, size_t bytes, bool read) {
    char path[4096];
    if (!keepFolder)
        return true;
    snprintf(path, sizeof path, "%s/%s.%d.%s.bin", keepFolder, n->name, n->runs, what);
    FILE *file = fopen(path, read ? "rb" : "wb");
    size_t done = !file ? 0 : read ? fread(data, 1, bytes, file) : fwrite(data, 1, bytes, file);
    if ((file && fclose(file) != 0) || done != bytes) {
        fprintf(stderr, "%s: cannot be %s\n", path, read ? "read" : "written");
        return false;
    }
    return true;
}

static bool Execute(Net *n, const void *input) {
    aclrtMemcpyKind kind = n->type == ACL_UINT8 ? ACL_MEMCPY_DEVICE_TO_DEVICE : ACL_MEMCPY_HOST_TO_DEVICE;
    CHECK(aclrtMemcpy(n->input, n->inputBytes, input, n->inputBytes, kind));
    CHECK(aclmdlExecute(n->id, n->inputs, n->outputs));
    for (int i = 0; i < n->outputCount; i++)
        CHECK(aclrtMemcpy(n->output[i].host, n->output[i].bytes, n->output[i].device, n->output[i].bytes,
                          ACL_MEMCPY_DEVICE_TO_HOST));
    return true;
}

static bool KeepInput(const Net *n) {
    void *host = keepFolder ? malloc(n->inputBytes) : NULL;
    bool good = !keepFolder || (host && aclrtMemcpy(host, n->inputBytes, n->input, n->inputBytes,
                                                    ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
    good = good && Keep(n, "in", host, n->inputBytes, false);
    free(host);
    return good;
}

bool NetRun(Net *n, const void *input) {
    bool replays = keepFolder && keepReplays, good = replays || (Execute(n, input) && KeepInput(n));
    for (int i = 0; i < n->outputCount && good; i++) {
        char what[16];
        snprintf(what, sizeof what, "out%d", i);
        good = Keep(n, what, n->output[i].host, n->output[i].bytes, replays);
    }
    n->runs++;
    return good;
}
