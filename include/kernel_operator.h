/*
 * kernel_operator.h - the Ascend C kernel language on a CPU: the one header kernel code includes.
 */
#ifndef DOPPEL_KERNEL_OPERATOR_H
#define DOPPEL_KERNEL_OPERATOR_H

#include "ascendc/core_state.h"
#include "ascendc/cube.h"
#include "ascendc/print.h"
#include "ascendc/queue.h"
#include "ascendc/scalar.h"
#include "ascendc/sync.h"
#include "ascendc/tensor_list.h"
#include "ascendc/tiling.h"

#include "ascendc/sync_core.h"
#include "ascendc/data_copy.h"
#include "ascendc/vector_binary.h"
#include "ascendc/vector_unary.h"
#include "ascendc/vector_scalar.h"
#include "ascendc/vector_ternary.h"
#include "ascendc/vector_cast.h"
#include "ascendc/vector_compare.h"
#include "ascendc/vector_select.h"
#include "ascendc/vector_fill.h"
#include "ascendc/vector_reduce.h"
#include "ascendc/gather.h"
#include "ascendc/sort.h"
#include "ascendc/layout.h"
#include "ascendc/intrinsics.h"

#endif
