// Algorithms by which a masked model writes texts of a given length.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/name_table.hpp"
#include "probe/write/generation.hpp"
#include "probe/write/masked_writer.hpp"
#include "probe/write/unmask.hpp"

namespace masque::probe {

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
NameTable<MaskedWay> masked_way_names();

/// The order of a Gibbs sweep, which draws every mask once.
enum class SweepOrder {
  kSequential,  ///< from left to right
  kRandom,      ///< another order each sweep
};
NameTable<SweepOrder> sweep_order_names();

struct MaskedGenerateOptions {
  MaskedWay how = MaskedWay::kLeftToRight;
  SamplingOptions sampling;  ///< of kGibbs with do_sample, unless burn_in leaves it nothing to draw
  Index num_return_sequences = 1;
  std::uint64_t seed = 0;
  /// kLeftToRight: masks of the text that are read after the one that is written. None: all.
  std::optional<Index> lead_out;
  Index sweeps = 20;  ///< kGibbs
  SweepOrder order = SweepOrder::kSequential;
  /// kGibbs: sweeps that draw from the whole softmax at sampling.temperature; those after them
  /// follow `sampling`.
  Index burn_in = 0;
  Index iterations = 10;  ///< kMaskPredict: T
  /// kConfidence, kRandom: UnmaskOptions::iterations and block_size. Their mask token is the first
  /// of writer.never.
  Index unmask_iterations = 0;
  Index block_size = 0;
  MaskedWriterOptions writer;
};

/// The next pass of options.how over a draft: a NextPass. Not of kConfidence and kRandom.
MaskedPass next_pass(const MaskedGenerateOptions& options, const Draft& draft, Index pass);

/// Those of kConfidence and kRandom.
UnmaskOptions unmask_options(const MaskedGenerateOptions& options);

/// Writes the masks of every text, num_return_sequences times each; in the order of texts and
/// samples. `ids` are those of the masks. kConfidence and kRandom are unmask(). Draws depend on
/// seed, text id, sample, pass and mask alone. Passes over a text of N masks: N of kLeftToRight, N
/// · sweeps of kGibbs, T of kMaskPredict. Throws as write_masks().
std::vector<Generated> generate_masked(const model::Model& model, std::span<const MaskedText> texts,
                                       const MaskedGenerateOptions& options);

}  // namespace masque::probe
