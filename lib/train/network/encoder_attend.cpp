// Attention (or a mixer in its place) of a layer, sequence by sequence, forward and backward.
#include <complex>

#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "kernel/rotary.hpp"
#include "model/chunk.hpp"
#include "model/position_terms.hpp"
#include "model/variants.hpp"
#include "nn/differentiable_attention.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

template <class T>
const mask::BlockMap* EncoderRun<T>::blocks(Index l, Stream& stream, Index sequence) {
  auto& maps = stream.maps[encoder_.masks_.kind(l)];
  if (maps.empty()) {
    maps.reserve(static_cast<std::size_t>(stream.sequences()));
    for (Index s = 0; s < stream.sequences(); ++s) {
      const auto at = static_cast<std::size_t>(s);
      const Index begin = chunk_.begins[at];
      std::vector<Index> rows;
      for (Index i = stream.begins[at]; !stream.rows.empty() && i < stream.begins[at + 1]; ++i)
        rows.push_back(stream.rows[static_cast<std::size_t>(i)] - begin);
      const bool nothing = !stream.rows.empty() && rows.empty();
      maps.push_back(nothing ? nullptr
                             : encoder_.masks_.blocks(
                                   encoder_.masks_.kind(l), chunk_.begins[at + 1] - begin, rows,
                                   stream.query_masks ? chunk_.query_masks[at] : chunk_.masks[at]));
    }
  }
  return maps[static_cast<std::size_t>(sequence)].get();
}

template <class T>
typename EncoderRun<T>::Terms EncoderRun<T>::terms(Index l, const Stream& stream,
                                                   const Stream& memory, Index sequence,
                                                   bool gradients) {
  const auto s = static_cast<std::size_t>(sequence);
  const ParameterMap& slots = encoder_.slots_;
  const Index w = weights_of(l);
  Terms made;
  if (!model::has_position_terms(design_)) return made;
  const auto part = [&](const Stream& of, const std::vector<Index>& values) {
    return model::of_sequence(values, of.begins, sequence);
  };
  model::PositionInputs<T> in;
  if (slots.weight(Role::kPositionTable) == ParameterMap::kNone) {
    in.places = {part(stream, stream.positions), part(memory, memory.positions)};
  } else {
    std::optional<std::span<const Index>> rows;
    if (!stream.rows.empty()) rows = part(stream, stream.rows);
    in.places = model::counted_places(chunk_.begins[s], chunk_.begins[s + 1], rows, made.counted);
  }
  in.query_segments = part(stream, stream.segments);
  in.key_segments = part(memory, memory.segments);
  if (encoder_.scheme_ != nullptr) {
    in.scheme = encoder_.scheme_.get();
    in.shape = model::position_shape(design_);
    const std::size_t parameters = in.scheme->parameters(in.shape).size();
    const bool shared = model::shares_position(design_);
    made.values.reserve(parameters);
    made.gradients.reserve(parameters);
    for (std::size_t k = 0; k < parameters; ++k) {
      const Index at = slots.weight(shared ? Role::kSharedPositionPart : Role::kPositionPart,
                                    shared ? 0 : w, static_cast<Index>(k));
      made.values.push_back(value(at));
      if (gradients) made.gradients.push_back(gradient(at));
    }
    in.parameters = made.values;
    in.gradients = made.gradients;
    if (noise_.draw)
      in.draw = *noise_.draw + static_cast<std::uint64_t>(noise_.first_row + memory.begins[s]);
  }
  const auto wanted = [&](Index parameter) {
    return gradients ? gradient(parameter) : MatrixView<T>();
  };
  const LayerTape<T>& tape = stream.layers[static_cast<std::size_t>(l)];
  const Index table = slots.weight(Role::kRelativeTable);
  in.table = value(table);
  in.d_table = wanted(table);
  in.first_distance = tape_.first_distance;
  in.xlnet.relative = in.disentangled.position_key = tape.distance_keys.view();
  in.xlnet.d_relative = in.disentangled.d_position_key = d_distance_keys_;
  in.disentangled.position_query = tape.distance_queries.view();
  in.disentangled.d_position_query = d_distance_queries_;
  const auto place = [&](Role role, MatrixView<const T>& own, MatrixView<T>& d_own) {
    own = value(slots.weight(role, w));
    d_own = wanted(slots.weight(role, w));
  };
  place(Role::kContentBias, in.xlnet.content_bias, in.xlnet.d_content_bias);
  place(Role::kPositionBias, in.xlnet.position_bias, in.xlnet.d_position_bias);
  place(Role::kSegmentBias, in.xlnet.segment_bias, in.xlnet.d_segment_bias);
  place(Role::kLayerSegmentTable, in.xlnet.segment_table, in.xlnet.d_segment_table);
  made.own = model::position_terms(design_, in);
  return made;
}

