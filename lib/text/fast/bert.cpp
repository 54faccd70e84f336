// BERT: runs of ASCII letters and digits are looked up as they stand, before any step.
#include <array>

#include "text/fast/ascii_run.hpp"
#include "text/fast/plain.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

// What is said here of neighbours holds for every BertNormalizer: it works character by character,
// but for the order of combining marks, and white space, punctuation and (padded) Chinese
// characters are boundaries of words before and after it.
class BertEncoder final : public FastEncoder {
 public:
  BertEncoder(Steps steps, const BertFields& fields)
      : plain_(std::move(steps)), fields_(fields), alone_(kBmp, kNotKnown) {
    kinds_.fill(Kind::kOther);
    for (char c = 0x20; c < 0x7F; ++c) {
      kind(c) = ascii_letter(c) || ascii_digit(c) ? Kind::kWord : Kind::kAlone;
    }
    for (const char c : {' ', '\t', '\n', '\r'}) kind(c) = Kind::kSpace;
  }

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    IdSink sink(ids);
    for (std::size_t at = 0; at < text.size();) {
      switch (kind(text[at])) {
        case Kind::kSpace: ++at; break;
        case Kind::kWord: at = word(text, at, sink); break;
        case Kind::kAlone: at = alone(text, at, sink); break;
        case Kind::kOther:
          at = is_alone(text, at) ? alone(text, at, sink) : chunk(text, at, at, sink);
          break;
      }
    }
  }

 private:
  // A byte, or for those from 0x80 the character that begins with it, which `alone_` knows.
  enum class Kind : unsigned char { kSpace, kWord, kAlone, kOther };
  static constexpr std::size_t kBmp = 0x10000;
  static constexpr TokenId kNotKnown = -3;
  static constexpr TokenId kNotAlone = -2;
  static constexpr TokenId kNotOne = -1;  // a word of its own, but not one token

  Kind& kind(char c) { return kinds_[static_cast<unsigned char>(c)]; }

  /// A run of ASCII letters and digits.
  std::size_t word(std::string_view text, std::size_t at, IdSink& sink) {
    const std::size_t end = ascii_run_end<true>(text, at);
    if (end < text.size() && kind(text[end]) == Kind::kOther && !is_alone(text, end)) {
      return chunk(text, at, end, sink);
    }
    if (end - at > WordKey::kBytes ||
        !cache_.append(WordKey::of(text, at, end - at), end - at, sink)) {
      const std::string_view part = text.substr(at, end - at);
      cached(cache_, buffer_, part, sink, [&](std::vector<TokenId>& ids) {
        words_ = part;
        if (fields_.lowercase) {
          for (char& c : words_) c = ascii_letter(c) ? static_cast<char>(c | 0x20) : c;
        }
        plain_.word(words_, ids);
      });
    }
    return end;
  }

  /// What begins at `begin` and goes on at `at` with a character that needs the steps.
  std::size_t chunk(std::string_view text, std::size_t begin, std::size_t at, IdSink& sink) {
    while (at < text.size()) {
      const Kind next = kind(text[at]);
      if (next == Kind::kSpace || next == Kind::kAlone) break;
      if (next == Kind::kWord) {
        at = ascii_run_end<true>(text, at);
        continue;
      }
      if (is_alone(text, at)) break;
      at += char_bytes(text[at]);
    }
    steps(text.substr(begin, at - begin), sink);
    return at;
  }

  /// Whether the character at text[at] is a word of its own, whatever stands next to it.
  bool is_alone(std::string_view text, std::size_t at) {
    const char32_t c = next_char(text, at);
    if (c >= kBmp) return judge(c);
    TokenId& known = alone_[c];
    if (known == kNotKnown) known = judge(c) ? one_token(c) : kNotAlone;
    return known != kNotAlone;
  }
  bool judge(char32_t c) const {
    if (fields_.handle_chinese_chars && is(c, kChinese)) return true;
    return is(c, kPunctuation) && !is(c, kBertRemoved | kBertSpace) &&
           canonical_decomposition(c).empty() && lower_case(c).empty();
  }
  TokenId one_token(char32_t c) {
    std::string text;
    append_utf8(text, c);
    buffer_.clear();
    make(text, buffer_);
    return buffer_.size() == 1 ? buffer_[0] : kNotOne;
  }

  std::size_t alone(std::string_view text, std::size_t at, IdSink& sink) {
    std::size_t end = at;
    const char32_t c = next_char(text, end);
    if (c < kBmp) {
      TokenId& known = alone_[c];
      if (known == kNotKnown) known = one_token(c);  // ASCII: never looked up by is_alone()
      if (known >= 0) {
        sink.push(known);
        return end;
      }
    }
    steps(text.substr(at, end - at), sink);
    return end;
  }

  void steps(std::string_view part, IdSink& sink) {
    cached(cache_, buffer_, part, sink, [&](std::vector<TokenId>& ids) { make(part, ids); });
  }

  void make(std::string_view part, std::vector<TokenId>& ids) {
    bert_words(part, fields_, words_, word_ends_);
    std::size_t begin = 0;
    for (const std::uint32_t end : word_ends_) {
      plain_.word(std::string_view(words_).substr(begin, end - begin), ids);
      begin = end;
    }
  }

  PlainSteps plain_;
  BertFields fields_;
  std::array<Kind, 256> kinds_{};
  std::vector<TokenId> alone_;  // by code point
  WordCache cache_;             // of stretches of the text as it stands
  std::vector<TokenId> buffer_;
  std::string words_;  // of bert_words
  std::vector<std::uint32_t> word_ends_;
};

}  // namespace

std::unique_ptr<FastEncoder> make_bert_encoder(Steps steps, const BertFields& fields) {
  return std::make_unique<BertEncoder>(std::move(steps), fields);
}

}  // namespace masque::text
