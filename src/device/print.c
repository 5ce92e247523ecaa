/*
 * What kernels print. A block collects its text; the launch writes all of it in block order when its last block is done
 * (dp_print_launch_end), so that runs are repeatable whatever the threads did.
 */
#include "device/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/half.h"
#include "base/memory.h"
#include "device/exec.h"
#include "device/queue.h"
#include "doppel/kernel_rt.h"

enum { BLOCK_LIMIT = 1 << 20, FIRST_CAPACITY = 4096 }; /* limit: kernel-language section 8 */

/* Text of one core, chained to the launch when the block ends. */
struct dp_print_text {
    dp_print_text *next;
    uint32_t core_index;
    uint32_t used_bytes, capacity_bytes;
    bool cut;
    char *bytes;
};

static dp_print_text *text_of(dp_core *core) {
    if (!core->print) {
        core->print = dp_alloc(DP_MEM_DEVICE, sizeof *core->print);
        if (core->print)
            core->print->core_index = core->core_index;
    }
    return core->print;
}

/* Room for `more` bytes and a terminator; false when the limit or the host's memory is reached. */
static bool grow(dp_print_text *text, size_t more) {
    size_t wanted = text->used_bytes + more + 1;
    if (wanted > BLOCK_LIMIT) {
        text->cut = true;
        return false;
    }
    if (wanted <= text->capacity_bytes)
        return true;
    size_t capacity = text->capacity_bytes ? text->capacity_bytes : FIRST_CAPACITY;
    while (capacity < wanted)
        capacity *= 2;
    char *bytes = dp_realloc(DP_MEM_DEVICE, text->bytes, capacity);
    if (!bytes) {
        text->cut = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity_bytes = (uint32_t)capacity;
    return true;
}

static int add(dp_core *core, const char *format, va_list args) {
    dp_print_text *text = text_of(core);
    if (!text || text->cut)
        return -1;
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length > 0 && grow(text, (size_t)length)) {
        vsnprintf(text->bytes + text->used_bytes, (size_t)length + 1, format, again);
        text->used_bytes += (uint32_t)length;
    } else if (length > 0) {
        length = -1;
    }
    va_end(again);
    return length;
}

int dp_print(const char *format, ...) {
    dp_core *core = dp_core_current();
    va_list args;
    va_start(args, format);
    int length = core && core->launch ? add(core, format, args) : vprintf(format, args);
    va_end(args);
    return length;
}

void dp_print_block_end(dp_core *core) {
    dp_print_text *text = core->print;
    core->print = NULL;
    if (!text)
        return;
    if (!core->launch) {
        dp_free(text->bytes);
        dp_free(text);
        return;
    }
    text->next = __atomic_load_n(&core->launch->print, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&core->launch->print, &text->next, text, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

static int by_core(const void *a, const void *b) {
    const dp_print_text *x = *(dp_print_text *const *)a, *y = *(dp_print_text *const *)b;
    return (x->core_index > y->core_index) - (x->core_index < y->core_index);
}

static void write_text(dp_print_text *text) {
    fwrite(text->bytes, 1, text->used_bytes, stdout);
    if (text->cut)
        fprintf(stdout, "\n[core %u: more than 1 MiB was printed, the rest is left out]\n", text->core_index);
    dp_free(text->bytes);
    dp_free(text);
}

void dp_print_launch_end(dp_launch_info *launch) {
    dp_print_text *list = __atomic_exchange_n(&launch->print, NULL, __ATOMIC_ACQUIRE);
    if (!list)
        return;
    size_t count = 0;
    for (dp_print_text *t = list; t; t = t->next)
        count++;
    dp_print_text **sorted = dp_alloc(DP_MEM_DEVICE, count * sizeof *sorted);
    if (sorted) {
        size_t i = 0;
        for (dp_print_text *t = list; t; t = t->next)
            sorted[i++] = t;
        qsort(sorted, count, sizeof *sorted, by_core);
        for (i = 0; i < count; i++)
            write_text(sorted[i]);
    } else { /* no memory to sort: better out of order than not at all */
        for (dp_print_text *next; list; list = next) {
            next = list->next;
            write_text(list);
        }
    }
    dp_free(sorted);
    fflush(stdout);
}

void dp_trap(dp_loc loc) {
    dp_core *core = dp_core_current();
    if (core)
        dp_fault(core, NULL, loc, "Trap: the kernel stopped itself");
    fprintf(stderr, "%s:%u: error: Trap: called outside a kernel\n", loc.file ? loc.file : "?", loc.line);
    abort();
}

void dp_assert_failed(const char *condition, dp_loc loc, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const char *colon = message[0] ? ": " : "";
    dp_core *core = dp_core_current();
    if (core)
        dp_fault(core, NULL, loc, "assertion failed: %s%s%s", condition, colon, message);
    fprintf(stderr, "%s:%u: assertion failed: %s%s%s\n", loc.file ? loc.file : "?", loc.line, condition, colon, message);
    abort();
}

/* ---- DumpTensor ---- */

static void print_element(const uint8_t *base, unsigned dtype, size_t i) {
    union {
        int8_t i8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } v;
    size_t bytes = dp_dtype_bits(dtype) / 8;
    if (bytes)
        memcpy(&v, base + i * bytes, bytes);
    switch (dtype) {
    case DP_I8: dp_print("%d", v.i8); break;
    case DP_U8: dp_print("%u", base[i]); break;
    case DP_I16: dp_print("%d", v.i16); break;
    case DP_U16: dp_print("%u", v.u16); break;
    case DP_I32: dp_print("%d", v.i32); break;
    case DP_U32: dp_print("%u", v.u32); break;
    case DP_I64: dp_print("%lld", (long long)v.i64); break;
    case DP_U64: dp_print("%llu", (unsigned long long)v.u64); break;
    case DP_F16: dp_print("%f", (double)dp_f32_from_f16(v.u16)); break;
    case DP_BF16: dp_print("%f", (double)dp_f32_from_bf16(v.u16)); break;
    case DP_F32: dp_print("%f", (double)v.f32); break;
    case DP_F64: dp_print("%f", v.f64); break;
    default: /* two int4 per byte, low nibble first */
        dp_print("%d", (int8_t)(i & 1 ? base[i / 2] : base[i / 2] << 4) >> 4);
        break;
    }
}

void dp_dump_tensor(const dp_operand *operand, unsigned position, uint32_t desc, uint32_t count, const uint32_t *dims,
                    unsigned n_dims, dp_loc loc) {
    size_t bytes = ((size_t)count * dp_dtype_bits(operand->dtype) + 7) / 8;
    dp_scalar_reference(operand, (uint32_t)bytes, loc);
    const dp_core *core = dp_core_current();
    size_t addr = operand->space == DP_SPACE_GM ? (size_t)operand->addr
                                                : (size_t)((uint8_t *)operand->addr - core->memory[operand->space].base);
    dp_print("DumpTensor: desc=%u, addr=0x%zx, data_type=%s, position=%s, block=%u, dump_size=%u\n", desc, addr,
             dp_dtype_name(operand->dtype), dp_position_name(position), core->block_idx, count);
    uint64_t row = n_dims && dims[n_dims - 1] ? dims[n_dims - 1] : 16;
    for (uint32_t i = 0; i < count; i++) {
        dp_print("%s", i % row == 0 ? "[" : ", ");
        print_element(operand->addr, operand->dtype, i);
        if (i % row == row - 1 || i == count - 1)
            dp_print("]\n");
    }
}

uint64_t dp_time_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}
