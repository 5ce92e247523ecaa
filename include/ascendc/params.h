/*
 * params.h - the parameter structs of the vector and copy instructions: members, defaults, units and constructor order as
 * documented for dav-2201. Strides of "blocks" are 32-byte blocks, start to start, unless a member says "gap".
 */
#ifndef DOPPEL_ASCENDC_PARAMS_H
#define DOPPEL_ASCENDC_PARAMS_H

#include "ascendc/types.h"

namespace AscendC {

struct UnaryRepeatParams {
    uint32_t blockNumber = 8; /* informative */
    uint16_t dstBlkStride = 1, srcBlkStride = 1;
    uint8_t dstRepStride = 8, srcRepStride = 8;
    bool repeatStrideMode = false, strideSizeMode = false; /* reserved */
    bool halfBlock = false;                                /* CastDeq: upper or lower half of the destination block */

    UnaryRepeatParams() = default;
    UnaryRepeatParams(uint16_t dst_blk, uint16_t src_blk, uint8_t dst_rep, uint8_t src_rep, bool half_block = false)
        : dstBlkStride(dst_blk), srcBlkStride(src_blk), dstRepStride(dst_rep), srcRepStride(src_rep),
          halfBlock(half_block) {}
};

struct BinaryRepeatParams {
    uint32_t blockNumber = 8; /* informative */
    uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1;
    uint8_t dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
    bool repeatStrideMode = false, strideSizeMode = false; /* reserved */

    BinaryRepeatParams() = default;
    BinaryRepeatParams(uint8_t dst_blk, uint8_t src0_blk, uint8_t src1_blk, uint8_t dst_rep, uint8_t src0_rep,
                       uint8_t src1_rep)
        : dstBlkStride(dst_blk), src0BlkStride(src0_blk), src1BlkStride(src1_blk), dstRepStride(dst_rep),
          src0RepStride(src0_rep), src1RepStride(src1_rep) {}
};

struct BrcbRepeatParams {
    uint32_t blockNumber = 8; /* informative */
    uint16_t dstRepStride = 8, dstBlkStride = 1;
    uint8_t src0BlkStride = 1, src1BlkStride = 1, src0RepStride = 8, src1RepStride = 8;
    bool repeatStrideMode = false, strideSizeMode = false; /* reserved */

    BrcbRepeatParams() = default;
    BrcbRepeatParams(uint16_t dst_blk, uint16_t dst_rep) : dstRepStride(dst_rep), dstBlkStride(dst_blk) {}
};

struct CopyRepeatParams {
    uint16_t dstStride = 0, srcStride = 0;         /* blocks, inside a repeat */
    uint16_t dstRepeatSize = 8, srcRepeatSize = 8; /* blocks, between repeats, 0..4095 */

    CopyRepeatParams() = default;
    CopyRepeatParams(uint16_t dst, uint16_t src, uint16_t dst_repeat, uint16_t src_repeat)
        : dstStride(dst), srcStride(src), dstRepeatSize(dst_repeat), srcRepeatSize(src_repeat) {}
};

struct DataCopyParams {
    uint16_t blockCount = 1; /* 1..4095 (0..4095 in DataCopyPad) */
    uint16_t blockLen = 0;   /* blocks; bytes in DataCopyPad; 64 B L1->BT, 128 B L1->FB */
    uint16_t srcStride = 0;  /* gap in blocks; in bytes on the GM side of DataCopyPad */
    uint16_t dstStride = 0;  /* gap, likewise */

    DataCopyParams() = default;
    DataCopyParams(uint16_t count, uint16_t len, uint16_t src_stride, uint16_t dst_stride)
        : blockCount(count), blockLen(len), srcStride(src_stride), dstStride(dst_stride) {}
};

/* Only the defaults mean something on this chip's vector paths; the rest belongs to paths out of L0C. */
struct DataCopyEnhancedParams {
    BlockMode blockMode = BlockMode::BLOCK_MODE_NORMAL;
    DeqScale deqScale = DeqScale::DEQ_NONE;
    uint64_t deqValue = 0;
    uint8_t sidStoreMode = 0;
    bool isRelu = false;
    pad_t padMode = pad_t::PAD_NONE;
    uint64_t padValue = 0;
    uint64_t deqTensorAddr = 0;

