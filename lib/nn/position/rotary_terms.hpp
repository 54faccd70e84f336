// Rotary positions: what the schemes of RoPE share.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/named_arguments.hpp"
#include "kernel/rotary.hpp"
#include "nn/position_scheme.hpp"

namespace masque::nn {

struct RotarySettings {
  kernel::RotaryLayout layout = kernel::RotaryLayout::kAdjacent;
  double base = 10000;
  /// Features of a head that are rotated, the first ones; 0: all. Of ReropeScheme alone.
  Index size = 0;
};

/// Asks for `layout` (adjacent: pairs (2t, 2t + 1) as in the paper; half: (t, t + d/2) as in
/// Llama) and `base`.
RotarySettings read_rotary(NamedArguments& spelled);

/// Queries and keys rotated by tables.
template <class T>
class RotaryTerms final : public PositionTerms<T> {
 public:
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

/// RoPE with frequencies that are changed for longer texts.
class RotaryScheme final : public PositionSchemeOf<RotaryScheme> {
 public:
  /// Changes the frequencies θ_t in place; empty: plain.
  using Scaling = std::function<void(std::span<double> frequencies)>;

  /// factor  of cosine and sine, for queries and for keys: scores grow by its square.
  RotaryScheme(const RotarySettings& settings, std::string_view source, Scaling scaling = {},
               double factor = 1)
      : settings_(settings), source_(source), scaling_(std::move(scaling)), factor_(factor) {}

  PositionFacts facts() const override;
  VariantInfo info() const override;

  kernel::RotaryLayout layout() const { return settings_.layout; }
  /// Of cosine and sine.
  double factor() const { return factor_; }
  /// Of heads of an even size, as changed.
  std::vector<double> frequencies(Index size) const {
    std::vector<double> all = kernel::rotary_frequencies(settings_.base, size);
    if (scaling_) scaling_(all);
    return all;
  }

  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    const Index size = problem.shape.head_size;
    require_even(name(), "head size", size);
    const std::vector<double> frequencies = this->frequencies(size);
    return std::make_unique<RotaryTerms<T>>(
        settings_.layout, size,
        kernel::rotary_table<T>(frequencies, problem.places.queries, factor_),
        kernel::rotary_table<T>(frequencies, problem.places.keys, factor_));
  }

 private:
  RotarySettings settings_;
  std::string source_;
  Scaling scaling_;
  double factor_;
};

}  // namespace masque::nn
