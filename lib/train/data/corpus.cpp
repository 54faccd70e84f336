#include "train/data/corpus.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"

namespace masque::train {

namespace {

/// Appends what a sequence has of a list with a value for each id; `fill(i)` stands for token i of
/// a sequence that has nothing. Lists begin with the first sequence that has something.
template <class T, class Fill>
void append_values(std::span<const T> values, const std::vector<Index>& begins, Index count,
                   std::vector<T>& out, const Fill& fill) {
  MASQUE_CHECK(values.empty() || std::ssize(values) == count);
  if (values.empty() && out.empty()) return;
  const bool first = out.empty();  // of these values: the sequences before get them as well
  for (std::size_t s = 0; first && s + 1 < begins.size(); ++s) {
    for (Index i = 0; i < begins[s + 1] - begins[s]; ++i) out.push_back(fill(i));
  }
  out.insert(out.end(), values.begin(), values.end());
  for (Index i = 0; values.empty() && i < count; ++i) out.push_back(fill(i));
}

}  // namespace

void Corpus::add(std::span<const TokenId> ids, std::span<const std::uint8_t> segments) {
  CorpusItem item;
  item.ids = ids;
  item.segments = segments;
  add(item);
}

Corpus::Corpus(CutSequences cut, std::vector<Index> lines)
    : cut_end_{cut.size()}, lines_(std::move(lines)) {
  MASQUE_CHECK(lines_.empty() || std::ssize(lines_) == cut.size());
  cut_.push_back(std::move(cut));
}

void Corpus::append(const Corpus& other) {
  MASQUE_CHECK(listed() == 0 && other.listed() == 0);
  for (const CutSequences& cut : other.cut_) {
    cut_end_.push_back(size() + cut.size());
    cut_.push_back(cut);
  }
  lines_.clear();
}

Corpus::CutPlace Corpus::find_cut(Index number) const {
  const auto end = std::ranges::upper_bound(cut_end_, number);
  const auto at = static_cast<std::size_t>(end - cut_end_.begin());
  return {cut_[at], number - (at > 0 ? cut_end_[at - 1] : 0)};
}

void Corpus::add(const CorpusItem& item) {
  MASQUE_CHECK(cut_.empty());
  const Index count = std::ssize(item.ids);
  append_values(item.segments, begins_, count, segments_, [](Index) { return std::uint8_t{0}; });
  append_values(item.positions, begins_, count, positions_,
                [](Index i) { return static_cast<std::int32_t>(i); });
  append_values(item.labels, begins_, count, labels_, [](Index) { return records::kNoLabel; });
  append_values(item.weights, begins_, count, weights_, [](Index) { return 1.0; });
  if (!item.mask.empty() || has_masks()) {
    masks_.resize(static_cast<std::size_t>(listed()));
    masks_.emplace_back(item.mask);
  }
  if (item.line > 0 || !lines_.empty()) {
    lines_.resize(static_cast<std::size_t>(listed()));
    lines_.push_back(item.line);
  }
  ids_.insert(ids_.end(), item.ids.begin(), item.ids.end());
  begins_.push_back(static_cast<Index>(ids_.size()));
}

Index Corpus::tokens() const {
  if (cut_.empty()) return begins_.back();
  Index sum = 0;
  for (const CutSequences& cut : cut_) sum += cut.tokens();
  return sum;
}

CutText Corpus::cut_text() const {
  CutText sum = listed_cut_;
  for (const CutSequences& cut : cut_) sum.add(cut.cut_text());
  return sum;
}

bool Corpus::in_files() const {
  return std::ranges::any_of(cut_, [](const CutSequences& cut) { return cut.in_files(); });
}

Index Corpus::length(Index item) const {
  MASQUE_CHECK(0 <= item && item < size());
  if (!cut_.empty()) {
    const CutPlace found = find_cut(item);
    return found.cut.length(found.number);
  }
  const auto at = static_cast<std::size_t>(item);
  return begins_[at + 1] - begins_[at];
}

Index Corpus::longest() const {
  Index most = 0;
  for (const CutSequences& cut : cut_) most = std::max(most, cut.longest());
  for (Index i = 0; i < listed(); ++i) most = std::max(most, length(i));
  return most;
}

Index Corpus::longest_read(const CorpusItem& item) const {
  const Index all = std::ssize(item.ids);
  if (!parts_apart_) return all;
  const Index source = std::ranges::find(item.segments, 1) - item.segments.begin();
  return std::max(source, all - source - 1);
}

Index Corpus::longest_read() const {
  if (!parts_apart_) return longest();
  Index most = 0;
  for (Index i = 0; i < size(); ++i) most = std::max(most, longest_read(item(i)));
  return most;
}

std::vector<Index> Corpus::first_of_lengths() const {
  std::set<Index> seen;
  std::vector<Index> out;
  const auto look = [&](Index number) {
    if (seen.insert(length(number)).second) out.push_back(number);
  };
  for (Index i = 0; i < listed(); ++i) look(i);
  for (std::size_t c = 0; c < cut_.size(); ++c) {
    for (const Index number : cut_[c].first_of_lengths())
      look(number + (c > 0 ? cut_end_[c - 1] : 0));
  }
  return out;
}

CorpusItem Corpus::item(Index number) const {
  if (!cut_.empty()) {
    const CutPlace found = find_cut(number);
    CorpusItem item;
    item.number = static_cast<std::uint64_t>(number);
    item.kept = std::make_shared<const std::vector<TokenId>>(found.cut.ids(found.number));
    item.ids = *item.kept;
    if (!lines_.empty()) item.line = lines_[static_cast<std::size_t>(number)];
    return item;
  }
  const auto count = static_cast<std::size_t>(length(number));
  const auto begin = static_cast<std::size_t>(begins_[static_cast<std::size_t>(number)]);
  CorpusItem item;
  item.number = static_cast<std::uint64_t>(number);
  item.ids = std::span(ids_).subspan(begin, count);
  const auto part = [&](const auto& values) {
    return values.empty() ? std::span(values) : std::span(values).subspan(begin, count);
  };
  item.segments = part(segments_);
  item.positions = part(positions_);
  item.labels = part(labels_);
  item.weights = part(weights_);
  if (has_masks()) item.mask = masks_[static_cast<std::size_t>(number)];
  if (!lines_.empty()) item.line = lines_[static_cast<std::size_t>(number)];
  return item;
}

Index Corpus::position_end() const {
  if (positions_.empty()) return longest_read();
  return 1 + static_cast<Index>(*std::ranges::max_element(positions_));
}

std::string Corpus::digest() const {
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  if (!cut_.empty()) {
    for (const CutSequences& cut : cut_) hasher->add(as_bytes(cut.digest()));
    return hasher->digest();
  }
  hasher->add(std::as_bytes(std::span(begins_)));
  hasher->add(std::as_bytes(std::span(ids_)));
  hasher->add(std::as_bytes(std::span(segments_)));
  hasher->add(std::as_bytes(std::span(positions_)));
  hasher->add(std::as_bytes(std::span(labels_)));
  hasher->add(std::as_bytes(std::span(weights_)));
  for (const std::string& mask : masks_) {
    const std::uint64_t bytes = mask.size();
    hasher->add(std::as_bytes(std::span(&bytes, 1)));
    hasher->add(as_bytes(mask));
  }
  return hasher->digest();
}

namespace {

std::string position_problem(Index found, Index most, std::string_view model) {
  return fmt::format("position {}, expected from 0 to {}, the {} positions of {}", found, most - 1,
                     most, model);
}

}  // namespace

void check_length(const Corpus& corpus, Index most, std::string_view model) {
  if (most == 0) return;
  if (const Index longest = corpus.longest_read(); longest > most) {
    throw UsageError(fmt::format("{} {}: expected at most {}, the positions of {}", field("length"),
                                 longest, most, model));
  }
  if (corpus.position_end() > most)
    throw InputError(corpus.source(), position_problem(corpus.position_end() - 1, most, model));
}

void check_evaluated_length(const Corpus& corpus, Index most, std::string_view model) {
  if (most == 0 || (corpus.longest_read() <= most && corpus.position_end() <= most)) return;
  for (Index i = 0; i < corpus.size(); ++i) {
    const CorpusItem item = corpus.item(i);
    const std::string place = item.line > 0 ? fmt::format("line {}: ", item.line) : "";
    if (const Index found = corpus.longest_read(item); found > most) {
      throw InputError(
          corpus.source(),
          fmt::format("{}{} tokens, expected at most {}, the positions of {}; or use {} {}", place,
                      found, most, model, field("length"), most));
    }
    const auto last = std::ranges::max_element(item.positions);
    if (last != item.positions.end() && *last >= most)
      throw InputError(corpus.source(), place + position_problem(*last, most, model));
  }
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
  if (text::has_ids_only(tokenizer)) table.begins_word.clear();
  return table;
}

}  // namespace masque::train
