#include "probe/score/metric_tokens.hpp"

#include <utility>

#include "base/error.hpp"
#include "text/code_points.hpp"
#include "text/decoder.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::probe {

namespace {

constexpr std::pair<std::string_view, BleuTokenizer> kBleuTokenizers[] = {
    {"13a", BleuTokenizer::k13a},
    {"intl", BleuTokenizer::kIntl},
    {"char", BleuTokenizer::kChar},
    {"none", BleuTokenizer::kNone},
};

/// Undone one after the other: "&amp;lt;" becomes "<".
constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
    {"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }

/// [\{-\~\[-\` -\&\(-\+\:-\@\/]
bool is_13a_mark(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

/// Appends the parts of `text` between white space.
void split_as_python(std::string_view text, std::vector<std::string_view>& out) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t at = i;
    const char32_t c = text::next_char(text, i);
    if (!is_python_space(c)) continue;
    if (at > begin) out.push_back(text.substr(begin, at - begin));
    begin = i;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
}

std::string_view without_space_at_end(std::string_view line) {
  while (!line.empty()) {
    std::size_t i = line.size();
    if (!is_python_space(text::previous_char(line, i))) break;
    line = line.substr(0, i);
  }
  return line;
}

/// Writes `text` with `between` after the first of two neighbours that match, and `after` after the
/// second, `before` before the first; pairs do not overlap. Bytes are enough: an expression
/// that matches a character outside ASCII matches its bytes, too.
template <class Match>
void space_pairs(std::string_view text, std::string_view before, std::string_view after,
                 const Match& match, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !match(text[i], text[i + 1])) {
      out += text[i];
      continue;
    }
    out += before;
    out += text[i];
    out += ' ';
    out += text[++i];
    out += after;
  }
}

}  // namespace

NameTable<BleuTokenizer> bleu_tokenizer_names() { return kBleuTokenizers; }

bool is_python_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return text::is_white_space(c);
}

BleuCutter::BleuCutter(BleuTokenizer tokenizer) : tokenizer_(tokenizer) {
  if (tokenizer != BleuTokenizer::kIntl) return;
  categories_ = std::make_unique<Regex>(R"((\p{N})|(\p{P})|(\p{S}))", RegexDialect::kOniguruma,
                                        [](const std::string&) { MASQUE_CHECK(false); });
  for (char32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = find_category(c);
}

BleuCutter::Category BleuCutter::find_category(char32_t c) const {
  std::string character;
  text::append_utf8(character, c);
  RegexSearch search(*categories_, character);
  if (!search.find(0)) return Category::kOther;
  return search.group(1)   ? Category::kNumber
         : search.group(2) ? Category::kPunctuation
                           : Category::kSymbol;
}

BleuCutter::Category BleuCutter::category(char32_t c) {
  if (c < ascii_.size()) return ascii_[c];
  const auto found = known_.find(c);
  if (found != known_.end()) return found->second;
  return known_.emplace(c, find_category(c)).first->second;
}

void BleuCutter::cut(std::string_view line, CutText& out) {
  line = without_space_at_end(line);
  out.tokens.clear();
  switch (tokenizer_) {
    case BleuTokenizer::k13a: return cut_13a(line, out);
    case BleuTokenizer::kIntl: return cut_intl(line, out);
    case BleuTokenizer::kChar:
      out.text = line;
      for (std::size_t i = 0; i < out.text.size();) {
        const std::size_t begin = i;
        if (!is_python_space(text::next_char(out.text, i)))
          out.tokens.push_back(std::string_view(out.text).substr(begin, i - begin));
      }
      return;
    case BleuTokenizer::kNone: break;
  }
  out.text = line;
  split_as_python(out.text, out.tokens);
}

void BleuCutter::cut_13a(std::string_view line, CutText& out) {
  scratch_ = line;
  if (line.find("<skipped>") != std::string_view::npos)
    text::replace_all(scratch_, "<skipped>", "");
  if (line.find('&') != std::string_view::npos) {
    for (const auto& [from, to] : kEscapes) text::replace_all(scratch_, from, to);
  }
  std::string& text = out.text;
  text = "   ";  // a mark, which the space in front of a line is, gets spaces around it
  for (const char c : scratch_) {
    if (is_13a_mark(c)) {
      text += ' ';
      text += c;
      text += ' ';
    } else {
      text += c;
    }
  }
  text += "   ";
  space_pairs(
      text, "", " ", [](char a, char b) { return !is_digit(a) && is_stop(b); }, scratch_);
  space_pairs(
      scratch_, " ", "", [](char a, char b) { return is_stop(a) && !is_digit(b); }, text);
  space_pairs(
      text, "", " ", [](char a, char b) { return is_digit(a) && b == '-'; }, scratch_);
  std::swap(text, scratch_);
  split_as_python(text, out.tokens);
}

void BleuCutter::cut_intl(std::string_view line, CutText& out) {
  characters_.clear();
  for (std::size_t i = 0; i < line.size();) characters_ += text::next_char(line, i);
  const auto pairs = [this](const std::u32string& text, bool punctuation_first,
                            std::u32string& spaced) {
    spaced.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool last = i + 1 == text.size();
      const char32_t a = text[i];
      const char32_t b = last ? U' ' : text[i + 1];
      const char32_t mark = punctuation_first ? a : b;
      const char32_t other = punctuation_first ? b : a;
      if (last || category(mark) != Category::kPunctuation ||
          category(other) == Category::kNumber) {
        spaced += a;
        continue;
      }
      if (punctuation_first) spaced += U' ';
      spaced += a;
      spaced += U' ';
      spaced += b;
      if (!punctuation_first) spaced += U' ';
      ++i;
    }
  };
  pairs(characters_, false, scratch_characters_);
  pairs(scratch_characters_, true, characters_);
  out.text.clear();
  for (const char32_t c : characters_) {
    const bool symbol = category(c) == Category::kSymbol;
    if (symbol) out.text += ' ';
    text::append_utf8(out.text, c);
    if (symbol) out.text += ' ';
  }
  split_as_python(out.text, out.tokens);
}

void cut_for_rouge(std::string_view line, CutText& out) {
  const auto kept = [](char32_t c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  out.text.clear();
  out.tokens.clear();
  for (std::size_t i = 0; i < line.size();) {
    char32_t c = text::next_char(line, i);
    if (c < 0x80) {
      if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
      out.text += kept(c) ? static_cast<char>(c) : ' ';
      continue;
    }
    // A few become ASCII: the Kelvin sign is a k, and İ is i with a dot that goes away.
    const std::u32string_view lower = text::lower_case(c);
    if (lower.empty()) out.text += ' ';
    for (const char32_t part : lower) out.text += kept(part) ? static_cast<char>(part) : ' ';
  }
  split_as_python(out.text, out.tokens);
}

}  // namespace masque::probe
