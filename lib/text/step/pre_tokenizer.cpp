#include "text/step/pre_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread/interrupt.hpp"
#include "text/step/aligned_text.hpp"
#include "text/step/byte_level.hpp"
#include "text/step/json_fields.hpp"
#include "text/step/pattern.hpp"
#include "text/step/rewriter.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

// Cutting words at matches.

/// What becomes of a match.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Appends each character of `text` for which `is`(c) is true to `out`.
template <typename Is>
void find_chars(std::string_view text, const Is& is, std::vector<Stretch>& out) {
  SparseLooks looks;
  for (std::size_t i = 0; i < text.size();) {
    looks.step();
    const std::size_t begin = i;
    if (is(next_char(text, i))) out.push_back({begin, i});
  }
}

struct SplitPiece {
  Stretch at;
  bool match;
};

/// All of the word, cut at the matches.
std::vector<SplitPiece> cut(std::size_t size, std::span<const Stretch> matches, bool invert) {
  std::vector<SplitPiece> out;
  std::size_t at = 0;
  for (const Stretch& match : matches) {
    if (at < match.begin) out.push_back({{at, match.begin}, invert});
    out.push_back({match, !invert});
    at = match.end;
  }
  if (at < size) out.push_back({{at, size}, invert});
  return out;
}

/// Joins pieces, in the order of a walk: a piece grows by the next one if joins(before, next) says
/// so of the two as they were.
template <typename Iterator, typename Joins>
std::vector<SplitPiece> joined(Iterator begin, Iterator end, const Joins& joins) {
  std::vector<SplitPiece> out;
  bool before = false;
  for (Iterator i = begin; i != end; ++i) {
    if (!out.empty() && joins(before, i->match)) {
      out.back().at = {std::min(out.back().at.begin, i->at.begin),
                       std::max(out.back().at.end, i->at.end)};
    } else {
      out.push_back({i->at, false});
    }
    before = i->match;
  }
  return out;
}

/// The field `name` of `fields`, spelled as in tokenizer.json ("MergedWithNext"); throws InputError
/// if it is missing or unknown.
SplitBehavior read_split_behavior(const PartFields& fields, std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"Removed", "Isolated", "MergedWithPrevious",
                                                   "MergedWithNext", "Contiguous"};
  const std::string text = fields.text(name);
  const auto* found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) fields.refuse("an unknown '" + std::string(name) + "'");
  return static_cast<SplitBehavior>(found - kNames.begin());
}

/// Appends the parts of `word` that its `matches`, from left to right, cut to `out`; `behavior`
/// says what becomes of a match. With `invert`, what lies between the matches is the match. Empty
/// parts are left out.
void split_word(const AlignedText& word, std::span<const Stretch> matches, bool invert,
                SplitBehavior behavior, std::vector<AlignedText>& out) {
  std::vector<SplitPiece> pieces = cut(word.text.size(), matches, invert);
  const auto same = [](bool before, bool match) { return before == match; };
  const auto next = [](bool before, bool match) { return match && !before; };
  switch (behavior) {
    case SplitBehavior::kRemoved:
      std::erase_if(pieces, [](const SplitPiece& piece) { return piece.match; });
      break;
    case SplitBehavior::kIsolated: break;
    case SplitBehavior::kContiguous: pieces = joined(pieces.begin(), pieces.end(), same); break;
    case SplitBehavior::kMergedWithPrevious:
      pieces = joined(pieces.begin(), pieces.end(), next);
      break;
    case SplitBehavior::kMergedWithNext:
      pieces = joined(pieces.rbegin(), pieces.rend(), next);
      std::reverse(pieces.begin(), pieces.end());
      break;
  }
  SparseLooks looks;
  for (const SplitPiece& piece : pieces) {
    looks.step();
    if (piece.at.begin < piece.at.end) out.push_back(word.part(piece.at.begin, piece.at.end));
  }
}

