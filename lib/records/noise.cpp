#include "records/noise.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/spaced_words.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::records {

namespace {

constexpr auto kConfusion = static_cast<std::size_t>(WordErrorKind::kConfusion);

std::u32string decoded(std::string_view word) {
  std::u32string letters;
  for (std::size_t i = 0; i < word.size();) letters += text::next_char(word, i);
  return letters;
}

std::string encoded(std::u32string_view letters) {
  std::string word;
  for (const char32_t letter : letters) text::append_utf8(word, letter);
  return word;
}

/// A word between the punctuation around it.
struct Core {
  std::string_view before, word, after;
};

Core core_of(std::string_view word) {
  std::size_t begin = 0;
  std::size_t end = word.size();
  for (std::size_t next = begin; next < end; begin = next) {
    if (!text::is(text::next_char(word, next), text::kPunctuation)) break;
  }
  for (std::size_t last = end; last > begin; end = last) {
    if (!text::is(text::previous_char(word, last), text::kPunctuation)) break;
  }
  return {word.substr(0, begin), word.substr(begin, end - begin), word.substr(end)};
}

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }
char in_other_case(char c) { return static_cast<char>(c ^ 0x20); }

/// The words that a word may be taken for, each with what stands around it.
std::vector<std::string> confused_with(std::string_view word, const ConfusionSets& sets) {
  std::vector<std::string> out;
  for (const Core& core : {Core{{}, word, {}}, core_of(word)}) {
    if (core.word.empty()) continue;
    std::vector<std::string_view> others = sets.others(core.word);
    const bool capital = others.empty() && is_capital(core.word.front());
    if (capital) {
      std::string small(core.word);
      small.front() = in_other_case(small.front());
      others = sets.others(small);
    }
    for (const std::string_view other : others) {
      std::string& made = out.emplace_back(fmt::format("{}{}{}", core.before, other, core.after));
      char& first = made[core.before.size()];
      if (capital && is_small(first)) first = in_other_case(first);
    }
    if (!out.empty()) return out;
  }
  return out;
}

std::size_t below(std::size_t n, Draw& draw) {
  return static_cast<std::size_t>(draw.below(static_cast<Index>(n)));
}

template <class List>
auto one_of(const List& list, Draw& draw) {
  return list[below(list.size(), draw)];
}

/// One word, and the errors that it can have.
class Word {
 public:
  Word(std::string_view word, const NoiseOptions& options, const Keyboard& keyboard)
      : letters_(decoded(word)), keyboard_(keyboard) {
    for (std::size_t i = 0; i < letters_.size(); ++i) {
      if (!keyboard.neighbours(letters_[i]).empty()) keys_.push_back(i);
      if (i > 0 && letters_[i] != letters_[i - 1]) swaps_.push_back(i);
    }
    if (options.mix[kConfusion] > 0) others_ = confused_with(word, *options.confusion);
  }

  bool can(WordErrorKind kind) const {
    switch (kind) {
      case WordErrorKind::kTyping: return !keys_.empty();
      case WordErrorKind::kInsertion: return true;
      case WordErrorKind::kDeletion: return letters_.size() > 1;
      case WordErrorKind::kSwap: return !swaps_.empty();
      case WordErrorKind::kConfusion: break;
    }
    return !others_.empty();
  }

  /// The word with an error that it can have.
  std::string with(WordErrorKind kind, Draw& draw) const {
    std::u32string letters = letters_;
    switch (kind) {
      case WordErrorKind::kTyping: {
        const std::size_t at = one_of(keys_, draw);
        letters[at] = one_of(keyboard_.neighbours(letters[at]), draw);
        break;
      }
      case WordErrorKind::kInsertion: {
        const std::size_t at = below(letters.size(), draw);
        std::u32string likely(1, letters[at]);
        likely += keyboard_.neighbours(letters[at]);
        letters.insert(at + 1, 1, one_of(likely, draw));
        break;
      }
      case WordErrorKind::kDeletion: letters.erase(below(letters.size(), draw), 1); break;
      case WordErrorKind::kSwap: {
        const std::size_t at = one_of(swaps_, draw);
        std::swap(letters[at - 1], letters[at]);
        break;
      }
      case WordErrorKind::kConfusion: return one_of(others_, draw);
    }
    return encoded(letters);
  }

 private:
  std::u32string letters_;
  const Keyboard& keyboard_;
  std::vector<std::size_t> keys_;   ///< letters with neighbours
  std::vector<std::size_t> swaps_;  ///< letters that differ from the one before
  std::vector<std::string> others_;
};

class Noise final : public Corruption {
 public:
  explicit Noise(const NoiseOptions& options)
      : options_(options),
        keyboard_(options.keyboard),
        threshold_(share_threshold(options.rate)),
        random_(options.seed, "droptoken noise") {}

