// Words and their ids, as a cache that one thread keeps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread/interrupt.hpp"
#include "base/types.hpp"

namespace masque::text {

/// The end of a vector that grows in big steps: appending is a store.
class IdSink {
 public:
  /// Appends to `ids`, which must outlive it; the vector has its right size after the destructor.
  explicit IdSink(std::vector<TokenId>& ids) : ids_(ids), size_(ids.size()) {}
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;
  ~IdSink() { ids_.resize(size_); }

  /// Room for `n` more ids; valid until the next call. Looks for signals when the vector grows.
  TokenId* reserve(std::size_t n) {
    if (ids_.size() - size_ < n) {
      throw_if_interrupted();
      ids_.resize(size_ + n + step_);
      step_ = std::min(step_ * 2, std::size_t{1} << 16);
    }
    return ids_.data() + size_;
  }
  /// `n` ids were written to what reserve() gave.
  void advance(std::size_t n) { size_ += n; }
  /// Appends `id`.
  void push(TokenId id) {
    *reserve(1) = id;
    advance(1);
  }
  /// Appends what `make`(ids) appends to the vector.
  template <typename Make>
  void append(Make make) {
    ids_.resize(size_);
    make(ids_);
    size_ = ids_.size();
  }

 private:
  std::vector<TokenId>& ids_;
  std::size_t size_;
  std::size_t step_ = 64;
};

/// The first 16 bytes of a word, zeros after its end.
struct WordKey {
  std::uint64_t low = 0;   ///< bytes 0 to 7, in the processor's order
  std::uint64_t high = 0;  ///< bytes 8 to 15
  bool operator==(const WordKey&) const = default;

  /// Bytes of a word that a key holds.
  static constexpr std::size_t kBytes = 16;

  /// The key of the word at byte `at` of `text`, of `size` ≤ 16 bytes.
  static WordKey of(std::string_view text, std::size_t at, std::size_t size) {
    WordKey key;
    if (text.size() - at < kBytes) {
      std::memcpy(&key, text.data() + at, size);
      return key;
    }
    std::memcpy(&key, text.data() + at, kBytes);
    if (size < 8) {
      key.low &= (std::uint64_t{1} << (8 * size)) - 1;
      key.high = 0;
    } else if (size < kBytes) {
      key.high &= (std::uint64_t{1} << (8 * (size - 8))) - 1;
    }
    return key;
  }
};

/// Remembers the ids of words: up to 16 bytes with 3 ids, up to 36 bytes with 6. Exact (whole words
/// are compared), of fixed size: newer words replace older ones. For one thread.
class WordCache {
 public:
  WordCache() : short_(std::size_t{2} << kShortBits), long_(std::size_t{1} << kLongBits) {}

  /// Appends the ids of a word of `size` ≤ 16 bytes with the key `key` to `sink`; false if it is
  /// not known.
  bool append(const WordKey& key, std::size_t size, IdSink& sink) {
    Short* pair = &short_[set_of(key, size)];
    if (pair->key != key || pair->size != size) {
      if (pair[1].key != key || pair[1].size != size) return false;
      std::swap(pair[0], pair[1]);
    }
    TokenId* out = sink.reserve(4);
    std::memcpy(out, pair->ids, sizeof pair->ids);
    sink.advance(pair->count);
    return true;
  }

  /// Appends the ids of `word`, of any length, to `sink`; false if it is not known.
  bool append(std::string_view word, IdSink& sink) {
    if (word.size() <= WordKey::kBytes &&
        append(WordKey::of(word, 0, word.size()), word.size(), sink)) {
      return true;
    }
    if (word.size() > sizeof(Long::text)) return false;
    const Long& slot = long_[place_of(word)];
    if (slot.size != word.size() || std::memcmp(slot.text, word.data(), word.size()) != 0) {
      return false;
    }
    std::copy_n(slot.ids, slot.count, sink.reserve(slot.count));
    sink.advance(slot.count);
    return true;
  }

  /// Remembers `word` with its `ids`, if both are small enough and the word is not empty.
  void put(std::string_view word, std::span<const TokenId> ids) {
    if (word.empty() || word.size() > sizeof(Long::text) || ids.size() > std::size(Long{}.ids)) {
      return;
    }
    if (word.size() <= WordKey::kBytes && ids.size() <= std::size(Short{}.ids)) {
      const WordKey key = WordKey::of(word, 0, word.size());
      Short* pair = &short_[set_of(key, word.size())];
      pair[1] = pair[0];
      pair[0] = {};
      pair->key = key;
      fill(*pair, word, ids);
      return;
    }
    Long& slot = long_[place_of(word)];
    std::memcpy(slot.text, word.data(), word.size());
    fill(slot, word, ids);
  }

 private:
  static constexpr int kShortBits = 15;
  static constexpr int kLongBits = 13;

  struct alignas(32) Short {
    WordKey key;
    TokenId ids[3] = {};
    std::uint8_t size = 0;  // 0: free
    std::uint8_t count = 0;
  };
  struct alignas(64) Long {
    char text[36] = {};
    TokenId ids[6] = {};
    std::uint8_t size = 0;
    std::uint8_t count = 0;
  };

  template <typename Slot>
  static void fill(Slot& slot, std::string_view word, std::span<const TokenId> ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) slot.ids[i] = ids[i];
    slot.size = static_cast<std::uint8_t>(word.size());
    slot.count = static_cast<std::uint8_t>(ids.size());
  }

  static std::uint64_t mix(const WordKey& key, std::size_t size) {
    std::uint64_t hash = key.low * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
    hash += (key.high ^ size) * 0xD6E8FEB86659FD93ULL;
    hash ^= hash >> 29;
    return hash * 0xA0761D6478BD642FULL;
  }
  static std::size_t set_of(const WordKey& key, std::size_t size) {
    return static_cast<std::size_t>(mix(key, size) >> (64 - kShortBits)) * 2;
  }
  static std::size_t place_of(std::string_view word) {
    std::uint64_t hash = word.size();
    for (std::size_t at = 0; at < word.size(); at += WordKey::kBytes) {
      const std::size_t size = std::min(WordKey::kBytes, word.size() - at);
      hash = mix(WordKey::of(word, at, size), hash);
    }
    return static_cast<std::size_t>(hash >> (64 - kLongBits));
  }

  std::vector<Short> short_;  // sets of two, the one used last first
  std::vector<Long> long_;
};

}  // namespace masque::text
