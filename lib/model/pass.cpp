#include "model/pass.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "kernel/embedding.hpp"
#include "kernel/parallel.hpp"
#include "model/forward/score_scale.hpp"
#include "nn/attention/attention_evaluation.hpp"
#include "nn/attention/row_attention.hpp"
#include "tensor/finite.hpp"

namespace masque::model {

// Rows that enter the first layer alike.

Repeats::Repeats(std::span<const TokenId> ids, std::span<const Index> positions,
                 std::span<const Index> segments) {
  std::map<std::tuple<TokenId, Index, Index>, Index> seen;
  of_.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto [found, fresh] =
        seen.try_emplace({ids[i], positions[i], segments.empty() ? 0 : segments[i]},
                         static_cast<Index>(first_.size()));
    if (fresh) first_.push_back(static_cast<Index>(i));
    of_.push_back(found->second);
  }
}

template <class T>
void Repeats::forward(const kernel::Linear<T>& linear, MatrixView<const T> x,
                      MatrixView<T> y) const {
  MASQUE_CHECK(x.rows == static_cast<Index>(of_.size()));
  const auto count = static_cast<Index>(first_.size());
  Matrix<T> some(count, x.columns);
  Matrix<T> products(count, y.columns);
  kernel::embedding_forward<T, Index>(x, first_, some.view());
  linear.forward(std::as_const(some).view(), products.view());
  kernel::embedding_forward<T, Index>(std::as_const(products).view(), of_, y);
}

// The pass, and what it shows an observer.

namespace {

// Of one matrix: more is not kept.
constexpr Index kKeptElements = Index{4} << 20;

}  // namespace

template <class T>
PassMemory<T>& PassMemory<T>::own() {
  static thread_local PassMemory scratch;
  return scratch;
}

template <class T>
void PassMemory<T>::shrink() {
  layer.for_each([](Matrix<T>& matrix) {
    if (matrix.rows() * matrix.columns() > kKeptElements) matrix = Matrix<T>();
  });
}

template <class T>
Pass<T>::Pass(const PreparedModel<T>& model, const LayerMasks& masks, const PassSettings& settings,
              const Batch& batch, const Request& request, Observer* observer, const Chunk& chunk,
              KeyValues<T>* cache, const SourceStates<T>* sources)
    : model_(model),
      design_(model.design),
      masks_(masks),
      settings_(settings),
      batch_(batch),
      request_(request),
      observer_(observer),
      chunk_(chunk),
      cache_(cache),
      sources_(sources),
      memory_(PassMemory<T>::own().layer) {
  const auto rows = [&](const std::vector<Index>& all) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(chunk_.first_row);
    return std::vector<Index>(first, first + static_cast<std::ptrdiff_t>(chunk_.rows));
  };
  content_.begins = chunk_.begins;
  content_.positions = rows(batch_.positions);
  if (!batch_.segments.empty()) content_.segments = rows(batch_.segments);
  content_.text_lengths = text_lengths(design_, content_);
  if (cache_ != nullptr) {
    cached_ = cache_->whole(chunk_.first_sequence, content_);
    added_ = last_rows(cached_, content_);
    return;
  }
  choose_flow();
}

template <class T>
void Pass<T>::choose_flow() {
  StreamKind kind = StreamKind::kSelectedRows;
  const bool convolved = design_.convolution_size > 0;  // reads neighbours
  if (!batch_.query_masks.empty()) {
    flow_ = StreamFlow::kTwoStreams;
    kind = StreamKind::kQuery;
  } else if (design_.streams == Streams::kTowers) {
    flow_ = StreamFlow::kTowers;
    static_cast<StreamRows&>(selected_) = content_;
    return;
  } else if (settings_.reads_own_layers()) {
    const Index last = design_.num_hidden_layers - 1;
    const bool all = model_.mixer != nullptr ||
                     design_.variants.previous_scores != PreviousScores::kNone ||
                     (last >= 0 && !model_.layer(last).convolution.empty());
    ends_narrow_ = last >= 0 && !shows() && !all && std::ssize(chunk_.wanted) < content_.count();
    if (!ends_narrow_) return;
  } else {
    flow_ = StreamFlow::kSeparateQueries;
    // With fixed keys no row reads another row's states.
    const bool some = fixed_keys() && !shows() && !convolved && !acts_on_input() &&
                      model_.mixer == nullptr;  // which gives all rows at once
    if (!some) {
      static_cast<StreamRows&>(selected_) = content_;
      return;
    }
  }
  static_cast<StreamRows&>(selected_) =
      selected_rows(content_, kind, chunk_.wanted, chunk_.wanted_begins);
}

