#include "text/step/pattern.hpp"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/regex.hpp"
#include "base/thread/interrupt.hpp"
#include "text/step/json_fields.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

class Literal : public Pattern {
 public:
  explicit Literal(std::string text) : text_(std::move(text)) {}

  void find(std::string_view text, std::vector<Stretch>& out) const override {
    for (std::size_t i = text.find(text_); i != std::string_view::npos;
         i = text.find(text_, i + text_.size())) {
      out.push_back({i, i + text_.size()});
    }
  }

 private:
  std::string text_;
};

/// A set of characters: some by name, and perhaps all white space.
struct CharSet {
  std::u32string chars;
  bool white_space = false;
  bool contains(char32_t c) const {
    return (white_space && is(c, kWhiteSpace)) || chars.find(c) != std::u32string::npos;
  }
};

/// As many characters of a set as there are, from `least` to `most`.
class Run : public Pattern {
 public:
  Run(CharSet set, std::uint64_t least, std::uint64_t most)
      : set_(std::move(set)), least_(least), most_(most) {}

  void find(std::string_view text, std::vector<Stretch>& out) const override {
    std::size_t begin = 0;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < text.size();) {
      std::size_t next = i;
      const bool in = set_.contains(next_char(text, next));
      if (in && count == 0) begin = i;
      if (in) ++count;
      if (count > 0 && (!in || count == most_ || next == text.size())) {
        if (count >= least_) out.push_back({begin, in ? next : i});
        count = 0;
      }
      i = next;
    }
  }

 private:
  CharSet set_;
  std::uint64_t least_;
  std::uint64_t most_;
};

class Gpt2Words : public Pattern {
 public:
  void find(std::string_view text, std::vector<Stretch>& out) const override {
    find_gpt2_words(text, out);
  }
};

class LlamaWords : public Pattern {
 public:
  explicit LlamaWords(int digits) : digits_(digits) {}
  void find(std::string_view text, std::vector<Stretch>& out) const override {
    find_llama_words(text, digits_, out);
  }

 private:
  int digits_;
};

/// Reads one character or class and its repetition; nothing for any other expression.
class RunParser {
 public:
  explicit RunParser(std::string_view regex) : regex_(regex) {}

  std::shared_ptr<const Pattern> parse() {
    CharSet set;
    if (!read_set(set)) return nullptr;
    std::uint64_t least = 1;
    std::uint64_t most = 1;
    if (!read_repetition(least, most) || at_ != regex_.size()) return nullptr;
    return std::make_shared<Run>(std::move(set), least, most);
  }

