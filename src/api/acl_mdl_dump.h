/*
 * acl_mdl_dump.h - settings of dumps, which come by aclInit's file, too.
 */
#ifndef DOPPEL_API_ACL_MDL_DUMP_H
#define DOPPEL_API_ACL_MDL_DUMP_H

#ifdef DP_HAVE_CJSON
#include <cJSON.h>

#include "base/status.h"

/* {"dump_path", "dump_mode", "dump_list": [{"model_name", "layer": []}]}; dumps begin. */
dp_status dp_mdl_dump_configure(const cJSON *dump);
#endif

#endif
