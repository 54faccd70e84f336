// The loss of masked language modelling with the attention of each layer removed or made uniform,
// by masking rate and by the fate of the token. A model with a residual shortcut still predicts a
// kept token, from the token itself.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "probe/attention/ablation.hpp"
#include "probe/score/sequence.hpp"

namespace masque::probe {

/// The fate of a selected token: what replaces it.
enum class Fate {
  kMask,    ///< the mask token
  kRandom,  ///< a random token, uniform over all ids
  kKeep,    ///< the token itself
};

/// The name of `fate`: "mask", "random", "keep".
std::string_view fate_name(Fate fate);

/// What MaskedAblation measures.
struct MaskedAblationRequest {
  std::vector<double> rates;  ///< shares of the tokens that are selected, in (0, 1]
  /// Shares of the fates, as Fate lists them; they add up to 1.
  std::array<double, 3> split{0.8, 0.1, 0.1};
  std::optional<TokenId> mask;  ///< the mask token; required
  std::uint64_t seed = 0;       ///< of selection, fates and random tokens
  Index batch_tokens = 8192;    ///< most tokens of a batch; a longer text runs alone
};

/// A fate for each token of `sequence` by the shares `split`, as Fate lists them; a function of
/// `seed`, the sequence's number and the token's place, whatever the rate.
std::vector<Fate> fates_of(const Sequence& sequence, const std::array<double, 3>& split,
                           std::uint64_t seed);

/// One layer changed, for one fate at one rate. A token is a selected token of the text, its loss
/// that of its true id.
struct MaskedAblationRow {
  double rate = 0;           ///< share of the tokens that are selected
  std::optional<Fate> fate;  ///< none: all selected tokens
  AblationRow ablation;      ///< lines are those in which there is such a token
};

/// Corrupts each text once per rate and measures the loss of the selected tokens with every change
/// of ablation_rows. The tokens of a smaller rate are among those of a larger one, and have the
/// same fate. Results depend neither on batches nor on threads. Memory: a batch, and the rows. For
/// one thread.
class MaskedAblation {
 public:
  /// `model` must outlive it. `request` has rates, split and mask token. Throws UsageError if the
  /// model has no masked head of one stream, or there is no mask token.
  MaskedAblation(const model::Model& model, const MaskedAblationRequest& request);

  /// Adds the text of `sequence`; runs the batch when it is full. Cost: a pass a rate and row of
  /// ablation_rows. Throws as Model::run does.
  void add(const Sequence& sequence);
  /// Runs the texts that wait in the batch.
  void flush();
  /// Over the texts that have run: by rate, in it by fate, all last, in it as ablation_rows;
  /// without the fates of no share.
  const std::vector<MaskedAblationRow>& rows() const { return rows_; }

 private:
  /// A corrupted text in the batch.
  struct Copy {
    std::size_t rate = 0;     ///< of the request
    std::vector<Fate> fates;  ///< of its selected tokens
  };

  void take(std::size_t change, const std::vector<double>& log_probabilities,
            const std::vector<double>& intact);

  const model::Model& model_;
  MaskedAblationRequest request_;
  std::vector<AblationRow> changes_;
  std::vector<std::optional<Fate>> fates_;  ///< that have rows
  std::vector<MaskedAblationRow> rows_;
  model::Batch batch_;
  model::Request run_;
  std::vector<Copy> copies_;
};

}  // namespace masque::probe
