// EncoderRun: attention, forward and backward.
#include <algorithm>
#include <complex>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/dropout.hpp"
#include "kernel/parallel.hpp"
#include "model/forward/attention_inputs.hpp"
#include "model/forward/layer_forward.hpp"
#include "model/forward/position_terms.hpp"
#include "model/forward/score_scale.hpp"
#include "model/variants.hpp"
#include "nn/attention/differentiable_attention.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

using model::PreviousScores;

// The attention of a layer, sequence by sequence, forward and backward.

namespace {

/// Backward pass of model::scale_queries() with the same `s`, `offset`, `blocks` and `keys`:
/// `d_query`, that of the scaled queries, becomes that of the queries; adds to `d_s`, if that
/// has data. `scaled`: what scale_queries() left. A scale of 0, which a query that sees one key has
/// where the offset is 0, adds nothing to d_s.
template <class T>
void scale_queries_backward(MatrixView<const T> s, double offset, const mask::BlockMap* blocks,
                            Index keys, MatrixView<const T> scaled, MatrixView<T> d_query,
                            MatrixView<T> d_s) {
  const Index size = scaled.columns / s.columns;
  model::each_log_visible(blocks, keys, scaled.rows, s.columns,
                          [&](Index i, Index h, double log_n) {
                            const T scale = model::score_scale(s.at(0, h), log_n, offset);
                            T sum{};
                            for (Index c = h * size; c < (h + 1) * size; ++c) {
                              sum += d_query.at(i, c) * scaled.at(i, c);
                              d_query.at(i, c) *= scale;
                            }
                            if (d_s.data != nullptr && scale != T{})
                              d_s.at(0, h) += sum * static_cast<T>(log_n) / scale;
                          });
}

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
  in.blocks = encoder_.masks_.sparse();
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
    if (design_.sinks) problem.sinks = matrix(Role::kSinks, l).row_span(0);
    if (gradients && stops_at_blocks()) one.own_keys = block_begins(stream, source, s);
    if (one.count > 0) one.terms = terms(l, stream, source, s, gradients);
    if (one.terms.own != nullptr) {
      problem.bias = one.terms->bias();
      one.attention.weight_terms = one.terms->weight_terms();
      one.attention.value_terms = one.terms->value_terms();
    }
    one.attention.dropout = dropout_.attention_dropout;
    one.attention.stream = random.for_item(dropout_item(one.source_begin));
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
    attend_sequences(all, memory(l, stream).saved, context);
  }
}

template <class T>
void EncoderRun<T>::attend_sequences(std::span<const Sequence> all, Matrix<T>& saved,
                                     MatrixView<T> context) const {
  if (all.empty()) return;
  saved.resize(all.front().attention.problem.num_heads, context.rows);
  std::vector<nn::DifferentiableForward<T>> items;
  items.reserve(all.size());
  for (const Sequence& one : all) {
    if (one.count == 0) continue;
    items.push_back({one.attention, context.middle_rows(one.begin, one.count),
                     saved.view().middle_columns(one.begin, one.count)});
  }
  nn::differentiable_attention_forward<T>(items);
}

template <class T>
nn::DifferentiableBackward<T> EncoderRun<T>::backward_of(const Sequence& one, Matrix<T>& saved,
                                                         MatrixView<const T> context,
                                                         MatrixView<const T> d_context,
                                                         const model::Projected<T>& d_projected) {
  nn::DifferentiableBackward<T> item{one.attention,
                                     context.middle_rows(one.begin, one.count),
                                     saved.view().middle_columns(one.begin, one.count),
                                     d_context.middle_rows(one.begin, one.count),
                                     {}};
  item.gradients.query = d_projected.query.middle_rows(one.begin, one.count);
  item.gradients.key = d_projected.key.middle_rows(one.source_begin, one.keys);
  item.gradients.value = d_projected.value.middle_rows(one.source_begin, one.keys);
  return item;
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
      nn::DifferentiableBackward<T> item =
          backward_of(one, tape.saved, context, d_context, d_projected);
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
    const Index sinks = encoder_.map_.weight(Role::kSinks, weights_of(l));
    for (const auto& item : items) {
      if (design_.sinks && gradient(sinks).data != nullptr)
        nn::add_sink_gradients<T>(item, gradient(sinks).row_span(0));
    }
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
  rotation_backward(l, stream, source, heads, d_projected, d_earlier);
  if (design_.clip_qkv > 0 || design_.query_key_norm != model::QueryKeyNorm::kNone) {
    const LayerTape<T>& tape = memory(l, stream);
    bound_and_norm_backward(l, heads, {tape.raw_query.view(), tape.raw_key.view(), projected.value},
                            d_projected, d_earlier);
  }
}