/// Replaces every one of `words` by its parts, as split_word() with `invert` and `behavior`;
/// `find`(text, matches) appends the matches in a word.
template <typename Find>
void split_words(std::vector<AlignedText>& words, const Find& find, bool invert,
                 SplitBehavior behavior) {
  std::vector<AlignedText> out;
  std::vector<Stretch> matches;
  for (const AlignedText& word : words) {
    throw_if_interrupted();
    matches.clear();
    find(word.text, matches);
    split_word(word, matches, invert, behavior, out);
  }
  words = std::move(out);
}

/// Words between white space, with each punctuation mark a word of its own.
class BertPreTokenizer : public PreTokenizer {
 public:
  void split(std::vector<AlignedText>& words, bool) const override {
    std::vector<AlignedText> out;
    for (const AlignedText& word : words) {
      const std::string_view text = word.text;
      std::size_t begin = 0;
      const auto end_word = [&](std::size_t end) {
        if (begin < end) out.push_back(word.part(begin, end));
      };
      SparseLooks looks;
      for (std::size_t i = 0; i < text.size();) {
        looks.step();
        const std::size_t at = i;
        const CharProperties& p = properties(next_char(text, i));
        if (!p.has(kWhiteSpace | kPunctuation)) continue;
        end_word(at);
        if (p.has(kPunctuation)) out.push_back(word.part(at, i));
        begin = i;
      }
      end_word(text.size());
    }
    words = std::move(out);
  }
};

/// Runs of word characters and runs of others: \w+|[^\w\s]+.
class Whitespace : public PreTokenizer {
 public:
  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [](std::string_view text, std::vector<Stretch>& out) {
      std::uint32_t before = kWhiteSpace;
      SparseLooks looks;
      for (std::size_t i = 0; i < text.size();) {
        looks.step();
        const std::size_t begin = i;
        const std::uint32_t kind = properties(next_char(text, i)).flags & (kWhiteSpace | kWord);
        if (kind != kWhiteSpace && kind == before) {
          out.back().end = i;
        } else if (kind != kWhiteSpace) {
          out.push_back({begin, i});
        }
        before = kind;
      }
    };
    split_words(words, find, true, SplitBehavior::kRemoved);
  }
};

/// Words between white space.
class WhitespaceSplit : public PreTokenizer {
 public:
  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [](std::string_view text, std::vector<Stretch>& out) {
      find_chars(
          text, [](char32_t c) { return is(c, kWhiteSpace); }, out);
    };
    split_words(words, find, false, SplitBehavior::kRemoved);
  }
};

/// Cuts at punctuation.
class Punctuation : public PreTokenizer {
 public:
  explicit Punctuation(SplitBehavior behavior) : behavior_(behavior) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [](std::string_view text, std::vector<Stretch>& out) {
      find_chars(
          text, [](char32_t c) { return is(c, kPunctuation); }, out);
    };
    split_words(words, find, false, behavior_);
  }

 private:
  SplitBehavior behavior_;
};

/// Cuts off numbers, whole or digit by digit.
class Digits : public PreTokenizer {
 public:
  explicit Digits(bool individual) : individual_(individual) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [](std::string_view text, std::vector<Stretch>& out) {
      find_chars(
          text, [](char32_t c) { return is(c, kNumeric); }, out);
    };
    split_words(words, find, false,
                individual_ ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  }

 private:
  bool individual_;
};

/// Cuts at the character "delimiter", which goes.
class CharDelimiterSplit : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [this](std::string_view text, std::vector<Stretch>& out) {
      find_chars(
          text, [this](char32_t c) { return c == delimiter_; }, out);
    };
    split_words(words, find, false, SplitBehavior::kRemoved);
  }

 private:
  char32_t delimiter_;
};

/// Cuts into parts of "length" characters (5); the last may be shorter.
class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(std::uint64_t length) : length_(length) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [this](std::string_view text, std::vector<Stretch>& out) {
      std::uint64_t count = 0;
      for (std::size_t i = 0; i < text.size();) {
        if (count++ % length_ == 0) out.push_back({i, i});
        i += char_bytes(text, i);
        out.back().end = i;
      }
    };
    split_words(words, find, true, SplitBehavior::kRemoved);
  }

 private:
  std::uint64_t length_;
};

