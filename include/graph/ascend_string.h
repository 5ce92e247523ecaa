/*
 * ascend_string.h - a text whose layout does not depend on the form of std::string.
 */
#ifndef DOPPEL_GRAPH_ASCEND_STRING_H
#define DOPPEL_GRAPH_ASCEND_STRING_H

#include <cstddef>
#include <cstring>
#include <vector>

namespace ge {

class AscendString {
  public:
    AscendString() = default;
    AscendString(const char *text) {
        if (text)
            bytes_.assign(text, text + std::strlen(text) + 1);
    }
    AscendString(const char *text, size_t length) {
        if (text) {
            bytes_.assign(text, text + length);
            bytes_.push_back('\0');
        }
    }
    const char *GetString() const { return bytes_.empty() ? "" : bytes_.data(); }
    size_t GetLength() const { return std::strlen(GetString()); }
    bool operator<(const AscendString &other) const { return std::strcmp(GetString(), other.GetString()) < 0; }
    bool operator>(const AscendString &other) const { return other < *this; }
    bool operator==(const AscendString &other) const { return std::strcmp(GetString(), other.GetString()) == 0; }
    bool operator!=(const AscendString &other) const { return !(*this == other); }

  private:
    std::vector<char> bytes_;
};

} // namespace ge

#endif