template <class T>
void EncoderRun<T>::rotation_backward(Index l, Stream& stream, Stream& source,
                                      const HeadSizes& heads,
                                      const model::Projected<T>& d_projected,
                                      const model::Projected<T>& d_earlier) {
  const model::RotaryDesign& rotary = design_.layers[static_cast<std::size_t>(l)].rotary;
  if (design_.position != model::PositionType::kRotary || rotary.frequencies.empty()) return;
  tape_.rotary.backward(rotary, stream, heads.head_size, d_projected.query);
  for (const model::Projected<T>* d : {&d_projected, &d_earlier}) {
    if (d->key.data == nullptr) continue;
    tape_.rotary.backward(rotary, source, heads.head_size, d->key);
    if (rotary.values) tape_.rotary.backward(rotary, source, heads.head_size, d->value);
  }
}

template <class T>
void EncoderRun<T>::bound_and_norm_backward(Index l, const HeadSizes& heads, const Raw& raw,
                                            const model::Projected<T>& d_projected,
                                            const model::Projected<T>& d_earlier) {
  const EncoderLayer<T>& own = layer(l);
  const bool norms = design_.query_key_norm != model::QueryKeyNorm::kNone;
  // Of what was cut off, which is beyond the bound or has become it.
  const auto clip_back = [&](MatrixView<const T> x, MatrixView<T> d) {
    const T bound = static_cast<T>(design_.clip_qkv);
    for (Index i = 0; i < d.rows; ++i) {
      for (Index c = 0; c < d.columns; ++c) {
        if (x.at(i, c) >= bound || x.at(i, c) <= -bound) d.at(i, c) = T{};
      }
    }
  };
  const auto back = [&](const TrainedNorm<T>* norm, MatrixView<const T> x, MatrixView<T> d) {
    if (d.data == nullptr) return;
    const bool normed = norm != nullptr && norms;
    if (normed && design_.clip_qkv > 0 && design_.clip_after_norms) {
      const MatrixView<T> y = zeros(kDRaw, d.rows, d.columns);
      Index column = 0;
      model::for_normed_heads(
          design_.query_key_norm, heads.head_size, y, [&](MatrixView<T> part, Index first) {
            norm->forward_columns(first, x.middle_columns(column, part.columns), part);
            column += part.columns;
          });
      clip_back(y, d);
    }
    if (normed) {
      const MatrixView<T> d_x = zeros(kDRaw, d.rows, d.columns);
      Index column = 0;
      model::for_normed_heads(
          design_.query_key_norm, heads.head_size, d, [&](MatrixView<T> d_part, Index first) {
            norm->backward_columns(first, x.middle_columns(column, d_part.columns), d_part,
                                   d_x.middle_columns(column, d_part.columns));
            column += d_part.columns;
          });
      kernel::copy_rows<T>(d_x, d);
    }
    if (design_.clip_qkv > 0 && !(normed && design_.clip_after_norms)) clip_back(x, d);
  };
  back(&own.query_norm, raw.query, d_projected.query);
  for (const model::Projected<T>* d : {&d_projected, &d_earlier}) {
    back(&own.key_norm, raw.key, d->key);
    back(nullptr, raw.value, d->value);
  }
}

// Transformer-XL's memory: gradients that stop at the states of earlier blocks.

