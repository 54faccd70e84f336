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
  kRandom,       ///< a few at each step, at random: UnmaskOrder::kRandom
};
/// The names of all ways: "left-to-right", "gibbs", "mask-predict", "confidence", "random".
NameTable<MaskedWay> masked_way_names();

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
  Index iterations = 10;        ///< kMaskPredict: T, at least 1
  Index unmask_iterations = 0;  ///< kConfidence, kRandom: UnmaskOptions::iterations
  Index block_size = 0;         ///< kConfidence, kRandom: UnmaskOptions::block_size
  /// Which tokens are put, and how texts are run. The mask token of kConfidence and kRandom is the
  /// first of writer.never.
  MaskedWriterOptions writer;
};

/// Pass number `pass` of `options`.how over `draft`: a NextPass. Not of kConfidence and kRandom.
MaskedPass next_pass(const MaskedGenerateOptions& options, const Draft& draft, Index pass);

/// The options of unmask() for kConfidence and kRandom, from `options`, whose writer must have a
/// token in `never` and no targets.
UnmaskOptions unmask_options(const MaskedGenerateOptions& options);

/// Writes the masks of every one of `texts` with `model` as `options` say, num_return_sequences
/// times each; in the order of texts and samples. `ids` are those of the masks. kConfidence and
/// kRandom are unmask(). Draws depend on seed, text id, sample, pass and mask alone. Passes over a
/// text of N masks: N of kLeftToRight, N · sweeps of kGibbs, T of kMaskPredict. Throws as
/// write_masks().
std::vector<Generated> generate_masked(const model::Model& model, std::span<const MaskedText> texts,
                                       const MaskedGenerateOptions& options);

}  // namespace masque::evaluate
