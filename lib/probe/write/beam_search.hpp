// Beam search: of each prompt the likeliest texts that a few open ones at a time lead to.
#pragma once

#include <span>
#include <vector>

#include "base/name_table.hpp"
#include "model/model.hpp"
#include "probe/write/generation.hpp"

namespace masque::probe {

/// "true", "false", "never".
NameTable<EarlyStopping> early_stopping_names();

/// Throws UsageError if a beam search has more beams than a vocabulary has candidates for, or fewer
/// than texts that are wanted of each prompt.
void check_beams(const GenerateOptions& options, Index vocabulary);

/// generate() with options.beams.num_beams > 1; there, what it does. The algorithm is that of
/// transformers 5.24: each step takes the max(2, 1 + ends) · num_beams likeliest continuations of a
/// prompt's open texts; of the num_beams first those that end are kept, num_beams in all by their
/// scores; the num_beams likeliest that do not end stay open. Equal scores: the earlier text, the
/// lower id first.
std::vector<Generated> beam_search(const model::Model& model, std::span<const Prompt> prompts,
                                   const GenerateOptions& options);

}  // namespace masque::probe
