// Texts that a model goes on with, token by token: the likeliest one, or drawn from its softmax.
#pragma once

#include <span>
#include <vector>

#include "model/model.hpp"
#include "probe/write/sampling.hpp"

namespace masque::probe {

struct GenerateOptions {
  SamplingOptions sampling;
  Index max_new_tokens = 20;
  Index num_return_sequences = 1;
  std::uint64_t seed = 0;
  std::vector<TokenId> ends;  ///< the first of them that is chosen is the last token
  /// The prompt is a source, of segment 0, whose tokens read each other; what is generated is its
  /// target, of segment 1: UniLM's mask. Dong et al. 2019, arXiv:1905.03197.
  bool to_target = false;
};

/// Throws InputError if a model predicts no next token; with `to_target` a masked head will do,
/// which may have learnt to.
void check_generation(const model::Design& design, bool to_target);

/// What is gone on with.
struct Prompt {
  std::uint64_t id = 0;      ///< of the line: keys the random numbers
  std::vector<TokenId> ids;  ///< at least one; at most as many as the model has positions
};

/// A text that was generated.
struct Generated {
  std::uint64_t id = 0;        ///< of its prompt
  Index sample = 0;            ///< from 0
  std::vector<TokenId> ids;    ///< without the prompt, with the end
  double log_probability = 0;  ///< Σ log softmax(logits), temperature 1, in nats
  bool ended = false;          ///< by an end, not by max_new_tokens or the last position
};

/// Goes on with every prompt, num_return_sequences times each; in the order of prompts and samples.
/// Draws depend on seed, prompt id, sample and place alone. All run together; memory is that of
/// Model::run, and of a KeyValueCache where the model has one. Without it n new tokens are n runs,
/// each over the whole sequences that are not at their end. Throws InputError as Model::run.
std::vector<Generated> generate(const model::Model& model, std::span<const Prompt> prompts,
                                const GenerateOptions& options);

}  // namespace masque::probe