template <class T>
std::span<const TokenId> Pass<T>::content_ids() const {
  return std::span(batch_.ids)
      .subspan(static_cast<std::size_t>(chunk_.first_row), static_cast<std::size_t>(chunk_.rows));
}

template <class T>
MatrixView<const T> Pass<T>::matrix(Role role, Index l) const {
  switch (role) {
    case Role::kQueryStart: return model_.query_start.view;
    case Role::kLatePositions: return model_.late_positions.view;
    case Role::kGatedGamma: return model_.layer(l).gated_gamma.view;
    case Role::kGatedBeta: return model_.layer(l).gated_beta.view;
    case Role::kAttentionScale: return model_.layer(l).attention_scale.view;
    case Role::kFeedForwardScale: return model_.layer(l).feed_forward_scale.view;
    case Role::kAttentionResidual: return model_.layer(l).attention_residual.view;
    case Role::kFeedForwardResidual: return model_.layer(l).feed_forward_residual.view;
    case Role::kHeadScale: return model_.layer(l).head_scale.view;
    case Role::kLatentInput: return model_.layer(l).latent_input.view;
    case Role::kLatentOutput: return model_.layer(l).latent_output.view;
    default: break;
  }
  check_failed("a role that forward.hpp names", __FILE__, __LINE__);
}

template <class T>
EmbeddingTables<T> Pass<T>::tables() const {
  return {model_.word_table.view, model_.segment_table.view, model_.position_table.view,
          model_.word_table.rows.get()};
}

template <class T>
void Pass<T>::replace_words(const Stream& /*stream*/, MatrixView<T> x) const {
  if (given_.data != nullptr) kernel::copy_rows<T>(given_, x);
}

template <class T>
void Pass<T>::detect(MatrixView<const T> e, MatrixView<T> logits) const {
  const PreparedModel<T>& detector = *model_.detector;
  Chunk all = chunk_;
  all.wanted.resize(static_cast<std::size_t>(all.rows));
  std::iota(all.wanted.begin(), all.wanted.end(), Index{0});
  all.wanted_begins = all.begins;
  // One for all layers (settings_of), the model's own or another.
  const PassSettings settings{
      .normalizers = {static_cast<std::size_t>(detector.design.num_hidden_layers),
                      settings_.normalizers.front()}};
  const Request nothing;
  Pass<T> pass(detector, *settings_.detector_masks, settings, batch_, nothing, nullptr, all,
               nullptr);
  pass.given_ = e;
  Matrix<T> last(all.rows, detector.design.hidden_size);
  pass.run(last.view());
  detector.head().decoder.forward(last.view(), logits);
}

template <class T>
void Pass<T>::show_detections() const {
  if (!request_.detections || observer_ == nullptr) return;
  for (Index s = 0; s < chunk_.sequences(); ++s) {
    const auto rows = std::as_const(soft_mask_.probabilities)
                          .view()
                          .middle_rows(content_.begin(s), content_.count(s));
    note_overflow(rows);
    observer_->detections(chunk_.first_sequence + s, rows);
  }
}

