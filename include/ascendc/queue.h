/*
 * queue.h - TPipe, TQue, TQueBind, TBuf, TBufPool, LocalMemAllocator.
 *
 * These classes hold handles only; the queue machine is doppel/queue.h. Handles may be copied.
 */
#ifndef DOPPEL_ASCENDC_QUEUE_H
#define DOPPEL_ASCENDC_QUEUE_H

#include "ascendc/sync.h"

namespace AscendC {

/* Configuration a queue may take as its last template argument; accepted, the defaults are what Doppel does. */
struct TQueConfig {
    bool nd2nz = false, nz2nd = false, scmBlockGroup = false;
    uint32_t bufferLen = 0, bufferNumber = 0, consumerSize = 0;
    TPosition consumer[8] = {};
    bool enableStaticEvtId = false, enableLoopQueue = false;
};
constexpr TQueConfig GetTQueConfig(bool nd2nz, bool nz2nd, bool scm_block_group, uint32_t buffer_len,
                                   uint32_t buffer_number) {
    TQueConfig config;
    config.nd2nz = nd2nz;
    config.nz2nd = nz2nd;
    config.scmBlockGroup = scm_block_group;
    config.bufferLen = buffer_len;
    config.bufferNumber = buffer_number;
    return config;
}

inline TBufHandle dp_handle_of(uint32_t buffer_id) {
    return reinterpret_cast<TBufHandle>(static_cast<uintptr_t>(buffer_id));
}
inline uint32_t dp_id_of(TBufHandle handle) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle)); }

template <typename T>
inline LocalTensor<T> dp_tensor_of(dp_buffer_view view, TPosition position) {
    return LocalTensor<T>(view.addr, view.size_bytes, view.buffer_id, position);
}

inline TBuffAddr dp_buffer_record(uint32_t buffer_id, TPosition position, dp_loc loc) {
    dp_buffer_view view = dp_buffer_view_of(buffer_id, loc);
    TBuffAddr record;
    record.dataLen = view.size_bytes;
    record.bufferAddr = static_cast<uint32_t>(dp_local_offset(dp_space_of(position), view.addr, loc));
    record.bufferHandle = dp_handle_of(buffer_id);
    record.logicPos = static_cast<uint8_t>(position);
    record.absAddr = static_cast<uint8_t *>(view.addr);
    return record;
}

