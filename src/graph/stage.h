/*
 * stage.h - the inside of staged.h, for its files.
 */
#ifndef DOPPEL_GRAPH_STAGE_H
#define DOPPEL_GRAPH_STAGE_H

#include "graph/item.h"
#include "graph/program.h"
#include "graph/staged.h"

/* A value that the nodes after a stage read, and where it is when the stage has run. */
typedef struct dp_live {
    dp_value *value;
    int output; /* of the program; -1: it is input `input` of the stage */
    int input;
    bool wanted; /* its contents are part of what is known */
} dp_live;

typedef struct dp_stage {
    dp_model *model;     /* its graph has the nodes of the program */
    dp_program *program; /* NULL: no node */
    bool is_last;
    dp_graph *rest;                     /* nodes that are not lowered */
    dp_node *apart;                     /* a Loop or Scan that runs between them; NULL: none */
    dp_live *lives;                     /* then the outputs of `apart` */
    int n_lives, n_known;               /* without and with those */
    void **addresses;                   /* room for the program's inputs and outputs */
    struct dp_stage *children, *bodies; /* the one used last comes first */
    struct dp_stage *next;
    char *key; /* what it was made for */
    size_t key_bytes;
    size_t bytes; /* of its model */
} dp_stage;

struct dp_staged {
    dp_stage root; /* has no program: what is known of the inputs leads to its children */
    int opset, n_stages;
    size_t bytes; /* of all stages' models */
    void *work;
    size_t work_bytes;
};

/* Runs a stage and what follows it. inputs are those of its graph; they stay the caller's. */
dp_status dp_stage_run(dp_staged *staged, dp_stage *stage, const dp_item *inputs, dp_room *room, void *data);
/* A stage for the nodes of `model`, all still as they were read; takes the model. */
dp_status dp_stage_new(dp_staged *staged, dp_model *model, dp_stage **out_stage);
void dp_stage_free(dp_staged *staged, dp_stage *stage); /* with all that were made from it */
/* The stage of that list for this key, put first; NULL: none. */
dp_stage *dp_stage_find(dp_stage **list, const char *key, size_t key_bytes);
/* Puts it first in the list; takes the key. */
void dp_stage_keep(dp_stage **list, dp_stage *stage, char *key, size_t key_bytes);
/* Gives stages up that were made from `stage`, until there are no more than `most`, of no more than
 * DP_STAGES_BYTES together, or nothing is left to choose from. */
void dp_stages_trim(dp_staged *staged, dp_stage *stage, int most);

/* The stage for the body of stage->apart, with formal inputs of these shapes and `known` values around it. */
dp_status dp_stage_body(dp_staged *staged, dp_stage *stage, const dp_item *formal, int n_formal, const dp_item *known,
                        dp_stage **out_body);
/* Runs stage->apart; known has n_lives values, and the outputs are added behind them. */
dp_status dp_stage_apart(dp_staged *staged, dp_stage *stage, dp_item *known);

#endif
