// One pass of a chunk through an encoder, forward or backward. Inside lib/train alone.
#pragma once

#include <algorithm>
#include <array>

#include "kernel/normalize.hpp"
#include "kernel/parallel.hpp"
#include "nn/differentiable_attention.hpp"
#include "train/network/encoder.hpp"

namespace masque::train {

/// Where dropout acts inside a layer.
enum class DropoutPlace : std::uint64_t { kEmbedding, kAttention, kFeedForward, kWeights };

template <class T>
class EncoderRun {
 public:
  using Stream = StreamTape<T>;
  using Role = model::Role;

  EncoderRun(const Encoder<T>& encoder, const ExampleChunk& chunk, const DropoutOptions& noise,
             Tape<T>& tape);

  void forward(MatrixView<T> last);
  void backward(MatrixView<const T> d_last);

 private:
  /// A position scheme at work, and what it borrows.
  struct Terms {
    std::vector<MatrixView<const T>> values;
    std::vector<MatrixView<T>> gradients;
    std::vector<Index> counted;                 ///< of model::counted_places
    std::unique_ptr<nn::PositionTerms<T>> own;  ///< nullptr: none

    nn::PositionTerms<T>* operator->() const { return own.get(); }
  };

  // encoder.cpp
  void make_streams();
  void forward_layers();
  void backward_layers(Index lowest);
  bool fixed_keys() const { return design_.streams == model::Streams::kFixedKeys; }
  bool two_streams() const { return design_.streams == model::Streams::kTwo; }

  // encoder_embed.cpp: x[0] from ids.
  void embed(Stream& stream);
  /// Words, segments and places, without the scheme.
  void embedding_sum(Stream& stream, MatrixView<T> x) const;
  void embed_backward(Stream& stream, MatrixView<T> d_x);

  // encoder_layer.cpp and encoder_gated.cpp: `memory` is what keys and values are made of, its
  // states in front of the layer are m. x[l + 1] of the stream is filled.
  void layer(Index l, Stream& stream, Stream& memory, MatrixView<const T> m);
  /// d_x and d_m are added to; they may be the same.
  void layer_backward(Index l, Stream& stream, Stream& memory, MatrixView<const T> m,
                      MatrixView<const T> d_out, MatrixView<T> d_x, MatrixView<T> d_m);
  void gated(Index l, Stream& stream, Stream& memory, MatrixView<const T> m);
  void gated_backward(Index l, Stream& stream, Stream& memory, MatrixView<const T> m,
                      MatrixView<const T> d_out, MatrixView<T> d_x, MatrixView<T> d_m);
  /// The way back through what reads the layer's input; `normed` and d_normed are those of
  /// pre-norm.
  void gated_input_backward(Index l, MatrixView<const T> x, MatrixView<const T> normed,
                            MatrixView<const T> d_raw, MatrixView<T> d_normed, MatrixView<T> d_x);
  void feed_forward(Index l, LayerTape<T>& tape, MatrixView<const T> x, MatrixView<T> y);
  /// active ← what the feed-forward layer's second product reads.
  void activate(const LayerTape<T>& tape, MatrixView<T> active) const;
  /// d_x is added to.
  void feed_forward_backward(Index l, LayerTape<T>& tape, MatrixView<const T> x,
                             MatrixView<const T> d_y, MatrixView<T> d_x);

  // encoder_distances.cpp
  void make_distances();
  void distances_backward();
  void project_distances(Index l, Stream& stream);
  void clear_distance_gradients(Index l);
  void project_distances_backward(Index l);

  // encoder_convolution.cpp: DeBERTa's, next to the first layer. x is the layer's input.
  /// y ← norm(y + act(convolution(x)))
  void convolve(Index l, Stream& stream, MatrixView<const T> x, MatrixView<T> y);
  /// d_sum ← the gradient by y as it was; d_x is added to.
  void convolve_backward(Index l, Stream& stream, MatrixView<const T> x, MatrixView<const T> d_y,
                         MatrixView<T> d_sum, MatrixView<T> d_x);