  void apply(Record& record, Scratch&, Tally& tally) const override {
    MASQUE_CHECK(record.noisy);
    refuse_unfit(record);
    NoisyText& noisy = *record.noisy;
    noisy.original = std::move(noisy.text);
    noisy.text.clear();
    noisy.errors.clear();
    Draw draw(random_.stream(record.epoch, record.number));
    const std::string_view original = noisy.original;
    std::size_t copied = 0;
    std::uint64_t at = 0;           // in code points of the original
    std::uint64_t at_in_noisy = 0;  // and of the text with errors
    for (const text::Stretch& word : text::spaced_words(original)) {
      ++tally.ordinary;
      if (draw.word() >= threshold_) continue;
      const std::string_view before = original.substr(word.begin, word.end - word.begin);
      const auto made = error_in(before, draw);
      if (!made) continue;
      const std::string_view gap = original.substr(copied, word.begin - copied);
      const std::size_t skipped = count_code_points(gap);
      WordError error{made->first, {}, {}};
      error.span.begin = at_in_noisy + skipped;
      error.original_span.begin = at + skipped;
      error.span.end = at_in_noisy = error.span.begin + count_code_points(made->second);
      error.original_span.end = at = error.original_span.begin + count_code_points(before);
      noisy.text += gap;
      noisy.text += made->second;
      copied = word.end;
      noisy.errors.push_back(error);
      ++tally.selected;
      ++tally.errors[static_cast<std::size_t>(made->first)];
    }
    noisy.text += original.substr(copied);
  }

 private:
  void refuse_unfit(const Record& record) const {
    for (const Numbers* list : {&record.pos, &record.seg, &record.doc, &record.words,
                                &record.labels, &record.cu_seqlens, &record.original}) {
      if (list->present) refuse_ids();
    }
    if (record.has_weights || record.has_dropped || record.mask) refuse_ids();
    for (const OtherField& field : record.other) {
      for (const std::string_view ours : {"original_text", "errors"}) {
        if (field.key.substr(1, field.key.size() - 2) == ours)
          throw InputError(fmt::format("has {} already, expected a record without", ours));
      }
    }
    if (options_.pairs && record.noisy->text.find_first_of("\t\n\r") != std::string::npos)
      throw InputError("a tab or an end of line in the text, expected none in pairs");
  }

  [[noreturn]] static void refuse_ids() {
    throw InputError("has fields of ids, expected text without them");
  }

  /// An error for a word: its kind, and the word with it; nothing if it can have none.
  std::optional<std::pair<WordErrorKind, std::string>> error_in(std::string_view text,
                                                                Draw& draw) const {
    const Word word(text, options_, keyboard_);
    std::array<double, kWordErrorKinds> upto{};
    double sum = 0;
    for (std::size_t kind = 0; kind < kWordErrorKinds; ++kind) {
      if (word.can(static_cast<WordErrorKind>(kind))) sum += options_.mix[kind];
      upto[kind] = sum;
    }
    if (!(sum > 0)) return std::nullopt;
    const auto found = std::upper_bound(upto.begin(), upto.end(), draw.uniform() * sum);
    const auto kind = static_cast<WordErrorKind>(found - upto.begin());
    return std::pair(kind, word.with(kind, draw));
  }

  NoiseOptions options_;
  Keyboard keyboard_;
  std::uint64_t threshold_;
  RandomSource random_;
};

}  // namespace

std::unique_ptr<Corruption> make_noise(const NoiseOptions& options) {
  if (!(options.rate >= 0 && options.rate <= 1))
    throw UsageError(fmt::format("{}: found {}, expected 0 to 1", field("rate"), options.rate));
  double sum = 0;
  for (const double weight : options.mix) sum += weight >= 0 ? weight : -HUGE_VAL;
  if (!(sum > 0 && std::isfinite(sum))) {
    throw UsageError(fmt::format("{}: found {}, expected weights from 0, not all 0", field("mix"),
                                 fmt::join(options.mix, ":")));
  }
  const bool weighed = options.mix[kConfusion] > 0;
  if (weighed && !options.confusion)
    throw UsageError(fmt::format("{}: a weight of confusion does nothing without {}", field("mix"),
                                 field("confusion")));
  if (!weighed && options.confusion)
    throw UsageError(fmt::format("{} does nothing without a weight of confusion in {}",
                                 field("confusion"), field("mix")));
  return std::make_unique<Noise>(options);
}

void append_pair(const Record& record, std::string& out) {
  MASQUE_CHECK(record.noisy);
  out += record.noisy->text;
  out += '\t';
  out += record.noisy->original;
  out += '\n';
}

}  // namespace masque::records
