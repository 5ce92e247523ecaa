#include "ops/doubles.h"

#include "ops/elementwise/kernels.h"

void dp_doubles_load(int element, const void *from, int64_t stride, int64_t n, double *to) {
    const dp_convert_fn load = dp_elementwise_current()->load[element][DP_COMPUTE_F64];
    const int64_t step = stride * (int64_t)dp_element_bytes(element);
    if (stride == 1)
        load(to, from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            load(to + i, (const char *)from + i * step, 1);
}

void dp_doubles_store(int element, void *to, int64_t stride, int64_t n, const double *from) {
    const dp_convert_fn store = dp_elementwise_current()->store[element][DP_COMPUTE_F64];
    const int64_t step = stride * (int64_t)dp_element_bytes(element);
    if (stride == 1)
        store(to, from, (size_t)n);
    else
        for (int64_t i = 0; i < n; i++)
            store((char *)to + i * step, from + i, 1);
}
