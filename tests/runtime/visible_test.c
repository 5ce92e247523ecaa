/* ASCEND_RT_VISIBLE_DEVICES renumbers devices and ends at the first entry that is none. */
#include "runtime/device.h"
#include "runtime/runtime_test.h"

static void visible_devices_are_renumbered(void **state) {
    (void)state;
    int32_t physical = -1;
    assert_int_equal(dp_device_count(), 3);
    static const int32_t wanted[] = {6, 2, 0};
    for (int32_t i = 0; i < 3; i++) {
        assert_ok(dp_device_physical_id(i, &physical));
        assert_int_equal(physical, wanted[i]);
    }
    assert_refused(dp_device_set(3), DP_ERR_NOT_FOUND, "must be 0 to 2");
}

int main(void) {
    setenv("DOPPEL_DEVICES", "8", 1);
    setenv("ASCEND_RT_VISIBLE_DEVICES", "6,2,0,9,1", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(visible_devices_are_renumbered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
