#include "probe/write/word_candidates.hpp"

#include <algorithm>
#include <bit>

#include "base/edit_distance.hpp"
#include "probe/write/line_words.hpp"

namespace masque::probe {

namespace {

constexpr char32_t kReplacement = U'\uFFFD';

std::uint64_t letters_of(std::u32string_view text) {
  std::uint64_t letters = 0;
  for (const char32_t c : text) letters |= std::uint64_t{1} << (c % 64);
  return letters;
}

}  // namespace

WordCandidates::WordCandidates(const text::Tokenizer& tokenizer, Index size,
                               std::optional<int> edit_distance)
    : edit_distance_(edit_distance.value_or(0)) {
  const text::TokenizerParts& parts = tokenizer.parts();
  for (Index i = 0; i < std::min(static_cast<Index>(tokenizer.size()), size); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (tokenizer.is_special(id) || tokenizer.token(id).empty()) continue;
    const bool begins = tokenizer.begins_word(id);
    // "##" says that a piece is no word; a missing "Ġ" only that no space is in front.
    if (!begins && parts.word_mark == text::WordMark::kContinuation) continue;
    // With it in front, too: else a piece of words ("ing").
    if (!begins && !tokenizer.find(parts.word_prefix + std::string(tokenizer.token(id)))) continue;
    std::u32string text = characters(shown(tokenizer, {id}));
    // Of a byte-level vocabulary some pieces are part of a character.
    if (!has_letter(text) || has_white_space(text) || text.find(kReplacement) != text.npos)
      continue;
    if (edit_distance) {
      if (by_length_.size() <= text.size()) by_length_.resize(text.size() + 1);
      by_length_[text.size()].push_back(all_.size());
    }
    const std::uint64_t letters = letters_of(text);
    all_.push_back({id, begins, std::move(text), letters});
  }
}

std::vector<WordCandidates::Choice> WordCandidates::near(bool begins_word,
                                                         const std::u32string& word,
                                                         double edit_cost) const {
  std::vector<Choice> out;
  const auto most = static_cast<std::size_t>(edit_distance_);
  const std::uint64_t letters = letters_of(word);
  const std::size_t size = word.size();
  const std::size_t lengths = std::min(by_length_.size(), size + most + 1);
  for (std::size_t length = size - std::min(size, most); length < lengths; ++length) {
    for (const std::size_t at : by_length_[length]) {
      const Candidate& candidate = all_[at];
      if (candidate.begins_word != begins_word || candidate.text == word) continue;
      // An edit makes at most one letter appear and one disappear: most words need no table.
      const int appear = std::popcount(candidate.letters & ~letters);
      const int disappear = std::popcount(letters & ~candidate.letters);
      if (std::max(appear, disappear) > edit_distance_) continue;
      const int edits = edit_distance(candidate.text, word, edit_distance_);
      if (edits <= edit_distance_) out.push_back({candidate.id, edits * edit_cost});
    }
  }
  std::ranges::sort(out, {}, &Choice::id);
  return out;
}

}  // namespace masque::probe
