// Continues texts token by token: by greedy decoding, sampling from the softmax, or beam search.
#pragma once

#include <span>
#include <vector>

#include "evaluate/write/generation.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// Throws InputError if a model of `design` does not predict the next token. With `to_target` it
/// must have a masked head, which may have been trained for it, and two token types.
void check_generation(const model::Design& design, bool to_target);

/// Continues every one of `prompts` with `model`, num_return_sequences times each (`options`), in
/// the order of prompts and samples. Samples depend only on seed, prompt id, sample and position.
/// All run together; memory is that of Model::run, and of a KeyValueCache where the model has one.
/// A prompt is read once for all its samples; then each sample costs one row per token. Without a
/// cache n new tokens cost n runs, each over the whole sequences that have not ended. A beam search
/// reads a prompt once and then num_beams rows per token; if it ends early, the
/// num_return_sequences best texts are those that transformers finds. Throws InputError as
/// Model::run, and Interrupted.
std::vector<Generated> generate(const model::Model& model, std::span<const Prompt> prompts,
                                const GenerateOptions& options);

}  // namespace masque::evaluate