template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind {
    static constexpr bool src_is_gm = dp_space_of(src) == DP_SPACE_GM, dst_is_gm = dp_space_of(dst) == DP_SPACE_GM;
    static_assert(!(src_is_gm && dst_is_gm), "a queue between two positions in global memory has nowhere to keep buffers");

public:
    /* Position of its tensors: the end on the core; inside one memory the source, else the destination. */
    static constexpr TPosition bufferPosition =
        src_is_gm ? dst : dst_is_gm || dp_space_of(src) == dp_space_of(dst) ? src : dst;
    static constexpr TPosition srcPosition = src, dstPosition = dst;

    template <typename T>
    LocalTensor<T> AllocTensor(dp_loc loc = dp_loc::current()) {
        return dp_tensor_of<T>(dp_queue_alloc(handle_, loc), bufferPosition);
    }
    template <typename T>
    void AllocTensor(LocalTensor<T> &tensor, dp_loc loc = dp_loc::current()) {
        tensor = dp_tensor_of<T>(dp_queue_alloc(handle_, loc), bufferPosition);
    }
    template <typename T>
    void FreeTensor(const LocalTensor<T> &tensor, dp_loc loc = dp_loc::current()) {
        dp_queue_free(handle_, tensor.dp_buffer_id(), loc);
    }
    void FreeBuffer(TBufHandle buffer, dp_loc loc = dp_loc::current()) { dp_queue_free(handle_, dp_id_of(buffer), loc); }

    template <typename T>
    bool EnQue(const LocalTensor<T> &tensor, dp_loc loc = dp_loc::current()) {
        dp_queue_enque(handle_, tensor.dp_buffer_id(), own_pair(), loc);
        return true;
    }
    bool EnQue(TBufHandle buffer, dp_loc loc = dp_loc::current()) {
        dp_queue_enque(handle_, dp_id_of(buffer), own_pair(), loc);
        return true;
    }
    template <TPosition srcUserPos, TPosition dstUserPos, typename T>
    bool EnQue(const LocalTensor<T> &tensor, dp_loc loc = dp_loc::current()) {
        dp_queue_enque(handle_, tensor.dp_buffer_id(), pair_of(srcUserPos, dstUserPos), loc);
        return true;
    }

    template <typename T>
    LocalTensor<T> DeQue(dp_loc loc = dp_loc::current()) {
        return dp_tensor_of<T>(dp_queue_deque(handle_, own_pair(), loc), bufferPosition);
    }
    template <typename T>
    void DeQue(LocalTensor<T> &tensor, dp_loc loc = dp_loc::current()) {
        tensor = DeQue<T>(loc);
    }
    TBufHandle DeQue(dp_loc loc = dp_loc::current()) {
        return dp_handle_of(dp_queue_deque(handle_, own_pair(), loc).buffer_id);
    }
    template <TPosition srcUserPos, TPosition dstUserPos, typename T>
    LocalTensor<T> DeQue(dp_loc loc = dp_loc::current()) {
        return dp_tensor_of<T>(dp_queue_deque(handle_, pair_of(srcUserPos, dstUserPos), loc), bufferPosition);
    }

    bool VacantInQue(dp_loc loc = dp_loc::current()) {
        return dp_queue_open_entries(handle_, loc) < static_cast<uint32_t>(depth < 1 ? 1 : depth);
    }
    bool HasTensorInQue(dp_loc loc = dp_loc::current()) { return dp_queue_open_entries(handle_, loc) > 0; }
    int32_t GetTensorCountInQue(dp_loc loc = dp_loc::current()) {
        return static_cast<int32_t>(dp_queue_open_entries(handle_, loc));
    }
    bool HasIdleBuffer(dp_loc loc = dp_loc::current()) { return dp_queue_has_idle(handle_, loc); }
    template <typename T>
    TBufState GetState(const LocalTensor<T> &tensor, dp_loc loc = dp_loc::current()) const {
        return static_cast<TBufState>(dp_queue_buffer_state(handle_, tensor.dp_buffer_id(), loc));
    }
    TBuffAddr GetBufferAddr(TBufHandle buffer, dp_loc loc = dp_loc::current()) const {
        return dp_buffer_record(dp_id_of(buffer), bufferPosition, loc);
    }
    void FreeAllEvent(dp_loc loc = dp_loc::current()) { dp_queue_free_all_events(handle_, loc); }

    /* For custom pools: num buffers of len bytes will follow, one InitBufHandle each, in order. */
    void InitStartBufHandle(TBufHandle, uint8_t num, uint32_t len, dp_loc loc = dp_loc::current()) {
        handle_ = dp_queue_announce(shape(), num, len, loc);
    }
    /* Buffer `index` is the len bytes at curPoolAddr of the pool. */
    template <typename T>
    void InitBufHandle(T *bufPool, uint32_t index, TBufHandle, uint32_t curPoolAddr, uint32_t len, dp_loc loc = dp_loc::current()) {
        dp_queue_place(handle_, bufPool->dp_handle(), index, curPoolAddr, len, loc);
    }

    /* Doppel's own: called by InitBuffer of TPipe and TBufPool. */
    void dp_init(dp_pool_handle pool, uint32_t num, uint32_t len, dp_loc loc) {
        handle_ = dp_queue_init(shape(), pool, num, len, loc);
    }

private:
    static dp_queue_shape shape() {
        return {static_cast<uint8_t>(src), static_cast<uint8_t>(dst), static_cast<uint8_t>(dp_space_of(bufferPosition)), depth};
    }
    static dp_pipe_pair pair_of(TPosition from, TPosition to) {
        return dp_queue_enque_pair(static_cast<unsigned>(from), static_cast<unsigned>(to));
    }
    static constexpr dp_pipe_pair own_pair() { return {DP_PAIR_OWN, DP_PAIR_OWN}; }

    dp_queue_handle handle_ = 0;
};

