// A text that is scored at several lengths: one stream of tokens whose targets are drawn once, cut
// in other ways for every length.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evaluate/score/length_policy.hpp"
#include "evaluate/score/score_kind.hpp"
#include "train/data/cut_sequences.hpp"
#include "train/data/example.hpp"
#include "train/data/objective.hpp"

namespace masque::length {

/// Returns the score of texts that `objective` trains for. Throws UsageError with the objectives
/// that have one: mlm, tta and clm.
evaluate::ScoreKind scored_kind(std::string_view objective);
/// Returns the objective of which `kind`, kPll, kTta or kCausal, is the score.
std::string scored_objective(evaluate::ScoreKind kind);
/// Throws UsageError if the option `option` has no effect with `objective`, because only a masked
/// language model reads it; `which` ends the message.
void check_masked_option(std::string_view option, std::string_view objective,
                         std::string_view which = "");

/// What a LengthStream is made of.
struct StreamRequest {
  std::string text;               ///< path of a file
  std::string objective = "mlm";  ///< one with a scored_kind()
  /// The rate; its `tokens` and `seed` are replaced by the tokenizer's and by `seed`.
  train::ObjectiveOptions requested;
  std::vector<Index> lengths;  ///< tokens of a sequence with those of the template; at least one
  Index tokens = 0;            ///< the first ones of the text; 0: all
  std::uint64_t seed = 0;      ///< of the tokens that are hidden
  int threads = 0;             ///< CorpusOptions::threads
  /// Chunk   blocks side by side.
  /// Slide   blocks every `stride` tokens, the last one at the end of the text; a token is scored
  ///         in the block where it has the most context.
  /// Last    the text is cut into pieces for the longest sequences; of every piece the last tokens
  ///         are scored, as many as the shortest sequence holds, with more and more in front.
  evaluate::LengthPolicy policy{evaluate::LengthPolicy::Kind::kChunk, 0};
};

/// Blocks of a text for every length. The same tokens are targets at each of them, hidden in the
/// same way. A token without context at some length (causal models without a template) is a target
/// at no length. Immutable.
class LengthStream {
 public:
  /// Reads and cuts the text of `request`; keeps no reference to it nor to `tokenizer`. Throws
  /// InputError for a text shorter than a sequence, UsageError for another objective or policy, a
  /// stride longer than a block, a path that cannot be read again; and as read_corpus.
  LengthStream(const StreamRequest& request, const text::Tokenizer& tokenizer);

  /// The text's tokens, none hidden. Lives as long as the stream.
  const std::vector<TokenId>& ids() const { return ids_; }
  /// For people: how much of the text was read; nothing if all of it was.
  const std::optional<std::string>& note() const { return note_; }
  /// The blocks of `length` tokens, one of the request's lengths; in the order of the text. Lives
  /// as long as the stream.
  const std::vector<train::Example>& examples(Index length) const {
    return cuts_.at(length).examples;
  }
  /// For every target of examples(length), in order, its index in ids(). `length` as there.
  const std::vector<Index>& positions(Index length) const { return cuts_.at(length).positions; }
  /// Number of text tokens in the longest sequence: parts with this many tokens contain the same
  /// targets at all lengths.
  Index longest_room() const;

 private:
  struct Cut {
    train::SequenceShape shape;
    std::vector<evaluate::Window> windows;
    std::vector<train::Example> examples;
    std::vector<Index> positions;
  };

  void read(const StreamRequest& request, const text::Tokenizer& tokenizer);
  void place_windows(const StreamRequest& request, bool causal);
  void make_examples(const StreamRequest& request, const text::Tokenizer& tokenizer, Index shift);

  std::vector<TokenId> ids_;
  std::optional<std::string> note_;
  std::map<Index, Cut> cuts_;
};

}  // namespace masque::length
