/*
 * element.h - the vendor's element types in bits.
 */
#ifndef DOPPEL_API_ELEMENT_H
#define DOPPEL_API_ELEMENT_H

#include "acl/acl_base.h"

/* Bits of one element, 0 for undefined, strings and values that are no type. */
unsigned dp_acl_type_bits(aclDataType type);
/* Whether it is a type at all, ACL_DT_UNDEFINED and ACL_STRING included. */
int dp_acl_type_known(aclDataType type);
int dp_acl_format_known(aclFormat format);

#endif
