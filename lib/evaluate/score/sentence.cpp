#include "evaluate/score/sentence.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

template <class T>
std::vector<T> cut(const std::vector<T>& all, const Sentence& sentence, Index begin, Index end) {
  const auto prefix = all.begin() + sentence.prefix;
  std::vector<T> out(all.begin(), prefix);
  out.reserve(static_cast<std::size_t>(sentence.prefix + end - begin + sentence.suffix));
  out.insert(out.end(), prefix + begin, prefix + end);
  out.insert(out.end(), all.end() - sentence.suffix, all.end());
  return out;
}

text::EncodeOptions encode_options(const SentenceOptions& options, bool target = false) {
  return {.special = options.special,
          .special_in_text = options.special_in_text,
          .unit = text::OffsetUnit::kByte,
          .target = target};
}

/// Puts the token `begin` in front of `sentence`, as its prefix.
void put_in_front(const text::Tokenizer& tokenizer, TokenId begin, Sentence& sentence) {
  sentence.ids.insert(sentence.ids.begin(), begin);
  sentence.pieces.emplace(sentence.pieces.begin(), tokenizer.token(begin));
  sentence.words.insert(sentence.words.begin(), text::kNoWord);
  sentence.spans.insert(sentence.spans.begin(), text::Span{});
  if (!sentence.segments.empty()) sentence.segments.insert(sentence.segments.begin(), 0);
  sentence.prefix = 1;
}

Sentence sentence_of(const text::Tokenizer& tokenizer, text::Encoding encoding,
                     std::uint64_t text_bytes, const SentenceOptions& options) {
  const auto is_text = [](std::uint8_t special) { return special == 0; };
  const std::vector<std::uint8_t>& special = encoding.special;
  // Without text the template is all prefix.
  const auto first = std::find_if(special.begin(), special.end(), is_text);
  const auto last = std::find_if(special.rbegin(), special.rend(), is_text);
  Sentence sentence;
  sentence.prefix = first - special.begin();
  sentence.suffix = first == special.end() ? 0 : last - special.rbegin();
  sentence.ids = std::move(encoding.ids);
  sentence.pieces = std::move(encoding.tokens);
  sentence.words = std::move(encoding.words);
  sentence.spans = std::move(encoding.offsets);
  sentence.text_bytes = text_bytes;
  if (std::any_of(encoding.type_ids.begin(), encoding.type_ids.end(),
                  [](std::uint32_t type) { return type != 0; })) {
    sentence.segments.assign(encoding.type_ids.begin(), encoding.type_ids.end());
  }
  if (options.begin && sentence.prefix == 0) put_in_front(tokenizer, *options.begin, sentence);
  return sentence;
}

}  // namespace

std::optional<TokenId> begin_token(const text::Tokenizer& tokenizer) {
  return tokenizer.roles().bos ? tokenizer.roles().bos : tokenizer.roles().eos;
}

Sentence encode_sentence(const text::Tokenizer& tokenizer, std::string_view text,
                         const SentenceOptions& options) {
  return sentence_of(tokenizer, tokenizer.encode(text, encode_options(options)), text.size(),
                     options);
}

Sentence encode_pair_sentence(const text::Tokenizer& tokenizer, std::string_view first,
                              std::string_view second, const SentenceOptions& options) {
  return sentence_of(tokenizer, tokenizer.encode_pair(first, second, encode_options(options)),
                     first.size() + second.size(), options);
}

Sentence encode_target_sentence(const text::Tokenizer& tokenizer, std::string_view source,
                                std::string_view target, const SentenceOptions& options,
                                const model::SourceDesign& design) {
  SentenceOptions plain = options;
  plain.begin.reset();
  Sentence sentence = sentence_of(tokenizer, tokenizer.encode(target, encode_options(plain, true)),
                                  target.size(), plain);
  Sentence read = encode_sentence(tokenizer, source, plain);
  sentence.source = std::move(read.ids);
  sentence.source_spans = std::move(read.spans);
  if (sentence.source.empty()) throw InputError("a source without tokens, expected at least one");
  if (sentence.ids.empty()) throw InputError("a target without tokens, expected at least one");
  const TokenId begin = model::begin_of_target(design, sentence.ids.back());
  sentence.segments.clear();
  put_in_front(tokenizer, begin, sentence);
  sentence.suffix = 0;
  return sentence;
}

Sentence part_of(const Sentence& sentence, Index begin, Index end) {
  MASQUE_CHECK(0 <= begin && begin <= end && end <= sentence.tokens());
  Sentence part;
  part.prefix = sentence.prefix;
  part.suffix = sentence.suffix;
  part.ids = cut(sentence.ids, sentence, begin, end);
  part.pieces = cut(sentence.pieces, sentence, begin, end);
  part.words = cut(sentence.words, sentence, begin, end);
  if (!sentence.spans.empty()) part.spans = cut(sentence.spans, sentence, begin, end);
  part.source = sentence.source;
  part.source_spans = sentence.source_spans;
  part.text_bytes = sentence.text_bytes;
  if (!sentence.segments.empty()) part.segments = cut(sentence.segments, sentence, begin, end);
  return part;
}

}  // namespace masque::evaluate
