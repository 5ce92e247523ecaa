/*
 * tilingdata_base.h - tiling structs that host code and kernel share, declared field by field.
 *
 *     BEGIN_TILING_DATA_DEF(AddTiling)
 *     TILING_DATA_FIELD_DEF(uint32_t, length);
 *     TILING_DATA_FIELD_DEF_ARR(uint32_t, 4, shape);
 *     END_TILING_DATA_DEF;
 *
 * is a plain struct with the fields in that order, and for host code set_<field>(), get_<field>(), GetDataSize() and
 * SaveToBuffer(). All fields start as 0.
 */
#ifndef DOPPEL_REGISTER_TILINGDATA_BASE_H
#define DOPPEL_REGISTER_TILINGDATA_BASE_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#define BEGIN_TILING_DATA_DEF(name)                                                                                   \
    struct name {                                                                                                     \
        size_t GetDataSize() const { return sizeof(*this); }                                                          \
        /* Copies as much of the struct as fits. */                                                                   \
        void SaveToBuffer(void *buffer, size_t capacity) const {                                                      \
            std::memcpy(buffer, this, capacity < sizeof(*this) ? capacity : sizeof(*this));                           \
        }

#define TILING_DATA_FIELD_DEF(type, field)                                                                            \
    type field = 0;                                                                                                   \
    void set_##field(type value) { field = value; }                                                                   \
    type get_##field() const { return field; }                                                                        \
    static_assert(true, "")

#define TILING_DATA_FIELD_DEF_ARR(type, count, field)                                                                 \
    type field[count] = {};                                                                                           \
    void set_##field(const type *values) { std::memcpy(field, values, sizeof(field)); }                               \
    const type *get_##field() const { return field; }                                                                 \
    static_assert(true, "")

#define TILING_DATA_FIELD_DEF_STRUCT(type, field)                                                                     \
    type field;                                                                                                       \
    static_assert(true, "")

#define END_TILING_DATA_DEF }

#define REGISTER_TILING_DATA_CLASS(operator_name, struct_name)

#endif