template <class T>
auto EncoderRun<T>::sequences(Index l, Stream& stream, Stream& memory, const Heads& heads,
                              MatrixView<const T> query, MatrixView<const T> key,
                              MatrixView<const T> value, bool gradients) -> std::vector<Sequence> {
  std::vector<Sequence> all(static_cast<std::size_t>(stream.sequences()));
  const RandomStream random = stream_of(DropoutPlace::kWeights, l, stream);
  for (Index s = 0; s < stream.sequences(); ++s) {
    Sequence& one = all[static_cast<std::size_t>(s)];
    one.begin = stream.begins[static_cast<std::size_t>(s)];
    one.count = stream.begins[static_cast<std::size_t>(s) + 1] - one.begin;
    one.memory_begin = memory.begins[static_cast<std::size_t>(s)];
    one.keys = memory.begins[static_cast<std::size_t>(s) + 1] - one.memory_begin;
    nn::AttentionProblem<T>& problem = one.attention.problem;
    problem.query = query.middle_rows(one.begin, one.count);
    problem.key = key.middle_rows(one.memory_begin, one.keys);
    problem.value = value.middle_rows(one.memory_begin, one.keys);
    problem.num_heads = heads.heads;
    problem.num_key_value_heads = heads.key_heads;
    problem.scale =
        design_.attention_scale * design_.layers[static_cast<std::size_t>(l)].attention_scale;
    problem.normalizer = encoder_.normalizer_.get();
    problem.blocks = blocks(l, stream, s);
    problem.bf16 = encoder_.precision_ == kernel::Precision::kBf16;
    if (one.count > 0) one.terms = terms(l, stream, memory, s, gradients);
    if (one.terms.own != nullptr) {
      problem.bias = one.terms->bias();
      one.attention.weight_terms = one.terms->weight_terms();
      one.attention.value_terms = one.terms->value_terms();
    }
    one.attention.dropout = noise_.attention_dropout;
    // Sequences draw different numbers: each its own item.
    one.attention.stream = random.for_item(
        noise_.step * 1000003 + static_cast<std::uint64_t>(noise_.first_row + one.memory_begin));
  }
  return all;
}

template <class T>
void EncoderRun<T>::rotate(Index l, Stream& stream, const Heads& heads, bool back,
                           MatrixView<T> x) {
  const model::RotaryDesign& rotary = design_.layers[static_cast<std::size_t>(l)].rotary;
  // Layers with the same angles share a table.
  Index first = 0;
  while (!(design_.layers[static_cast<std::size_t>(first)].rotary == rotary)) ++first;
  auto found = stream.rotary_tables.find(first);
  if (found == stream.rotary_tables.end()) {
    found = stream.rotary_tables
                .emplace(first, kernel::rotary_table<T>(rotary.frequencies, stream.positions,
                                                        rotary.factor, rotary.float_angles))
                .first;
  }
  if (back) {
    kernel::rotary_backward<T>(rotary.layout, found->second, heads.head_size, x);
  } else {
    kernel::rotary_forward<T>(rotary.layout, found->second, heads.head_size, x);
  }
}