template <class T>
void Encoder<T>::stop_at_blocks(Index size) {
  const auto refuse_if = [](bool found, const std::string& what) {
    if (found)
      throw UsageError(fmt::format("{} cannot be combined with {}", field("memory"), what));
  };
  const model::VariantDesign& variants = design_.variants;
  refuse_if(design_.layer_kind != model::LayerKind::kTransformer, "gated attention units");
  refuse_if(mixer_ != nullptr, field("mixer"));
  refuse_if(variants.talking_heads != model::TalkingHeads::kNone, field("talking_heads"));
  refuse_if(variants.largest_keys > 0, field("largest_keys"));
  refuse_if(variants.previous_scores != model::PreviousScores::kNone, field("previous_scores"));
  refuse_if(materialized_, field("diversity"));
  refuse_if(design_.streams != model::Streams::kOne && design_.streams != model::Streams::kTwo,
            "a stream that reads the embeddings, or with two towers");
  refuse_if(std::ranges::any_of(
                layers_, [](const EncoderLayer<T>& layer) { return !layer.convolution.empty(); }),
            "a convolution beside the first layer");
  refuse_if(detector_ != nullptr, "a detector");
  refuse_if(variants.latent.has_value(), "latent bottlenecks");
  block_size_ = size;
  for (std::size_t w = 0; w < layers_.size(); ++w) {
    Dense<T>& key_value = layers_[w].key_value;
    key_value = Dense<T>(*parameters_, map_, {model::Role::kKey, model::Role::kValue},
                         static_cast<Index>(w), precision_);
    if (large_) key_value.share(room_);
  }
}

void check_block_places(const ExampleChunk& chunk) {
  for (std::size_t s = 0; s + 1 < chunk.begins.size(); ++s) {
    for (Index i = chunk.begins[s]; i < chunk.begins[s + 1]; ++i) {
      if (chunk.positions[static_cast<std::size_t>(i)] == i - chunk.begins[s]) continue;
      throw InputError(fmt::format(
          "{} cannot be combined with sequences that have their own positions", field("memory")));
    }
  }
}

template <class T>
std::vector<Index> EncoderRun<T>::block_begins(const Stream& stream, const Stream& source,
                                               Index sequence) const {
  const Index size = encoder_.block_size_;
  std::vector<Index> begins;
  for (Index i = stream.begin(sequence); i < stream.begin(sequence + 1); ++i) {
    const Index row = stream.rows.empty() ? i : stream.rows[static_cast<std::size_t>(i)];
    begins.push_back((row - source.begin(sequence)) / size * size);
  }
  return begins;
}

template <class T>
void EncoderRun<T>::earlier_backward(Index l, MatrixView<const T> m, MatrixView<const T> normed) {
  if (!stops_at_blocks()) return;
  const EncoderLayer<T>& own = layer(l);
  const MatrixView<const T> d_key_value = scratch(kDEarlier, m.rows, own.key_value.outputs());
  if (normed.data == nullptr) return own.key_value.backward(m, d_key_value, false, {});
  const MatrixView<T> d_normed = scratch(kDEarlierStates, m.rows, m.columns);
  own.key_value.backward(normed, d_key_value, false, d_normed);
  // The norm is taught as well, the states are not.
  own.attention_norm.backward(m, d_normed, zeros(kNoStates, m.rows, m.columns));
}

// What attention with relative positions projects for its distances, forward and backward: XLNet's
// sinusoids, DeBERTa's table. Made once a chunk, projected once a layer and stream.

template <class T>
void EncoderRun<T>::make_distances() {
  tape_.distances = Matrix<T>();
  if (design_.position == model::PositionType::kXlnet) {
    auto found = model::xlnet_distances<T>(design_, chunk_.positions, chunk_.begins);
    tape_.first_distance = found.first;
    tape_.distances = std::move(found.waves);
  } else if (design_.position == model::PositionType::kDisentangled) {
    const MatrixView<const T> table = value(encoder_.map_.weight(Role::kRelativeTable));
    tape_.distances = Matrix<T>::copy(table);
    if (design_.relative_norm) encoder_.relative_norm_.forward(table, tape_.distances.view());
  }
}

template <class T>
void EncoderRun<T>::distances_backward() {
  if (design_.position != model::PositionType::kDisentangled) return;
  const Index table = encoder_.map_.weight(Role::kRelativeTable);
  const MatrixView<T> d_table = gradient(table);
  if (design_.relative_norm) {
    Matrix<T> unused;  // of a table that is frozen, unlike its norm
    if (d_table.data == nullptr) unused = Matrix<T>::zero(value(table).rows, value(table).columns);
    encoder_.relative_norm_.backward(value(table), tape_.d_distances.view(),
                                     d_table.data == nullptr ? unused.view() : d_table);
  } else if (d_table.data != nullptr) {
    kernel::add_to<T>(tape_.d_distances.view(), d_table);
  }
}

