// Rotations of the queries and keys (and of GAU-α's and RoFormer's values) of a chunk.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/norm.hpp"
#include "kernel/rotary.hpp"
#include "model/design.hpp"
#include "model/forward/stream.hpp"

namespace masque::model {

/// Cosines and sines of the streams of a chunk, made once for all layers with the same angles. The
/// designs must stay. For one thread.
template <class T>
class RotaryTables {
 public:
  /// Rotates `x` (rows of `stream`, heads · `head_size`) in place, by the angles of `rotary`.
  void forward(const RotaryDesign& rotary, const StreamRows& stream, Index head_size,
               MatrixView<T> x) {
    kernel::rotary_forward<T>(rotary.layout, table(rotary, stream), head_size, x);
  }
  /// Turns the gradient `d_x` by what forward() gave for `rotary`, `stream` and `head_size` into
  /// that by what it was given, in place.
  void backward(const RotaryDesign& rotary, const StreamRows& stream, Index head_size,
                MatrixView<T> d_x) {
    kernel::rotary_backward<T>(rotary.layout, table(rotary, stream), head_size, d_x);
  }
  /// Forgets all tables: for the next chunk.
  void clear() { known_.clear(); }

 private:
  const kernel::RotaryTable<T>& table(const RotaryDesign& rotary, const StreamRows& stream) {
    for (const Known& known : known_) {
      if (known.kind == stream.kind && known.rotary->frequencies == rotary.frequencies &&
          known.rotary->factor == rotary.factor &&
          known.rotary->long_frequencies == rotary.long_frequencies &&
          known.rotary->long_from == rotary.long_from &&
          known.rotary->float_angles == rotary.float_angles) {
        return *known.table;
      }
    }
    known_.push_back(
        {stream.kind, &rotary, std::make_unique<kernel::RotaryTable<T>>(made(rotary, stream))});
    return *known_.back().table;
  }

  static kernel::RotaryTable<T> made(const RotaryDesign& rotary, const StreamRows& stream) {
    const auto with = [&](std::span<const double> frequencies) {
      return kernel::rotary_table<T>(frequencies, stream.positions, rotary.factor,
                                     rotary.float_angles);
    };
    kernel::RotaryTable<T> table = with(rotary.frequencies);
    if (rotary.long_frequencies.empty()) return table;
    const kernel::RotaryTable<T> of_long = with(rotary.long_frequencies);
    for (Index s = 0; s < stream.sequences(); ++s) {
      if (stream.text_lengths.at(static_cast<std::size_t>(s)) <= rotary.long_from) continue;
      const auto take = [&](const Matrix<T>& from, Matrix<T>& to) {
        kernel::copy_rows<T>(from.view().middle_rows(stream.begin(s), stream.count(s)),
                             to.view().middle_rows(stream.begin(s), stream.count(s)));
      };
      take(of_long.cosine, table.cosine);
      take(of_long.sine, table.sine);
    }
    return table;
  }

  struct Known {
    StreamKind kind;
    const RotaryDesign* rotary;
    std::unique_ptr<kernel::RotaryTable<T>> table;
  };
  std::vector<Known> known_;
};

}  // namespace masque::model
