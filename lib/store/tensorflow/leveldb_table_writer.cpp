#include "store/tensorflow/leveldb_table_writer.hpp"

#include <algorithm>
#include <utility>

#include "base/crc32c.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "store/tensorflow/wire_writer.hpp"

namespace masque::store {

namespace {

constexpr std::size_t kBlockBytes = 256 << 10;
constexpr std::size_t kHandlesBytes = 40;
constexpr std::string_view kMagic = "\x57\xFB\x80\x8B\x24\x75\x47\xDB";
constexpr unsigned kLastByte = 0xFF;

std::size_t shared_bytes(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

std::string cut_and_raised(std::string_view key, std::size_t at) {
  std::string out(key.substr(0, at + 1));
  out.back() = static_cast<char>(byte_at(key, at) + 1);
  return out;
}

/// A short key from `before` on and in front of `after`, as LevelDB picks it.
std::string separator(std::string_view before, std::string_view after) {
  const std::size_t at = shared_bytes(before, after);
  const bool inside = at < before.size() && at < after.size();
  if (!inside || byte_at(before, at) + 1 >= byte_at(after, at)) return std::string(before);
  return cut_and_raised(before, at);
}

/// A short key not in front of `key`.
std::string successor(std::string_view key) {
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (byte_at(key, i) != kLastByte) return cut_and_raised(key, i);
  }
  return std::string(key);
}

}  // namespace

void LevelDbTableWriter::Block::add(std::string_view key, std::string_view value) {
  std::size_t shared = 0;
  if (since_restart_ < interval_) {
    shared = shared_bytes(last_key_, key);
  } else {
    restarts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    since_restart_ = 0;
  }
  wire::put_varint(bytes_, shared);
  wire::put_varint(bytes_, key.size() - shared);
  wire::put_varint(bytes_, value.size());
  bytes_ += key.substr(shared);
  bytes_ += value;
  last_key_ = key;
  ++since_restart_;
}

std::string LevelDbTableWriter::Block::finish() {
  for (const std::uint32_t restart : restarts_) wire::put_u32(bytes_, restart);
  wire::put_u32(bytes_, static_cast<std::uint32_t>(restarts_.size()));
  std::string out = std::move(bytes_);
  *this = Block(interval_);
  return out;
}

std::string LevelDbTableWriter::write(Block& block) {
  std::string handle;
  wire::put_varint(handle, file_.size());
  std::string bytes = block.finish();
  wire::put_varint(handle, bytes.size());
  bytes += '\0';  // not compressed
  file_ += bytes;
  wire::put_u32(file_, masked_crc32c(crc32c(as_bytes(bytes))));
  return handle;
}

void LevelDbTableWriter::note_block(const std::string& key) {
  if (pending_.empty()) return;
  index_.add(key, pending_);
  pending_.clear();
}

void LevelDbTableWriter::add(std::string_view key, std::string_view value) {
  MASQUE_CHECK(!any_ || last_key_ < key);
  any_ = true;
  if (!pending_.empty()) note_block(separator(last_key_, key));
  last_key_ = key;
  data_.add(key, value);
  if (data_.size() >= kBlockBytes) pending_ = write(data_);
}

std::string LevelDbTableWriter::finish() {
  if (!data_.empty()) pending_ = write(data_);
  Block meta(1);
  std::string handles = write(meta);
  note_block(successor(last_key_));
  handles += write(index_);
  handles.resize(kHandlesBytes, '\0');
  file_ += handles;
  file_ += kMagic;
  return std::move(file_);
}

}  // namespace masque::store
