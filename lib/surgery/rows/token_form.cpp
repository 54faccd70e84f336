#include "surgery/rows/token_form.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/string/utf8.hpp"
#include "text/step/byte_level.hpp"
#include "text/unicode/space_marks.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::surgery {

namespace {

/// The characters of byte-level BPE as UTF-8, by byte.
const std::array<std::string, 256>& byte_characters() {
  static const std::array<std::string, 256> kCharacters = [] {
    std::array<std::string, 256> out;
    for (std::size_t byte = 0; byte < out.size(); ++byte)
      text::append_utf8(out[byte], text::byte_level_char(static_cast<unsigned char>(byte)));
    return out;
  }();
  return kCharacters;
}

std::string with_replaced(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  while (!text.empty()) {
    const bool found = text.starts_with(what);
    out += found ? with : text.substr(0, 1);
    text.remove_prefix(found ? what.size() : 1);
  }
  return out;
}

std::size_t count_leading(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (; text.starts_with(what); text.remove_prefix(what.size())) ++count;
  return count;
}

bool is_one_character(std::string_view text) {
  char32_t c = 0;
  return !text.empty() && decode_utf8(text, c) == static_cast<int>(text.size());
}

bool is_word_level(const text::TokenizerParts& parts) {
  return std::ranges::any_of(parts.summary, [](const auto& row) {
    return row.first == "model" && row.second == "WordLevel";
  });
}

}  // namespace

std::optional<std::string> byte_level_bytes(std::string_view token) {
  static const std::unordered_map<std::string_view, char> kBytes = [] {
    std::unordered_map<std::string_view, char> out;
    for (std::size_t byte = 0; byte < byte_characters().size(); ++byte)
      out.emplace(byte_characters()[byte], static_cast<char>(byte));
    return out;
  }();
  std::string out;
  while (!token.empty()) {
    char32_t c = 0;
    const auto size = static_cast<std::size_t>(std::max(1, decode_utf8(token, c)));
    const auto found = kBytes.find(token.substr(0, size));
    if (found == kBytes.end()) return std::nullopt;
    out += found->second;
    token.remove_prefix(size);
  }
  return out;
}

