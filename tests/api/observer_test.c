/* What an observer hears of host calls: name, caller's address, code, sentence; and that nobody is asked when none is
 * there. */
#include "child.h"

#include "device/observer.h"

#define EVENTS_MAX 64

typedef struct heard {
    dp_host_event event;
    char name[64], message[512];
} heard;

static heard events[EVENTS_MAX];
static size_t event_count;

static void listen(const dp_host_event *event) {
    CHECK(event_count < EVENTS_MAX);
    heard *to = &events[event_count++];
    to->event = *event;
    snprintf(to->name, sizeof to->name, "%s", event->name ? event->name : "");
    snprintf(to->message, sizeof to->message, "%s", event->message ? event->message : "");
}

static const heard *find(dp_host_event_kind kind, const char *name) {
    for (size_t i = 0; i < event_count; i++)
        if (events[i].event.kind == kind && strcmp(events[i].name, name) == 0)
            return &events[i];
    return NULL;
}

static bool lies_in(const void *address, const void *function, size_t bytes) {
    return (uintptr_t)address > (uintptr_t)function && (uintptr_t)address < (uintptr_t)function + bytes;
}

__attribute__((noinline)) static void user_code(void **memory) {
    CHECK_OK(aclrtMalloc(memory, 100, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemset(*memory, 200, 0, 200) == ACL_ERROR_RT_PARAM_INVALID);
}

TEST(calls_and_faults_are_told) {
    static const dp_observer observer = {.name = "test", .host = listen};
    void *memory = NULL;
    CHECK_OK(aclrtSetDevice(0));
    dp_observer_install(&observer);
    user_code(&memory);
    aclrtFree(memory);
    dp_observer_install(NULL);
    CHECK_OK(aclrtSynchronizeDevice());

    const heard *call = find(DP_HOST_CALL, "aclrtMalloc"), *fault = find(DP_HOST_FAULT, "aclrtMemset");
    const heard *alloc = find(DP_HOST_ALLOC, "aclrtMalloc"), *failed = find(DP_HOST_CALL, "aclrtMemset");
    CHECK(call && call->event.status == ACL_SUCCESS && call->event.end_ns >= call->event.begin_ns);
    CHECK(lies_in(call->event.caller, (const void *)user_code, 4096));
    CHECK(alloc && alloc->event.dst == memory && alloc->event.size_bytes == 100);
    CHECK(lies_in(alloc->event.caller, (const void *)user_code, 4096));
    CHECK(fault && fault->event.status == ACL_ERROR_RT_PARAM_INVALID && strstr(fault->message, "devPtr"));
    CHECK(lies_in(fault->event.caller, (const void *)user_code, 4096));
    CHECK(failed && failed->event.status == ACL_ERROR_RT_PARAM_INVALID);
    CHECK(find(DP_HOST_FREE, "aclrtFree") && !find(DP_HOST_CALL, "aclrtSynchronizeDevice"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_and_faults_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
