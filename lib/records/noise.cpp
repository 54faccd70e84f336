#include "records/noise.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"
#include "text/step/spaced_words.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::records {

namespace {

/// Rows from above, each half a key to the right of the one above it.
using Rows = std::array<std::u32string_view, 3>;

Rows rows_of(KeyboardLayout layout) {
  switch (layout) {
    case KeyboardLayout::kQwerty: return {U"qwertyuiop", U"asdfghjkl", U"zxcvbnm"};
    case KeyboardLayout::kQwertz: return {U"qwertzuiopü", U"asdfghjklöä", U"yxcvbnm"};
    case KeyboardLayout::kAzerty: return {U"azertyuiop", U"qsdfghjklm", U"wxcvbn"};
    case KeyboardLayout::kJcuken: break;
  }
  return {U"йцукенгшщзхъ", U"фывапролджэ", U"ячсмитьбю"};
}

/// Latin and Cyrillic letters of these rows have their capitals 32 code points before them.
char32_t capital(char32_t letter) { return letter - 32; }

constexpr std::array<std::pair<std::string_view, KeyboardLayout>, 4> kKeyboardNames{
    {{"qwerty", KeyboardLayout::kQwerty},
     {"qwertz", KeyboardLayout::kQwertz},
     {"azerty", KeyboardLayout::kAzerty},
     {"jcuken", KeyboardLayout::kJcuken}}};

constexpr auto kConfusion = static_cast<std::size_t>(WordErrorKind::kConfusion);

/// The words that a word may be taken for, each with the punctuation around it.
std::vector<std::string> confused_with(std::string_view word, const ConfusionSets& sets) {
  ConfusionSets::Confusion found = sets.confusion_of(word);
  for (std::string& other : found.others)
    other = fmt::format("{}{}{}", word.substr(0, found.place.begin), other,
                        word.substr(found.place.end));
  return std::move(found.others);
}

std::size_t below(std::size_t n, Draw& draw) {
  return static_cast<std::size_t>(draw.below(static_cast<Index>(n)));
}

template <class List>
auto one_of(const List& list, Draw& draw) {
  return list[below(list.size(), draw)];
}

/// A character of a word, bytes [begin, end), and the one before it, which ends at `begin`.
struct Place {
  std::size_t before_begin = 0;
  char32_t before = 0;  ///< 0: there is none
  std::size_t begin = 0;
  std::size_t end = 0;
  char32_t letter = 0;
};

/// One word, and the errors that it can have. Memory for the word with one of them.
class Word {
 public:
  Word(std::string_view word, const NoiseOptions& options, const Keyboard& keyboard)
      : word_(word), keyboard_(keyboard) {
    each([&](const Place& place) {
      ++characters_;
      if (has_key(place)) ++keys_;
      if (differs(place)) ++swaps_;
      return false;
    });
    if (options.mix[kConfusion] > 0) others_ = confused_with(word, *options.confusion);
  }

  bool can(WordErrorKind kind) const {
    switch (kind) {
      case WordErrorKind::kTyping: return keys_ > 0;
      case WordErrorKind::kInsertion: return true;
      case WordErrorKind::kDeletion: return characters_ > 1;
      case WordErrorKind::kSwap: return swaps_ > 0;
      case WordErrorKind::kConfusion: break;
    }
    return !others_.empty();
  }

  /// The word with an error that it can have.
  std::string with(WordErrorKind kind, Draw& draw) const {
    const auto any = [](const Place&) { return true; };
    switch (kind) {
      case WordErrorKind::kTyping: {
        const Place at = nth(below(keys_, draw), [&](const Place& p) { return has_key(p); });
        const char32_t near = one_of(keyboard_.neighbours(at.letter), draw);
        return made(at.begin, encoded(near), at.end);
      }
      case WordErrorKind::kInsertion: {
        const Place at = nth(below(characters_, draw), any);
        std::u32string likely(1, at.letter);
        likely += keyboard_.neighbours(at.letter);
        return made(at.end, encoded(one_of(likely, draw)), at.end);
      }
      case WordErrorKind::kDeletion: {
        const Place at = nth(below(characters_, draw), any);
        return made(at.begin, {}, at.end);
      }
      case WordErrorKind::kSwap: {
        const Place at = nth(below(swaps_, draw), [&](const Place& p) { return differs(p); });
        return made(at.before_begin, encoded(at.letter) + encoded(at.before), at.end);
      }
      case WordErrorKind::kConfusion: break;
    }
    return one_of(others_, draw);
  }

