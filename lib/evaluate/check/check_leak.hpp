// Does an output depend on the token that it predicts? Tested on the model itself: tokens are
// replaced, and outputs compared. By masks alone: mask/flow.hpp, and of a score
// evaluate/score/score_leak.hpp.
#pragma once

#include <optional>
#include <vector>

#include "evaluate/check/check_run.hpp"

namespace masque::evaluate {

/// How check_leak tests a text.
struct LeakRequest {
  /// kSelf: output i must not depend on token i. kNext: output i must not depend on tokens after i.
  /// Others are not supported.
  mask::Prediction prediction = mask::Prediction::kSelf;
  /// A text is two copies (two_copies()), of which the second is predicted: its outputs must depend
  /// on no token of the first, and by `prediction` on none of the second.
  bool second_copy = false;
  Index tokens = 64;          ///< number of tokens of a text, evenly spread; 0: all
  Index replacements = 3;     ///< random ones for each token
  double tolerance = 0;       ///< differences up to it do not count (check_run.hpp)
  std::uint64_t seed = 0;     ///< seed of the replacements
  Index batch_tokens = 8192;  ///< most tokens of a batch; a longer text runs alone
  /// Never put in: padding, which some families do not count.
  std::optional<TokenId> never;
};

/// `text` as UniVAE (Design::variants.latent, which `design` must have) reads it: twice, under its
/// mask `uniae`, with given points at the bottlenecks (a function of `seed` and the text's
/// `number`), so that what reaches the second copy but through them shows. Throws InputError for a
/// text with a mask, positions or segments of its own.
CheckInput two_copies(const CheckInput& text, const model::Design& design, std::uint64_t seed,
                      std::uint64_t number);

/// A token and an output that it must not reach.
struct LeakPlace {
  std::uint64_t text = 0;   ///< number of the text
  Index token = 0;          ///< place of the token that was replaced, from 0
  Index position = 0;       ///< place of the output that changed, from 0
  TokenId replacement = 0;  ///< the one that made the largest difference
  double difference = 0;    ///< as compare_variants has it
};

/// What was found after one layer.
struct LayerLeaks {
  std::uint64_t pairs = 0;         ///< that leak
  double largest = 0;              ///< difference, those within the tolerance included
  std::optional<LeakPlace> first;  ///< in the first text, the smallest token, then position
};

/// Sums over texts.
struct LeakReport {
  std::uint64_t texts = 0;         ///< that were checked
  std::uint64_t tokens = 0;        ///< replaced
  std::uint64_t all_tokens = 0;    ///< all tokens of these texts
  std::uint64_t pairs = 0;         ///< pairs of token and output that were compared
  std::vector<LayerLeaks> layers;  ///< after 1, 2, … layers, and of the output

  /// The smallest number of layers (from 1) after which a leak shows; layers + 1 is the output.
  std::optional<Index> first_layer() const;
};

/// Checks `model` on `input`, the text of number `text`, as `request` says, and adds what is found
/// to `report`. The replacements depend on seed, text and token alone. Cost: a pass of the model
/// for each replacement. Throws as Model::run does, and InputError for a vocabulary of fewer than 3
/// tokens.
void check_leak(const model::Model& model, std::uint64_t text, const CheckInput& input,
                const LeakRequest& request, LeakReport& report);

}  // namespace masque::evaluate
