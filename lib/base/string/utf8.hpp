// UTF-8 as it comes: what is valid, and a stand-in for what is not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace masque {

/// Returns the length in bytes of the longest prefix of `text` that is valid UTF-8 (as
/// decode_utf8). Cost O(n), several bytes at a time where all are ASCII.
std::size_t valid_utf8_prefix(std::string_view text);

/// Whether all bytes of `text` are below 128.
inline bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

/// Whether all of `text` is valid UTF-8.
inline bool valid_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

/// Appends `text` to `out` with U+FFFD for every maximal subpart of an ill-formed sequence (Unicode
/// 15, 3.9; as Rust and Python's errors="replace"). Returns how many there were.
std::uint64_t append_replacing_invalid(std::string_view text, std::string& out);

/// What was not valid UTF-8 in a text and was replaced.
struct RepairedLines {
  std::uint64_t sequences = 0;  ///< that append_replacing_invalid() replaced
  std::uint64_t lines = 0;      ///< that had any

  /// Adds one line with `count` sequences; nothing if that is 0.
  void add_line(std::uint64_t count) {
    sequences += count;
    lines += count > 0 ? 1 : 0;
  }
  /// Adds the counts of `other`.
  void add(const RepairedLines& other) {
    sequences += other.sequences;
    lines += other.lines;
  }
};

/// Returns the number of code points of `text`, which is valid UTF-8.
std::size_t count_code_points(std::string_view text);

}  // namespace masque