template <class T>
void EncoderRun<T>::project_distances(Index l, Stream& stream) {
  LayerTape<T>& tape = memory(l, stream);
  const EncoderLayer<T>& own = layer(l);
  const auto project = [&](const Dense<T>& dense, Matrix<T>& out) {
    if (dense.empty()) return;
    out.resize(tape_.distances.rows(), dense.outputs());
    dense.forward(tape_.distances.view(), out.view());
  };
  project(own.distance_key, tape.distance_keys);
  project(own.distance_query, tape.distance_queries);
}

template <class T>
void EncoderRun<T>::clear_distance_gradients(Index l) {
  const EncoderLayer<T>& own = layer(l);
  const Index rows = tape_.distances.rows();
  if (!own.distance_key.empty())
    d_distance_keys_ = zeros(kDDistanceKeys, rows, own.distance_key.outputs());
  if (!own.distance_query.empty())
    d_distance_queries_ = zeros(kDDistanceQueries, rows, own.distance_query.outputs());
}

template <class T>
void EncoderRun<T>::project_distances_backward(Index l) {
  const EncoderLayer<T>& own = layer(l);
  // XLNet's sinusoids are fixed.
  const bool trained = design_.position == model::PositionType::kDisentangled;
  const MatrixView<T> d_distances = trained ? tape_.d_distances.view() : MatrixView<T>();
  const auto back = [&](const Dense<T>& dense, MatrixView<T>& d_out) {
    if (!dense.empty()) dense.backward(tape_.distances.view(), d_out, true, d_distances);
    d_out = {};
  };
  back(own.distance_key, d_distance_keys_);
  back(own.distance_query, d_distance_queries_);
}

// Attention whose weights exist at once: talking heads, scores of the layer before, and their
// diversity; forward and backward.

template <class T>
void Encoder<T>::measure_diversity() {
  if (mixer_ != nullptr)
    throw UsageError(fmt::format("{} has no attention, so its diversity cannot be measured",
                                 model::mixer_name(design_)));
  if (design_.sinks)
    throw UsageError("the diversity of attention with sinks cannot be measured in training");
  materialized_ = measures_ = true;
}

template <class T>
Index Encoder<T>::attention_matrices() const {
  const bool two = design_.streams == model::Streams::kTwo;
  const Index layers = design_.num_hidden_layers;
  // The content after the last layer is not computed.
  return model::softmax_heads(design_) * (two ? 2 * layers - 1 : layers);
}

template <class T>
template <class Work>
void EncoderRun<T>::for_score_rows(std::string_view purpose, Index l, const Stream& stream,
                                   const Sequence& one, Index head, MatrixView<T> scores,
                                   const Work& work) const {
  // Numbers of a row: no sequence has more keys.
  constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 20;
  const bool query = &stream == &tape_.selected;
  const RandomStream random(dropout_.seed, fmt::format("{} {} {}", purpose, l, query ? 1 : 0),
                            dropout_.step);
  for (Index i = 0; i < scores.rows; ++i) {
    Index row = one.begin + i;
    if (stream.kind != model::StreamKind::kContent)
      row = stream.rows[static_cast<std::size_t>(row)];
    const auto of_head =
        static_cast<std::uint64_t>((dropout_.first_row + row) * design_.num_attention_heads + head);
    work(random, of_head * kMostKeys, scores.middle_rows(i, 1));
  }
}

template <class T>
void EncoderRun<T>::drop_scores_backward(Index l, const Stream& stream, const Sequence& one,
                                         std::span<Matrix<T>> d_scores) const {
  if (dropout_.score_dropout == 0) return;
  for (std::size_t h = 0; h < d_scores.size(); ++h) {
    for_score_rows("score dropout", l, stream, one, static_cast<Index>(h), d_scores[h].view(),
                   [&](const RandomStream& random, std::uint64_t first, MatrixView<T> row) {
                     kernel::dropout_backward<T>(dropout_.score_dropout, random, first, row);
                   });
  }
}

