#include "text/model/vocabulary.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.hpp"

namespace masque::text {

namespace {

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

Vocabulary::Vocabulary(std::vector<VocabEntry> entries) {
  const auto by_id = [](const VocabEntry& a, const VocabEntry& b) { return a.second < b.second; };
  if (!std::is_sorted(entries.begin(), entries.end(), by_id)) {
    std::sort(entries.begin(), entries.end(), by_id);
  }
  std::size_t bytes = 0;
  for (const VocabEntry& entry : entries) bytes += entry.first.size();
  MASQUE_CHECK(bytes < std::numeric_limits<std::uint32_t>::max());
  text_.reserve(bytes);
  begin_.reserve(entries.size() + 1);
  slots_.resize(std::bit_ceil(entries.size() * 2 + 1));
  bool dense = true;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    text_ += entries[i].first;
    begin_.push_back(static_cast<std::uint32_t>(text_.size()));
    dense = dense && entries[i].second == static_cast<TokenId>(i);
    MASQUE_CHECK(insert(static_cast<std::uint32_t>(i)));
  }
  if (dense) return;
  ids_.reserve(entries.size());
  for (const VocabEntry& entry : entries) {
    MASQUE_CHECK(entry.second > (ids_.empty() ? -1 : ids_.back()));
    ids_.push_back(entry.second);
  }
}

bool Vocabulary::insert(std::uint32_t entry) {
  const std::string_view text = text_of(entry);
  const std::uint64_t hash = hash_of(text);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
    Slot& slot = slots_[at];
    if (slot.entry == 0) {
      slot = {tag, entry + 1};
      return true;
    }
    if (slot.tag == tag && text_of(slot.entry - 1) == text) return false;
  }
}

std::size_t Vocabulary::size() const {
  return ids_.empty() ? count() : static_cast<std::size_t>(ids_.back()) + 1;
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint64_t hash = hash_of(token);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.entry == 0) return std::nullopt;
    if (slot.tag == tag && text_of(slot.entry - 1) == token) {
      return ids_.empty() ? static_cast<TokenId>(slot.entry - 1) : ids_[slot.entry - 1];
    }
  }
}

std::string_view Vocabulary::token(TokenId id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= size()) return {};
  if (ids_.empty()) return text_of(static_cast<std::size_t>(id));
  const auto at = std::lower_bound(ids_.begin(), ids_.end(), id);
  return *at == id ? text_of(static_cast<std::size_t>(at - ids_.begin())) : std::string_view{};
}

std::vector<TrieKey> Vocabulary::keys() const {
  std::vector<TrieKey> out;
  out.reserve(count());
  for (std::size_t i = 0; i < count(); ++i) {
    out.push_back({text_of(i), ids_.empty() ? static_cast<TokenId>(i) : ids_[i]});
  }
  return out;
}

std::vector<bool> last_of_kind(std::span<const std::string> tokens) {
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t token = 0;  // + 1; 0: free
  };
  std::vector<Slot> slots(std::bit_ceil(tokens.size() * 2 + 1));
  std::vector<bool> last(tokens.size(), true);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint64_t hash = hash_of(tokens[i]);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t at = hash & (slots.size() - 1);
    while (slots[at].token != 0 &&
           (slots[at].tag != tag || tokens[slots[at].token - 1] != tokens[i])) {
      at = (at + 1) & (slots.size() - 1);
    }
    if (slots[at].token != 0) last[slots[at].token - 1] = false;
    slots[at] = {tag, static_cast<std::uint32_t>(i + 1)};
  }
  return last;
}

std::vector<VocabEntry> numbered(std::vector<std::string> tokens) {
  const std::vector<bool> last = last_of_kind(tokens);
  std::vector<VocabEntry> out;
  out.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (last[i]) out.emplace_back(std::move(tokens[i]), static_cast<TokenId>(i));
  }
  return out;
}

}  // namespace masque::text
