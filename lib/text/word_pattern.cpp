// The expressions that cut text into words for byte-level BPE, by hand. The matches lie side by
// side: every character is a letter, a number, white space or something else, and each begins one.
#include "text/pattern.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

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
    out.push_back({i, gpt2_end(text, i)});
  }
}

void find_llama_words(std::string_view text, int digits, std::vector<Stretch>& out) {
  for (std::size_t i = 0; i < text.size(); i = out.back().end) {
    out.push_back({i, llama_end(text, i, static_cast<std::size_t>(digits))});
  }
}

}  // namespace masque::text
