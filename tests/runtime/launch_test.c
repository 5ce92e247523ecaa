#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/core.h"
#include "runtime/device.h"
#include "runtime/device_memory.h"
#include "runtime/launch.h"
#include "runtime/stream.h"

static void assert_ok(dp_status status) {
    if (status != DP_OK)
        fail_msg("%s: %s", dp_status_name(status), dp_fail_message());
}

static int setup(void **state) {
    (void)state;
    return dp_device_set(0) == DP_OK ? 0 : -1;
}

typedef struct count_args {
    _Atomic uint32_t *seen; /* one counter per core */
} count_args;

static void count_cores(const void *args) {
    const count_args *a = args;
    atomic_fetch_add(&a->seen[dp_core_current()->core_index], 1);
}

static void every_core_runs_once(void **state) {
    (void)state;
    static const struct {
        uint8_t mix, cores;
    } mixes[] = {{DP_MIX_AIV, 1}, {DP_MIX_AIC, 1}, {DP_MIX_AIC_1_1, 2}, {DP_MIX_AIC_1_2, 3}};
    static const uint32_t blocks[] = {1, 2, 7, 48, 1000};
    for (unsigned m = 0; m < 4; m++) {
        for (unsigned b = 0; b < 5; b++) {
            uint32_t units = blocks[b] * mixes[m].cores;
            _Atomic uint32_t *seen = calloc(units, sizeof *seen);
            dp_kernel_info info = {.name = "count", .core_mix = mixes[m].mix};
            assert_ok(dp_launch_submit(&info, blocks[b], NULL, count_cores, &(count_args){seen}, sizeof(count_args)));
            assert_ok(dp_stream_synchronise(NULL, -1));
            for (uint32_t i = 0; i < units; i++)
                assert_int_equal(seen[i], 1);
            free(seen);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_core_runs_once)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