/* The two ends of a one-position queue. */
constexpr TPosition dp_queue_src(TPosition p) {
    switch (p) {
    case TPosition::VECIN:
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::SHM:
    case TPosition::TSCM: return TPosition::GM;
    case TPosition::A2: return TPosition::A1;
    case TPosition::B2: return TPosition::B1;
    case TPosition::C2:
    case TPosition::C2PIPE2GM: return TPosition::C1;
    default: return p;
    }
}
constexpr TPosition dp_queue_dst(TPosition p) {
    switch (p) {
    case TPosition::VECOUT: return TPosition::GM;
    case TPosition::CO1: return TPosition::CO2;
    default: return p;
    }
}

template <TPosition position, int32_t depth, auto mask = 0>
class TQue : public TQueBind<dp_queue_src(position), dp_queue_dst(position), depth, mask> {};

template <TPosition position, int32_t depth = 1, auto mask = 0>
using TSCM = TQueBind<position, TPosition::TSCM, depth, mask>;

/* Memory without states and events. */
template <TPosition position = TPosition::LCM>
class TBuf {
public:
    template <typename T>
    LocalTensor<T> Get(dp_loc loc = dp_loc::current()) {
        return part<T>(view_.size_bytes, 0, loc);
    }
    template <typename T>
    LocalTensor<T> Get(uint32_t len, dp_loc loc = dp_loc::current()) {
        return part<T>(dp_bytes_of<T>(len), 0, loc);
    }
    /* size elements from byte offset bufOffset. */
    template <typename T>
    LocalTensor<T> GetWithOffset(uint32_t size, uint32_t bufOffset, dp_loc loc = dp_loc::current()) {
        return part<T>(dp_bytes_of<T>(size), bufOffset, loc);
    }

    template <typename T>
    LocalTensor<T> AllocTensor(dp_loc loc = dp_loc::current()) {
        return Get<T>(loc);
    }
    template <typename T>
    void FreeTensor(const LocalTensor<T> &) {}
    template <typename T>
    bool EnQue(const LocalTensor<T> &) {
        return true;
    }
    bool EnQue(TBufHandle) { return true; }
    template <typename T>
    LocalTensor<T> DeQue(dp_loc loc = dp_loc::current()) {
        return Get<T>(loc);
    }
    TBufHandle DeQue() { return dp_handle_of(view_.buffer_id); }
    void FreeBuffer(TBufHandle) {}
    template <typename T>
    TBufState GetState(const LocalTensor<T> &) const {
        return TBufState::FREE;
    }
    TBuffAddr GetBufferAddr(TBufHandle buffer, dp_loc loc = dp_loc::current()) const {
        return dp_buffer_record(dp_id_of(buffer), position, loc);
    }
    uint32_t GetBufLen() const { return view_.size_bytes; }

    /* For custom pools. */
    void InitStartBufHandle(TBufHandle, uint8_t num, uint32_t, dp_loc loc = dp_loc::current()) {
        if (DP_UNLIKELY(num != 1))
            dp_pool_fault("InitStartBufHandle: a TBuf has one buffer", num, 1, loc);
    }
    template <typename T>
    void InitBufHandle(T *bufPool, uint32_t index, TBufHandle, uint32_t curPoolAddr, uint32_t len, dp_loc loc = dp_loc::current()) {
        if (DP_UNLIKELY(index != 0))
            dp_pool_fault("InitBufHandle: a TBuf has one buffer, whose index is 0", index, 0, loc);
        view_ = dp_tbuf_place(static_cast<uint8_t>(position), dp_space_of(position), bufPool->dp_handle(), curPoolAddr, len, loc);
    }

    void dp_init(dp_pool_handle pool, uint32_t len, dp_loc loc) {
        view_ = dp_tbuf_init(static_cast<uint8_t>(position), dp_space_of(position), pool, len, loc);
    }

private:
    template <typename T>
    LocalTensor<T> part(uint64_t bytes, uint32_t offset, dp_loc loc) const {
        if (DP_UNLIKELY(!view_.addr || offset > view_.size_bytes || bytes > view_.size_bytes - offset))
            dp_tbuf_fault(static_cast<uint32_t>(bytes), offset, view_.size_bytes, loc);
        return LocalTensor<T>(static_cast<uint8_t *>(view_.addr) + offset, bytes, view_.buffer_id, position);
    }

