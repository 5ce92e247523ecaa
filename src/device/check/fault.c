/* Faults the device finds in every mode, as findings with the other place and the memory. */
#include <stdio.h>

#include "device/check/state.h"
#include "device/exec.h"
#include "device/queue.h"

/* The run of the instruction's footprint that lies outside its memory. */
typedef struct outside {
    bool found;
    const dp_core *core;
    const dp_insn *insn;
    const uint8_t *addr;
    size_t bytes;
    unsigned space, operand;
    unsigned calls;
    jmp_buf enough;
} outside;

enum { CALLS_MAX = 1 << 18 };

/* Ends the visit when the answer is known, or when counts are too large to follow to the end. */
static void end_visit(outside *o) {
    if (o->found || ++o->calls > CALLS_MAX)
        longjmp(o->enough, 1);
}

static void visit(outside *o, dp_access_fn look) {
    o->calls = 0;
    if (!_setjmp(o->enough))
        dp_insn_visit(o->core, o->insn, look, o);
}

static void look_outside(void *context, unsigned operand, unsigned mode, const void *addr, size_t bytes) {
    outside *o = context;
    (void)mode;
    if (o->found || operand >= 4 || !bytes)
        return;
    unsigned space = o->insn->operand[operand].space;
    const uint8_t *at = addr;
    bool good = true;
    if (space == DP_SPACE_GM) {
        dp_gm_range range;
        good = dp_gm_find(at, &range) && bytes <= range.size_bytes - (size_t)(at - range.base);
    } else if (space < DP_SPACE_COUNT) {
        const dp_core_memory *memory = &o->core->memory[space];
        good = memory->base && at >= memory->base && (size_t)(at - memory->base) <= memory->size_bytes &&
               bytes <= memory->size_bytes - (size_t)(at - memory->base);
    }
    if (!good) {
        o->found = true;
        o->addr = at;
        o->bytes = bytes;
        o->space = space;
        o->operand = operand;
    }
    end_visit(o);
}

/* The part of a run that lies beyond its tensor. */
static void look_beyond(void *context, unsigned operand, unsigned mode, const void *addr, size_t bytes) {
    outside *o = context;
    (void)mode;
    if (o->found || operand >= 4 || !bytes || !o->insn->operand[operand].size_bytes)
        return;
    const dp_operand *tensor = &o->insn->operand[operand];
    const uint8_t *begin = tensor->addr, *end = begin + tensor->size_bytes, *at = addr;
    if (at >= begin && at + bytes <= end) {
        end_visit(o);
        return;
    }
    o->found = true;
    o->addr = at >= begin && at < end ? end : at;
    o->bytes = at >= begin && at < end ? (size_t)(at + bytes - end) : bytes;
    o->space = tensor->space;
    o->operand = operand;
    end_visit(o);
}

static bool is_misaligned(const dp_core *core, const dp_insn *insn, unsigned *out_operand) {
    if (dp_insn_family(insn->op) == DP_FAMILY_SCALAR_MEM)
        return false;
    for (unsigned k = 0; k < insn->n_operands && k < 4; k++) {
        const dp_operand *o = &insn->operand[k];
        if (o->space <= DP_SPACE_GM || o->space >= DP_SPACE_COUNT || !core->memory[o->space].base)
            continue;
        if (((uintptr_t)o->addr - (uintptr_t)core->memory[o->space].base) % DP_BLOCK_BYTES) {
            *out_operand = k;
            return true;
        }
    }
    return false;
}

static void describe(const dp_core *core, unsigned space, const void *addr, size_t bytes, dp_finding *f) {
    if (space == DP_SPACE_GM)
        dp_describe_gm(addr, bytes, f->memory, sizeof f->memory);
    else if (space < DP_SPACE_COUNT && core->memory[space].base && (const uint8_t *)addr >= core->memory[space].base)
        dp_describe_local(core, space, addr, bytes, f->memory, sizeof f->memory);
}

static bool freed_before(const outside *o, dp_finding *f) {
    dp_gm_story story;
    dp_gm_range range;
    if (o->space != DP_SPACE_GM || dp_gm_find(o->addr, &range) || !dp_gm_story_of(o->addr, &story) || !story.freed)
        return false;
    char size[32];
    f->kind = DP_CHECK_USE_AFTER_FREE;
    f->has_other = true;
    snprintf(f->sentence, sizeof f->sentence, "%s uses device memory that was freed", dp_insn_name(o->insn->op));
    f->other = dp_place_of_caller(story.free_caller, "aclrtFree freed it");
    snprintf(f->memory, sizeof f->memory, "GM allocation %llu of %s bytes, freed", (unsigned long long)story.id,
             dp_describe_count(story.size_bytes, size));
    snprintf(f->cure, sizeof f->cure, "free device memory only after the stream that uses it is synchronised");
    return true;
}

