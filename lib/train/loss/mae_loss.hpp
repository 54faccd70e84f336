// Masked autoencoding with a decoder, and its update: the encoder reads the kept tokens alone; a
// small decoder gets its states and [MASK] in the places of the hidden ones. He et al. 2021,
// arXiv:2111.06377; for text https://kexue.fm/archives/8770.
#pragma once

#include <memory>
#include <vector>

#include "model/checkpoint/placed.hpp"
#include "train/data/objective.hpp"
#include "train/loss/step_loss.hpp"
#include "train/network/encoder.hpp"
#include "train/network/head.hpp"
#include "train/network/parameters.hpp"
#include "train/network/recipe.hpp"

namespace masque::train {

/// The objective's name on the command line. It is no Objective, since there are two networks.
inline constexpr std::string_view kMae = "mae";
/// What it reads and needs.
const ObjectiveTraits& mae_traits();

/// Sets what the objective decides of the design `encoder`, as Objective::adapt: no head. Of
/// `requested` the tokens and whether there are pairs are read. Throws UsageError also for a mixer
/// or a convolution, which would mix the positions that are left.
void adapt_mae(const ObjectiveOptions& requested, model::Design& encoder);

/// Returns the recipe of the decoder of an encoder made by `recipe`: scaled_recipe by `size` (more
/// than 0, at most 1) with `layers` layers. Throws UsageError for another size, and for positions
/// or normalizers that are a list by layer.
DesignRecipe decoder_recipe(const DesignRecipe& recipe, double size, Index layers);

/// Returns the design of `own`, a decoder_recipe(), next to one of design `encoder`; `requested` as
/// in adapt_mae(). It reads the encoder's states as its embeddings, so that these have the
/// encoder's width; a projection follows where its own states are narrower. Throws as design_of.
model::Design decoder_design(const DesignRecipe& own, const ObjectiveOptions& requested,
                             const model::Design& encoder);

/// Both networks, in one set of parameters.
struct MaeModel {
  model::Design encoder;     ///< design of the network that is kept
  model::Design decoder;     ///< design of the other one
  ParameterMap encoder_map;  ///< places of the encoder; add_mae() sets it
  ParameterMap decoder_map;  ///< places of the decoder; add_mae() sets it
  /// The names of the encoder's tensors in files; none: those of model::saved_design.
  std::optional<model::ModelPlan> encoder_plan;
};

/// Adds the parameters of both networks of `model` to `parameters`, those of the decoder with names
/// that begin with "decoder.", and sets their places in `model`. Tables of words, positions and
/// segments are those of the encoder, where they fit (step_loss.hpp). T is float or double.
template <class T>
void add_mae(MaeModel& model, Parameters<T>& parameters);

/// What both get for a sequence.
struct MaeExamples {
  Example encoder;           ///< the kept tokens at their positions; every row is wanted
  Example decoder;           ///< all positions; rows and targets are the hidden ones
  std::vector<Index> given;  ///< rows of the decoder that get the encoder's states, in order
};

/// Makes both from `hidden`, an example of the objective mae-mask, whose rows are the hidden
/// tokens.
MaeExamples mae_examples(const Example& hidden);

/// The mean over hidden tokens of −log p(token), from the decoder's states there. Which are hidden
/// is what the objective mae-mask (and `droptoken mae`) says with the same options. Gradients go
/// through the decoder into the encoder. For one rank. T is float or double.
template <class T>
class MaeLoss final : public StepLoss {
 public:
  /// `parameters` are those that add_mae added for `model`, and must stay. `requested` are the
  /// options of mae-mask; products are in `precision`. Throws UsageError as mae-mask and as
  /// Encoder::Encoder.
  MaeLoss(const ObjectiveOptions& requested, const MaeModel& model, Parameters<T>& parameters,
          kernel::Precision precision);

  void check(const Corpus& corpus) const override { objective_->check(corpus); }
  void prepare() override;
  StepLosses add_gradients(std::span<const StepItem> items, const DropoutOptions& dropout) override;
  StepLosses evaluate(std::span<const StepItem> items) override;

  /// Calls Encoder::set_recompute with `recompute` for both networks.
  void set_recompute(Recompute recompute) {
    encoder_.set_recompute(recompute);
    decoder_.set_recompute(recompute);
  }

  /// Rows that go through the decoder's layers together, whole sequences: it bounds the memory.
  Index chunk_rows = 1024;

 private:
  /// Both networks' chunk of some sequences.
  struct Chunks {
    ExampleChunk encoder, decoder;
  };
  StepLosses run(std::span<const StepItem> items, const DropoutOptions* dropout);
  void run_chunk(Chunks& chunks, double scale, const DropoutOptions& dropout, bool learns,
                 LossReport& report);

  std::unique_ptr<const Objective> objective_;
  Encoder<T> encoder_, decoder_;
  Head<T> head_;
  Tape<T> encoder_tape_, decoder_tape_;
  Matrix<T> last_, d_last_;
};

}  // namespace masque::train