 private:
  static std::string encoded(char32_t letter) {
    std::string out;
    text::append_utf8(out, letter);
    return out;
  }
  static bool differs(const Place& place) {
    return place.begin > 0 && place.letter != place.before;
  }
  bool has_key(const Place& place) const { return !keyboard_.neighbours(place.letter).empty(); }

  /// Calls found(place) for each character, until it returns true.
  template <class Found>
  void each(const Found& found) const {
    Place place;
    for (std::size_t i = 0; i < word_.size();) {
      place = {place.begin, place.letter, i, i, 0};
      place.letter = text::next_char(word_, i);
      place.end = i;
      if (found(place)) return;
    }
  }

  /// The n-th character, from 0, for which is(place).
  template <class Is>
  Place nth(std::size_t n, const Is& is) const {
    Place out;
    each([&](const Place& place) {
      if (!is(place) || n-- > 0) return false;
      out = place;
      return true;
    });
    return out;
  }

  /// The word with other bytes in [begin, end).
  std::string made(std::size_t begin, std::string_view bytes, std::size_t end) const {
    std::string out(word_.substr(0, begin));
    out += bytes;
    out += word_.substr(end);
    return out;
  }

  std::string_view word_;
  const Keyboard& keyboard_;
  std::size_t characters_ = 0;
  std::size_t keys_ = 0;   ///< characters with neighbours
  std::size_t swaps_ = 0;  ///< characters that differ from the one before
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
    text::Stretch word = text::next_spaced_word(original, 0);
    for (; word.begin < word.end; word = text::next_spaced_word(original, word.end)) {
      ++tally.ordinary;
      if (draw.word() >= threshold_) continue;
      throw_if_interrupted();
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
        if (field.name() == ours) throw InputError(fmt::format("record already has {}", ours));
      }
    }
    if (options_.pairs && record.noisy->text.find_first_of("\t\n\r") != std::string::npos)
      throw InputError("a tab or a line break in the text, which pairs cannot contain");
  }

  [[noreturn]] static void refuse_ids() {
    throw InputError("record has fields of ids, expected text only");
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
  for (const double weight : options.mix) sum += weight;
  const bool negative =
      !std::ranges::all_of(options.mix, [](double weight) { return weight >= 0; });
  if (negative || !(sum > 0 && std::isfinite(sum))) {
    throw UsageError(fmt::format("{}: found {}, expected weights of at least 0, not all 0",
                                 field("mix"), fmt::join(options.mix, ":")));
  }
  const bool weighed = options.mix[kConfusion] > 0;
  if (weighed && !options.confusion)
    throw UsageError(fmt::format("{}: the weight of confusion has no effect without {}",
                                 field("mix"), field("confusion")));
  if (!weighed && options.confusion)
    throw UsageError(fmt::format("{} has no effect: the weight of confusion in {} is 0",
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

NameTable<KeyboardLayout> keyboard_names() { return kKeyboardNames; }

Keyboard::Keyboard(KeyboardLayout layout) {
  const Rows rows = rows_of(layout);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t k = 0; k < rows[r].size(); ++k) {
      std::u32string around;
      const auto add = [&](std::size_t row, std::size_t key) {
        if (row < rows.size() && key < rows[row].size()) around += rows[row][key];
      };
      // A key before the first one, or a row above the first one, wraps to a number that is none.
      add(r, k - 1);
      add(r, k + 1);
      add(r - 1, k);
      add(r - 1, k + 1);
      add(r + 1, k - 1);
      add(r + 1, k);
      std::u32string capitals;
      for (const char32_t letter : around) capitals += capital(letter);
      neighbours_[capital(rows[r][k])] = std::move(capitals);
      neighbours_[rows[r][k]] = std::move(around);
    }
  }
}

std::u32string_view Keyboard::neighbours(char32_t letter) const {
  const auto found = neighbours_.find(letter);
  return found == neighbours_.end() ? std::u32string_view() : found->second;
}

}  // namespace masque::records
