// The bytes of a GGUF file's header, one after the other, each compared with what is left before
// memory is allocated.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/little_endian.hpp"
#include "base/types.hpp"
#include "store/violation.hpp"

namespace masque::store {

/// Fills `out` with bytes of a file from byte `offset` on, inside of it.
using GgufRead = std::function<void(std::uint64_t offset, MutableBytes out)>;

/// Reads forward. Functions that return bool return false at the first broken rule, which
/// violation() is from then on. For one thread.
class GgufCursor {
 public:
  /// Begins at byte 0 of a file of `size` bytes that `read` reads, which must outlive the cursor.
  GgufCursor(const GgufRead& read, std::uint64_t size) : read_(read), size_(size) {}

  /// The byte of the file that is read next.
  std::uint64_t offset() const { return at_; }
  /// Bytes from there to the end of the file.
  std::uint64_t left() const { return size_ - at_; }
  /// The first broken rule; nothing as long as none is.
  const std::optional<Violation>& violation() const { return violation_; }

  /// Notes a broken `rule` with its `message`, the byte `offset` and the name of the `tensor` that
  /// it is about, unless one is noted already; returns false.
  bool fail(std::string rule, std::string message, std::uint64_t offset, std::string tensor = {});

  /// Sets `out` to the next number, little-endian, in the width of its type.
  template <class Number>
  bool number(Number& out) {
    if (!need(sizeof(Number))) return false;
    fetch(sizeof(Number));
    out = load_number<Number>(buffer_.data() + (at_ - begin_));
    at_ += sizeof(Number);
    return true;
  }

  /// Adds the next `count` bytes to `out`.
  bool bytes(std::uint64_t count, std::string& out);

  /// Sets `out` to the next text: a length of 64 bits and so many bytes, at most `most`.
  bool text(std::uint64_t most, std::string& out);

 private:
  bool need(std::uint64_t count);
  /// Makes the next `count` bytes, a few, lie in the buffer.
  void fetch(std::uint64_t count);

  const GgufRead& read_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0;  ///< of the buffer, in the file
  std::optional<Violation> violation_;
};

}  // namespace masque::store