 private:
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  bool take(char c) {
    if (at_ == regex_.size() || regex_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool read_set(CharSet& set) {
    if (!take('[')) return read_char(set, R"(\^$.|?*+()[]{})");
    while (!take(']')) {
      if (!read_char(set, R"(\^-[]&:)")) return false;
    }
    return set.white_space || !set.chars.empty();
  }

  /// A character that is none of `special`, or an escape.
  bool read_char(CharSet& set, std::string_view special) {
    if (at_ == regex_.size()) return false;
    if (!take('\\')) {
      if (special.find(regex_[at_]) != std::string_view::npos) return false;
      set.chars += next_char(regex_, at_);
      return true;
    }
    constexpr std::string_view kEscapes = "snrt";
    constexpr std::array<char32_t, 4> kMeanings{0, U'\n', U'\r', U'\t'};
    if (at_ == regex_.size()) return false;
    const std::size_t found = kEscapes.find(regex_[at_++]);
    if (found == std::string_view::npos) return false;
    if (found == 0) {
      set.white_space = true;
    } else {
      set.chars += kMeanings[found];
    }
    return true;
  }

  bool read_repetition(std::uint64_t& least, std::uint64_t& most) {
    if (take('+')) {
      most = kNoLimit;
      return true;
    }
    if (!take('{')) return true;
    const std::size_t begin = at_;
    while (at_ < regex_.size() && regex_[at_] >= '0' && regex_[at_] <= '9') ++at_;
    const auto count = parse_unsigned(regex_.substr(begin, at_ - begin));
    if (!count || *count == 0 || *count > 100000) return false;
    least = *count;
    most = take(',') ? kNoLimit : least;
    return take('}');
  }

  std::string_view regex_;
  std::size_t at_ = 0;
};

/// Anything else, by Oniguruma.
class Expression : public Pattern {
 public:
  Expression(std::string_view expression, Regex::Refuse refuse)
      : regex_(expression, RegexDialect::kOniguruma, std::move(refuse)) {}

  void find(std::string_view text, std::vector<Stretch>& out) const override {
    if (text.empty()) return;
    RegexSearch search(regex_, text);
    std::optional<std::size_t> last_end;
    std::size_t at = 0;
    while (at <= text.size() && search.find(at)) {
      const Stretch match{search.begin(), search.end()};
      at = match.end;
      if (match.begin == match.end) {
        at += at < text.size() ? char_bytes(text[at]) : 1;
        // As in the reference, an empty match right after another match is none.
        if (last_end == match.end) continue;
      }
      last_end = match.end;
      out.push_back(match);
    }
  }

 private:
  Regex regex_;
};

/// An expression as messages show it.
std::string quoted(std::string_view expression) {
  constexpr std::size_t kMostShown = 200;
  const bool whole = expression.size() <= kMostShown;
  return fmt::format("'{}{}'", escape(expression.substr(0, kMostShown)), whole ? "" : "…");
}

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

std::shared_ptr<const Pattern> make_pattern(const PartFields& fields) {
  const JsonValue& json = fields.need("pattern", JsonKind::kObject);
  const JsonValue* text = json.find("String");
  const JsonValue* regex = json.find("Regex");
  const JsonValue* value = text != nullptr ? text : regex;
  if (json.members.size() != 1 || value == nullptr || !value->is(JsonKind::kString)) {
    fields.refuse("'pattern' is neither a String nor a Regex");
  }
  if (value->text.empty()) fields.refuse("'pattern' is empty");
  if (text != nullptr) return std::make_shared<Literal>(text->text);
  if (regex->text == kGpt2) return std::make_shared<Gpt2Words>();
  if (regex->text == kLlama3) return std::make_shared<LlamaWords>(3);
  if (regex->text == kQwen2) return std::make_shared<LlamaWords>(1);
  if (auto run = RunParser(regex->text).parse()) return run;
  return std::make_shared<Expression>(regex->text, [path = fields.path(), part = fields.title(),
                                                    expression = quoted(regex->text)](
                                                       const std::string& why) {
    throw InputError(path, fmt::format("{}: the regular expression {}: {}", part, expression, why));
  });
}

// The expressions that cut text into words for byte-level BPE, by hand. The matches lie side by
// side: every character is a letter, a number, white space or something else, and each begins one.

namespace {

enum class Kind { kLetter, kNumber, kSpace, kOther };

Kind kind_of(char32_t c) {
  const CharProperties& p = properties(c);
  if (p.has(kLetter)) return Kind::kLetter;
  if (p.has(kNumber)) return Kind::kNumber;
  return p.has(kWhiteSpace) ? Kind::kSpace : Kind::kOther;
}

Kind kind_at(std::string_view text, std::size_t i) { return kind_of(next_char(text, i)); }

bool is_newline(char c) { return c == '\n' || c == '\r'; }

/// End of the characters of a kind from `i` on, at most `limit` of them.
std::size_t run_end(std::string_view text, std::size_t i, Kind kind,
                    std::size_t limit = std::string_view::npos) {
  for (; limit > 0 && i < text.size(); --limit) {
    std::size_t next = i;
    if (kind_of(next_char(text, next)) != kind) break;
    i = next;
  }
  return i;
}

/// \s+(?!\S)|\s+ at a space: leaves the last space to the word after it.
std::size_t spaces_end(std::string_view text, std::size_t begin, std::size_t end) {
  if (end == text.size()) return end;
  std::size_t last = end;
  previous_char(text, last);
  return last > begin ? last : end;
}

/// Lower case of the letters in contractions; of all characters, only the long s folds to one.
char folded(char32_t c) {
  if (c == 0x17F) return 's';
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c < 0x80 ? static_cast<char>(c) : '\0';
}

/// End of 's|'t|'re|'ve|'m|'ll|'d at an apostrophe; `begin` if there is none.
std::size_t contraction_end(std::string_view text, std::size_t begin, bool any_case) {
  std::size_t i = begin + 1;
  const auto letter = [&]() -> char {
    if (i >= text.size()) return '\0';
    const char32_t c = next_char(text, i);
    if (any_case) return folded(c);
    return c < 0x80 ? static_cast<char>(c) : '\0';
  };
  const char first = letter();
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return i;
  if (first != 'r' && first != 'v' && first != 'l') return begin;
  return letter() == (first == 'l' ? 'l' : 'e') ? i : begin;
}

std::size_t gpt2_end(std::string_view text, std::size_t begin) {
  if (text[begin] == '\'') {
    if (const std::size_t end = contraction_end(text, begin, false); end > begin) return end;
  }
  std::size_t i = begin;
  if (text[i] == ' ' && i + 1 < text.size() && kind_at(text, i + 1) != Kind::kSpace) ++i;
  const Kind kind = kind_at(text, i);
  const std::size_t end = run_end(text, i, kind);
  return kind == Kind::kSpace ? spaces_end(text, begin, end) : end;
}

std::size_t llama_end(std::string_view text, std::size_t begin, std::size_t digits) {
  if (text[begin] == '\'') {
    if (const std::size_t end = contraction_end(text, begin, true); end > begin) return end;
  }
  std::size_t second = begin;
  const Kind kind = kind_of(next_char(text, second));
  if (kind == Kind::kLetter) return run_end(text, second, kind);
  if (kind == Kind::kNumber) return run_end(text, begin, kind, digits);
  if (!is_newline(text[begin]) && second < text.size() && kind_at(text, second) == Kind::kLetter) {
    return run_end(text, second, Kind::kLetter);
  }
  const bool space_before =
      text[begin] == ' ' && second < text.size() && kind_at(text, second) == Kind::kOther;
  if (kind == Kind::kOther || space_before) {
    std::size_t end = run_end(text, second, Kind::kOther);
    while (end < text.size() && is_newline(text[end])) ++end;
    return end;
  }
  const std::size_t end = run_end(text, begin, Kind::kSpace);
  for (std::size_t i = end; i > begin; --i) {
    if (is_newline(text[i - 1])) return i;
  }
  return spaces_end(text, begin, end);
}

}  // namespace

void find_gpt2_words(std::string_view text, std::vector<Stretch>& out) {
  for (std::size_t i = 0; i < text.size(); i = out.back().end) {
    throw_if_interrupted();
    out.push_back({i, gpt2_end(text, i)});
  }
}

void find_llama_words(std::string_view text, int digits, std::vector<Stretch>& out) {
  for (std::size_t i = 0; i < text.size(); i = out.back().end) {
    throw_if_interrupted();
    out.push_back({i, llama_end(text, i, static_cast<std::size_t>(digits))});
  }
}

}  // namespace masque::text