std::optional<unsigned char> fallback_byte(std::string_view token) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const std::size_t high = kDigits.find(token[3]);
  const std::size_t low = kDigits.find(token[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

TokenForms::TokenForms(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  const text::TokenizerParts& parts = tokenizer.parts();
  bytes_ = parts.word_mark == text::WordMark::kSpace && parts.word_prefix == text::kByteSpaceMark;
  words_ = parts.word_mark == text::WordMark::kContinuation || is_word_level(parts);
  if (parts.word_mark != text::WordMark::kSpace || parts.steps.normalizer == nullptr) return;
  text::AlignedText probe = text::AlignedText::from("x");
  parts.steps.normalizer->apply(probe);
  prepends_ = probe.text.starts_with(parts.word_prefix);
}

/// Whether the steps before the model cut `word`, one character, out of a word around it.
bool TokenForms::is_split_off(std::string_view word) const {
  if (!is_one_character(word)) return false;
  const text::Steps& steps = tokenizer_.parts().steps;
  std::vector<text::AlignedText> parts{text::AlignedText::from(fmt::format("x{}x", word))};
  if (steps.normalizer != nullptr) steps.normalizer->apply(parts[0]);
  if (steps.pre_tokenizer != nullptr) steps.pre_tokenizer->split(parts, false);
  return parts.size() == 3;
}

std::vector<TokenForm> TokenForms::of(TokenId id, std::string_view token) const {
  if (token.empty() || tokenizer_.is_special(id)) return {};
  if (tokenizer_.added().find(token) != nullptr) return {{.text = std::string(token)}};
  const text::TokenizerParts& parts = tokenizer_.parts();
  const std::string& mark = parts.word_prefix;
  if (bytes_) return {{.text = byte_level_bytes(token).value_or(std::string(token))}};
  if (const auto byte = fallback_byte(token))
    return {{.text = std::string(1, static_cast<char>(*byte)), .byte = true}};
  if (parts.word_mark == text::WordMark::kSpace) return {{.text = with_replaced(token, mark, " ")}};
  const bool continues =
      words_ && !mark.empty() && token.starts_with(mark) && token.size() > mark.size();
  if (continues) token.remove_prefix(mark.size());
  // Tokens of other models may carry a mark at their end, which decoding knows.
  std::string text = words_ ? std::string(token) : tokenizer_.decode({id}, false);
  while (text.ends_with(' ') && text.size() > 1) text.pop_back();
  const std::string& suffix = parts.word_suffix;
  if (!suffix.empty() && text.size() > suffix.size() && text.ends_with(suffix))
    text.resize(text.size() - suffix.size());
  const std::string spaced = " " + text;
  if (!suffix.empty()) {
    const bool ends = token.ends_with(suffix);
    // A mark that is always split off is a word, which ends.
    if (is_split_off(text)) {
      if (!ends) return {{.text = text, .unused = true}};
      return {{.text = text}, {.text = spaced}};
    }
    // What ends a word is most often a whole one.
    if (ends) return {{.text = spaced}, {.text = text}};
    return {{.text = text}, {.text = spaced}};
  }
  if (is_split_off(text)) {
    if (continues) return {{.text = text, .unused = true}};
    return {{.text = text}, {.text = spaced}};
  }
  if (continues) return {{.text = text}};
  if (words_) return {{.text = spaced}};
  return {{.text = text}, {.text = spaced}};
}

std::string TokenForms::text_of_new(std::string_view token) const {
  const text::TokenizerParts& parts = tokenizer_.parts();
  const std::string& mark = parts.word_prefix;
  const bool marked = !mark.empty() && token.starts_with(mark) && token.size() > mark.size();
  if (marked) token.remove_prefix(mark.size());
  const bool begins = parts.word_mark == text::WordMark::kSpace ? marked || prepends_ : !marked;
  return begins && !token.starts_with(' ') ? fmt::format(" {}", token) : std::string(token);
}

void TokenForms::add_id(TokenId id, Pieces& out) const {
  out.ids.push_back(static_cast<std::uint64_t>(id));
  const text::TokenizerParts& parts = tokenizer_.parts();
  if (id == tokenizer_.roles().unk || id == parts.unknown_as_text) out.known = false;
}

void TokenForms::add_word(std::string_view word, bool continues, Pieces& out) const {
  const text::TokenModel& model = *tokenizer_.parts().steps.model;
  const std::string& mark = tokenizer_.parts().word_prefix;
  std::vector<text::Piece> pieces;
  if (continues) {
    // The tokens that continue a word are entries of the vocabulary as they are spelled.
    model.tokenize(mark + std::string(word), pieces);
    if (!pieces.empty() && pieces[0].end <= mark.size()) {
      pieces.clear();
      out.known = false;
      if (const auto unknown = tokenizer_.roles().unk) add_id(*unknown, out);
    }
  } else {
    model.tokenize(word, pieces);
  }
  for (const text::Piece& piece : pieces) add_id(piece.id, out);
}

/// The words of `part`, of which `text` is how it begins in the text around it.
void TokenForms::add_part(const text::AlignedText& part, std::string_view text, Pieces& out) const {
  if (part.text.empty()) return;
  const text::TokenizerParts& parts = tokenizer_.parts();
  const std::string& mark = parts.word_prefix;
  std::vector<text::AlignedText> words{part};
  if (parts.steps.pre_tokenizer != nullptr) parts.steps.pre_tokenizer->split(words, false);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i].text;
    std::string marked;
    bool continues = false;
    if (i == 0 && parts.word_mark == text::WordMark::kSpace) {
      const std::size_t spaces = count_leading(text, " ");
      for (std::size_t marks = count_leading(word, mark); marks > spaces; --marks)
        word.remove_prefix(mark.size());
      if (spaces > 0 && !word.starts_with(mark)) word = marked = fmt::format("{}{}", mark, word);
    } else if (i == 0 && parts.word_mark == text::WordMark::kContinuation) {
      continues = !text.starts_with(' ') && !mark.empty() && !is_split_off(word);
    }
    if (!word.empty()) add_word(word, continues, out);
  }
}

void TokenForms::add_words(std::string_view text, Pieces& out) const {
  const text::Steps& steps = tokenizer_.parts().steps;
  const text::AddedTokens& added = tokenizer_.added();
  std::vector<text::AddedTokens::Part> raw;
  added.split(text, false, true, raw);
  for (const text::AddedTokens::Part& stretch : raw) {
    const std::string_view piece = text.substr(stretch.begin, stretch.end - stretch.begin);
    if (stretch.token != nullptr) {
      add_id(stretch.token->id, out);
      continue;
    }
    text::AlignedText normal = text::AlignedText::from(piece);
    if (steps.normalizer != nullptr) steps.normalizer->apply(normal);
    if (!added.any(true)) {
      add_part(normal, piece, out);
      continue;
    }
    std::vector<text::AddedTokens::Part> cooked;
    added.split(normal.text, true, true, cooked);
    for (const text::AddedTokens::Part& part : cooked) {
      if (part.token != nullptr) {
        add_id(part.token->id, out);
      } else {
        add_part(normal.part(part.begin, part.end), part.begin == 0 ? piece : " ", out);
      }
    }
  }
}

TokenForms::Pieces TokenForms::pieces(std::string_view text) const {
  Pieces out;
  if (bytes_ && !valid_utf8(text)) {
    std::string word;
    for (const char byte : text) word += byte_characters()[static_cast<unsigned char>(byte)];
    add_word(word, false, out);
    return out;
  }
  while (!text.empty()) {
    std::size_t size = 0;
    char32_t c = 0;
    for (int bytes = 0; size < text.size(); size += static_cast<std::size_t>(bytes)) {
      bytes = decode_utf8(text.substr(size), c);
      if (bytes <= 0) break;
    }
    if (size > 0) {
      add_words(text.substr(0, size), out);
    } else {
      size = 1;
      const auto id =
          tokenizer_.find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(text[0])));
      if (id) add_id(*id, out);
      out.known = out.known && id.has_value();
    }
    text.remove_prefix(size);
  }
  out.known = out.known && !out.ids.empty();
  return out;
}

}  // namespace masque::surgery