template <class T>
std::span<const double> Pass<T>::given_latent(Index l, Index s) const {
  if (batch_.latents.empty()) return {};
  const std::span<const double> all =
      batch_.latents[static_cast<std::size_t>(chunk_.first_sequence + s)];
  if (all.empty()) return {};
  const auto size = static_cast<std::size_t>(design_.variants.latent->size);
  return all.subspan(static_cast<std::size_t>(l - first_latent_layer(design_)) * size, size);
}

template <class T>
void Pass<T>::show_latents(Index l) const {
  if (!request_.latents || observer_ == nullptr) return;
  for (Index s = 0; s < chunk_.sequences(); ++s) {
    if (content_.count(s) == 0 || !has_first_row(s)) continue;
    const auto point = std::as_const(latent_.means).view().middle_rows(s, 1);
    note_overflow(point);
    observer_->latents(chunk_.first_sequence + s, l, point);
  }
}

template <class T>
void Pass<T>::note_overflow(MatrixView<const T> rows) const {
  for (Index i = 0; i < rows.rows; ++i) {
    if (first_not_finite(rows.row_span(i))) overflowed_.store(true, std::memory_order_relaxed);
  }
}

template <class T>
void Pass<T>::show_states(Index state, const Stream& stream) const {
  if (!request_.hidden_states || observer_ == nullptr) return;
  const bool towers = flow_ == StreamFlow::kTowers;
  const bool last =
      state == design_.num_hidden_layers || (towers && state == tower_layers(design_));
  Matrix<T> normed;
  MatrixView<const T> x = stream.x.view();
  if (last && model_.final_norm.present()) {
    normed.resize(x.rows, x.columns);
    model_.final_norm.forward(x, normed.view());
    x = normed.view();
  }
  Matrix<T> moved;
  if (towers && state > 0) {
    moved = Matrix<T>::zero(x.rows, x.columns);
    for (Index s = 0; s < chunk_.sequences(); ++s) {
      const Index n = stream.count(s);
      if (n < 2) continue;
      const bool first = &stream == &content_;
      const Index begin = stream.begin(s);
      kernel::copy_rows<T>(x.middle_rows(begin + (first ? 0 : 1), n - 1),
                           moved.view().middle_rows(begin + (first ? 1 : 0), n - 1));
    }
    x = moved.view();
  }
  for (Index s = 0; s < chunk_.sequences(); ++s) {
    const auto rows = x.middle_rows(stream.begin(s), stream.count(s));
    note_overflow(rows);
    if (stream.kind == StreamKind::kQuery) {
      observer_->query_states(chunk_.first_sequence + s, state, rows);
    } else {
      observer_->hidden_states(chunk_.first_sequence + s, state, rows);
    }
  }
}

template <class T>
void Pass<T>::run(MatrixView<T> last) {
  if (model_.detector != nullptr) static_cast<StreamRows&>(masked_) = content_;
  // A scheme that acts on the input may read neighbours, as a detector does.
  // The bottleneck of a first layer changes some of them, and token dropout goes by the whole text.
  if (!acts_on_input() && given_.data == nullptr && model_.detector == nullptr &&
      first_latent_layer(design_) > 0 && design_.token_dropout == 0)
    repeats_ = Repeats(content_ids(), content_.positions, content_.segments);
  streams_forward(*this, last);
  PassMemory<T>::own().shrink();
}

// What inference computes of a layer in its own way: products for rows that repeat, keys and values
// that two streams share, mixers.

namespace {

// Rows that go through both products of a feed-forward layer before the next.
constexpr Index kPanelRows = 128;
constexpr Index kSharedPanelRows = 512;

}  // namespace

template <class T>
Index Pass<T>::panel_rows() const {
  return kernel::threads() > 1 ? kSharedPanelRows : kPanelRows;
}

template <class T>
void Pass<T>::project(const kernel::Linear<T>& linear, Index layer, const Stream& stream,
                      MatrixView<const T> x, MatrixView<T> y) const {
  if (layer == 0 && &stream == &content_ && repeats_.pay()) {
    repeats_.forward(linear, x, y);
  } else {
    linear.forward(x, y);
  }
}

