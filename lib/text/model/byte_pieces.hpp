// The pieces <0x00> … <0xFF> of byte fallback.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "text/model/model.hpp"

namespace masque::text {

/// Ids of the pieces of all bytes, −1 where there is none.
class BytePieces {
 public:
  /// `find`(token) gives the id of a token, as std::optional<TokenId>; called here only.
  template <typename Find>
  explicit BytePieces(Find find) {
    for (std::size_t byte = 0; byte < ids_.size(); ++byte) {
      ids_[byte] = find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
    }
  }

  /// The id of the piece of `byte`, −1 if there is none. Constant time.
  TokenId operator[](char byte) const { return ids_[static_cast<unsigned char>(byte)]; }
  /// Whether `id` is the piece of a byte. Compares with all 256.
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