static void memory_fault(dp_check_core *state, const dp_insn *insn, dp_finding *f) {
    const dp_core *core = state->core;
    outside o = {.core = core, .insn = insn};
    unsigned k;
    if (is_misaligned(core, insn, &k)) {
        f->kind = DP_CHECK_MISALIGNED;
        describe(core, insn->operand[k].space, insn->operand[k].addr, dp_operand_bytes(insn, k), f);
        snprintf(f->cure, sizeof f->cure, "start every operand on a %u-byte boundary of its memory", DP_BLOCK_BYTES);
        return;
    }
    visit(&o, look_outside);
    if (o.found) {
        f->kind = DP_CHECK_OUT_OF_BOUNDS;
        describe(core, o.space, o.addr, o.bytes, f);
        dp_gm_range range;
        bool near = dp_gm_find(o.addr, &range) || dp_gm_find_before(o.addr, &range);
        snprintf(f->cure, sizeof f->cure, "%s", o.space == DP_SPACE_GM && !near
                     ? "pass the kernel pointers from aclrtMalloc, not host pointers or freed memory"
                 : o.space == DP_SPACE_GM
                     ? "check the offset and the length of this block's last tile against the size of the allocation"
                     : "lower count, repeat or strides, or make the buffer larger");
        freed_before(&o, f);
        return;
    }
    visit(&o, look_beyond);
    if (!o.found)
        return;
    f->kind = DP_CHECK_OUTSIDE_TENSOR;
    describe(core, o.space, o.addr, o.bytes, f);
    snprintf(f->cure, sizeof f->cure, "lower count, repeat or strides to the size of the tensor, or ask InitBuffer for more bytes");
    dp_buffer_info info;
    if (dp_buffer_find(core, insn->operand[o.operand].buffer_id, &info)) {
        f->has_other = true;
        f->other = dp_place_of_loc(info.init, "InitBuffer made the buffer of the tensor");
    }
}

static void flag_fault(dp_check_core *state, const dp_insn *insn, dp_finding *f) {
    const dp_sync_params *sync = &insn->u.sync;
    if (sync->src_pipe >= DP_PIPE_COUNT || sync->dst_pipe >= DP_PIPE_COUNT || sync->event_id >= DP_EVENT_IDS)
        return;
    const dp_check_flag *flag = &state->flag[sync->src_pipe][sync->dst_pipe][sync->event_id];
    bool setting = insn->op == DP_OP_SET_FLAG;
    uint32_t other = setting ? flag->set_site : flag->wait_site;
    f->kind = setting ? DP_CHECK_FLAG_TWICE : DP_CHECK_FLAG_NEVER_SET;
    f->place = dp_place_of_insn(insn, -1, setting ? "raises it again" : "waits for it");
    if (other) {
        f->has_other = true;
        f->other = dp_place_of_site(other, -1, setting ? "raised it before" : "has taken the last one already");
    }
    snprintf(f->cure, sizeof f->cure, setting ? "call WaitFlag<HardEvent::%s_%s> between the two, or use another event id"
                                              : "call SetFlag<HardEvent::%s_%s> with the same id before this wait",
             dp_pipe_name(sync->src_pipe), dp_pipe_name(sync->dst_pipe));
}

/* Queue misuse is reported by the queue code without an instruction: the sentence starts with the call's name. */
static bool queue_fault(dp_check_core *state, const char *sentence, dp_finding *f) {
    static const uint16_t calls[] = {DP_OP_QUE_INIT, DP_OP_QUE_ALLOC, DP_OP_QUE_ENQUE, DP_OP_QUE_DEQUE, DP_OP_QUE_FREE,
                                     DP_OP_PIPE_INIT};
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const char *name = dp_insn_name(calls[i]);
        size_t length = strlen(name);
        if (strncmp(sentence, name, length) != 0 || sentence[length] != ':')
            continue;
        f->place.op = calls[i];
        f->kind = calls[i] == DP_OP_QUE_INIT ? DP_CHECK_OVER_ALLOCATION : DP_CHECK_QUEUE;
        snprintf(f->place.what, sizeof f->place.what, "%s is refused", name);
        if (state->core->fault_other.line) {
            f->has_other = true;
            bool empty = calls[i] == DP_OP_QUE_DEQUE && strstr(sentence, "is empty");
            f->other = dp_place_of_loc(state->core->fault_other, empty ? "InitBuffer made the queue"
                                                                       : "the last step of the buffer before it");
        }
        return true;
    }
    return false;
}

/* The sentences of the device and the runtime end in their advice, after the last semicolon. */
void dp_check_split_advice(dp_finding *f) {
    char *advice = strrchr(f->sentence, ';');
    if (!advice)
        return;
    *advice = '\0';
    if (!f->cure[0])
        snprintf(f->cure, sizeof f->cure, "%s", advice + 1 + strspn(advice + 1, " "));
}

void dp_check_fault(dp_check_core *state, const dp_insn *insn, const char *sentence) {
    dp_finding f = {.kind = DP_CHECK_ILLEGAL};
    dp_finding_context(&f, state->core);
    snprintf(f.sentence, sizeof f.sentence, "%s", sentence);
    if (state->core->over_time) {
        f.kind = DP_CHECK_TIME_LIMIT;
        f.place = dp_place_of_insn(insn, (int)dp_insn_pipe(insn), "was the next instruction");
        snprintf(f.cure, sizeof f.cure, "look for what the loop waits for, or allow more time: this machine is slower than a chip");
    } else if (!insn || insn->op >= DP_OP_COUNT) {
        f.place = dp_place_of_loc(state->core->fault_loc, "the block ends here");
        queue_fault(state, sentence, &f);
    } else {
        f.place = dp_place_of_insn(insn, (int)dp_insn_pipe(insn), "is refused");
        switch (dp_insn_family(insn->op)) {
        case DP_FAMILY_SYNC:
            flag_fault(state, insn, &f);
            break;
        case DP_FAMILY_CROSS:
            f.kind = DP_CHECK_DEADLOCK;
            if (!strchr(sentence, ';'))
                snprintf(f.cure, sizeof f.cure, "let every core the flag counts reach it, also those that return early");
            break;
        default:
            if (!state->in_fault) {
                state->in_fault = true;
                memory_fault(state, insn, &f);
            }
            break;
        }
    }
    state->in_fault = false;
    dp_check_split_advice(&f);
    dp_finding_add(&f);
}