template <class T>
Projected<T> Pass<T>::project(Index l, const Stream& stream, const Stream& source,
                              MatrixView<const T> input, MatrixView<const T> source_input) {
  const PreparedLayer<T>& weights = model_.layer(l);
  Projected<T> projected;
  projected.query = resized(memory_.projected, input.rows, weights.query.outputs());
  project(weights.query, l, stream, input, projected.query);
  projected.made = keys_layer_ != l;
  keys_layer_ = l;
  if (projected.made) {
    project(weights.key_value, l, source, source_input,
            resized(memory_.source_projected, source_input.rows, weights.key_value.outputs()));
  }
  const MatrixView<T> both = memory_.source_projected.view();
  const Index key_width = design_.num_key_value_heads * design_.head_size;
  projected.key = both.middle_columns(0, key_width);
  projected.value = both.middle_columns(key_width, both.columns - key_width);
  return projected;
}

template <class T>
void Pass<T>::project_distances(Index l, const Stream& /*stream*/) {
  // DeBERTa's are made when the weights are prepared.
  if (design_.position != PositionType::kXlnet) return;
  const kernel::Linear<T>& relative = model_.layer(l).relative;
  if (distances_.waves.rows() == 0)
    distances_ = xlnet_distances<T>(design_, content_.positions, content_.begins, model_.path);
  relative.forward(distances_.waves.view(),
                   resized(memory_.distance_keys, distances_.waves.rows(), relative.outputs()));
}

template <class T>
void Pass<T>::mix(Index l, const Stream& stream, MatrixView<const T> x, MatrixView<T> context) {
  const auto& maps = blocks(l, stream);
  nn::MixerProblem<T> problem;
  problem.shape = model_.mixer_shape;
  problem.parameters = model_.layer(l).mixer.views;
  for (Index s = 0; s < stream.sequences(); ++s) {
    if (stream.count(s) == 0) continue;
    problem.x = x.middle_rows(stream.begin(s), stream.count(s));
    problem.blocks = maps[static_cast<std::size_t>(s)].get();
    model_.mixer->forward(problem, context.middle_rows(stream.begin(s), stream.count(s)));
  }
}

template <class T>
std::unique_ptr<nn::PositionTerms<T>> Pass<T>::input_terms(const Stream& stream,
                                                           Index sequence) const {
  nn::PositionProblem<T> problem;
  problem.shape = model_.scheme_shape;
  problem.parameters = model_.shared_position.views;
  const auto where = of_sequence(stream.positions, stream.begins, sequence);
  problem.positions = {where, where};
  return model_.scheme->terms(problem);
}

// The attention of a layer, sequence by sequence.

namespace {

/// Keys that each query of a head may read.
std::vector<Index> visible_of(const mask::BlockMap* blocks, Index queries, Index keys) {
  std::vector<Index> visible(static_cast<std::size_t>(queries), keys);
  for (Index i = 0; i < queries && blocks != nullptr; ++i)
    visible[static_cast<std::size_t>(i)] = blocks->visible(i);
  return visible;
}

}  // namespace

template <class T>
const std::vector<std::shared_ptr<const mask::BlockMap>>& Pass<T>::blocks(
    Index layer, const StreamRows& stream) {
  const auto& given = stream.kind == StreamKind::kQuery ? batch_.query_masks : batch_.masks;
  std::span<const std::optional<mask::Mask>> own = given;
  if (!own.empty()) own = own.subspan(static_cast<std::size_t>(chunk_.first_sequence));
  return masks_of_streams_.blocks(masks_, layer, stream, read_rows(), own, {},
                                  batch_.masks_join ? OwnMask::kJoins : OwnMask::kReplaces);
}

