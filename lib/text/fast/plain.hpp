// The steps of a tokenizer, one after the other, for ids only.
#pragma once

#include <string_view>
#include <vector>

#include "base/thread/interrupt.hpp"
#include "text/fast/fast_encoder.hpp"
#include "text/fast/word_cache.hpp"

namespace masque::text {

/// Bytes of a word for which memory counts more than time.
inline constexpr std::size_t kLongWord = std::size_t{1} << 16;

/// Runs steps, with buffers that it keeps. For one thread.
class PlainSteps {
 public:
  /// Runs `steps`, of which the model must be there.
  explicit PlainSteps(Steps steps) : steps_(std::move(steps)) {}

  /// The steps that it runs.
  const Steps& steps() const { return steps_; }

  /// Appends the ids of one `word` to `ids`, by the model alone.
  void word(std::string_view word, std::vector<TokenId>& ids) {
    throw_if_interrupted();
    if (word.size() >= kLongWord && steps_.model->append_ids(word, ids)) return;
    pieces_.clear();
    steps_.model->tokenize(word, pieces_);
    for (const Piece& piece : pieces_) ids.push_back(piece.id);
  }

  /// Appends the ids of `text`, which begins where the user's does, to `ids`, by all steps.
  void text(std::string_view text, std::vector<TokenId>& ids) {
    words_.clear();
    words_.push_back(AlignedText::from(text));
    if (steps_.normalizer) steps_.normalizer->apply(words_.front());
    if (words_.front().text.empty()) return;
    if (steps_.pre_tokenizer) steps_.pre_tokenizer->split(words_, true);
    for (const AlignedText& part : words_) word(part.text, ids);
  }

 private:
  Steps steps_;
  std::vector<AlignedText> words_;
  std::vector<Piece> pieces_;
};

/// Gives `sink` the ids of `word` from `cache`, or makes them by `make`(ids), which appends them,
/// and remembers them. `buffer` is overwritten.
template <typename Make>
void cached(WordCache& cache, std::vector<TokenId>& buffer, std::string_view word, IdSink& sink,
            Make make) {
  if (cache.append(word, sink)) return;
  if (word.size() >= kLongWord) return sink.append(make);
  buffer.clear();
  make(buffer);
  cache.put(word, buffer);
  if (buffer.empty()) return;
  std::memcpy(sink.reserve(buffer.size()), buffer.data(), buffer.size() * sizeof(TokenId));
  sink.advance(buffer.size());
}

}  // namespace masque::text
