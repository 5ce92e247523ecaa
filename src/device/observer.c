#include "device/observer.h"

#include <stdatomic.h>

/* Installed before the first launch; cores take a copy of the pointer at block begin. */
static _Atomic(const dp_observer *) installed;

void dp_observer_install(const dp_observer *observer) {
    atomic_store_explicit(&installed, observer, memory_order_release);
}

const dp_observer *dp_observer_current(void) { return atomic_load_explicit(&installed, memory_order_acquire); }

void dp_observer_host_event(const dp_host_event *event) {
    const dp_observer *observer = dp_observer_current();
    if (observer && observer->host)
        observer->host(event);
}