template <class T>
std::unique_ptr<nn::PositionTerms<T>> Pass<T>::terms(Index layer, const StreamRows& stream,
                                                     Index sequence,
                                                     std::vector<Index>& counted) const {
  if (!has_position_terms(design_) || !model_.has_position[static_cast<std::size_t>(layer)])
    return nullptr;
  const PreparedLayer<T>& weights = model_.layer(layer);
  PositionInputs<T> in;
  set_rows(stream, read_rows(), sequence, static_cast<bool>(model_.position_table), counted, in);
  // A scheme that acts on the input has no terms.
  if (model_.scheme && !model_.scheme_facts.input) in.scheme = model_.scheme.get();
  in.shape = model_.scheme_shape;
  in.parameters = model_.position_is_shared ? model_.shared_position.views : weights.position.views;
  in.blocks = masks_.sparse();
  in.table = model_.relative_table.view;
  in.first_distance = distances_.first;
  in.xlnet.relative = memory_.distance_keys.view();
  in.xlnet.content_bias = weights.content_bias.view;
  in.xlnet.position_bias = weights.position_bias.view;
  in.xlnet.segment_bias = weights.segment_bias.view;
  in.xlnet.segment_table = weights.segment_table.view;
  in.disentangled.position_key = weights.position_key.view();
  in.disentangled.position_query = weights.position_query.view();
  return position_terms(design_, in);
}

template <class T>
nn::AttentionProblem<T> Pass<T>::problem_of(Index layer, const StreamRows& stream,
                                            const HeadSizes& heads, const Projected<T>& projected,
                                            Index sequence) const {
  if (cache_ == nullptr)
    return attention_problem(design_, layer, heads, stream, content_, sequence, projected);
  const Index number = chunk_.first_sequence + sequence;
  return attention_problem<T>(
      design_, layer, heads,
      projected.query.middle_rows(stream.begin(sequence), stream.count(sequence)),
      cache_->keys(layer, number), cache_->values(layer, number));
}

