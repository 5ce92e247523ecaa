#include "host.h"
#include "acl/acl.h"
#include <cstdio>
int check_value(int got, int expected) {
    std::printf("%d\n", got);
    return got == expected ? ACL_SUCCESS : 1;
}
