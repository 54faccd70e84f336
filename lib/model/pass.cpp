#include "model/pass.hpp"

#include <algorithm>

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
  for (Matrix<T>* matrix : {&normed, &query, &key_value, &context, &attended, &wide, &relative}) {
    if (matrix->rows() * matrix->columns() > kKeptElements) *matrix = Matrix<T>();
  }
}

template <class T>
Pass<T>::Pass(const PreparedModel<T>& model, const LayerMasks& masks, const PassSettings& settings,
              const Batch& batch, const Request& request, Observer* observer, const Chunk& chunk)
    : model_(model),
      design_(model.design),
      masks_(masks),
      settings_(settings),
      batch_(batch),
      request_(request),
      observer_(observer),
      chunk_(chunk),
      normalizer_(settings.normalizer.get()),
      scratch_(PassMemory<T>::own()) {}

template <class T>
void Pass<T>::show_states(Index state, const Stream<T>& stream) const {
  if (!request_.hidden_states || observer_ == nullptr) return;
  const bool last = state == design_.num_hidden_layers;
  Matrix<T> normed;
  MatrixView<const T> x = stream.x.view();
  if (last && model_.final_norm.present) {
    normed.resize(x.rows, x.columns);
    model_.final_norm.forward(x, normed.view());
    x = normed.view();
  }
  for (Index s = 0; s < chunk_.sequences(); ++s) {
    const Index begin = stream.begins[static_cast<std::size_t>(s)];
    const auto rows = x.middle_rows(begin, stream.begins[static_cast<std::size_t>(s) + 1] - begin);
    if (stream.kind == StreamKind::kQuery) {
      observer_->query_states(chunk_.first_sequence + s, state, rows);
    } else {
      observer_->hidden_states(chunk_.first_sequence + s, state, rows);
    }
  }
}

template <class T>
void Pass<T>::run_one_stream(MatrixView<T> last) {
  Stream<T>& x = content_;
  show_states(0, x);
  const Index layers = design_.num_hidden_layers;
  for (Index l = 0; l < layers; ++l) {
    project_keys_values(l, x);
    const bool convolved = !model_.layer(l).convolution.empty();  // reads neighbours
    // Nobody reads the other rows of the last layer.
    if (l + 1 == layers && !shows() && !convolved && !needs_all_rows() &&
        std::ssize(chunk_.wanted) < x.count()) {
      Stream<T> some = wanted_rows(StreamKind::kSelectedRows);
      copy_rows(x, some);
      layer_forward(l, some);
      return finish(some, last);
    }
    layer_forward(l, x);
    show_states(l + 1, x);
  }
  finish(x, last);
}

template <class T>
void Pass<T>::run_fixed_start(MatrixView<T> last) {
  const bool fixed_keys = settings_.keys == mask::KeySource::kInput;
  // With fixed keys no row reads another row's states.
  const bool neighbours = design_.convolution_size > 0 || model_.scheme_facts.input;
  const bool some = fixed_keys && !shows() && !neighbours;
  Stream<T> x = some ? wanted_rows(StreamKind::kSelectedRows) : all_rows();
  if (settings_.query == mask::QueryStart::kPosition) {
    embed(std::vector<TokenId>(static_cast<std::size_t>(x.count()), settings_.mask_token_id), x);
  } else {
    copy_rows(content_, x);
  }
  show_states(0, x);
  for (Index l = 0; l < design_.num_hidden_layers; ++l) {
    project_keys_values(l, l == 0 || fixed_keys ? content_ : x);
    layer_forward(l, x);
    show_states(l + 1, x);
  }
  finish(x, last);
}

template <class T>
void Pass<T>::run_two_streams(MatrixView<T> last) {
  Stream<T> g = wanted_rows(StreamKind::kQuery);
  for (Index i = 0; i < g.count(); ++i) {
    const std::span<const T> start = model_.query_start.span();
    std::copy(start.begin(), start.end(), g.x.view().row(i));
  }
  show_states(0, content_);
  show_states(0, g);
  const Index layers = design_.num_hidden_layers;
  for (Index l = 0; l < layers; ++l) {
    project_keys_values(l, content_);
    layer_forward(l, g);
    show_states(l + 1, g);
    if (l + 1 < layers || shows()) {
      layer_forward(l, content_);
      show_states(l + 1, content_);
    }
  }
  finish(g, last);
}

template <class T>
void Pass<T>::finish(const Stream<T>& stream, MatrixView<T> last) const {
  if (last.rows == 0) return;
  const bool whole = stream.kind == StreamKind::kContent;
  for (Index i = 0; i < last.rows; ++i) {
    const Index row = whole ? chunk_.wanted[static_cast<std::size_t>(i)] : i;
    const auto from = stream.x.view().row_span(row);
    std::copy(from.begin(), from.end(), last.row(i));
  }
  if (model_.final_norm.present) model_.final_norm.forward(last, last);
}

template <class T>
void Pass<T>::run(MatrixView<T> last) {
  content_ = all_rows();
  embed(ids(), content_);
  // A scheme that acts on the input may read neighbours.
  if (!model_.scheme_facts.input) {
    repeats_ = Repeats(ids(), content_.positions, content_.segments);
  }
  if (!batch_.query_masks.empty()) {
    run_two_streams(last);
  } else if (settings_.keys == mask::KeySource::kLayer &&
             settings_.query == mask::QueryStart::kToken) {
    run_one_stream(last);
  } else {
    run_fixed_start(last);
  }
  scratch_.shrink();
}

template Pass<float>::Pass(const PreparedModel<float>&, const LayerMasks&, const PassSettings&,
                           const Batch&, const Request&, Observer*, const Chunk&);
template void Pass<float>::run(MatrixView<float>);
template Pass<double>::Pass(const PreparedModel<double>&, const LayerMasks&, const PassSettings&,
                            const Batch&, const Request&, Observer*, const Chunk&);
template void Pass<double>::run(MatrixView<double>);

}  // namespace masque::model
