// The kinds of scores of a text.
#pragma once

#include <string_view>

#include "base/string/name_table.hpp"

namespace masque::evaluate {

/// The masked kinds differ in M(t), the tokens that are hidden while token t is predicted.
enum class ScoreKind {
  kPll,           ///< {t}: Shin 2019, arXiv:1905.06655; Salazar 2020, arXiv:1910.14659
  kPllWordL2r,    ///< t and later pieces of its word: Kauf and Ivanova 2023, arXiv:2305.10588
  kPllWord,       ///< all pieces of t's word
  kPllGlobalL2r,  ///< t and everything after it
  kTta,           ///< one pass; each position predicts its own token without reading it
  kCausal,        ///< one pass; each position predicts the next token
  kElectra,       ///< one pass of a discriminator: log σ(−logit), that a token is original
  kElectric,      ///< one pass: −E, the energy of a token: Clark et al. 2020, arXiv:2012.08561
  kMaskless,      ///< one pass: a learned number for the whole text: Salazar 2020
  kMdlm,  ///< a bound from random sets of hidden tokens: evaluate/score/likelihood_bound.hpp
};

/// The names of all kinds: "pll", "pll-word-l2r", … in the order above.
NameTable<ScoreKind> kind_names();
/// The name of `kind`.
std::string_view kind_name(ScoreKind kind);

/// Whether the head that `kind` needs gives one number per position instead of one per token of the
/// vocabulary.
bool reads_one_number(ScoreKind kind);

/// Whether `kind` hides tokens, with one copy of the text for each scored token.
bool is_masked(ScoreKind kind);

}  // namespace masque::evaluate