template <class T>
nn::MaterializedAttention<T> EncoderRun<T>::materialized(Index l, const Stream& stream,
                                                         std::size_t sequence, const Sequence& one,
                                                         std::vector<MatrixView<const T>>& previous,
                                                         std::vector<Matrix<T>>& perturbed) const {
  const Index w = weights_of(l);
  if (design_.variants.previous_scores != PreviousScores::kNone && l > 0) {
    const LayerTape<T>& before = stream.layers[static_cast<std::size_t>(l) - 1];
    const std::vector<Matrix<T>>& all = before.materialized[sequence].scores;
    perturbed.reserve(all.size());  // views of them stay
    for (const Matrix<T>& scores : all) {
      if (!perturbs_scores()) {
        previous.push_back(scores.view());
        continue;
      }
      const Index head = std::ssize(perturbed);
      Matrix<T>& own = perturbed.emplace_back(Matrix<T>::copy(scores.view()));
      if (dropout_.score_noise > 0) {
        std::vector<double> noise(static_cast<std::size_t>(own.columns()));
        for_score_rows("score noise", l, stream, one, head, own.view(),
                       [&](const RandomStream& random, std::uint64_t first, MatrixView<T> row) {
                         random.normal(first, noise.size(), noise.data());
                         for (Index j = 0; j < row.columns; ++j) {
                           row.at(0, j) += static_cast<T>(dropout_.score_noise *
                                                          noise[static_cast<std::size_t>(j)]);
                         }
                       });
      }
      if (dropout_.score_dropout > 0) {
        for_score_rows("score dropout", l, stream, one, head, own.view(),
                       [&](const RandomStream& random, std::uint64_t first, MatrixView<T> row) {
                         kernel::dropout_forward<T>(dropout_.score_dropout, random, first, row);
                       });
      }
      previous.push_back(std::as_const(own).view());
    }
  }
  return model::materialized_attention<T>(
      design_, one.attention.problem, value(encoder_.map_.weight(Role::kTalkingBefore, w)),
      value(encoder_.map_.weight(Role::kTalkingAfter, w)), previous, one.terms.own.get());
}

template <class T>
void EncoderRun<T>::measure(std::span<const Sequence> all, const LayerTape<T>& tape) {
  std::vector<std::array<Wide<T>, kDiversities>> found(all.size());
  kernel::parallel_items(std::ssize(all), [&](Index item) {
    const auto s = static_cast<std::size_t>(item);
    if (all[s].count == 0 || !chunk_.has_loss(item)) return;
    for (const Matrix<T>& weights : tape.materialized[s].normalized) {
      const auto one = measure_diversity<T>(weights.view(), {}, {});
      for (std::size_t k = 0; k < kDiversities; ++k) found[s][k] += one[k];
    }
  });
  for (const auto& one : found) {
    for (std::size_t k = 0; k < kDiversities; ++k) tape_.diversity[k] += one[k];
  }
}

template <class T>
void EncoderRun<T>::materialized_forward(Index l, Stream& stream, std::span<Sequence> all,
                                         MatrixView<T> context) {
  LayerTape<T>& tape = stream.layers[static_cast<std::size_t>(l)];
  tape.materialized.resize(all.size());
  kernel::parallel_items(std::ssize(all), [&](Index item) {
    const auto s = static_cast<std::size_t>(item);
    const Sequence& one = all[s];
    if (one.count == 0) return;
    std::vector<MatrixView<const T>> previous;
    std::vector<Matrix<T>> perturbed;
    const nn::MaterializedAttention<T> attention =
        materialized(l, stream, s, one, previous, perturbed);
    nn::materialized_attention_forward<T>(attention, context.middle_rows(one.begin, one.count),
                                          &tape.materialized[s]);
  });
  if (encoder_.measures_) measure(all, tape);
}

