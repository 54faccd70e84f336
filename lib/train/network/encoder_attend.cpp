// The attention of a layer, sequence by sequence, forward and backward.
#include <complex>

#include "model/forward/attention_inputs.hpp"
#include "model/forward/score_scale.hpp"
#include "model/variants.hpp"
#include "nn/differentiable_attention.hpp"
#include "train/network/encoder_run.hpp"
#include "train/network/scaled_columns.hpp"

namespace masque::train {

namespace {

// Each sequence draws its own dropout of weights: its item is step · kItemsOfStep + its first row;
// a step has fewer rows than that.
constexpr std::uint64_t kItemsOfStep = 1000003;

}  // namespace

template <class T>
const mask::BlockMap* EncoderRun<T>::blocks(Index l, Stream& stream, Index sequence) {
  const bool query = stream.kind == model::StreamKind::kQuery;
  const std::span<const Index> places(chunk_.positions);
  return tape_.masks
      .blocks(encoder_.masks_, l, stream, tape_.content, query ? chunk_.query_masks : chunk_.masks,
              chunk_.sparse ? places : std::span<const Index>())[static_cast<std::size_t>(sequence)]
      .get();
}

template <class T>
std::optional<double> EncoderRun<T>::score_offset(Index l) const {
  return encoder_.normalizers_[static_cast<std::size_t>(l)]->offset_of_learned();
}

template <class T>
typename EncoderRun<T>::Terms EncoderRun<T>::terms(Index l, Stream& stream, const Stream& source,
                                                   Index sequence, bool gradients) {
  const ParameterMap& map = encoder_.map_;
  const Index w = weights_of(l);
  Terms made;
  if (!model::has_position_terms(design_) || !encoder_.has_position_[static_cast<std::size_t>(l)])
    return made;
  model::PositionInputs<T> in;
  const bool learned = map.weight(Role::kPositionTable) != ParameterMap::kNone;
  model::set_rows(stream, source, sequence, learned && !chunk_.sparse, made.counted, in);
  if (encoder_.scheme_ != nullptr) {
    in.scheme = encoder_.scheme_.get();
    in.shape = encoder_.scheme_shape_;
    const std::size_t parameters = in.scheme->parameters(in.shape).size();
    const bool shared = encoder_.position_is_shared_;
    made.values.reserve(parameters);
    made.gradients.reserve(parameters);
    for (std::size_t k = 0; k < parameters; ++k) {
      const Index at = map.weight(shared ? Role::kSharedPositionPart : Role::kPositionPart,
                                  shared ? 0 : w, static_cast<Index>(k));
      made.values.push_back(value(at));
      if (gradients) made.gradients.push_back(gradient(at));
    }
    in.parameters = made.values;
    in.gradients = made.gradients;
    if (dropout_.draw)
      in.draw =
          *dropout_.draw + static_cast<std::uint64_t>(dropout_.first_row + source.begin(sequence));
  }
  const auto wanted = [&](Index parameter) {
    return gradients ? gradient(parameter) : MatrixView<T>();
  };
  const LayerTape<T>& tape = memory(l, stream);
  const Index table = map.weight(Role::kRelativeTable);
  in.table = value(table);
  in.d_table = wanted(table);
  in.first_distance = tape_.first_distance;
  in.xlnet.relative = in.disentangled.position_key = tape.distance_keys.view();
  in.xlnet.d_relative = in.disentangled.d_position_key = d_distance_keys_;
  in.disentangled.position_query = tape.distance_queries.view();
  in.disentangled.d_position_query = d_distance_queries_;
  const auto place = [&](Role role, MatrixView<const T>& own, MatrixView<T>& d_own) {
    own = value(map.weight(role, w));
    d_own = wanted(map.weight(role, w));
  };
  place(Role::kContentBias, in.xlnet.content_bias, in.xlnet.d_content_bias);
  place(Role::kPositionBias, in.xlnet.position_bias, in.xlnet.d_position_bias);
  place(Role::kSegmentBias, in.xlnet.segment_bias, in.xlnet.d_segment_bias);
  place(Role::kLayerSegmentTable, in.xlnet.segment_table, in.xlnet.d_segment_table);
  made.own = model::position_terms(design_, in);
  return made;
}

template <class T>
auto EncoderRun<T>::sequences(Index l, Stream& stream, Stream& source, const HeadSizes& heads,
                              const model::Projected<T>& projected, bool gradients)
    -> std::vector<Sequence> {
  std::vector<Sequence> all(static_cast<std::size_t>(stream.sequences()));
  const RandomStream random = stream_of(DropoutPlace::kWeights, l, stream);
  for (Index s = 0; s < stream.sequences(); ++s) {
    Sequence& one = all[static_cast<std::size_t>(s)];
    one.begin = stream.begin(s);
    one.count = stream.count(s);
    one.source_begin = source.begin(s);
    one.keys = source.count(s);
    nn::AttentionProblem<T>& problem = one.attention.problem;
    problem = model::attention_problem(design_, l, heads, stream, source, s, projected);
    // Scales that heads learn multiply the queries.
    problem.normalizer = score_offset(l) ? nn::find_normalizer("softmax")
                                         : encoder_.normalizers_[static_cast<std::size_t>(l)].get();
    problem.blocks = blocks(l, stream, s);
    problem.bf16 = encoder_.precision_ == kernel::Precision::kBf16;
    if (gradients && stops_at_blocks()) one.own_keys = block_begins(stream, source, s);
    if (one.count > 0) one.terms = terms(l, stream, source, s, gradients);
    if (one.terms.own != nullptr) {
      problem.bias = one.terms->bias();
      one.attention.weight_terms = one.terms->weight_terms();
      one.attention.value_terms = one.terms->value_terms();
    }
    one.attention.dropout = dropout_.attention_dropout;
    one.attention.stream =
        random.for_item(dropout_.step * kItemsOfStep +
                        static_cast<std::uint64_t>(dropout_.first_row + one.source_begin));
  }
  return all;
}

template <class T>
void EncoderRun<T>::attend(Index l, Stream& stream, Stream& source, const HeadSizes& heads,
                           const model::Projected<T>& projected, MatrixView<T> context) {
  std::vector<Sequence> all = sequences(l, stream, source, heads, projected, false);
  for (Sequence& one : all) {
    if (one.terms.own == nullptr) continue;
    one.terms->query_key(projected.query.middle_rows(one.begin, one.count),
                         projected.key.middle_rows(one.source_begin, one.keys));
  }
  if (const auto offset = score_offset(l)) {
    for (Sequence& one : all) {
      model::scale_queries<T>(matrix(Role::kScoreScale, l), *offset, one.attention.problem.blocks,
                              one.keys, projected.query.middle_rows(one.begin, one.count));
    }
  }
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    materialized_forward(l, stream, all, context);
  } else {
    if (encoder_.materialized_) return materialized_forward(l, stream, all, context);
    LayerTape<T>& tape = memory(l, stream);
    tape.saved.resize(heads.heads, projected.query.rows);
    std::vector<nn::DifferentiableForward<T>> items;
    items.reserve(all.size());
    for (Sequence& one : all) {
      if (one.count == 0) continue;
      items.push_back({one.attention, context.middle_rows(one.begin, one.count),
                       tape.saved.view().middle_columns(one.begin, one.count)});
    }
    nn::differentiable_attention_forward<T>(items);
  }
}

