/*
 * onednn.h - the other side of the convolution benchmarks: oneDNN's convolution as a primitive with memory of its own. Values do
 * not matter for the time. CONV_BENCH_NAMES in the environment prints the implementation it chose.
 */
#ifndef DOPPEL_BENCH_ONEDNN_H
#define DOPPEL_BENCH_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct theirs_shape {
    int in, out, groups, height, width, out_height, out_width, kernel, stride; /* padded by kernel / 2 */
} theirs_shape;

typedef struct theirs {
    dnnl_stream_t stream;
    dnnl_primitive_t conv;
    dnnl_exec_arg_t args[3];
} theirs;

static void want(dnnl_status_t status) {
    if (status != dnnl_success) {
        fprintf(stderr, "oneDNN: status %d\n", (int)status);
        exit(1);
    }
}

static dnnl_memory_t memory_of(dnnl_engine_t engine, const_dnnl_primitive_desc_t desc, dnnl_query_t what) {
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(desc, what, 0);
    dnnl_memory_t memory;
    want(dnnl_memory_create(&memory, md, engine, DNNL_MEMORY_ALLOCATE));
    void *data;
    want(dnnl_memory_get_data_handle(memory, &data));
    memset(data, 0, dnnl_memory_desc_get_size(md));
    return memory;
}

/* blocked: in the formats that oneDNN likes best; else NCHW. */
static theirs make_theirs(dnnl_engine_t engine, const theirs_shape *l, bool blocked, bool relu) {
    theirs t;
    dnnl_dims_t x = {1, l->in, l->height, l->width}, y = {1, l->out, l->out_height, l->out_width};
    dnnl_dims_t w = {l->out, l->in, l->kernel, l->kernel},
                wg = {l->groups, l->out / l->groups, l->in / l->groups, l->kernel, l->kernel};
    dnnl_dims_t stride = {l->stride, l->stride}, pad = {l->kernel / 2, l->kernel / 2}, none = {0, 0};
    dnnl_memory_desc_t xd, wd, yd;
    dnnl_format_tag_t image = blocked ? dnnl_format_tag_any : dnnl_nchw;
    want(dnnl_memory_desc_init_by_tag(&xd, 4, x, dnnl_f32, image));
    want(dnnl_memory_desc_init_by_tag(&yd, 4, y, dnnl_f32, image));
    want(l->groups > 1 ? dnnl_memory_desc_init_by_tag(&wd, 5, wg, dnnl_f32, blocked ? dnnl_format_tag_any : dnnl_goihw)
                       : dnnl_memory_desc_init_by_tag(&wd, 4, w, dnnl_f32, blocked ? dnnl_format_tag_any : dnnl_oihw));
    dnnl_convolution_desc_t cd;
    want(dnnl_dilated_convolution_forward_desc_init(&cd, dnnl_forward_inference, dnnl_convolution_auto, &xd, &wd, NULL,
                                                    &yd, stride, none, pad, pad));
    dnnl_post_ops_t ops;
    dnnl_primitive_attr_t attr;
    want(dnnl_post_ops_create(&ops));
    if (relu)
        want(dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f));
    want(dnnl_primitive_attr_create(&attr));
    want(dnnl_primitive_attr_set_post_ops(attr, ops));
    dnnl_primitive_desc_t pd;
    want(dnnl_primitive_desc_create(&pd, &cd, attr, engine, NULL));
    want(dnnl_primitive_create(&t.conv, pd));
    want(dnnl_stream_create(&t.stream, engine, dnnl_stream_default_flags));
    t.args[0] = (dnnl_exec_arg_t){DNNL_ARG_SRC, memory_of(engine, pd, dnnl_query_src_md)};
    t.args[1] = (dnnl_exec_arg_t){DNNL_ARG_WEIGHTS, memory_of(engine, pd, dnnl_query_weights_md)};
    t.args[2] = (dnnl_exec_arg_t){DNNL_ARG_DST, memory_of(engine, pd, dnnl_query_dst_md)};
    if (getenv("CONV_BENCH_NAMES")) {
        const char *name;
        want(dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name));
        printf("  %s\n", name);
    }
    want(dnnl_primitive_desc_destroy(pd));
    want(dnnl_primitive_attr_destroy(attr));
    want(dnnl_post_ops_destroy(ops));
    return t;
}

static void run_theirs(theirs *t) {
    want(dnnl_primitive_execute(t->conv, t->stream, 3, t->args));
    want(dnnl_stream_wait(t->stream));
}

static void free_theirs(theirs *t) {
    for (int i = 0; i < 3; i++)
        want(dnnl_memory_destroy(t->args[i].memory));
    want(dnnl_primitive_destroy(t->conv));
    want(dnnl_stream_destroy(t->stream));
}

#endif
