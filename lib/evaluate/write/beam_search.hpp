// Beam search: the most probable continuations of each prompt, found by extending a few texts at a
// time.
#pragma once

#include <span>
#include <vector>

#include "base/string/name_table.hpp"
#include "evaluate/write/generation.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// The names of all values: "true", "false", "never".
NameTable<EarlyStopping> early_stopping_names();

/// Throws UsageError if `options` have more beams than a `vocabulary` of so many tokens has
/// candidates for, or fewer beams than requested texts per prompt. One beam always passes.
void check_beams(const GenerateOptions& options, Index vocabulary);

/// generate() with `options`.beams.num_beams > 1; there, what it does with `model` and `prompts`.
/// The algorithm is that of transformers 5.24: each step takes the max(2, 1 + ends) · num_beams
/// most probable continuations of a prompt's open texts. Of the first num_beams, those that end are
/// kept, num_beams in all by their scores; the num_beams most probable ones that do not end remain
/// open. Equal scores: the earlier text, the lower id first.
std::vector<Generated> beam_search(const model::Model& model, std::span<const Prompt> prompts,
                                   const GenerateOptions& options);

}  // namespace masque::evaluate
