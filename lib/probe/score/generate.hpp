// Texts that a model goes on with, token by token: the likeliest one, or drawn from its softmax.
#pragma once

#include <span>
#include <vector>

#include "model/model.hpp"

namespace masque::probe {

/// How the next token is chosen; names and rules are those of transformers' generate, numbers are
/// double.
struct SamplingOptions {
  bool do_sample = false;  ///< else the likeliest token, of equals the first
  double temperature = 1;  ///< logits are divided by it; > 0
  Index top_k = 0;         ///< then tokens less likely than the k-th are out; 0: none
  double top_p = 1;        ///< then those after the likeliest ones that have this probability
};

/// The probabilities that a token is drawn with: softmax of logits / temperature, without the
/// tokens that top_k and top_p take out. O(V log V).
std::vector<double> sampling_probabilities(std::span<const double> logits,
                                           const SamplingOptions& options);

/// The next token; `uniform`, in [0, 1), decides which one is drawn. The result's probability is
/// not 0.
TokenId choose_token(std::span<const double> logits, const SamplingOptions& options,
                     double uniform);

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
/// Model::run. No keys and values are kept: n new tokens are n runs, each over the whole sequences
/// that are not at their end. Throws InputError as Model::run.
std::vector<Generated> generate(const model::Model& model, std::span<const Prompt> prompts,
                                const GenerateOptions& options);

}  // namespace masque::probe