template <class T>
void EncoderRun<T>::attend_backward(Index l, Stream& stream, Stream& source, const HeadSizes& heads,
                                    const model::Projected<T>& projected,
                                    MatrixView<const T> context, MatrixView<const T> d_context,
                                    const model::Projected<T>& d_projected,
                                    const model::Projected<T>& d_earlier) {
  for (const MatrixView<T>& d :
       {d_projected.query, d_projected.key, d_projected.value, d_earlier.key, d_earlier.value})
    zero_rows<T>(d);
  clear_distance_gradients(l);
  std::vector<Sequence> all = sequences(l, stream, source, heads, projected, true);
  if (encoder_.materialized_) {
    materialized_backward(l, stream, all, d_context, d_projected);
  } else {
    LayerTape<T>& tape = memory(l, stream);
    std::vector<nn::DifferentiableBackward<T>> items;
    items.reserve(all.size());
    for (Sequence& one : all) {
      if (one.count == 0) continue;
      nn::DifferentiableBackward<T> item{one.attention,
                                         context.middle_rows(one.begin, one.count),
                                         tape.saved.view().middle_columns(one.begin, one.count),
                                         d_context.middle_rows(one.begin, one.count),
                                         {}};
      item.gradients.query = d_projected.query.middle_rows(one.begin, one.count);
      item.gradients.key = d_projected.key.middle_rows(one.source_begin, one.keys);
      item.gradients.value = d_projected.value.middle_rows(one.source_begin, one.keys);
      if (stops_at_blocks()) {
        item.own_keys = one.own_keys;
        item.gradients.earlier_key = d_earlier.key.middle_rows(one.source_begin, one.keys);
        item.gradients.earlier_value = d_earlier.value.middle_rows(one.source_begin, one.keys);
      }
      if (one.terms.own != nullptr) {
        item.gradients.bias = one.terms->bias_gradient();
        item.gradients.weight_terms = one.terms->weight_terms();
        item.gradients.value_terms = one.terms->value_terms();
      }
      items.push_back(item);
    }
    nn::differentiable_attention_backward<T>(items);
  }
  if (const auto offset = score_offset(l)) {
    for (Sequence& one : all) {
      scale_queries_backward<T>(matrix(Role::kScoreScale, l), *offset, one.attention.problem.blocks,
                                one.keys, projected.query.middle_rows(one.begin, one.count),
                                d_projected.query.middle_rows(one.begin, one.count),
                                gradient(encoder_.map_.weight(Role::kScoreScale, weights_of(l))));
    }
  }
  for (Sequence& one : all) {
    if (one.terms.own == nullptr) continue;
    one.terms->query_key_backward(d_projected.query.middle_rows(one.begin, one.count),
                                  d_projected.key.middle_rows(one.source_begin, one.keys));
    if (!stops_at_blocks()) continue;
    one.terms->query_key_backward(zeros(kNoQuery, one.count, d_projected.query.columns),
                                  d_earlier.key.middle_rows(one.source_begin, one.keys));
  }
  project_distances_backward(l);
  if (design_.position != model::PositionType::kRotary) return;
  const model::RotaryDesign& rotary = design_.layers[static_cast<std::size_t>(l)].rotary;
  tape_.rotary.backward(rotary, stream, heads.head_size, d_projected.query);
  for (const model::Projected<T>* d : {&d_projected, &d_earlier}) {
    if (d->key.data == nullptr) continue;
    tape_.rotary.backward(rotary, source, heads.head_size, d->key);
    if (rotary.values) tape_.rotary.backward(rotary, source, heads.head_size, d->value);
  }
}

#define MASQUE_INSTANTIATE(T)                                                                \
  template void EncoderRun<T>::attend(Index, Stream&, Stream&, const HeadSizes&,             \
                                      const model::Projected<T>&, MatrixView<T>);            \
  template typename EncoderRun<T>::Terms EncoderRun<T>::terms(Index, Stream&, const Stream&, \
                                                              Index, bool);                  \
  template const mask::BlockMap* EncoderRun<T>::blocks(Index, Stream&, Index);
#define MASQUE_INSTANTIATE_BACKWARD(T)                                                            \
  template void EncoderRun<T>::attend_backward(                                                   \
      Index, Stream&, Stream&, const HeadSizes&, const model::Projected<T>&, MatrixView<const T>, \
      MatrixView<const T>, const model::Projected<T>&, const model::Projected<T>&);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