    dp_buffer_view view_ = {nullptr, 0, 0};
};

template <TPosition position, uint32_t bufIDSize = defaultBufIDSize>
class TBufPool {
public:
    template <class T>
    bool InitBuffer(T &queue, uint32_t num, uint32_t len, dp_loc loc = dp_loc::current()) {
        queue.dp_init(handle_, num, len, loc);
        return true;
    }
    template <TPosition bufPos>
    bool InitBuffer(TBuf<bufPos> &buffer, uint32_t len, dp_loc loc = dp_loc::current()) {
        buffer.dp_init(handle_, len, loc);
        return true;
    }
    template <class T>
    bool InitBufPool(T &pool, uint32_t len, dp_loc loc = dp_loc::current()) {
        pool.dp_init(handle_, 0, len, loc);
        return true;
    }
    template <class T, class U>
    bool InitBufPool(T &pool, uint32_t len, U &share, dp_loc loc = dp_loc::current()) {
        pool.dp_init(handle_, share.dp_handle(), len, loc);
        return true;
    }
    void Reset(dp_loc loc = dp_loc::current()) { dp_pool_reset(handle_, loc); }

    void dp_init(dp_pool_handle parent, dp_pool_handle share, uint32_t len, dp_loc loc) {
        handle_ = dp_pool_init(dp_space_of(position), parent, share, len, bufIDSize, loc);
    }
    dp_pool_handle dp_handle() const { return handle_; }

private:
    dp_pool_handle handle_ = 0;
};

/*
 * Makes CLASS a pool of the user's own, for TPipe::InitBufPool: its InitBuffer functions take memory from GetCurAddr() on, in bytes
 * from the pool's begin, give it to a queue or TBuf with InitStartBufHandle and InitBufHandle, and move SetCurAddr and
 * SetCurBufSize behind it. Handles are numbers of buffers: what lies where is said by addresses alone.
 */
#define EXTERN_IMPL_BUFPOOL(CLASS, POSITION, BUFID_SIZE)                                                               \
public:                                                                                                                \
    void Init() {                                                                                                      \
        dp_addr_ = 0;                                                                                                  \
        dp_count_ = 0;                                                                                                 \
    }                                                                                                                  \
    void Reset(dp_loc loc = dp_loc::current()) {                                                                       \
        dp_pool_reset(dp_pool_, loc);                                                                                  \
        Init();                                                                                                        \
    }                                                                                                                  \
    AscendC::TBufHandle GetBufHandle(uint8_t offset, dp_loc loc = dp_loc::current()) {                                 \
        if (DP_UNLIKELY(offset >= (BUFID_SIZE)))                                                                       \
            dp_pool_fault("GetBufHandle: offset is past the buffers of EXTERN_IMPL_BUFPOOL", offset, (BUFID_SIZE), loc); \
        return AscendC::dp_handle_of(offset + 1u);                                                                     \
    }                                                                                                                  \
    void SetCurAddr(uint32_t addr) { dp_addr_ = addr; }                                                                \
    uint32_t GetCurAddr() { return dp_addr_; }                                                                         \
    void SetCurBufSize(uint8_t count) { dp_count_ = count; }                                                           \
    uint8_t GetCurBufSize() { return dp_count_; }                                                                      \
    void dp_init(dp_pool_handle parent, dp_pool_handle share, uint32_t len, dp_loc loc) {                              \
        dp_pool_ = dp_pool_init(AscendC::dp_space_of(POSITION), parent, share, len, (BUFID_SIZE), loc);                \
        Init();                                                                                                        \
    }                                                                                                                  \
    dp_pool_handle dp_handle() const { return dp_pool_; }                                                              \
                                                                                                                       \
private:                                                                                                               \
    dp_pool_handle dp_pool_ = 0;                                                                                       \
    uint32_t dp_addr_ = 0;                                                                                             \
    uint8_t dp_count_ = 0

