// EncoderRun: attention of a decoder to the states of an encoder, forward and backward
// (model::add_source_attention() in model/forward/layer_forward.hpp).
#include <complex>

#include "kernel/parallel.hpp"
#include "model/forward/attention_inputs.hpp"
#include "model/forward/layer_forward.hpp"
#include "nn/attention/differentiable_attention.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

template <class T>
auto EncoderRun<T>::source_sequences(Index l, Stream& stream) const -> std::vector<Sequence> {
  LayerTape<T>& tape = memory(l, stream);
  const HeadSizes heads = model::head_sizes(design_);
  const model::Projected<T> projected =
      parts_of(tape.source_query.view(), tape.source_key_value.view());
  const RandomStream random = stream_of(DropoutPlace::kSourceWeights, l, stream);
  const std::span<const Index> begins = tape_.source.begins;
  std::vector<Sequence> all(static_cast<std::size_t>(stream.sequences()));
  for (std::size_t s = 0; s < all.size(); ++s) {
    Sequence& one = all[s];
    one.begin = stream.begin(static_cast<Index>(s));
    one.count = stream.count(static_cast<Index>(s));
    one.source_begin = begins[s];
    one.keys = begins[s + 1] - begins[s];
    nn::AttentionProblem<T>& problem = one.attention.problem;
    problem = model::attention_problem<T>(design_, l, heads,
                                          projected.query.middle_rows(one.begin, one.count),
                                          projected.key.middle_rows(one.source_begin, one.keys),
                                          projected.value.middle_rows(one.source_begin, one.keys));
    problem.normalizer = encoder_.normalizers_[static_cast<std::size_t>(l)].get();
    problem.bf16 = encoder_.precision_ == kernel::Precision::kBf16;
    one.attention.dropout = dropout_.attention_dropout;
    one.attention.stream =
        random.for_item(dropout_item(tape_.content.begin(static_cast<Index>(s))));
  }
  return all;
}

template <class T>
void EncoderRun<T>::read_source(Index l, Stream& stream, MatrixView<const T> input,
                                MatrixView<T> context) {
  LayerTape<T>& tape = memory(l, stream);
  const EncoderLayer<T>& own = layer(l);
  const MatrixView<const T> states = tape_.source.states;
  own.source_query.forward(
      input, model::resized(tape.source_query, input.rows, own.source_query.outputs()));
  own.source_key_value.forward(
      states, model::resized(tape.source_key_value, states.rows, own.source_key_value.outputs()));
  const std::vector<Sequence> all = source_sequences(l, stream);
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    for (const Sequence& one : all) {
      if (one.count == 0) continue;
      nn::MaterializedAttention<T> attention;
      attention.problem = one.attention.problem;
      nn::materialized_attention_forward<T>(attention, context.middle_rows(one.begin, one.count),
                                            nullptr);
    }
  } else {
    attend_sequences(all, tape.source_saved, context);
  }
}

template <class T>
MatrixView<T> EncoderRun<T>::add_source_backward(Index l, Stream& stream, MatrixView<T> d) {
  LayerTape<T>& tape = memory(l, stream);
  const EncoderLayer<T>& own = layer(l);
  const Index rows = d.rows;
  MatrixView<T> d_sum = d;
  if (norms_sum(design_.norm_placement)) {
    d_sum = zeros(kDSource, rows, d.columns);
    own.source_norm.backward(tape.source_sum.view(), d, d_sum);
  }
  const MatrixView<T> d_branch = scratch(kDSourceBranch, rows, d.columns);
  kernel::copy_rows<T>(d_sum, d_branch);
  drop_backward(DropoutPlace::kSource, l, stream, d_branch);
  const MatrixView<T> d_context = scratch(kDSourceContext, rows, tape.source_context.columns());
  own.source_output.backward(tape.source_context.view(), d_branch, false, d_context);
  const MatrixView<T> d_query = zeros(kDSourceQuery, rows, tape.source_query.columns());
  const MatrixView<T> d_both =
      zeros(kDSourceKeyValue, tape.source_key_value.rows(), tape.source_key_value.columns());
  const model::Projected<T> d_projected = parts_of(d_query, d_both);
  std::vector<nn::DifferentiableBackward<T>> items;
  for (const Sequence& one : source_sequences(l, stream)) {
    if (one.count == 0) continue;
    items.push_back(
        backward_of(one, tape.source_saved, tape.source_context.view(), d_context, d_projected));
  }
  nn::differentiable_attention_backward<T>(items);
  own.source_key_value.backward(tape_.source.states, d_both, true, tape_.source.d_states);
  if (norms_sum(design_.norm_placement)) {
    own.source_query.backward(tape.source_input.view(), d_query, true, d_sum);
    return d_sum;
  }
  const MatrixView<T> d_input = d_branch;
  own.source_query.backward(tape.source_input.view(), d_query, false, d_input);
  own.source_norm.backward(tape.sum.view(), d_input, d_sum);
  return d_sum;
}

#define MASQUE_INSTANTIATE(T)                                                             \
  template std::vector<typename EncoderRun<T>::Sequence> EncoderRun<T>::source_sequences( \
      Index, Stream&) const;                                                              \
  template void EncoderRun<T>::read_source(Index, Stream&, MatrixView<const T>, MatrixView<T>);
#define MASQUE_INSTANTIATE_BACKWARD(T) \
  template MatrixView<T> EncoderRun<T>::add_source_backward(Index, Stream&, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
