/* Kernels that programs launch through pointers. Announced when a program or library is loaded, by what ascc writes. */
#include <pthread.h>

#include "runtime/launch.h"
#include "runtime/launch_state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dp_known_kernel *kernels;

void dp_kernel_announce(dp_known_kernel *kernel) {
    pthread_mutex_lock(&lock);
    kernel->next = kernels;
    kernels = kernel;
    pthread_mutex_unlock(&lock);
}

void dp_kernel_forget(dp_known_kernel *kernel) {
    pthread_mutex_lock(&lock);
    dp_known_kernel **at = &kernels;
    while (*at && *at != kernel)
        at = &(*at)->next;
    if (*at)
        *at = kernel->next;
    pthread_mutex_unlock(&lock);
}

dp_status dp_launch_find_kernel(const void *function, dp_kernel_info *out_info) {
    pthread_mutex_lock(&lock);
    const dp_known_kernel *k = kernels;
    while (k && k->function != function)
        k = k->next;
    if (k)
        *out_info = *k->info;
    pthread_mutex_unlock(&lock);
    if (k)
        return DP_OK;
    if (!function)
        return dp_fail(DP_ERR_ARGUMENT, "the launched pointer is NULL, but must point to a kernel");
    return dp_fail(
        DP_ERR_NOT_FOUND,
        "nothing says which cores the function at %p needs: a pointer can launch a kernel that is no template and not "
        "overloaded, "
        "and whose name the program uses as a pointer in a source that ascc translates; launch others by name",
        function);
}

void dp_known_kernel_fork_prepare(void) {
    pthread_mutex_lock(&lock);
}
void dp_known_kernel_fork_done(void) {
    pthread_mutex_unlock(&lock);
}