// Cuts where the script changes: Latin, Han (with Hiragana and Katakana), …

/// Stretches of one script; characters of none belong to the one before them.
void find_scripts(std::string_view text, std::vector<Stretch>& out) {
  unsigned last = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    const unsigned script = script_of(next_char(text, i));
    if (script != 0 && script != last) {
      out.push_back({begin, begin});
      last = script;
    }
    if (!out.empty()) out.back().end = i;
  }
}

class UnicodeScripts : public PreTokenizer {
 public:
  void split(std::vector<AlignedText>& words, bool) const override {
    // What stands before the first script goes.
    split_words(words, find_scripts, true, SplitBehavior::kRemoved);
  }
};

/// Cuts where a pattern matches.
class Split : public PreTokenizer {
 public:
  Split(std::shared_ptr<const Pattern> pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    const auto find = [&](std::string_view text, std::vector<Stretch>& out) {
      pattern_->find(text, out);
    };
    split_words(words, find, invert_, behavior_);
  }

 private:
  std::shared_ptr<const Pattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

/// GPT-2's words, in the characters of byte-level BPE.
class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}

  void split(std::vector<AlignedText>& words, bool) const override {
    if (add_prefix_space_) {
      for (AlignedText& word : words) {
        if (!word.text.starts_with(' ')) prepend(word, " ");
      }
    }
    if (use_regex_) split_words(words, find_gpt2_words, false, SplitBehavior::kIsolated);
    for (AlignedText& word : words) {
      throw_if_interrupted();
      byte_level(word);
    }
  }

 private:
  bool add_prefix_space_;
  bool use_regex_;
};

// SentencePiece's spaces: written as a character, in front of words.

/// When to write a mark where the text has no space.
enum class Scheme { kAlways, kFirst, kNever };

Scheme read_scheme(const PartFields& fields) {
  const auto name = fields.optional_text("prepend_scheme");
  // Files before the schemes say add_prefix_space only.
  const bool add = fields.optional_flag("add_prefix_space").value_or(true);
  if (!name) return add ? Scheme::kAlways : Scheme::kNever;
  if (!add && *name != "never") fields.refuse("'add_prefix_space' contradicts 'prepend_scheme'");
  if (*name == "always") return Scheme::kAlways;
  if (*name == "first") return Scheme::kFirst;
  if (*name != "never") fields.refuse("an unknown 'prepend_scheme'");
  return Scheme::kNever;
}

class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string mark, Scheme scheme, bool split)
      : mark_(std::move(mark)), scheme_(scheme), split_(split) {}

  void split(std::vector<AlignedText>& words, bool first) const override {
    const std::uint32_t start = words.empty() ? 0 : words.front().origin.front().begin;
    for (AlignedText& word : words) {
      write_marks(word);
      const bool at_start = first && word.origin.front().begin == start;
      if (scheme_ == Scheme::kNever || (scheme_ == Scheme::kFirst && !at_start)) continue;
      if (!word.text.starts_with(mark_)) prepend(word, mark_);
    }
    if (!split_) return;
    const auto find = [&](std::string_view text, std::vector<Stretch>& out) {
      for (std::size_t i = text.find(mark_); i != std::string_view::npos;
           i = text.find(mark_, i + mark_.size())) {
        out.push_back({i, i + mark_.size()});
      }
    };
    split_words(words, find, false, SplitBehavior::kMergedWithNext);
  }

 private:
  void write_marks(AlignedText& word) const {
    if (word.text.find(' ') == std::string::npos) return;
    AlignedText out;
    SparseLooks looks;
    for (std::size_t i = 0; i < word.text.size(); ++i) {
      looks.step();
      if (word.text[i] == ' ') {
        out.text += mark_;
      } else {
        out.text += word.text[i];
      }
      out.origin.resize(out.text.size(), word.origin[i]);
    }
    word = std::move(out);
  }

  std::string mark_;
  Scheme scheme_;
  bool split_;
};