    DataCopyEnhancedParams() = default;
    DataCopyEnhancedParams(BlockMode block_mode, DeqScale deq_scale, uint64_t deq_value, uint8_t sid_store_mode,
                           bool is_relu, pad_t pad_mode, uint64_t pad_value)
        : blockMode(block_mode), deqScale(deq_scale), deqValue(deq_value), sidStoreMode(sid_store_mode),
          isRelu(is_relu), padMode(pad_mode), padValue(pad_value) {}
};

struct DataCopyExtParams {
    uint16_t blockCount = 1; /* 0..4095 */
    uint32_t blockLen = 0;   /* bytes, 0..2097151 */
    uint32_t srcStride = 0;  /* gap: bytes if the source is GM, blocks if it is UB */
    uint32_t dstStride = 0;  /* gap: bytes if the destination is GM, blocks if it is UB */
    uint32_t rsv = 0;

    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t len, uint32_t src_stride, uint32_t dst_stride, uint32_t reserved)
        : blockCount(count), blockLen(len), srcStride(src_stride), dstStride(dst_stride), rsv(reserved) {}
};

struct DataCopyPadParams {
    bool isPad = false;                         /* true: pad with paddingValue */
    uint8_t leftPadding = 0, rightPadding = 0;  /* elements, at most 32 bytes each */
    uint64_t paddingValue = 0;                  /* the low sizeof(element) bytes */

