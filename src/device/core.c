#include "device/core.h"

#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "device/exec.h"
#include "device/print.h"

enum { MEMORY_ALIGN = 4096 };

static size_t reserved_bytes(const dp_chip *chip) {
    size_t total = 0;
    for (unsigned s = 0; s < DP_SPACE_COUNT; s++)
        total += (chip->space_bytes[s] + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
    return total;
}

dp_core *dp_core_create(const dp_chip *chip) {
    dp_core *core = dp_alloc(DP_MEM_DEVICE, sizeof *core);
    if (!core) {
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for a core (%zu bytes)", sizeof *core);
        return NULL;
    }
    core->chip = chip;
    core->math = dp_math_current();
    size_t bytes = reserved_bytes(chip);
    /* mmap, so that memories no kernel uses cost nothing */
    uint8_t *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        dp_fail(DP_ERR_OUT_OF_MEMORY, "no host memory for the memories of a core (%zu bytes)", bytes);
        goto fail;
    }
    for (unsigned s = 0; s < DP_SPACE_COUNT; s++) {
        if (!chip->space_bytes[s])
            continue;
        core->memory[s] = (dp_core_memory){base, chip->space_bytes[s]};
        base += (chip->space_bytes[s] + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
    }
    return core;
fail:
    dp_core_destroy(core);
    return NULL;
}

void dp_core_destroy(dp_core *core) {
    if (!core)
        return;
    dp_queue_destroy(core);
    for (unsigned s = 0; s < DP_SPACE_COUNT; s++) { /* the first memory starts the mapping */
        if (core->memory[s].base) {
            munmap(core->memory[s].base, reserved_bytes(core->chip));
            break;
        }
    }
    dp_free(core);
}

void dp_core_block_begin(dp_core *core) {
    core->observer = dp_observer_current();
    core->mask[0] = core->mask[1] = ~0ull;
    core->counter_mode = 0;
    core->atomic_op = core->atomic_dtype = core->store_atomic = 0;
    core->cmp_mask[0] = core->cmp_mask[1] = 0;
    core->ctrl = 0;
    core->deq_scale = 0x3f800000; /* 1.0 */
    memset(core->deq_table, 0, sizeof core->deq_table);
    core->pad_value = 0;
    core->acc_value = 0;
    core->reduce_value[0] = core->reduce_value[1] = 0;
    core->mrg_result = 0;
    core->kept_count = 0;
    memset(core->flags, 0, sizeof core->flags);
    core->issued = 0;
    core->over_time = false;
    core->ahead = (dp_ahead){0};
    dp_local_block_begin(core);
    dp_queue_block_begin(core);
    const dp_observer *observer = core->observer;
    if (observer && observer->block_begin)
        observer->block_begin(core);
}

void dp_core_block_end(dp_core *core, bool faulted) {
    core->math->stream_fence(); /* what the block wrote past the caches is there before anybody hears that it ended */
    dp_queue_block_end(core, faulted);
    const dp_observer *observer = core->observer;
    if (observer && observer->block_end)
        observer->block_end(core, faulted);
    dp_print_block_end(core);
}
