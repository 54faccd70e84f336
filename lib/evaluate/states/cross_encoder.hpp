// Cross-encoders: models that read two texts at once and give one number.
#pragma once

#include <string>

#include "kernel/activation.hpp"

namespace masque::evaluate {

/// What becomes of the number of the cross-encoder at `path`, a folder or a file of weights in it:
/// activation_fn of config_sentence_transformers.json next to a modules.json, else of
/// sentence_transformers in config.json, else sbert_ce_default_activation_function there, as
/// sentence-transformers 6.2 reads them; kNone if config.json says that the problem is one of
/// regression, and says nothing else; else kSigmoid. Throws InputError for a function that is not
/// supported, for a folder of sentence-transformers of another kind, with further modules or with a
/// prompt by default, and for files that cannot be read.
kernel::Activation read_pair_activation(const std::string& path);

/// `activation` of `score`.
double activated(kernel::Activation activation, double score);

}  // namespace masque::evaluate
