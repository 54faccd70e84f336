#include "train/data/cut_sequences.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/thread/interrupt.hpp"

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
  const bool skips = shape_.policy == evaluate::LengthPolicy::Kind::kSkip;
  // Lines that are cut have one length.
  std::map<Index, Index> first;
  for (const records::LengthCount& count : source_->lengths()) {
    if (const Index over = count.length - shape_.room; over > 0) {
      cut_.add(
          {count.count, count.count * (skips ? count.length : over), 0, skips ? count.count : 0});
      first_too_long_ = std::min(first_too_long_.value_or(count.first), count.first);
    }
    cut_.tokens += count.count * count.length;
    if (skips && count.length > shape_.room) continue;
    const Index length = std::min(count.length, shape_.room) + shape_.around();
    tokens_ += count.count * length;
    longest_ = std::max(longest_, length);
    const auto [at, is_new] = first.try_emplace(length, count.first);
    if (!is_new) at->second = std::min(at->second, count.first);
  }
  if (skips && first_too_long_) {
    for (Index i = *first_too_long_; i < source_->sequences(); ++i) {
      if (i % 4096 == 0) throw_if_interrupted();
      if (source_->length(i) > shape_.room) skipped_.push_back(i);
    }
  }
  for (const auto& [length, at] : first)
    first_of_lengths_.push_back(at - (std::ranges::lower_bound(skipped_, at) - skipped_.begin()));
  std::ranges::sort(first_of_lengths_);
}

Index CutSequences::text_tokens() const {
  const Index separators = shape_.blocks && shape_.separator ? source_->sequences() - 1 : 0;
  return source_->tokens() + std::max<Index>(separators, 0);
}

Index CutSequences::size() const {
  return shape_.blocks ? text_tokens() / shape_.room : source_->sequences() - std::ssize(skipped_);
}

Index CutSequences::line(Index number) const {
  // Skipped line k stands in front of the sequences from skipped_[k] - k on.
  const auto in_front = [&](const Index& at) { return at - (&at - skipped_.data()) <= number; };
  return number + (std::ranges::partition_point(skipped_, in_front) - skipped_.begin());
}

Index CutSequences::tokens() const { return tokens_; }

Index CutSequences::length(Index number) const {
  MASQUE_CHECK(0 <= number && number < size());
  const Index text =
      shape_.blocks ? shape_.room : std::min(source_->length(line(number)), shape_.room);
  return text + shape_.around();
}

/// Of blocks: the place of a line's first token among all tokens and separators.
Index CutSequences::place_of(Index at) const {
  return source_->begin(at) + (shape_.separator ? at : 0);
}

/// The last line that begins at `place` or before: `place` is inside of it or at its separator.
Index CutSequences::line_at(Index place) const {
  Index first = 0, line_place = 0;
  Index end = source_->sequences(), end_place = text_tokens() + 1;
  // Lines of a text are about equally long: a guess by the share of the tokens is near, and reads
  // near each other are one page of a file. Every fourth step halves, for texts that are not so.
  for (int step = 1; end - first > 1; ++step) {
    const double share = static_cast<double>(place - line_place) /
                         static_cast<double>(std::max<Index>(end_place - line_place, 1));
    const auto lines = static_cast<double>(end - first);
    const auto guess = static_cast<Index>(lines * (step % 4 == 0 ? 0.5 : share));
    const Index middle = first + std::clamp<Index>(guess, 1, end - first - 1);
    const Index middle_place = place_of(middle);
    const bool before = middle_place <= place;
    (before ? first : end) = middle;
    (before ? line_place : end_place) = middle_place;
  }
  return first;
}

std::vector<TokenId> CutSequences::ids(Index number) const {
  MASQUE_CHECK(0 <= number && number < size());
  const Index room = length(number) - shape_.around();
  std::vector<TokenId> out(static_cast<std::size_t>(room + shape_.around()));
  std::ranges::copy(shape_.before, out.begin());
  std::ranges::copy(shape_.after, out.end() - std::ssize(shape_.after));
  std::span<TokenId> text =
      std::span(out).subspan(shape_.before.size(), static_cast<std::size_t>(room));
  if (!shape_.blocks) {
    source_->read(source_->begin(line(number)), text);
  } else if (!shape_.separator) {
    source_->read(number * room, text);
  } else {
    Index place = number * room;
    Index at = line_at(place);
    while (!text.empty()) {
      const Index in_line =
          std::min(source_->length(at) - (place - place_of(at)), std::ssize(text));
      if (in_line > 0) {
        source_->read(source_->begin(at) + place - place_of(at),
                      text.first(static_cast<std::size_t>(in_line)));
        text = text.subspan(static_cast<std::size_t>(in_line));
        place += in_line;
      }
      if (text.empty()) break;
      text.front() = *shape_.separator;
      text = text.subspan(1);
      ++place;
      ++at;
    }
  }
  return out;
}

std::string CutSequences::digest() const {
  return xxh3_of(
      as_bytes(fmt::format("{} {} {} {} {} {}{}", source_->digest(), shape_.blocks,
                           fmt::join(shape_.before, ","), fmt::join(shape_.after, ","), shape_.room,
                           shape_.separator.value_or(-1), skipped_.empty() ? "" : " skip")));
}

}  // namespace masque::train
