// Indexes of TensorFlow checkpoints byte by byte, with every field free to lie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest/crc32c.hpp"
#include "base/file/file.hpp"
#include "support/make_zip.hpp"

namespace masque::test {

using Rows = std::vector<std::pair<std::string, std::string>>;

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}

/// Fields of protobuf messages: a number, a text or a message, four bytes.
inline std::string field(unsigned number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}
inline std::string field(unsigned number, const std::string& text) {
  return varint(number << 3 | 2) + varint(text.size()) + text;
}
inline std::string fixed_field(unsigned number, std::uint64_t value) {
  return varint(number << 3 | 5) + test::number(value, 4);
}

/// Entries with shared prefixes, a restart at every `restart`-th.
inline std::string make_block(const Rows& rows, std::size_t restart = 16) {
  std::string out;
  std::string restarts;
  std::string before;
  std::size_t count = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [key, value] = rows[i];
    std::size_t shared = 0;
    if (i % restart == 0) {
      restarts += number(out.size(), 4);
      ++count;
    } else {
      while (shared < before.size() && shared < key.size() && before[shared] == key[shared])
        ++shared;
    }
    out += varint(shared) + varint(key.size() - shared) + varint(value.size()) +
           key.substr(shared) + value;
    before = key;
  }
  if (rows.empty()) restarts = number(0, 4);
  return out + restarts + number(rows.empty() ? 1 : count, 4);
}

/// A block with its kind and sum.
inline std::string sealed(const std::string& block, char kind = 0) {
  const std::string summed = block + kind;
  return summed + number(masked_crc32c(crc32c(as_bytes(summed))), 4);
}

/// The handle of a sealed block at `offset`.
inline std::string handle(std::uint64_t offset, const std::string& block) {
  return varint(offset) + varint(block.size() - 5);
}

inline std::string table_footer(const std::string& meta, const std::string& index) {
  std::string handles = meta + index;
  handles.resize(40, '\0');
  return handles + "\x57\xFB\x80\x8B\x24\x75\x47\xDB";
}

/// A table of sealed blocks, each with the key that the index has for it.
inline std::string make_table_of(const Rows& blocks) {
  std::string out;
  Rows index;
  for (const auto& [key, block] : blocks) {
    index.emplace_back(key, handle(out.size(), block));
    out += block;
  }
  const std::string meta = sealed(make_block({}));
  const std::string meta_handle = handle(out.size(), meta);
  out += meta;
  const std::string last = sealed(make_block(index, 1));
  const std::string index_handle = handle(out.size(), last);
  return out + last + table_footer(meta_handle, index_handle);
}

/// A table with `per_block` entries a block.
inline std::string make_table(const Rows& rows, std::size_t per_block = 100) {
  Rows blocks;
  for (std::size_t i = 0; i < rows.size(); i += per_block) {
    const std::size_t end = std::min(rows.size(), i + per_block);
    const Rows part(rows.begin() + static_cast<std::ptrdiff_t>(i),
                    rows.begin() + static_cast<std::ptrdiff_t>(end));
    blocks.emplace_back(part.back().first, sealed(make_block(part, 2)));
  }
  return make_table_of(blocks);
}

/// What an index says of a tensor, float32 [2,3] if nothing else is said.
struct BundleParts {
  std::uint64_t type = 1;
  std::vector<std::uint64_t> shape = {2, 3};
  std::uint64_t shard = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 24;
  std::uint64_t crc = 0;
  std::string slices = {};  ///< fields, see slice_field
};

inline std::string shape_message(const std::vector<std::uint64_t>& shape) {
  std::string out;
  for (const std::uint64_t size : shape) out += field(2, size == 0 ? "" : field(1, size));
  return out;
}

/// A slice: start and length of each dimension.
inline std::string slice_field(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& slice) {
  std::string out;
  for (const auto& [start, length] : slice) out += field(1, field(1, start) + field(2, length));
  return field(7, out);
}

inline std::string bundle_entry(const BundleParts& parts) {
  return field(1, parts.type) + field(2, shape_message(parts.shape)) + field(3, parts.shard) +
         field(4, parts.offset) + field(5, parts.size) + fixed_field(6, parts.crc) + parts.slices;
}

inline std::string bundle_header(std::uint64_t shards = 1) {
  return field(1, shards) + field(3, field(1, 1));
}

/// An index with these entries.
inline std::string make_index(Rows rows, const std::string& header = bundle_header()) {
  rows.insert(rows.begin(), {"", header});
  return make_table(rows);
}

}  // namespace masque::test
