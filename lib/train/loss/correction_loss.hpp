// Soft-Masked BERT and its update: a detector says which tokens are wrong, and the layers read
// these half hidden and say what should stand there. Zhang et al. 2020, arXiv:2005.07421.
#pragma once

#include <vector>

#include "train/data/objective.hpp"
#include "train/loss/step_loss.hpp"
#include "train/network/encoder.hpp"
#include "train/network/head.hpp"
#include "train/network/recipe.hpp"

namespace masque::train {

/// The objective's name on the command line. It is no Objective, since two losses are minimised
/// together.
inline constexpr std::string_view kCorrect = "correct";
/// What it reads and needs.
const ObjectiveTraits& correction_traits();

/// Returns the sizes of a detector of `layers` layers beside a model of `design`, made by `recipe`:
/// widths of `size` (more than 0, at most 1) times the model's, heads of the same size where that
/// is possible. Throws UsageError for another size.
model::DetectorDesign detector_sizes(const model::Design& design, const DesignRecipe& recipe,
                                     double size, Index layers);

/// Sets what the objective decides of `design`, as Objective::adapt: a masked head, one stream, a
/// mask token, and `detector` where the design has none. Of `requested` the tokens are read. Throws
/// UsageError also as model::detector_rows.
void adapt_correction(const ObjectiveOptions& requested, const model::DetectorDesign& detector,
                      model::Design& design);

/// λ L_c + (1 − λ) L_d (equation 8), both means over the labelled tokens of a batch: L_c is −log p
/// of the right token (its label) from the model's head, L_d is −log of what the detector gives to
/// the truth, which is 1 (wrong) where the label is another token than the one that stands there.
/// Both train everything in front of them: L_c goes through the mixture into the detector, L_d
/// through the detector into the embeddings.
///
/// Losses are those of "detection" and "correction". Shares: error_rate (labelled tokens that are
/// wrong), detection_precision and detection_recall of these, and corrected_rate (wrong tokens
/// whose label is the likeliest token). T is float or double.
template <class T>
class CorrectionLoss final : public StepLoss {
 public:
  /// For a network of the `design` that adapt_correction() made, at the places `map` of
  /// `parameters`, which must stay. Products are in `precision`; `weight` is λ, from 0 to 1. Throws
  /// as Encoder::Encoder.
  CorrectionLoss(const model::Design& design, const ParameterMap& map, Parameters<T>& parameters,
                 kernel::Precision precision, double weight);

  /// Throws InputError without labels, and for sequences with masks of their own.
  void check(const Corpus& corpus) const override;
  void prepare() override;
  StepLosses add_gradients(std::span<const StepItem> items, const DropoutOptions& dropout) override;
  StepLosses evaluate(std::span<const StepItem> items) override;

  /// As Encoder::set_recompute, with `recompute`.
  void set_recompute(Recompute recompute) { encoder_.set_recompute(recompute); }

  /// Rows that go through the layers together, whole sequences: it bounds the memory.
  Index chunk_rows = 1024;

 private:
  /// What is counted besides the losses.
  struct Counts {
    LossReport detection, correction;
    Index wrong = 0, corrected = 0;
  };
  StepLosses run(std::span<const Example> examples, double scale, const DropoutOptions* dropout);
  void run_chunk(const ExampleChunk& chunk, double scale, const DropoutOptions& dropout,
                 bool learns, Counts& counts);
  void detect(const ExampleChunk& chunk, double scale, Counts& counts);
  void count_corrected(const ExampleChunk& chunk, Counts& counts);

  double weight_;
  Encoder<T> encoder_;
  Head<T> head_;
  Tape<T> tape_;
  Matrix<T> last_, d_last_, wrong_last_;
};

}  // namespace masque::train
