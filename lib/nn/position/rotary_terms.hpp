// Rotary positions: what the schemes of RoPE share.
#pragma once

#include <utility>
#include <vector>

#include "base/string/named_arguments.hpp"
#include "kernel/rotary.hpp"
#include "nn/position/position_scheme.hpp"
#include "nn/position/rotary_scaling.hpp"

namespace masque::nn {

/// What plain rotary positions are made of.
struct RotarySettings {
  kernel::RotaryLayout layout = kernel::RotaryLayout::kAdjacent;  ///< which features make a pair
  double base = 10000;                                            ///< θ_t = base^(−2t/size)
  /// Features of a head that are rotated, the first ones; 0: all. For ReropeScheme alone.
  Index size = 0;
};

/// The settings in `arguments`: `layout` (adjacent: pairs (2t, 2t + 1) as in the paper; half: (t, t
/// + d/2) as in Llama) and `base`. Throws UsageError for other values.
RotarySettings rotary_settings(NamedArguments& arguments);

/// Queries and keys rotated by tables.
template <class T>
class RotaryTerms final : public PositionTerms<T> {
 public:
  /// Rotates features of heads of `head_size` in pairs by `layout`: queries by the table `query`,
  /// keys by `key`, each with a row for each position.
  RotaryTerms(kernel::RotaryLayout layout, Index head_size, kernel::RotaryTable<T> query,
              kernel::RotaryTable<T> key)
      : layout_(layout), head_size_(head_size), query_(std::move(query)), key_(std::move(key)) {}

  void query_key(MatrixView<T> query, MatrixView<T> key) const override {
    kernel::rotary_forward(layout_, query_, head_size_, query);
    kernel::rotary_forward(layout_, key_, head_size_, key);
  }
  void query_key_backward(MatrixView<T> d_query, MatrixView<T> d_key) override {
    kernel::rotary_backward(layout_, query_, head_size_, d_query);
    kernel::rotary_backward(layout_, key_, head_size_, d_key);
  }

 private:
  kernel::RotaryLayout layout_;
  Index head_size_;
  kernel::RotaryTable<T> query_;
  kernel::RotaryTable<T> key_;
};

/// RoPE with frequencies that a method changes for longer texts.
class RotaryScheme final : public PositionSchemeOf<RotaryScheme> {
 public:
  /// RoPE with `settings`, whose frequencies `scaling` changes by `arguments`. `scaling` is
  /// borrowed: a row of rotary_scalings().
  RotaryScheme(const RotarySettings& settings, const RotaryScaling& scaling,
               const RotaryArguments& arguments)
      : settings_(settings), scaling_(scaling), arguments_(arguments) {}

  PositionFacts facts() const override;
  VariantInfo info() const override;

  kernel::RotaryLayout layout() const { return settings_.layout; }  ///< which features make a pair
  /// The factor of cosine and sine.
  double factor() const { return scaling_.amplitude(arguments_); }
  /// The frequencies of heads of an even `size`, size/2 angles in radians, as
  /// the method changes them.
  std::vector<double> frequencies(Index size) const {
    std::vector<double> all = kernel::rotary_frequencies(settings_.base, size);
    scaling_.scale(arguments_, all);
    return all;
  }

  /// The terms for `problem`, which borrow nothing. Throws UsageError for an odd head size.
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    const Index size = problem.shape.head_size;
    require_even(name(), "head size", size);
    const std::vector<double> frequencies = this->frequencies(size);
    return std::make_unique<RotaryTerms<T>>(
        settings_.layout, size,
        kernel::rotary_table<T>(frequencies, problem.positions.queries, factor()),
        kernel::rotary_table<T>(frequencies, problem.positions.keys, factor()));
  }

 private:
  RotarySettings settings_;
  const RotaryScaling& scaling_;
  RotaryArguments arguments_;
};

}  // namespace masque::nn
