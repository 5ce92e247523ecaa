/*
 * aclnn_base.h - what every operator header includes: the objects (acl_meta.h), status codes, start and end.
 */
#ifndef ACLNN_ACLNN_BASE_H
#define ACLNN_ACLNN_BASE_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

ACL_CODE(ACLNN_SUCCESS, 0);
ACL_CODE(ACLNN_ERR_PARAM_NULLPTR, 161001); /* a parameter that must be there is NULL */
ACL_CODE(ACLNN_ERR_PARAM_INVALID, 161002); /* a parameter has a shape, type or value the operator does not take */

/* Optional: operators work without. configPath may be NULL; a file that cannot be read is an invalid parameter. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char *configPath);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif

#endif
