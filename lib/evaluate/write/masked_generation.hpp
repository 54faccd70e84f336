// Algorithms by which a masked model writes texts of a given length.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/string/name_table.hpp"
#include "evaluate/write/generation.hpp"
#include "evaluate/write/masked_writer.hpp"
#include "evaluate/write/unmask.hpp"

namespace masque::evaluate {

/// How the masks of a text become tokens. Each value has a row in the table in
/// masked_generation.cpp.
enum class MaskedWay {
  kLeftToRight,  ///< each mask once, later ones still masked; Wang and Cho 2019, arXiv:1902.04094
  kGibbs,        ///< each mask repeatedly, given all others; the same paper
  kMaskPredict,  ///< all at once, then the least probable ones again; Ghazvininejad et al. 2019,
                 ///< arXiv:1904.09324
  kConfidence,   ///< a few at each step, the most probable first: UnmaskOrder::kConfidence
  kMargin,       ///< the same: UnmaskOrder::kMargin
  kEntropy,      ///< the same: UnmaskOrder::kEntropy
  kShuffled,     ///< the same: UnmaskOrder::kShuffled
  kRandom,       ///< each with a probability at each step: UnmaskOrder::kRandom
};
/// The names of all ways: "left-to-right", "gibbs", "mask-predict", "confidence", "margin",
/// "entropy", "shuffled", "random".
NameTable<MaskedWay> masked_way_names();
/// The order in which unmask() fills masks for `way`; nothing where it does not.
std::optional<UnmaskOrder> unmask_order(MaskedWay way);

/// The order of a Gibbs sweep, which draws every mask once.
enum class SweepOrder {
  kSequential,  ///< from left to right
  kRandom,      ///< another order each sweep
};
/// The names of both orders: "sequential", "random".
NameTable<SweepOrder> sweep_order_names();

/// How generate_masked() writes.
struct MaskedGenerateOptions {
  MaskedWay how = MaskedWay::kLeftToRight;  ///< the algorithm
  /// For kGibbs with do_sample, unless burn_in leaves it nothing to draw.
  SamplingOptions sampling;
  Index num_return_sequences = 1;  ///< texts for each text, at least 1
  std::uint64_t seed = 0;          ///< seed of orders and sampling
  /// kLeftToRight: masks of the text that are read after the one that is written. None: all.
  std::optional<Index> lead_out;
  Index sweeps = 20;                           ///< kGibbs: all, burn_in included; at least 1
  SweepOrder order = SweepOrder::kSequential;  ///< kGibbs: of the masks of a sweep
  /// kGibbs: sweeps that draw from the whole softmax at sampling.temperature; those after them
  /// follow `sampling`.
  Index burn_in = 0;
  Index iterations = 10;  ///< kMaskPredict: T, at least 1
  // Ways with an unmask_order():
  double order_temperature = 0;            ///< UnmaskOptions::order_temperature
  Index unmask_iterations = 0;             ///< UnmaskOptions::iterations
  Index block_size = 0;                    ///< UnmaskOptions::block_size
  UnmaskTimes times = UnmaskTimes::kEven;  ///< UnmaskOptions::times
  /// Which tokens are put, and how texts are run. The mask token of unmask() is the first of
  /// writer.never.
  MaskedWriterOptions writer;
};

/// Pass number `pass` of `options`.how, a way without an unmask_order(), over `draft`: a NextPass.
MaskedPass next_pass(const MaskedGenerateOptions& options, const Draft& draft, Index pass);

/// The options of unmask() from `options`, whose way has an unmask_order(), and whose writer must
/// have a token in `never` and no targets.
UnmaskOptions unmask_options(const MaskedGenerateOptions& options);

/// Writes the masks of every one of `texts` with `model` as `options` say, num_return_sequences
/// times each; in the order of texts and samples. `ids` are those of the masks. Ways with an
/// unmask_order() are unmask(). Draws depend on seed, text id, sample, pass and mask alone. Passes
/// over a text of N masks: N of kLeftToRight, N · sweeps of kGibbs, T of kMaskPredict. Throws as
/// write_masks().
std::vector<Generated> generate_masked(const model::Model& model, std::span<const MaskedText> texts,
                                       const MaskedGenerateOptions& options);

}  // namespace masque::evaluate
