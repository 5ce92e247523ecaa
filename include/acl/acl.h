/*
 * acl.h - the AscendCL C interface of Doppel: what a host program includes.
 */
#ifndef ACL_H
#define ACL_H

#include "acl_base.h"
#include "acl_rt.h"
#include "acl_rt_allocator.h"
#include "acl_mdl.h"
#include "acl_op.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Version of the package pkgName ("cann", "runtime", ...; any case) as text into versionStr, at most
 * ACL_PKG_VERSION_MAX_SIZE bytes with the terminating zero. ACL_ERROR_INVALID_PARAM for NULL or an unknown package.
 */
ACL_FUNC_VISIBILITY aclError aclsysGetVersionStr(char *pkgName, char *versionStr);

#ifdef __cplusplus
}
#endif

#endif