template <class T>
void Pass<T>::attend_sequence(Index layer, const StreamRows& stream, const HeadSizes& heads,
                              const Projected<T>& projected, Index sequence,
                              const mask::BlockMap* blocks, MatrixView<T> context) {
  const Index queries = stream.count(sequence);
  const Index keys = read_rows().count(sequence);
  if (queries == 0) return;
  std::vector<Index> counted;
  const std::unique_ptr<nn::PositionTerms<T>> terms = this->terms(layer, stream, sequence, counted);
  nn::AttentionProblem<T> problem = problem_of(layer, stream, heads, projected, sequence);
  problem.normalizer = settings_.normalizers[static_cast<std::size_t>(layer)].get();
  if (terms) problem.bias = terms->bias();
  Matrix<T> moved_query, moved_key;
  if (terms && model_.scheme_facts.query_key) {
    moved_query = Matrix<T>::copy(problem.query);
    moved_key = Matrix<T>::copy(problem.key);
    terms->query_key(moved_query.view(), moved_key.view());
    problem.query = moved_query.view();
    problem.key = moved_key.view();
  }
  problem.blocks = blocks;
  const PreparedLayer<T>& weights = model_.layer(layer);
  const std::optional<double> offset = problem.normalizer->offset_of_learned();
  if (offset && weights.score_scale) {
    if (moved_query.rows() == 0) moved_query = Matrix<T>::copy(problem.query);
    scale_queries<T>(weights.score_scale.view, *offset, blocks, keys, moved_query.view());
    problem.query = moved_query.view();
    problem.normalizer = nn::find_normalizer("softmax");
  }
  problem.bf16 = model_.precision == kernel::Precision::kBf16;
  if (design_.sinks) problem.sinks = weights.sinks.span();
  const bool mean = override_of(layer) == AttentionOverride::kMean;
  if (mean) {
    // Queries of zeros give every key the same score; without Λ each head of values needs one.
    if (heads.value_heads > 0) {
      problem.num_heads = problem.num_key_value_heads = heads.value_heads;
      moved_key = Matrix<T>::zero(keys, heads.value_heads);
      problem.key = moved_key.view();
    }
    moved_query =
        Matrix<T>::zero(queries, heads.value_heads > 0 ? heads.value_heads : problem.query.columns);
    problem.query = moved_query.view();
    problem.bias = nullptr;
    problem.sinks = {};
    problem.normalizer = nn::find_normalizer("softmax");
  }
  nn::WeightsVisitor<T> visit;
  Matrix<T> log_divisors;
  Matrix<T> scores;
  std::vector<std::vector<Index>> visible;  // one for all heads, or one a head
  if (request_.attentions && observer_ != nullptr && stream.kind != StreamKind::kQuery) {
    if (request_.attention_rows) {
      log_divisors = Matrix<T>(heads.heads, queries);
      if (request_.attention_scores) scores = Matrix<T>(heads.heads * queries, keys);
      const Index most = mean ? 0 : design_.variants.largest_keys;
      const Index different = blocks == nullptr ? 1 : std::max<Index>(blocks->heads(), 1);
      for (Index head = 0; head < different; ++head) {
        visible.push_back(visible_of(mask::blocks_of_head(blocks, head), queries, keys));
        for (Index& count : visible.back()) count = most > 0 ? std::min(count, most) : count;
      }
    }
    problem.log_divisors = log_divisors.view();
    problem.scores = scores.view();
    visit = [&, number = chunk_.first_sequence + sequence](Index head, MatrixView<const T> seen) {
      if (request_.attention_rows) {
        const std::size_t own = visible.size() == 1 ? 0 : static_cast<std::size_t>(head);
        AttentionRows<T> rows{log_divisors.view().row_span(head), visible[own], {}};
        if (!problem.scores.empty())
          rows.scores = problem.scores.middle_rows(head * queries, queries);
        observer_->attention_rows(number, layer, head, rows);
      }
      note_overflow(seen);
      observer_->attention(number, layer, head, seen);
    };
  }
  const MatrixView<T> out = context.middle_rows(stream.begin(sequence), queries);
  if (model_.materialized_attention && !mean) {
    return attend_materialized(layer, stream, sequence, problem, terms.get(), out, visit);
  }
  evaluate(problem, out, visit);
}

template <class T>
void Pass<T>::evaluate(const nn::AttentionProblem<T>& problem, MatrixView<T> out,
                       const nn::WeightsVisitor<T>& visit) const {
  // With a cache the others of a text's rows were evaluated before: rounding differs anyway.
  if (cache_ != nullptr && !visit && nn::fits_row_attention(problem))
    return nn::row_attention(problem, out);
  nn::evaluate_attention(nn::choose_evaluation(problem.key.rows), problem, out, visit);
}

template <class T>
void Pass<T>::attend_materialized(Index layer, const StreamRows& stream, Index sequence,
                                  const nn::AttentionProblem<T>& problem,
                                  nn::PositionTerms<T>* terms, MatrixView<T> context,
                                  const nn::WeightsVisitor<T>& visit) {
  const PreparedLayer<T>& weights = model_.layer(layer);
  std::vector<Matrix<T>>& before = previous_.at(stream.kind)[static_cast<std::size_t>(sequence)];
  std::vector<MatrixView<const T>> previous;
  previous.reserve(before.size());
  for (const Matrix<T>& scores : before) previous.push_back(scores.view());
  nn::MaterializedSaved<T> saved;
  nn::materialized_attention_forward<T>(
      materialized_attention<T>(design_, problem, weights.talking_before.view,
                                weights.talking_after.view, previous, terms),
      context, &saved);
  for (std::size_t head = 0; visit && head < saved.weights.size(); ++head)
    visit(static_cast<Index>(head), saved.weights[head].view());
  if (design_.variants.previous_scores != PreviousScores::kNone) before = std::move(saved.scores);
}

