#include "train/data/corpus.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"

namespace masque::train {

void Corpus::add(std::span<const TokenId> ids, std::span<const std::uint8_t> segments) {
  MASQUE_CHECK(segments.empty() || segments.size() == ids.size());
  if (!segments.empty() || pairs()) {
    segments_.resize(ids_.size(), 0);
    segments_.insert(segments_.end(), segments.begin(), segments.end());
    segments_.resize(ids_.size() + ids.size(), 0);
  }
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  begins_.push_back(static_cast<Index>(ids_.size()));
}

Index Corpus::length(Index item) const {
  MASQUE_CHECK(0 <= item && item < size());
  const auto at = static_cast<std::size_t>(item);
  return begins_[at + 1] - begins_[at];
}

Index Corpus::longest() const {
  Index most = 0;
  for (Index i = 0; i < size(); ++i) most = std::max(most, length(i));
  return most;
}

CorpusItem Corpus::item(Index number) const {
  const auto count = static_cast<std::size_t>(length(number));
  const auto begin = static_cast<std::size_t>(begins_[static_cast<std::size_t>(number)]);
  CorpusItem item;
  item.number = static_cast<std::uint64_t>(number);
  item.ids = std::span(ids_).subspan(begin, count);
  if (pairs()) item.segments = std::span(segments_).subspan(begin, count);
  return item;
}

std::string Corpus::digest() const {
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  hasher->add(std::as_bytes(std::span(begins_)));
  hasher->add(std::as_bytes(std::span(ids_)));
  hasher->add(std::as_bytes(std::span(segments_)));
  return hasher->digest();
}

void check_length(const Corpus& corpus, Index most, std::string_view model) {
  if (most == 0 || corpus.longest() <= most) return;
  throw UsageError(fmt::format("{} {}: expected at most the {} positions of {}", field("length"),
                               corpus.longest(), most, model));
}

records::TokenTable token_table(const text::Tokenizer& tokenizer) {
  records::TokenTable table;
  table.size = static_cast<TokenId>(tokenizer.size());
  table.mask = tokenizer.roles().mask.value_or(-1);
  table.special.assign(tokenizer.size(), 0);
  table.begins_word.assign(tokenizer.size(), 0);
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    table.special[i] = tokenizer.is_special(id) ? 1 : 0;
    table.begins_word[i] = tokenizer.begins_word(id) ? 1 : 0;
  }
  return table;
}

std::string vocabulary_digest(const text::Tokenizer& tokenizer) {
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const std::string_view token = tokenizer.token(static_cast<TokenId>(i));
    // Lengths in front: "a", "bc" is not "ab", "c".
    const std::uint64_t bytes = token.size();
    hasher->add(std::as_bytes(std::span(&bytes, 1)));
    hasher->add(as_bytes(token));
  }
  return hasher->digest();
}

}  // namespace masque::train
