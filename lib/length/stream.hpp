// A text that is scored at several lengths: one stream of tokens whose targets are drawn once, cut
// in other ways for every length.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probe/score/length_policy.hpp"
#include "train/data/example.hpp"
#include "train/data/objective.hpp"

namespace masque::length {

struct StreamRequest {
  std::string text;                   ///< a file
  std::string objective = "mlm";      ///< mlm, tta or clm
  train::ObjectiveOptions requested;  ///< the rate
  std::vector<Index> lengths;         ///< tokens of a sequence, those of the template included
  Index tokens = 0;                   ///< the first ones of the text; 0: all
  std::uint64_t seed = 0;             ///< of the tokens that are hidden
  int threads = 0;
  /// Chunk   blocks side by side.
  /// Slide   blocks every `stride` tokens, the last one at the end of the text; a token is scored
  ///         in the block where it has the most context.
  /// Last    the text is cut into pieces for the longest sequences; of every piece the last tokens
  ///         are scored, as many as the shortest sequence holds, with more and more in front.
  probe::LengthPolicy policy{probe::LengthPolicy::Kind::kChunk, 0};
};

/// Blocks of a text for every length. The same tokens are targets at each of them, hidden in the
/// same way. A token without context at some length (causal models without a template) is a target
/// at no length. Immutable.
class LengthStream {
 public:
  /// Throws InputError for a text shorter than a sequence, UsageError for another objective or
  /// policy, a stride longer than a block, a path that cannot be read again.
  LengthStream(const StreamRequest& request, const text::Tokenizer& tokenizer);

  /// The tokens, none hidden.
  const std::vector<TokenId>& ids() const { return ids_; }
  const std::vector<train::Example>& examples(Index length) const {
    return cuts_.at(length).examples;
  }
  /// For every target of `examples`, in order, its index in `ids`.
  const std::vector<Index>& positions(Index length) const { return cuts_.at(length).positions; }
  /// Number of text tokens in the longest sequence: parts with this many tokens contain the same
  /// targets at all lengths.
  Index longest_room() const;

 private:
  /// Tokens in front of the text in a block, after it, and of text.
  struct Shape {
    std::vector<TokenId> before, after;
    Index room = 0;
  };
  struct Cut {
    Shape shape;
    std::vector<probe::Window> windows;
    std::vector<train::Example> examples;
    std::vector<Index> positions;
  };

  void read(const StreamRequest& request, const text::Tokenizer& tokenizer);
  void place_windows(const StreamRequest& request, bool causal);
  void make_examples(const StreamRequest& request, const text::Tokenizer& tokenizer, Index shift);

  std::vector<TokenId> ids_;
  std::map<Index, Cut> cuts_;
};

}  // namespace masque::length