template <class T>
void Pass<T>::attend(Index layer, const Stream& stream, const Stream& /*source*/,
                     const HeadSizes& heads, const Projected<T>& projected, MatrixView<T> context) {
  const StreamRows& own = stream;
  const StreamRows& queries = cache_ != nullptr ? std::as_const(added_) : own;
  const auto& maps = blocks(layer, queries);
  previous_[stream.kind].resize(static_cast<std::size_t>(stream.sequences()));
  const auto work = [&](Index s) {
    if (cache_ != nullptr) {
      const Index first = stream.begin(s), count = stream.count(s);
      cache_->put(layer, chunk_.first_sequence + s, projected.key.middle_rows(first, count),
                  projected.value.middle_rows(first, count));
    }
    attend_sequence(layer, queries, heads, projected, s, maps[static_cast<std::size_t>(s)].get(),
                    context);
  };
  each_sequence(work);
}

template <class T>
template <class Work>
void Pass<T>::each_sequence(const Work& work) const {
  // A few long sequences are split inside, by heads.
  if (chunk_.sequences() >= Index{2} * kernel::threads()) {
    kernel::parallel_items(chunk_.sequences(), work);
  } else {
    for (Index s = 0; s < chunk_.sequences(); ++s) work(s);
  }
}

template <class T>
void Pass<T>::read_source(Index l, const Stream& stream, MatrixView<const T> input,
                          MatrixView<T> context) {
  const PreparedLayer<T>& weights = model_.layer(l);
  const HeadSizes heads = head_sizes(design_);
  const Index key_width = heads.key_heads * heads.head_size;
  const MatrixView<T> query =
      resized(memory_.projected, input.rows, weights.source_query.outputs());
  weights.source_query.forward(input, query);
  MatrixView<T> both;
  const auto own_rows = [&](Index s) {
    const auto at = [&](Index i) { return sources_->begins[static_cast<std::size_t>(i)]; };
    const Index first = chunk_.first_sequence;
    return both.middle_rows(at(first + s) - at(first), at(first + s + 1) - at(first + s));
  };
  if (sources_ != nullptr) {
    const auto first = static_cast<std::size_t>(chunk_.first_sequence);
    const Index begin = sources_->begins[first];
    const Index rows =
        sources_->begins[first + static_cast<std::size_t>(chunk_.sequences())] - begin;
    both = resized(memory_.source_projected, rows, weights.source_key_value.outputs());
    weights.source_key_value.forward(sources_->states.view().middle_rows(begin, rows), both);
  }
  each_sequence([&](Index s) {
    const Index number = chunk_.first_sequence + s;
    MatrixView<const T> key, value;
    if (sources_ != nullptr) {
      key = own_rows(s).middle_columns(0, key_width);
      value = own_rows(s).middle_columns(key_width, both.columns - key_width);
      if (cache_ != nullptr) cache_->put_source(l, number, key, value);
    } else {
      key = cache_->source_keys(l, number);
      value = cache_->source_values(l, number);
    }
    if (stream.count(s) == 0) return;
    const auto own = [&](MatrixView<T> x) {
      return x.middle_rows(stream.begin(s), stream.count(s));
    };
    nn::AttentionProblem<T> problem =
        attention_problem<T>(design_, l, heads, own(query), key, value);
    problem.normalizer = settings_.normalizers[static_cast<std::size_t>(l)].get();
    problem.bf16 = model_.precision == kernel::Precision::kBf16;
    nn::WeightsVisitor<T> visit;
    if (request_.source_attentions && observer_ != nullptr) {
      visit = [&, number](Index head, MatrixView<const T> seen) {
        note_overflow(seen);
        observer_->source_attention(number, l, head, seen);
      };
    }
    evaluate(problem, own(context), visit);
  });
}

template void Repeats::forward(const kernel::Linear<float>&, MatrixView<const float>,
                               MatrixView<float>) const;
template void Repeats::forward(const kernel::Linear<double>&, MatrixView<const double>,
                               MatrixView<double>) const;

template class Pass<float>;
template class Pass<double>;

}  // namespace masque::model