template <class T>
void EncoderRun<T>::materialized_backward(Index l, Stream& stream, std::span<Sequence> all,
                                          MatrixView<const T> d_context,
                                          const model::Projected<T>& d_projected) {
  LayerTape<T>& tape = stream.layers[static_cast<std::size_t>(l)];
  const Index w = weights_of(l);
  const bool hands_on = design_.variants.previous_scores != PreviousScores::kNone;
  std::vector<std::vector<Matrix<T>>>& d_scores = d_scores_[&stream == &tape_.selected ? 1 : 0];
  const std::vector<std::vector<Matrix<T>>> d_next = std::move(d_scores);
  d_scores.clear();
  d_scores.resize(all.size());
  // One after the other: they share the gradients of parameters.
  for (std::size_t s = 0; s < all.size(); ++s) {
    const Sequence& one = all[s];
    if (one.count == 0) continue;
    std::vector<MatrixView<const T>> previous;
    std::vector<Matrix<T>> perturbed;
    const nn::MaterializedAttention<T> attention =
        materialized(l, stream, s, one, previous, perturbed);
    std::vector<MatrixView<T>> d_previous;
    std::vector<MatrixView<const T>> d_own;
    if (hands_on && l > 0) {
      for (const MatrixView<const T>& scores : previous) {
        d_scores[s].push_back(Matrix<T>::zero(scores.rows, scores.columns));
        d_previous.push_back(d_scores[s].back().view());
      }
    }
    if (s < d_next.size()) {
      for (const Matrix<T>& d : d_next[s]) d_own.push_back(d.view());
    }
    std::vector<Matrix<T>> d_normalized;
    std::vector<MatrixView<const T>> d_diversity;
    if (encoder_.measures_ && chunk_.has_loss(static_cast<Index>(s))) {
      for (const Matrix<T>& weights : tape.materialized[s].normalized) {
        d_normalized.push_back(Matrix<T>::zero(weights.rows(), weights.columns()));
        measure_diversity<T>(weights.view(), tape_.diversity_slopes, d_normalized.back().view());
      }
      for (const Matrix<T>& d : d_normalized) d_diversity.push_back(d.view());
    }
    nn::MaterializedGradients<T> gradients;
    gradients.normalized = d_diversity;
    gradients.query = d_projected.query.middle_rows(one.begin, one.count);
    gradients.key = d_projected.key.middle_rows(one.source_begin, one.keys);
    gradients.value = d_projected.value.middle_rows(one.source_begin, one.keys);
    gradients.talking_before = gradient(encoder_.map_.weight(Role::kTalkingBefore, w));
    gradients.talking_after = gradient(encoder_.map_.weight(Role::kTalkingAfter, w));
    gradients.previous = d_previous;
    gradients.scores = d_own;
    if (one.terms.own != nullptr) {
      gradients.bias = one.terms->bias_gradient();
      gradients.weight_terms = one.terms->weight_terms();
      gradients.value_terms = one.terms->value_terms();
    }
    nn::materialized_attention_backward<T>(attention, tape.materialized[s],
                                           d_context.middle_rows(one.begin, one.count), gradients);
    drop_scores_backward(l, stream, one, d_scores[s]);
  }
}

#define MASQUE_INSTANTIATE(T)                                                                  \
  template void EncoderRun<T>::attend(Index, Stream&, Stream&, const HeadSizes&,               \
                                      const model::Projected<T>&, MatrixView<T>);              \
  template typename EncoderRun<T>::Terms EncoderRun<T>::terms(Index, Stream&, const Stream&,   \
                                                              Index, bool);                    \
  template const mask::BlockMap* EncoderRun<T>::blocks(Index, Stream&, Index);                 \
  template void Encoder<T>::stop_at_blocks(Index);                                             \
  template std::vector<Index> EncoderRun<T>::block_begins(const Stream&, const Stream&, Index) \
      const;                                                                                   \
  template void EncoderRun<T>::make_distances();                                               \
  template void EncoderRun<T>::project_distances(Index, Stream&);                              \
  template void Encoder<T>::measure_diversity();                                               \
  template Index Encoder<T>::attention_matrices() const;                                       \
  template void EncoderRun<T>::materialized_forward(Index, Stream&, std::span<Sequence>,       \
                                                    MatrixView<T>);
#define MASQUE_INSTANTIATE_BACKWARD(T)                                                            \
  template void EncoderRun<T>::attend_sequences(std::span<const Sequence>, Matrix<T>&,            \
                                                MatrixView<T>) const;                             \
  template nn::DifferentiableBackward<T> EncoderRun<T>::backward_of(                              \
      const Sequence&, Matrix<T>&, MatrixView<const T>, MatrixView<const T>,                      \
      const model::Projected<T>&);                                                                \
  template void EncoderRun<T>::attend_backward(                                                   \
      Index, Stream&, Stream&, const HeadSizes&, const model::Projected<T>&, MatrixView<const T>, \
      MatrixView<const T>, const model::Projected<T>&, const model::Projected<T>&);               \
  template void EncoderRun<T>::earlier_backward(Index, MatrixView<const T>, MatrixView<const T>); \
  template void EncoderRun<T>::distances_backward();                                              \
  template void EncoderRun<T>::clear_distance_gradients(Index);                                   \
  template void EncoderRun<T>::project_distances_backward(Index);                                 \
  template void EncoderRun<T>::materialized_backward(                                             \
      Index, Stream&, std::span<Sequence>, MatrixView<const T>, const model::Projected<T>&);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