template <class T>
void EncoderRun<T>::attend(Index l, Stream& stream, Stream& memory, const Heads& heads,
                           MatrixView<T> query, MatrixView<T> key, MatrixView<T> value,
                           MatrixView<T> context) {
  if (design_.position == model::PositionType::kRotary) {
    rotate(l, stream, heads, false, query);
    rotate(l, memory, heads, false, key);
    if (design_.layers[static_cast<std::size_t>(l)].rotary.values)
      rotate(l, memory, heads, false, value);
  }
  project_distances(l, stream);
  std::vector<Sequence> all = sequences(l, stream, memory, heads, query, key, value, false);
  for (Sequence& one : all) {
    if (one.terms.own == nullptr) continue;
    one.terms->query_key(query.middle_rows(one.begin, one.count),
                         key.middle_rows(one.memory_begin, one.keys));
  }
  LayerTape<T>& tape = stream.layers[static_cast<std::size_t>(l)];
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    general_forward(l, stream, all, context);
  } else {
    if (encoder_.general_) return general_forward(l, stream, all, context);
    tape.saved.resize(heads.heads, query.rows);
    std::vector<nn::TrainedForward<T>> items;
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
void EncoderRun<T>::attend_backward(Index l, Stream& stream, Stream& memory, const Heads& heads,
                                    MatrixView<const T> query, MatrixView<const T> key,
                                    MatrixView<const T> value, MatrixView<const T> context,
                                    MatrixView<const T> d_context, MatrixView<T> d_query,
                                    MatrixView<T> d_key, MatrixView<T> d_value) {
  for (const MatrixView<T>& d : {d_query, d_key, d_value}) zero_rows<T>(d);
  clear_distance_gradients(l);
  std::vector<Sequence> all = sequences(l, stream, memory, heads, query, key, value, true);
  if (encoder_.general_) {
    general_backward(l, stream, all, d_context, d_query, d_key, d_value);
  } else {
    LayerTape<T>& tape = stream.layers[static_cast<std::size_t>(l)];
    std::vector<nn::TrainedBackward<T>> items;
    items.reserve(all.size());
    for (Sequence& one : all) {
      if (one.count == 0) continue;
      nn::TrainedBackward<T> item{one.attention,
                                  context.middle_rows(one.begin, one.count),
                                  tape.saved.view().middle_columns(one.begin, one.count),
                                  d_context.middle_rows(one.begin, one.count),
                                  {}};
      item.gradients.query = d_query.middle_rows(one.begin, one.count);
      item.gradients.key = d_key.middle_rows(one.memory_begin, one.keys);
      item.gradients.value = d_value.middle_rows(one.memory_begin, one.keys);
      if (one.terms.own != nullptr) {
        item.gradients.bias = one.terms->bias_gradient();
        item.gradients.weight_terms = one.terms->weight_terms();
        item.gradients.value_terms = one.terms->value_terms();
      }
      items.push_back(item);
    }
    nn::differentiable_attention_backward<T>(items);
  }
  for (Sequence& one : all) {
    if (one.terms.own == nullptr) continue;
    one.terms->query_key_backward(d_query.middle_rows(one.begin, one.count),
                                  d_key.middle_rows(one.memory_begin, one.keys));
  }
  project_distances_backward(l);
  if (design_.position != model::PositionType::kRotary) return;
  rotate(l, stream, heads, true, d_query);
  rotate(l, memory, heads, true, d_key);
  if (design_.layers[static_cast<std::size_t>(l)].rotary.values)
    rotate(l, memory, heads, true, d_value);
}

#define MASQUE_INSTANTIATE(T)                                                                      \
  template void EncoderRun<T>::attend(Index, Stream&, Stream&, const Heads&, MatrixView<T>,        \
                                      MatrixView<T>, MatrixView<T>, MatrixView<T>);                \
  template typename EncoderRun<T>::Terms EncoderRun<T>::terms(Index, const Stream&, const Stream&, \
                                                              Index, bool);                        \
  template const mask::BlockMap* EncoderRun<T>::blocks(Index, Stream&, Index);
#define MASQUE_INSTANTIATE_BACKWARD(T)                                                             \
  template void EncoderRun<T>::attend_backward(                                                    \
      Index, Stream&, Stream&, const Heads&, MatrixView<const T>, MatrixView<const T>,             \
      MatrixView<const T>, MatrixView<const T>, MatrixView<const T>, MatrixView<T>, MatrixView<T>, \
      MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