/// Several pre-tokenizers, one after the other.
class PreTokenizers : public PreTokenizer {
 public:
  explicit PreTokenizers(std::vector<std::shared_ptr<const PreTokenizer>> steps)
      : steps_(std::move(steps)) {}

  void split(std::vector<AlignedText>& words, bool first) const override {
    const auto begin = [&] { return words.empty() ? 0 : words.front().origin.front().begin; };
    const std::uint32_t start = begin();
    for (const auto& step : steps_) step->split(words, first && begin() == start);
  }

 private:
  std::vector<std::shared_ptr<const PreTokenizer>> steps_;
};

template <class T>
std::shared_ptr<const PreTokenizer> make_plain(const PartFields& /*fields*/) {
  return std::make_shared<T>();
}

/// A type of pre-tokenizer.
struct PreTokenizerKind {
  std::string_view name;  ///< its "type" in tokenizer.json
  /// Makes it of its fields.
  std::shared_ptr<const PreTokenizer> (*make)(const PartFields& fields);
};

// By name.
constexpr PreTokenizerKind kPreTokenizers[] = {
    {"BertPreTokenizer", make_plain<BertPreTokenizer>},
    {"ByteLevel",
     [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       fields.flag("trim_offsets");  // of the post-processor, but the reference wants it here too
       return std::make_shared<ByteLevel>(fields.flag("add_prefix_space"),
                                          fields.optional_flag("use_regex").value_or(true));
     }},
    {"CharDelimiterSplit",
     [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       const std::string delimiter = fields.text("delimiter");
       std::size_t end = 0;
       const char32_t c = delimiter.empty() ? U'\0' : next_char(delimiter, end);
       if (delimiter.empty() || end != delimiter.size())
         fields.refuse("'delimiter' is not one character");
       return std::make_shared<CharDelimiterSplit>(c);
     }},
    {"Digits",
     [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       return std::make_shared<Digits>(fields.flag("individual_digits"));
     }},
    {"FixedLength",
     [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       const JsonValue* value =
           find_field(fields.json(), "length", JsonKind::kNumber, fields.path());
       const auto length = value == nullptr ? std::uint64_t{5} : value->integer().value_or(0);
       if (length == 0) fields.refuse("'length' is no positive number");
       return std::make_shared<FixedLength>(length);
     }},
    {"Metaspace",
     [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       const std::string mark = fields.text("replacement");
       if (mark.empty() || char_bytes(mark[0]) != mark.size()) {
         fields.refuse("'replacement' is not one character");
       }
       return std::make_shared<Metaspace>(mark, read_scheme(fields),
                                          fields.optional_flag("split").value_or(true));
     }},
    {"Punctuation",
     [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       const bool given = fields.optional_text("behavior").has_value();
       return std::make_shared<Punctuation>(given ? read_split_behavior(fields, "behavior")
                                                  : SplitBehavior::kIsolated);
     }},
    {"Sequence",
     [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       std::vector<std::shared_ptr<const PreTokenizer>> steps;
       for (const JsonValue& item : fields.need("pretokenizers", JsonKind::kArray).items) {
         auto step = make_pre_tokenizer(item, fields.path());
         if (step == nullptr) fields.refuse("a step is null");
         steps.push_back(std::move(step));
       }
       return std::make_shared<PreTokenizers>(std::move(steps));
     }},
    {"Split",
     [](const PartFields& fields) -> std::shared_ptr<const PreTokenizer> {
       return std::make_shared<Split>(make_pattern(fields), read_split_behavior(fields, "behavior"),
                                      fields.flag("invert"));
     }},
    {"UnicodeScripts", make_plain<UnicodeScripts>},
    {"Whitespace", make_plain<Whitespace>},
    {"WhitespaceSplit", make_plain<WhitespaceSplit>},
};

}  // namespace

std::shared_ptr<const PreTokenizer> make_pre_tokenizer(const JsonValue& json,
                                                       const std::string& path) {
  if (json.is(JsonKind::kNull)) return nullptr;
  const PartFields fields(json, "pre-tokenizer", path);
  return fields.kind_in<PreTokenizerKind>(kPreTokenizers).make(fields);
}

}  // namespace masque::text
