// What a wider model is made of, tensor by tensor: every unit of the hidden states, of the heads
// and of the feed-forward layers is there several times, and what reads it shares its weight.
// Su 2021, kexue.fm/archives/8444; Chen et al. 2021, arXiv:2110.07143 (function-preserving
// initialization); Samragh et al. 2024, arXiv:2409.12903 (symmetric expansion).
//
// Copies of whole heads keep head_size, and with it rotary angles, relative biases and the scale of
// scores; copies of all states keep mean and variance, so norms keep their epsilon.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/random/random.hpp"
#include "base/string/name_table.hpp"
#include "base/types.hpp"
#include "model/checkpoint/placed.hpp"
#include "model/design.hpp"

namespace masque::grow {

// How the units of one axis of a tensor become those of a wider model: copies, and the share of its
// outgoing weight that each copy gets.

/// One axis after growth: element i is a copy of element from[i] before it. All lists have an item
/// for each element after growth, or none.
struct UnitCopies {
  std::vector<Index> from;  ///< elements before growth, from 0
  /// What element i is multiplied by; empty: 1.
  std::vector<double> share;
  /// Whether element i comes from the same tensor of the next layer; empty: none does.
  std::vector<bool> next;

  /// Elements after growth.
  Index size() const { return static_cast<Index>(from.size()); }
};

/// An axis of `count` units that stays as it is.
UnitCopies kept_units(Index count);

/// `count` units each of which is there `factor` times (at least once) in place: a b → a a b b.
UnitCopies repeated_units(Index count, Index factor);

/// `after` units of `count`: each as often as all others, and those that `stream` draws once more,
/// without replacement; copies stand next to each other, in order. Of a multiple of `count` they
/// are those of repeated_units. 1 ≤ `count` ≤ `after`.
UnitCopies drawn_units(Index count, Index after, const RandomStream& stream);

/// The elements of `units` of `block` elements each, without shares and `next`: a head is a unit of
/// head_size.
UnitCopies in_blocks(const UnitCopies& units, Index block);

/// Appends to `units` those of a tensor that stands `below` in the same axis, which begins at
/// `first` before growth. Neither may have shares yet.
void append_units(UnitCopies& units, const UnitCopies& below, Index first);

/// Gives each of the k copies of an element in `units` 1/k of the weight, in place of former
/// shares. Exact in binary numbers if k is a power of two.
void share_equally(UnitCopies& units);

/// Gives the copies of an element in `units` shares that sum to 1, none more than three times
/// another, in place of former shares: `stream` draws a number for each copy.
void share_unequally(UnitCopies& units, const RandomStream& stream);

// Wider designs and tensors.

/// Which units there are how often, and how copies share the weight of what they are copies of.
enum class WidthRule {
  /// All `factor` times, each with 1/factor: their gradients are equal, so they stay copies while
  /// training.
  kEqual,
  kUnequal,  ///< all `factor` times, with shares drawn for each unit and tensor: training parts
             ///< them
  /// Any size: drawn ones once more than the others, and of k copies each has 1/k. With a whole
  /// factor it is kEqual; else norms see other means and variances, so the function is another one:
  /// bert2BERT's function-preserving initialization, which draws with replacement.
  kFpi,
  /// As kFpi, and second copies come from the next layer: bert2BERT's advanced knowledge
  /// initialization.
  kAki,
};

/// The names of all rules: "equal", "unequal", "fpi", "aki".
NameTable<WidthRule> width_rules();

/// Whether `rule` wants a whole factor: kEqual and kUnequal do.
bool needs_whole_factor(WidthRule rule);

/// `size` times `factor`. Throws UsageError if that is more than 1e-6 from a whole number; `name`
/// is the size's, for the message.
Index wider_size(Index size, double factor, std::string_view name);

/// `design` with `factor` times the hidden size, heads and intermediate size; the embedding size
/// too where it is the hidden size. Throws UsageError for what cannot be copied so: positions whose
/// terms go with the width or the heads, mixers, a detector, a tied vocabulary without a norm in
/// front of it, a factor that is not above 1, or not whole where `rule` wants one.
model::Design wider_design(const model::Design& design, double factor, WidthRule rule);

/// The norm that must divide what meets a tied vocabulary, which has copies of each column.
struct DividedNorm {
  model::Role role = model::Role::kFinalNorm;  ///< of the norm
  Index layer = 0;                             ///< 0 of norms of the whole model
};
/// That of `design` with a tied vocabulary; none else, and none where the embedding size stays.
/// Throws UsageError as wider_design.
std::optional<DividedNorm> divided_norm(const model::Design& design);

/// How a tensor grows.
struct TensorGrowth {
  UnitCopies rows,          ///< outputs, of the (out, in) matrix; a vector has one row
      columns;              ///< inputs, of the (out, in) matrix; the elements of a vector
  double scale = 1;         ///< of all elements
  Shape shape;              ///< in the file, afterwards
  bool transposed = false;  ///< in the file it is (in, out)
};

/// How all tensors of a model grow.
struct WidthSettings {
  model::Design before,                ///< of the small model
      after;                           ///< of the larger one; of the same width: nothing grows
  WidthRule rule = WidthRule::kEqual;  ///< how units are copied
  std::uint64_t seed = 0;              ///< of units and shares that are drawn
};

/// Copies of the hidden states by `settings`, without shares.
UnitCopies hidden_units(const WidthSettings& settings);

/// The growth by `settings` of `tensor`, which the small model has. `name` names its stream of
/// random shares.
TensorGrowth grow_tensor(const WidthSettings& settings, const model::PlacedTensor& tensor,
                         const std::string& name);

}  // namespace masque::grow
