// The pieces <0x00> … <0xFF> of byte fallback.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "text/model.hpp"

namespace masque::text {

/// Ids of the pieces of all bytes, −1 where there is none.
class BytePieces {
 public:
  /// `find` gives the id of a token, if there is one.
  template <typename Find>
  explicit BytePieces(Find find) {
    for (std::size_t byte = 0; byte < ids_.size(); ++byte) {
      ids_[byte] = find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
    }
  }

  TokenId operator[](char byte) const { return ids_[static_cast<unsigned char>(byte)]; }
  /// Whether it is the piece of a byte.
  bool has(TokenId id) const { return std::find(ids_.begin(), ids_.end(), id) != ids_.end(); }
  /// Whether there is a piece for every byte of `text`.
  bool cover(std::string_view text) const {
    for (const char byte : text) {
      if ((*this)[byte] < 0) return false;
    }
    return true;
  }

 private:
  std::array<TokenId, 256> ids_{};
};

}  // namespace masque::text
