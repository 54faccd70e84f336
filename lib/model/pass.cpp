#include "model/pass.hpp"

#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "tensor/finite.hpp"

namespace masque::model {

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
              KeyValues<T>* cache)
    : model_(model),
      design_(model.design),
      masks_(masks),
      settings_(settings),
      batch_(batch),
      request_(request),
      observer_(observer),
      chunk_(chunk),
      cache_(cache),
      memory_(PassMemory<T>::own().layer) {
  const auto rows = [&](const std::vector<Index>& all) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(chunk_.first_row);
    return std::vector<Index>(first, first + static_cast<std::ptrdiff_t>(chunk_.rows));
  };
  content_.begins = chunk_.begins;
  content_.positions = rows(batch_.positions);
  if (!batch_.segments.empty()) content_.segments = rows(batch_.segments);
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
  return {model_.word_table.view, model_.segment_table.view, model_.position_table.view};
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
  // The bottleneck of a first layer changes some of them.
  if (!acts_on_input() && given_.data == nullptr && model_.detector == nullptr &&
      first_latent_layer(design_) > 0)
    repeats_ = Repeats(content_ids(), content_.positions, content_.segments);
  streams_forward(*this, last);
  PassMemory<T>::own().shrink();
}

template class Pass<float>;
template class Pass<double>;

}  // namespace masque::model