    DataCopyPadParams() = default;
    DataCopyPadParams(bool is_pad, uint8_t left, uint8_t right, uint64_t value)
        : isPad(is_pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

template <typename T>
struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0; /* elements, at most 32 bytes each */
    T paddingValue = 0;

    DataCopyPadExtParams() = default;
    DataCopyPadExtParams(bool is_pad, uint8_t left, uint8_t right, T value)
        : isPad(is_pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

struct Nd2NzParams {
    uint16_t ndNum = 0;             /* matrices, 0..4095 */
    uint16_t nValue = 0;            /* rows, 0..16384 */
    uint16_t dValue = 0;            /* columns, 0..65535 */
    uint16_t srcNdMatrixStride = 0; /* elements, start to start of matrices */
    uint16_t srcDValue = 0;         /* elements, row pitch of the source, 1..65535 */
    uint16_t dstNzC0Stride = 0;     /* blocks, neighbouring C0 columns, 1..16384 */
    uint16_t dstNzNStride = 0;      /* blocks, neighbouring rows, 1..16384 */
    uint16_t dstNzMatrixStride = 0; /* elements, start to start of matrices */

    Nd2NzParams() = default;
    Nd2NzParams(uint16_t nd_num, uint16_t n_value, uint16_t d_value, uint16_t src_matrix, uint16_t src_d,
                uint16_t dst_c0, uint16_t dst_n, uint16_t dst_matrix)
        : ndNum(nd_num), nValue(n_value), dValue(d_value), srcNdMatrixStride(src_matrix), srcDValue(src_d),
          dstNzC0Stride(dst_c0), dstNzNStride(dst_n), dstNzMatrixStride(dst_matrix) {}
};

struct Nz2NdParamsFull {
    uint16_t ndNum = 1;             /* matrices, 0..4095 */
    uint16_t nValue = 0;            /* rows, 1..8192 */
    uint16_t dValue = 0;            /* columns, 1..8192, multiple of 16 */
    uint16_t srcNdMatrixStride = 1; /* fractals of 256 elements, 1..512 */
    uint16_t srcNStride = 0;        /* C0 groups of 16 elements, 0..4095 */
    uint16_t dstDStride = 0;        /* elements, row pitch, 1..65535 */
    uint16_t dstNdMatrixStride = 1; /* elements, 1..65535 */

    Nz2NdParamsFull() = default;
    Nz2NdParamsFull(uint16_t nd_num, uint16_t n_value, uint16_t d_value, uint16_t src_matrix, uint16_t src_n,
                    uint16_t dst_d, uint16_t dst_matrix)
        : ndNum(nd_num), nValue(n_value), dValue(d_value), srcNdMatrixStride(src_matrix), srcNStride(src_n),
          dstDStride(dst_d), dstNdMatrixStride(dst_matrix) {}
};

struct SliceInfo {
    uint32_t startIndex = 0; /* elements */
    uint32_t endIndex = 31;  /* elements, inclusive */
    uint32_t stride = 0;     /* elements, gap between bursts of this dimension */
    uint32_t burstLen = 32;  /* blocks, dimension 0 only; 1 in the others */
    uint32_t shapeValue = 0; /* elements, full length of the dimension */

    SliceInfo() = default;
    SliceInfo(uint32_t start, uint32_t end, uint32_t stride_in, uint32_t burst, uint32_t shape = 0)
        : startIndex(start), endIndex(end), stride(stride_in), burstLen(burst), shapeValue(shape) {}
};

struct GatherRepeatParams {
    uint32_t blockNumber = 8; /* informative */
    uint16_t dstRepStride = 8;
    uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, src0RepStride = 8, src1RepStride = 8;
    bool repeatStrideMode = false, strideSizeMode = false; /* reserved */

    GatherRepeatParams() = default;
    GatherRepeatParams(uint8_t dst_blk, uint8_t dst_rep) : dstRepStride(dst_rep), dstBlkStride(dst_blk) {}
};

struct GatherMaskParams {
    uint8_t src0BlockStride = 1;
    uint16_t repeatTimes = 0;
    uint16_t src0RepeatStride = 8;
    uint8_t src1RepeatStride = 8; /* 0: the same pattern for every repeat */

    GatherMaskParams() = default;
    GatherMaskParams(uint8_t src0_block, uint16_t repeat, uint16_t src0_repeat, uint8_t src1_repeat)
        : src0BlockStride(src0_block), repeatTimes(repeat), src0RepeatStride(src0_repeat),
          src1RepeatStride(src1_repeat) {}
};

template <typename U>
struct InitConstValueParams {
    uint16_t repeatTimes = 0; /* 0..32767 */
    uint16_t blockNum = 0;    /* 512 B blocks in L0A and L0B, 32 B in L1, 0..32767 */
    uint16_t dstGap = 0;      /* gap, same unit */
    U initValue = 0;

    InitConstValueParams() = default;
    InitConstValueParams(uint16_t repeat, uint16_t blocks, uint16_t gap, U value)
        : repeatTimes(repeat), blockNum(blocks), dstGap(gap), initValue(value) {}
    InitConstValueParams(uint16_t repeat, U value) : repeatTimes(repeat), initValue(value) {}
};

struct MrgSort4Info {
    uint16_t elementLengths[4] = {};    /* entries per list, 0..4095 */
    bool ifExhaustedSuspension = false; /* stop when one list is used up */
    uint16_t validBit = 0;              /* 3, 7 or 15: which lists take part */
    uint8_t repeatTimes = 1;            /* more than 1 only with four full equal lists */

    MrgSort4Info() = default;
    MrgSort4Info(const uint16_t lengths[4], bool suspend, uint16_t valid, uint16_t repeat)
        : elementLengths{lengths[0], lengths[1], lengths[2], lengths[3]}, ifExhaustedSuspension(suspend),
          validBit(valid), repeatTimes(static_cast<uint8_t>(repeat)) {}
};

struct TransDataTo5HDParams {
    bool dstHighHalf = false, srcHighHalf = false; /* 8-bit types: upper half of the blocks */
    uint8_t repeatTimes = 1;
    uint16_t dstRepStride = 0, srcRepStride = 0; /* 0 when repeatTimes is 1 */

    TransDataTo5HDParams() = default;
    TransDataTo5HDParams(bool dst_high, bool src_high, uint8_t repeat, uint16_t dst_rep, uint16_t src_rep)
        : dstHighHalf(dst_high), srcHighHalf(src_high), repeatTimes(repeat), dstRepStride(dst_rep),
          srcRepStride(src_rep) {}
};

struct TransposeParamsExt {
    uint16_t nSize = 0, cSize = 0, hSize = 0, wSize = 0;
    TransposeType transposeType = TransposeType::TRANSPOSE_ND2ND_B16;

    TransposeParamsExt() = default;
    TransposeParamsExt(uint16_t n, uint16_t c, uint16_t h, uint16_t w, TransposeType type)
        : nSize(n), cSize(c), hSize(h), wSize(w), transposeType(type) {}
};

struct VdeqInfo {
    float vdeqScale[16] = {};
    int16_t vdeqOffset[16] = {};  /* 9-bit signed range */
    bool vdeqSignMode[16] = {};   /* true: int8 result, false: uint8 */

    VdeqInfo() = default;
    VdeqInfo(const float scale[16], const int16_t offset[16], const bool sign[16]) {
        for (int i = 0; i < 16; i++) {
            vdeqScale[i] = scale[i];
            vdeqOffset[i] = offset[i];
            vdeqSignMode[i] = sign[i];
        }
    }
};

struct PadParams {
    uint16_t leftPad = 0, rightPad = 0;
    int32_t padValue = 0;

    PadParams() = default;
    PadParams(uint16_t left, uint16_t right, int32_t value) : leftPad(left), rightPad(right), padValue(value) {}
};

struct UnPadParams {
    uint16_t leftPad = 0, rightPad = 0;

    UnPadParams() = default;
    UnPadParams(uint16_t left, uint16_t right) : leftPad(left), rightPad(right) {}
};

struct ReduceRepeatParams {
    uint64_t highMask = 0, lowMask = 0;
    uint64_t bitMask[2] = {};
    int32_t normalMask = 0, maskMode = 0; /* maskMode 0: normalMask lanes, 1: bitMask */
    int32_t repeatTimes = 0, dstRepStride = 0, srcBlkStride = 0, srcRepStride = 0;

    ReduceRepeatParams() = default;
    ReduceRepeatParams(int32_t mask, int32_t repeat, int32_t dst_rep, int32_t src_blk, int32_t src_rep)
        : normalMask(mask), repeatTimes(repeat), dstRepStride(dst_rep), srcBlkStride(src_blk), srcRepStride(src_rep) {}
    ReduceRepeatParams(const uint64_t mask[2], int32_t repeat, int32_t dst_rep, int32_t src_blk, int32_t src_rep)
        : highMask(mask[1]), lowMask(mask[0]), bitMask{mask[0], mask[1]}, maskMode(1), repeatTimes(repeat),
          dstRepStride(dst_rep), srcBlkStride(src_blk), srcRepStride(src_rep) {}
};

struct ProposalIntriParams {
    int32_t repeat = 0, modeNumber = 0;

    ProposalIntriParams() = default;
    ProposalIntriParams(int32_t repeat_times, int32_t mode) : repeat(repeat_times), modeNumber(mode) {}
};

struct CheckLocalMemoryIAParam {
    uint8_t enableBit = 0;
    uint32_t startAddr = 0, endAddr = 0; /* blocks */
    bool isScalarRead = false, isScalarWrite = false, isVectorRead = false, isVectorWrite = false;
    bool isMteRead = false, isMteWrite = false, isEnable = false;
    uint32_t reserved = 0;

    CheckLocalMemoryIAParam() = default;
    CheckLocalMemoryIAParam(uint8_t bit, uint32_t start, uint32_t end, bool scalar_read, bool scalar_write,
                            bool vector_read, bool vector_write, bool mte_read, bool mte_write, bool enable)
        : enableBit(bit), startAddr(start), endAddr(end), isScalarRead(scalar_read), isScalarWrite(scalar_write),
          isVectorRead(vector_read), isVectorWrite(vector_write), isMteRead(mte_read), isMteWrite(mte_write),
          isEnable(enable) {}
};

/* Shape a tensor may carry; instructions do not use it, library functions may. */
struct ShapeInfo {
    uint8_t shapeDim = 0, originalShapeDim = 0;
    uint32_t shape[K_MAX_SHAPE_DIM] = {};
    uint32_t originalShape[K_MAX_SHAPE_DIM] = {};
    DataFormat dataFormat = DataFormat::ND;

    ShapeInfo() = default;
    ShapeInfo(uint8_t dim, const uint32_t dims[], uint8_t original_dim, const uint32_t original_dims[],
              DataFormat format)
        : shapeDim(dim), originalShapeDim(original_dim), dataFormat(format) {
        for (unsigned i = 0; i < K_MAX_SHAPE_DIM; i++) {
            shape[i] = i < dim ? dims[i] : 0;
            originalShape[i] = i < original_dim ? original_dims[i] : 0;
        }
    }
    ShapeInfo(uint8_t dim, const uint32_t dims[], DataFormat format = DataFormat::ND)
        : ShapeInfo(dim, dims, dim, dims, format) {}
};

} // namespace AscendC

#endif
