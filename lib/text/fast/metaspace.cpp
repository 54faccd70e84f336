// Metaspace: words begin at spaces; a space and U+2581 are the same.
#include <string>

#include "text/fast/plain.hpp"
#include "text/unicode/space_marks.hpp"

namespace masque::text {

namespace {

class MetaspaceEncoder final : public FastEncoder {
 public:
  MetaspaceEncoder(Steps steps, PrependMark prepend)
      : plain_(std::move(steps)), prepend_(prepend) {}

  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    if (plain_.steps().normalizer) {
      normalized_ = AlignedText::from(text);
      plain_.steps().normalizer->apply(normalized_);
      text = normalized_.text;
    }
    if (text.empty()) return;
    if (prepend_ != PrependMark::kNever && text[0] != ' ' && !text.starts_with(kSpaceMark)) {
      prefixed_ = ' ';
      prefixed_ += text;
      text = prefixed_;
    }
    IdSink sink(ids);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = word_end(text, at + 1);
      word(text.substr(at, end - at), sink);
      at = end;
    }
  }

 private:
  static std::size_t word_end(std::string_view text, std::size_t at) {
    while (at < text.size() && text[at] != ' ' &&
           !(text[at] == kSpaceMark[0] && text.substr(at).starts_with(kSpaceMark))) {
      ++at;
    }
    return at;
  }

  void word(std::string_view word, IdSink& sink) {
    cached(cache_, buffer_, word, sink, [&](std::vector<TokenId>& ids) {
      if (word[0] != ' ') return plain_.word(word, ids);
      written_ = kSpaceMark;
      written_ += word.substr(1);
      plain_.word(written_, ids);
    });
  }

  PlainSteps plain_;
  PrependMark prepend_;
  WordCache cache_;
  AlignedText normalized_;
  std::vector<TokenId> buffer_;
  std::string prefixed_;
  std::string written_;
};

}  // namespace

std::unique_ptr<FastEncoder> make_metaspace_encoder(Steps steps, PrependMark prepend) {
  return std::make_unique<MetaspaceEncoder>(std::move(steps), prepend);
}

}  // namespace masque::text
