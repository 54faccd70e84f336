// Masked language modelling: selected tokens are hidden, replaced or kept, and become labels.
// Devlin et al. 2018, arXiv:1810.04805.
#pragma once

#include "records/selection.hpp"

namespace masque::records {

/// For each id the tokens that may stand for it; ids without any, or beyond the list, have none.
using SimilarTokens = std::vector<std::vector<TokenId>>;

/// What make_mlm does.
struct MlmOptions {
  SelectionOptions selection;    ///< which tokens; its seed draws the replacements, too
  double mask = 0.8;             ///< of the selected: the mask token, or a similar one
  double keep = 0.1;             ///< of the selected: unchanged
  double random = 0.1;           ///< of the selected: any token of the vocabulary, uniformly
  SimilarTokens similar = {};    ///< not empty: similar tokens instead of [MASK]; MacBERT
  std::uint64_t draws = 0;       ///< repeat masks every `draws` epochs; 0: never
  bool fixed_selection = false;  ///< the selection of epoch 0, replaced anew in each
};

/// Replaces the tokens that `options` select, with the mask token and the vocabulary of `tokens`,
/// and fills `labels` with what they were, else kNoLabel. A token without similar ones becomes any
/// token where it would become a similar one. Throws UsageError for shares that do not add up to 1,
/// a mask token that is needed and unknown, or random and similar tokens without the size of the
/// vocabulary, and as Selection. apply() throws InputError for a record that has labels, and what
/// Selection::select throws.
std::unique_ptr<Corruption> make_mlm(const MlmOptions& options, TokenTable tokens);

}  // namespace masque::records
