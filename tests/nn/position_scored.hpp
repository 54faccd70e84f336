// Scores of a layer with a position scheme, to compare with formulas.
#pragma once

#include <doctest/doctest.h>

#include "nn/position_layer.hpp"

namespace masque::test {

/// Scores of head h, and what went in.
struct Scored {
  LayerInput<double> in;
  LayerSaved<double> saved;
  Matrix<double> context;
  double at(Index h, Index i, Index j) const {
    return saved.scores[static_cast<std::size_t>(h)].view().at(i, j);
  }
  /// q_i·k_j of the queries and keys that meet.
  double product(Index h, Index i, Index j, Index size = 4) const {
    double sum = 0;
    for (Index d = h * size; d < (h + 1) * size; ++d) {
      sum += saved.query.view().at(i, d) * saved.key.view().at(j, d);
    }
    return sum;
  }
};

inline Scored score(const Layer& layer) {
  Scored out{smooth_input<double>(layer), {}, {}};
  out.context = layer_context(layer, out.in, &out.saved);
  return out;
}

inline double apart(const Scored& a, const Scored& b) {
  double most = 0;
  for (std::size_t h = 0; h < a.saved.scores.size(); ++h) {
    most = std::max(most, distance(a.saved.scores[h], b.saved.scores[h]));
  }
  return most;
}

inline double number(Index i) { return static_cast<double>(i); }

/// Compares scores with value(head, i, j).
template <class Value>
void check_scores(const Scored& found, Value&& value) {
  for (Index h = 0; h < std::ssize(found.saved.scores); ++h) {
    const Index n = found.saved.scores[0].rows();
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        CHECK(std::abs(found.at(h, i, j) - value(h, i, j)) < 1e-12);
      }
    }
  }
}

}  // namespace masque::test