class TPipe {
public:
    explicit TPipe(dp_loc loc = dp_loc::current()) : loc_(loc) { dp_pipe_init(this, loc); }
    ~TPipe() { dp_pipe_destroy(this, loc_); }
    TPipe(const TPipe &) = delete;
    TPipe &operator=(const TPipe &) = delete;

    void Init(dp_loc loc = dp_loc::current()) { dp_pipe_init(this, loc); }
    void Destroy(dp_loc loc = dp_loc::current()) { dp_pipe_destroy(this, loc); }
    void Reset(dp_loc loc = dp_loc::current()) { dp_pipe_reset(this, loc); }

    template <class T>
    bool InitBuffer(T &queue, uint32_t num, uint32_t len, dp_loc loc = dp_loc::current()) {
        queue.dp_init(0, num, len, loc);
        return true;
    }
    template <TPosition position>
    bool InitBuffer(TBuf<position> &buffer, uint32_t len, dp_loc loc = dp_loc::current()) {
        buffer.dp_init(0, len, loc);
        return true;
    }
    template <class T>
    bool InitBufPool(T &pool, uint32_t len, dp_loc loc = dp_loc::current()) {
        pool.dp_init(0, 0, len, loc);
        return true;
    }
    template <class T, class U>
    bool InitBufPool(T &pool, uint32_t len, U &share, dp_loc loc = dp_loc::current()) {
        pool.dp_init(0, share.dp_handle(), len, loc);
        return true;
    }

    template <HardEvent event>
    TEventID AllocEventID(dp_loc loc = dp_loc::current()) {
        return dp_event_alloc(dp_pipes_of(event), loc);
    }
    template <HardEvent event>
    void ReleaseEventID(TEventID id, dp_loc loc = dp_loc::current()) {
        dp_event_release(dp_pipes_of(event), id, loc);
    }
    template <HardEvent event>
    TEventID FetchEventID(dp_loc loc = dp_loc::current()) {
        return dp_event_fetch(dp_pipes_of(event), loc);
    }
    TEventID FetchEventID(HardEvent event, dp_loc loc = dp_loc::current()) {
        return dp_event_fetch(dp_pipes_of(event), loc);
    }

    /* A tensor at an absolute byte offset of the position's memory; size in bytes. */
    template <TPosition position, typename T>
    LocalTensor<T> GetAbsAddr(int32_t offset, int32_t size, dp_loc loc = dp_loc::current()) const {
        uint64_t bytes = size < 0 ? UINT64_MAX : static_cast<uint64_t>(size);
        void *addr = dp_local_address(dp_space_of(position), offset < 0 ? UINT64_MAX : static_cast<uint64_t>(offset), bytes,
                                      loc);
        return LocalTensor<T>(addr, bytes, 0, position);
    }
    template <TPosition position>
    TBuffAddr GetAbsAddr(int32_t offset, int32_t len, dp_loc loc = dp_loc::current()) const {
        LocalTensor<uint8_t> tensor = GetAbsAddr<position, uint8_t>(offset, len, loc);
        TBuffAddr record;
        record.dataLen = tensor.GetLength();
        record.bufferAddr = static_cast<uint32_t>(offset);
        record.logicPos = static_cast<uint8_t>(position);
        record.absAddr = tensor.GetPhyAddr();
        return record;
    }

