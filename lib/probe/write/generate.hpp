// Texts that a model goes on with, token by token: the likeliest one, drawn from its softmax, or by
// beam search.
#pragma once

#include <span>
#include <vector>

#include "model/model.hpp"
#include "probe/write/generation.hpp"

namespace masque::probe {

/// Throws InputError if a model predicts no next token; with `to_target` a masked head will do,
/// which may have learnt to.
void check_generation(const model::Design& design, bool to_target);

/// Goes on with every prompt, num_return_sequences times each; in the order of prompts and samples.
/// Draws depend on seed, prompt id, sample and place alone. All run together; memory is that of
/// Model::run, and of a KeyValueCache where the model has one. A prompt is read once, for all its
/// samples; then each of them is a row a token. Without a cache n new tokens are n runs, each over
/// the whole sequences that are not at their end. A beam search reads a prompt once and then
/// num_beams rows a token; if it ends early, the num_return_sequences best texts are those
/// that transformers finds. Throws InputError as Model::run, and Interrupted.
std::vector<Generated> generate(const model::Model& model, std::span<const Prompt> prompts,
                                const GenerateOptions& options);

}  // namespace masque::probe
