// Byte-level BPE: GPT-2's pattern as a scanner, words looked up by their bytes.
#include <array>
#include <string>

#include "text/fast/ascii_run.hpp"
#include "text/fast/plain.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

enum class Kind : unsigned char { kLetter, kNumber, kSpace, kOther };

Kind kind_of(char32_t c) {
  if (is(c, kLetter)) return Kind::kLetter;
  if (is(c, kNumber)) return Kind::kNumber;
  return is(c, kWhiteSpace) ? Kind::kSpace : Kind::kOther;
}

class ByteLevelEncoder final : public FastEncoder {
 public:
  ByteLevelEncoder(Steps steps, bool add_prefix_space)
      : plain_(std::move(steps)), add_prefix_space_(add_prefix_space) {
    for (std::size_t c = 0; c < ascii_.size(); ++c) ascii_[c] = kind_of(static_cast<char32_t>(c));
    char32_t next = 0x100;
    for (std::size_t byte = 0; byte < characters_.size(); ++byte) {
      const bool itself =
          (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      append_utf8(characters_[byte], itself ? static_cast<char32_t>(byte) : next++);
    }
  }

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    if (text.empty()) return;
    if (add_prefix_space_ && text[0] != ' ') {
      prefixed_ = ' ';
      prefixed_ += text;
      text = prefixed_;
    }
    IdSink sink(ids);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = word_end(text, at);
      const std::size_t size = end - at;
      if (size > WordKey::kBytes || !cache_.append(WordKey::of(text, at, size), size, sink)) {
        word(text.substr(at, size), sink);
      }
      at = end;
    }
  }

 private:
  /// The kind of the character at text[at]; moves `at` past it.
  Kind step(std::string_view text, std::size_t& at) const {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      ++at;
      return ascii_[byte];
    }
    return kind_of(next_char(text, at));
  }

  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  std::size_t word_end(std::string_view text, std::size_t begin) const {
    if (text[begin] == '\'') {
      if (const std::size_t bytes = contraction(text.substr(begin, 3)); bytes > 0) {
        return begin + bytes;
      }
    }
    std::size_t at = begin;
    Kind first = step(text, at);
    if (text[begin] == ' ' && at < text.size()) {
      std::size_t next = at;
      const Kind second = step(text, next);
      if (second != Kind::kSpace) {
        first = second;
        at = next;
      }
    }
    if (first == Kind::kSpace) return spaces_end(text, begin, at);
    while (at < text.size()) {
      if (first == Kind::kLetter) at = ascii_run_end<false>(text, at);
      if (at == text.size()) break;
      std::size_t next = at;
      if (step(text, next) != first) break;
      at = next;
    }
    return at;
  }

  static std::size_t contraction(std::string_view text) {
    if (text.size() < 2) return 0;
    switch (text[1]) {
      case 's':
      case 't':
      case 'm':
      case 'd': return 2;
      case 'r':
      case 'v': return text.size() > 2 && text[2] == 'e' ? 3 : 0;
      case 'l': return text.size() > 2 && text[2] == 'l' ? 3 : 0;
      default: return 0;
    }
  }

  /// White space from `begin` on, of which the first character ends at `at`. Before a word its last
  /// character is left to the word, or to itself.
  std::size_t spaces_end(std::string_view text, std::size_t begin, std::size_t at) const {
    std::size_t last = begin;
    while (at < text.size()) {
      std::size_t next = at;
      if (step(text, next) != Kind::kSpace) return last == begin ? at : last;
      last = at;
      at = next;
    }
    return at;
  }

  void word(std::string_view word, IdSink& sink) {
    cached(cache_, buffer_, word, sink, [&](std::vector<TokenId>& ids) {
      written_.clear();
      written_.reserve(2 * word.size());
      for (const char byte : word) written_ += characters_[static_cast<unsigned char>(byte)];
      plain_.word(written_, ids);
      if (word.size() >= kLongWord) written_ = std::string();
    });
  }

  PlainSteps plain_;
  bool add_prefix_space_;
  std::array<Kind, 128> ascii_{};
  std::array<std::string, 256> characters_;  // that stand for the bytes
  WordCache cache_;
  std::vector<TokenId> buffer_;
  std::string prefixed_;
  std::string written_;
};

}  // namespace

std::unique_ptr<FastEncoder> make_byte_level_encoder(Steps steps, bool add_prefix_space) {
  return std::make_unique<ByteLevelEncoder>(std::move(steps), add_prefix_space);
}

}  // namespace masque::text
