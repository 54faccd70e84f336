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
  const LayerTape<T>& tape = memory(l, stream);
  const HeadSizes heads = model::head_sizes(design_);
  const Index key_width = heads.key_heads * heads.head_size;
  const MatrixView<const T> both = tape.source_key_value.view();
  const RandomStream random = stream_of(DropoutPlace::kSourceWeights, l, stream);
  const std::span<const Index> begins = tape_.source.begins;
  std::vector<Sequence> all(static_cast<std::size_t>(stream.sequences()));
  for (std::size_t s = 0; s < all.size(); ++s) {
    Sequence& one = all[s];
    one.begin = stream.begin(static_cast<Index>(s));
    one.count = stream.count(static_cast<Index>(s));
    one.source_begin = begins[s];
    one.keys = begins[s + 1] - begins[s];
    const MatrixView<const T> rows = both.middle_rows(one.source_begin, one.keys);
    nn::AttentionProblem<T>& problem = one.attention.problem;
    problem = model::attention_problem<T>(
        design_, l, heads, tape.source_query.view().middle_rows(one.begin, one.count),
        rows.middle_columns(0, key_width),
        rows.middle_columns(key_width, both.columns - key_width));
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
    tape.source_saved.resize(model::head_sizes(design_).heads, input.rows);
    std::vector<nn::DifferentiableForward<T>> items;
    for (const Sequence& one : all) {
      if (one.count == 0) continue;
      items.push_back({one.attention, context.middle_rows(one.begin, one.count),
                       tape.source_saved.view().middle_columns(one.begin, one.count)});
    }
    nn::differentiable_attention_forward<T>(items);
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
  const Index columns = tape.source_key_value.columns();
  const MatrixView<T> d_both = zeros(kDSourceKeyValue, tape.source_key_value.rows(), columns);
  const Index key_width = design_.num_key_value_heads * design_.head_size;
  std::vector<nn::DifferentiableBackward<T>> items;
  for (const Sequence& one : source_sequences(l, stream)) {
    if (one.count == 0) continue;
    const MatrixView<T> d_own = d_both.middle_rows(one.source_begin, one.keys);
    nn::DifferentiableBackward<T> item{
        one.attention,
        tape.source_context.view().middle_rows(one.begin, one.count),
        tape.source_saved.view().middle_columns(one.begin, one.count),
        d_context.middle_rows(one.begin, one.count),
        {}};
    item.gradients.query = d_query.middle_rows(one.begin, one.count);
    item.gradients.key = d_own.middle_columns(0, key_width);
    item.gradients.value = d_own.middle_columns(key_width, columns - key_width);
    items.push_back(item);
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
