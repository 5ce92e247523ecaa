#include "graph/onnx/depth.h"

#include <stdint.h>

typedef struct span {
    const uint8_t *at, *end;
} span;

static bool read_varint(span *s, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        uint8_t byte = *s->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* The next field with `number` that holds a message; other fields are passed over. */
static bool next_message(span *s, uint64_t number, span *out) {
    uint64_t key, value;
    while (read_varint(s, &key)) {
        size_t bytes = 0;
        switch (key & 7) {
        case 0:
            if (!read_varint(s, &value))
                return false;
            break;
        case 1:
            bytes = 8;
            break;
        case 2:
            if (!read_varint(s, &value) || value > (size_t)(s->end - s->at))
                return false;
            bytes = value;
            break;
        case 5:
            bytes = 4;
            break;
        default:
            return false;
        }
        if (bytes > (size_t)(s->end - s->at))
            return false;
        span inside = {s->at, s->at + bytes};
        s->at += bytes;
        if (key == (number << 3 | 2)) {
            *out = inside;
            return true;
        }
    }
    return false;
}

/* Field numbers: ModelProto.graph 7, GraphProto.node 1, NodeProto.attribute 5, AttributeProto.g 6. */
static bool graph_is_fine(span graph, int depth) {
    span node, attribute, inside;
    if (depth > DP_ONNX_DEPTH_MAX)
        return false;
    while (next_message(&graph, 1, &node))
        while (next_message(&node, 5, &attribute))
            while (next_message(&attribute, 6, &inside))
                if (!graph_is_fine(inside, depth + 1))
                    return false;
    return true;
}

bool dp_onnx_depth_is_fine(const void *bytes, size_t size_bytes) {
    span model = {bytes, (const uint8_t *)bytes + size_bytes}, graph;
    while (next_message(&model, 7, &graph))
        if (!graph_is_fine(graph, 1))
            return false;
    return true;
}
