// The update of masked autoencoding with a decoder.
#pragma once

#include <memory>
#include <vector>

#include "train/loss/mae_model.hpp"
#include "train/loss/step_loss.hpp"
#include "train/network/encoder.hpp"
#include "train/network/head.hpp"

namespace masque::train {

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

  /// Of both networks, as Encoder::set_recompute with `recompute`.
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
