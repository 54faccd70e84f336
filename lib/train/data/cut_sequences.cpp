#include "train/data/cut_sequences.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"

namespace masque::train {

std::vector<TokenId> SequenceShape::sequence(std::span<const TokenId> ids) const {
  std::vector<TokenId> out;
  out.reserve(ids.size() + before.size() + after.size());
  out.insert(out.end(), before.begin(), before.end());
  const std::size_t taken = std::min(ids.size(), static_cast<std::size_t>(room));
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(taken));
  out.insert(out.end(), after.begin(), after.end());
  return out;
}

CutSequences::CutSequences(std::shared_ptr<const records::TokenSource> source, SequenceShape shape)
    : source_(std::move(source)), shape_(std::move(shape)) {
  MASQUE_CHECK(shape_.blocks || source_->has_boundaries());
  if (!source_->has_boundaries()) shape_.separator.reset();
  if (shape_.blocks) {
    if (size() == 0) return;
    longest_ = shape_.room + shape_.around();
    tokens_ = size() * longest_;
    first_of_lengths_ = {0};
    return;
  }
  // Lines that are cut have one length.
  std::map<Index, Index> first;
  for (const records::LengthCount& count : source_->lengths()) {
    const Index length = std::min(count.length, shape_.room) + shape_.around();
    tokens_ += count.count * length;
    if (const Index over = count.length - shape_.room; over > 0)
      cut_.add({count.count, count.count * over, 0});
    cut_.tokens += count.count * count.length;
    longest_ = std::max(longest_, length);
    const auto [at, is_new] = first.try_emplace(length, count.first);
    if (!is_new) at->second = std::min(at->second, count.first);
  }
  for (const auto& [length, number] : first) first_of_lengths_.push_back(number);
  std::ranges::sort(first_of_lengths_);
}

Index CutSequences::text_tokens() const {
  const Index separators = shape_.blocks && shape_.separator ? source_->sequences() - 1 : 0;
  return source_->tokens() + std::max<Index>(separators, 0);
}

Index CutSequences::size() const {
  return shape_.blocks ? text_tokens() / shape_.room : source_->sequences();
}

Index CutSequences::tokens() const { return tokens_; }

Index CutSequences::length(Index number) const {
  MASQUE_CHECK(0 <= number && number < size());
  const Index text = shape_.blocks ? shape_.room : std::min(source_->length(number), shape_.room);
  return text + shape_.around();
}

/// Of blocks: the place of a line's first token among all tokens and separators.
Index CutSequences::place_of(Index line) const {
  return source_->begin(line) + (shape_.separator ? line : 0);
}

/// The last line that begins at `place` or before: `place` is inside of it or at its separator.
Index CutSequences::line_at(Index place) const {
  Index line = 0, line_place = 0;
  Index end = source_->sequences(), end_place = text_tokens() + 1;
  // Lines of a text are about equally long: a guess by the share of the tokens is near, and reads
  // near each other are one page of a file. Every fourth step halves, for texts that are not so.
  for (int step = 1; end - line > 1; ++step) {
    const double share = static_cast<double>(place - line_place) /
                         static_cast<double>(std::max<Index>(end_place - line_place, 1));
    const auto lines = static_cast<double>(end - line);
    const auto guess = static_cast<Index>(lines * (step % 4 == 0 ? 0.5 : share));
    const Index middle = line + std::clamp<Index>(guess, 1, end - line - 1);
    const Index middle_place = place_of(middle);
    const bool before = middle_place <= place;
    (before ? line : end) = middle;
    (before ? line_place : end_place) = middle_place;
  }
  return line;
}

std::vector<TokenId> CutSequences::ids(Index number) const {
  MASQUE_CHECK(0 <= number && number < size());
  const Index room = shape_.blocks ? shape_.room : std::min(source_->length(number), shape_.room);
  std::vector<TokenId> out(static_cast<std::size_t>(room + shape_.around()));
  std::ranges::copy(shape_.before, out.begin());
  std::ranges::copy(shape_.after, out.end() - std::ssize(shape_.after));
  std::span<TokenId> text =
      std::span(out).subspan(shape_.before.size(), static_cast<std::size_t>(room));
  if (!shape_.blocks) {
    source_->read(source_->begin(number), text);
  } else if (!shape_.separator) {
    source_->read(number * room, text);
  } else {
    Index place = number * room;
    Index line = line_at(place);
    while (!text.empty()) {
      const Index in_line =
          std::min(source_->length(line) - (place - place_of(line)), std::ssize(text));
      if (in_line > 0) {
        source_->read(source_->begin(line) + place - place_of(line),
                      text.first(static_cast<std::size_t>(in_line)));
        text = text.subspan(static_cast<std::size_t>(in_line));
        place += in_line;
      }
      if (text.empty()) break;
      text.front() = *shape_.separator;
      text = text.subspan(1);
      ++place;
      ++line;
    }
  }
  return out;
}

std::string CutSequences::digest() const {
  return xxh3_of(as_bytes(fmt::format("{} {} {} {} {} {}", source_->digest(), shape_.blocks,
                                      fmt::join(shape_.before, ","), fmt::join(shape_.after, ","),
                                      shape_.room, shape_.separator.value_or(-1))));
}

}  // namespace masque::train