  // encoder_attend.cpp
  struct Heads {
    Index heads = 1;
    Index key_heads = 1;
    Index head_size = 0;
    Index value_size = 0;
  };
  /// Queries and keys are rotated in place first.
  void attend(Index l, Stream& stream, Stream& memory, const Heads& heads, MatrixView<T> query,
              MatrixView<T> key, MatrixView<T> value, MatrixView<T> context);
  /// d_query, d_key, d_value are filled.
  void attend_backward(Index l, Stream& stream, Stream& memory, const Heads& heads,
                       MatrixView<const T> query, MatrixView<const T> key,
                       MatrixView<const T> value, MatrixView<const T> context,
                       MatrixView<const T> d_context, MatrixView<T> d_query, MatrixView<T> d_key,
                       MatrixView<T> d_value);
  /// The attention of one sequence at work.
  struct Sequence {
    Index begin = 0, count = 0;        ///< rows of the stream
    Index memory_begin = 0, keys = 0;  ///< rows of what is read
    Terms terms;
    nn::DifferentiableAttention<T> attention;
  };
  std::vector<Sequence> sequences(Index l, Stream& stream, Stream& memory, const Heads& heads,
                                  MatrixView<const T> query, MatrixView<const T> key,
                                  MatrixView<const T> value, bool gradients);
  void measure(std::span<const Sequence> all, const LayerTape<T>& tape);
  void general_forward(Index l, Stream& stream, std::span<Sequence> all, MatrixView<T> context);
  void general_backward(Index l, Stream& stream, std::span<Sequence> all,
                        MatrixView<const T> d_context, MatrixView<T> d_query, MatrixView<T> d_key,
                        MatrixView<T> d_value);
  nn::MaterializedAttention<T> general(Index l, const Stream& stream, std::size_t sequence,
                                       const Sequence& one,
                                       std::vector<MatrixView<const T>>& previous) const;
  void mix(Index l, Stream& stream, MatrixView<const T> x, MatrixView<T> y);
  void mix_backward(Index l, Stream& stream, MatrixView<const T> x, MatrixView<const T> d_y,
                    MatrixView<T> d_x);
  void rotate(Index l, Stream& stream, const Heads& heads, bool back, MatrixView<T> x);
  const mask::BlockMap* blocks(Index l, Stream& stream, Index sequence);
  Terms terms(Index l, const Stream& stream, const Stream& memory, Index sequence, bool gradients);

  // Parameters.
  const EncoderLayer<T>& layer_of(Index l) const {
    return encoder_.layers_[static_cast<std::size_t>(weights_of(l))];
  }
  Index weights_of(Index l) const { return design_.layers[static_cast<std::size_t>(l)].weights; }
  MatrixView<T> value(Index parameter) const;
  MatrixView<T> gradient(Index parameter) const;
  std::span<const T> vector(Index parameter) const;
  std::span<T> vector_gradient(Index parameter) const;
  void norm(Role role, Index layer, const model::NormDesign& design, MatrixView<const T> x,
            MatrixView<T> y) const;
  void norm_backward(Role role, Index layer, const model::NormDesign& design, MatrixView<const T> x,
                     MatrixView<const T> d_y, MatrixView<T> d_x) const;

  void drop(DropoutPlace place, Index l, const Stream& stream, bool back, MatrixView<T> x) const;
  RandomStream stream_of(DropoutPlace place, Index l, const Stream& stream) const;
  /// A matrix of this shape in memory that is kept; the content is undefined.
  MatrixView<T> scratch(std::size_t which, Index rows, Index columns) const;
  MatrixView<T> zeros(std::size_t which, Index rows, Index columns) const;

  const Encoder<T>& encoder_;
  const model::Design& design_;
  const ExampleChunk& chunk_;
  const DropoutOptions& noise_;
  Tape<T>& tape_;
  /// Of distance_keys and distance_queries, on the way back through a layer.
  MatrixView<T> d_distance_keys_, d_distance_queries_;
  /// RealFormer, of the next layer: of the content and of the query stream, by sequence.
  std::array<std::vector<std::vector<Matrix<T>>>, 2> d_scores_;
};

/// Calls work(i) for rows, on all threads.
template <class Work>
void for_rows(Index rows, Index columns, const Work& work) {
  constexpr Index kElements = 16384;  // that are worth a thread
  kernel::parallel_ranges(rows, kElements / std::max<Index>(columns, 1) + 1,
                          [&](Index begin, Index end) {
                            for (Index i = begin; i < end; ++i) work(i);
                          });
}

/// y ← scale · x + y, by rows.
template <class T>
void add_scaled(double scale, MatrixView<const T> x, MatrixView<T> y) {
  if (scale == 1) return kernel::add_to<T>(x, y);
  for_rows(x.rows, x.columns, [&](Index i) {
    const T* from = x.row(i);
    T* to = y.row(i);
    for (Index c = 0; c < x.columns; ++c) to[c] += static_cast<T>(scale) * from[c];
  });
}

/// y ← x
template <class T>
void copy_rows(MatrixView<const T> x, MatrixView<T> y) {
  for_rows(x.rows, x.columns, [&](Index i) { std::copy_n(x.row(i), x.columns, y.row(i)); });
}

/// x ← 0
template <class T>
void zero_rows(MatrixView<T> x) {
  for_rows(x.rows, x.columns, [&](Index i) { std::fill_n(x.row(i), x.columns, T{}); });
}

}  // namespace masque::train