    /* Spill area in GM, offsets and sizes in bytes. The L1 form does not exist on dav-2201. */
    template <typename T>
    void InitSpmBuffer(const GlobalTensor<T> &workspace, int32_t bufferSize) {
        spill_.SetGlobalBuffer(reinterpret_cast<uint8_t *>(workspace.GetPhyAddr()), static_cast<uint64_t>(bufferSize));
    }
    template <typename T>
    void WriteSpmBuffer(const LocalTensor<T> &local, const DataCopyParams &params, int32_t offset = 0,
                        dp_loc loc = dp_loc::current()) {
        DataCopy(spill_[static_cast<uint64_t>(offset)], local.template ReinterpretCast<uint8_t>(), params, loc);
    }
    template <typename T>
    void WriteSpmBuffer(const LocalTensor<T> &local, int32_t size, int32_t offset = 0, dp_loc loc = dp_loc::current()) {
        DataCopy(spill_[static_cast<uint64_t>(offset)], local.template ReinterpretCast<uint8_t>(),
                 static_cast<uint32_t>(size), loc);
    }
    template <typename T>
    void ReadSpmBuffer(const LocalTensor<T> &local, const DataCopyParams &params, int32_t offset = 0,
                       dp_loc loc = dp_loc::current()) {
        DataCopy(local.template ReinterpretCast<uint8_t>(), spill_[static_cast<uint64_t>(offset)], params, loc);
    }
    template <typename T>
    void ReadSpmBuffer(const LocalTensor<T> &local, int32_t size, int32_t offset = 0, dp_loc loc = dp_loc::current()) {
        DataCopy(local.template ReinterpretCast<uint8_t>(), spill_[static_cast<uint64_t>(offset)],
                 static_cast<uint32_t>(size), loc);
    }

private:
    dp_loc loc_;
    GlobalTensor<uint8_t> spill_;
};

/* A tensor over all memory of the position that neither buffers nor variables have taken; true. */
template <typename T, TPosition pos>
inline bool PopStackBuffer(LocalTensor<T> &popLocal, dp_loc loc = dp_loc::current()) {
    static_assert(pos == TPosition::LCM, "PopStackBuffer takes memory of TPosition::LCM");
    dp_buffer_view rest = dp_pipe_rest(dp_space_of(pos), loc);
    popLocal = LocalTensor<T>(rest.addr, rest.size_bytes, rest.buffer_id, pos);
    return true;
}

/* Linear allocator: each Alloc moves the cursor on by a multiple of 32 bytes. */
template <Hardware hard = Hardware::UB>
class LocalMemAllocator {
    static constexpr TPosition own = hard == Hardware::UB    ? TPosition::VECCALC
                                     : hard == Hardware::L1  ? TPosition::A1
                                     : hard == Hardware::L0A ? TPosition::A2
                                     : hard == Hardware::L0B ? TPosition::B2
                                     : hard == Hardware::L0C ? TPosition::CO1
                                     : hard == Hardware::BIAS ? TPosition::C2
                                                              : TPosition::C2PIPE2GM;
    static_assert(hard != Hardware::GM && hard != Hardware::MAX, "LocalMemAllocator hands out memory of the core only");

public:
    uint32_t GetCurAddr() const { return cursor_; }

    template <TPosition position, class DataType, uint32_t tileSize>
    LocalTensor<DataType> Alloc(dp_loc loc = dp_loc::current()) {
        return take<position, DataType>(tileSize, loc);
    }
    template <class DataType, uint32_t tileSize>
    LocalTensor<DataType> Alloc(dp_loc loc = dp_loc::current()) {
        return take<own, DataType>(tileSize, loc);
    }
    template <TPosition position, class DataType>
    LocalTensor<DataType> Alloc(uint32_t tileSize, dp_loc loc = dp_loc::current()) {
        return take<position, DataType>(tileSize, loc);
    }
    template <class DataType>
    LocalTensor<DataType> Alloc(uint32_t tileSize, dp_loc loc = dp_loc::current()) {
        return take<own, DataType>(tileSize, loc);
    }

private:
    template <TPosition position, class T>
    LocalTensor<T> take(uint32_t elements, dp_loc loc) {
        static_assert(dp_space_of(position) == dp_space_of(own), "the position is not in the memory of this allocator");
        uint64_t bytes = dp_bytes_of<T>(elements);
        void *addr = dp_local_address(dp_space_of(position), cursor_, bytes, loc);
        cursor_ += static_cast<uint32_t>((bytes + ONE_BLK_SIZE - 1) / ONE_BLK_SIZE * ONE_BLK_SIZE);
        return LocalTensor<T>(addr, bytes, 0, position);
    }
    uint32_t cursor_ = 0;
};

} // namespace AscendC

/* The TPipe of this core, NULL before there is one. */
inline AscendC::TPipe *GetTPipePtr() { return static_cast<AscendC::TPipe *>(dp_pipe_object()); }
namespace AscendC {
using ::GetTPipePtr;
}

#endif
