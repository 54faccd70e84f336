// Corrupted sequences for experiments: some tokens are masked, dropped or replaced. The selected
// tokens do not depend on the corruption, and those of a smaller rate are a subset of those of a
// larger one.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/random/random.hpp"
#include "base/string/name_table.hpp"
#include "evaluate/score/sequence.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// The corruption of the selected tokens.
enum class TokenNoise {
  kNone,    ///< nothing
  kMask,    ///< they become the mask token
  kDrop,    ///< they are removed; the others keep their positions
  kRandom,  ///< they become random tokens, uniform over the ids
};

/// The names of all corruptions: "none", "mask", "drop", "random".
NameTable<TokenNoise> token_noise_names();

/// One number in [0, 1) for each token of `sequence`, 2 for those of the template: token i is
/// selected at rate r if number i is below r. A function of `seed`, `purpose` and the sequence's
/// number; independent for different purposes.
std::vector<double> selection_numbers(const Sequence& sequence, std::uint64_t seed,
                                      std::string_view purpose);

/// A corrupted sequence and the rows that were not selected, among those with a number below 1.
struct Corrupted {
  Sequence sequence;            ///< without pieces, spans, labels, prefix and suffix
  std::vector<Index> kept;      ///< rows of the original …
  std::vector<Index> rows;      ///< … and where they are now
  std::vector<Index> selected;  ///< rows of the original
};

/// Corrupts the tokens of `sequence` whose number is below `rate`, by `corruption`. `numbers` has
/// one for each token (selection_numbers()). kMask needs `mask`; kRandom draws from `random`, token
/// i from block i, among `vocab_size` ids. A mask of the sequence's own is cut to the tokens that
/// are left.
Corrupted corrupt(const Sequence& sequence, std::span<const double> numbers, double rate,
                  TokenNoise corruption, std::optional<TokenId> mask, const RandomStream& random,
                  Index vocab_size);

}  // namespace masque::evaluate
