// Prompts, options and results of text generation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "evaluate/write/logits_processors.hpp"
#include "evaluate/write/sampling.hpp"

namespace masque::evaluate {

/// When a beam search of a prompt ends, once num_beams texts have ended.
enum class EarlyStopping {
  kTrue,   ///< at once
  kFalse,  ///< when the most probable open text, at its length, is no better than the worst ended
           ///< one
  kNever,  ///< the same, at the greatest length if length_penalty > 0: when none can become better
};

/// Beam search; names and rules are those of transformers' generate (5.24).
struct BeamOptions {
  Index num_beams = 1;        ///< 1: no beam search
  double length_penalty = 1;  ///< A: the score of n tokens is Σ log p / n^A
  EarlyStopping early_stopping = EarlyStopping::kFalse;  ///< when a prompt is finished
};

/// How generate() continues prompts.
struct GenerateOptions {
  LogitsProcessors processors;  ///< what changes the logits first
  SamplingOptions sampling;     ///< how a token is chosen
  Index max_new_tokens = 20;    ///< largest number of new tokens of a text, at least 1
  Index max_length = 0;         ///< if > 0, instead: the same with the prompt, which is shorter
  /// If > 0, together with max_new_tokens: the same with the prompt, which is shorter.
  Index longest = 0;
  Index num_return_sequences = 1;  ///< texts for a prompt, at least 1
  std::uint64_t seed = 0;          ///< seed of sampling
  std::vector<TokenId> ends;       ///< the first of them that is chosen is the last token
  /// The prompt is a source, of segment 0, whose tokens read each other; what is generated is its
  /// target, of segment 1: UniLM's mask. Dong et al. 2019, arXiv:1905.03197.
  bool to_target = false;
  BeamOptions beams;  ///< without do_sample
};

/// The beginning of a text that is continued.
struct Prompt {
  std::uint64_t id = 0;      ///< number of the line: keys the random numbers
  std::vector<TokenId> ids;  ///< at least one; at most as many as the model has positions
  /// With to_target: number of ids of the source and its separator, at least one; the other ids
  /// begin the target.
  Index source = 0;
  /// With to_target, of a model with latent bottlenecks: their points, which the text is written
  /// from. The ids are one that the model does not read, as the source, and what begins the text.
  std::vector<double> latents = {};
  /// Of an encoder–decoder: what its encoder reads, at least one token. The ids begin the target.
  std::vector<TokenId> encoder_ids = {};
};

/// A text that was generated.
struct Generated {
  std::uint64_t id = 0;        ///< number of its prompt
  Index sample = 0;            ///< from 0; of a beam search the rank
  std::vector<TokenId> ids;    ///< without the prompt, with the end
  double log_probability = 0;  ///< Σ log softmax(logits), temperature 1, in nats
  double score = 0;            ///< score of the beam search; else log_probability
  bool ended = false;          ///< by an end, not by max_new_tokens or the last position
};

/// The most new tokens that `options` allow after a prompt of `length` tokens.
inline Index most_new_tokens(const GenerateOptions& options, Index length) {
  if (options.max_length > 0) return options.max_length - length;
  return options.longest > 0 ? std::min(options.max_new_tokens, options.longest - length)
                             : options.max_new_tokens;
}

}  // namespace masque::evaluate
