/*
 * pipes.h - pipes and event ids by the kernel language's names, for C and C++. Values of pipes are those of dp_pipe.
 */
#ifndef DOPPEL_PIPES_H
#define DOPPEL_PIPES_H

#include "doppel/types.h"

typedef enum pipe_t {
    PIPE_S = DP_PIPE_S,
    PIPE_V = DP_PIPE_V,
    PIPE_M = DP_PIPE_M,
    PIPE_MTE1 = DP_PIPE_MTE1,
    PIPE_MTE2 = DP_PIPE_MTE2,
    PIPE_MTE3 = DP_PIPE_MTE3,
    PIPE_FIX = DP_PIPE_FIX,
    PIPE_ALL = DP_PIPE_ALL
} pipe_t;

typedef enum event_t {
    EVENT_ID0,
    EVENT_ID1,
    EVENT_ID2,
    EVENT_ID3,
    EVENT_ID4,
    EVENT_ID5,
    EVENT_ID6,
    EVENT_ID7
} event_t;

#endif
