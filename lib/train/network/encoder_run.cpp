#include "train/network/encoder_run.hpp"

#include <algorithm>
#include <complex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/dropout.hpp"
#include "kernel/embedding.hpp"
#include "model/forward/streams_forward.hpp"

namespace masque::train {

NameTable<Recompute> recompute_names() {
  static constexpr std::array<std::pair<std::string_view, Recompute>, 3> kNames{
      {{"auto", Recompute::kAuto}, {"on", Recompute::kOn}, {"off", Recompute::kOff}}};
  return kNames;
}

template <class T>
void Encoder<T>::set_recompute(Recompute recompute) {
  if (recompute == Recompute::kOn && materialized_) {
    throw UsageError(
        fmt::format("{} on cannot be combined with talking heads, largest keys, previous scores "
                    "or diversity, which need the weights of all heads at once; use off",
                    field("recompute")));
  }
  recompute_ = recompute;
  if (detector_) detector_->encoder.set_recompute(recompute);
}

template <class T>
void Encoder<T>::forward(const ExampleChunk& chunk, const DropoutOptions& dropout, Tape<T>& tape,
                         MatrixView<T> last) const {
  if (block_size_ > 0) check_block_places(chunk);
  EncoderRun<T>(*this, chunk, dropout, tape).forward(last);
}

template <class T>
void Encoder<T>::backward(const ExampleChunk& chunk, const DropoutOptions& dropout, Tape<T>& tape,
                          MatrixView<const T> d_last) const {
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    if (!learns_ && (chunk.given.empty() || !tape.wants_given)) return;
    EncoderRun<T>(*this, chunk, dropout, tape).backward(d_last);
  } else {
    MASQUE_CHECK(false);
  }
}

template <class T>
EncoderRun<T>::EncoderRun(const Encoder<T>& encoder, const ExampleChunk& chunk,
                          const DropoutOptions& dropout, Tape<T>& tape)
    : encoder_(encoder), design_(encoder.design_), chunk_(chunk), dropout_(dropout), tape_(tape) {}

template <class T>
model::StreamFlow EncoderRun<T>::flow() const {
  return fixed_keys()    ? model::StreamFlow::kSeparateQueries
         : two_streams() ? model::StreamFlow::kTwoStreams
         : two_towers()  ? model::StreamFlow::kTowers
                         : model::StreamFlow::kOneStream;
}

template <class T>
bool EncoderRun<T>::recomputes() const {
  if (encoder_.materialized_ || encoder_.recompute_ == Recompute::kOff) return false;
  if (encoder_.recompute_ == Recompute::kOn) return true;
  // What a layer keeps of a row, about: normed states and sums, projections, context, and what the
  // feed-forward layer reads and gives.
  const Index heads = design_.num_attention_heads + 2 * design_.num_key_value_heads;
  Index wide = design_.intermediate_size * (design_.gated ? 3 : 2);
  if (const auto& experts = design_.experts) {
    wide = experts->per_token * (3 * experts->intermediate_size + 2 * design_.hidden_size) +
           3 * experts->shared_intermediate_size;
  }
  const Index of_row = 4 * design_.hidden_size + heads * design_.head_size + wide;
  const double bytes = static_cast<double>(design_.num_hidden_layers) *
                       static_cast<double>(chunk_.rows()) * static_cast<double>(of_row) * sizeof(T);
  return bytes > static_cast<double>(std::uint64_t{2} << 30);
}

template <class T>
void EncoderRun<T>::show_layer(Index l, Stream& stream) const {
  if (tape_.magnitudes == nullptr || two_towers()) return;
  // Of XLNet the queries are asked.
  if (two_streams() && &stream == &tape_.content) return;
  const auto at = static_cast<std::size_t>(l);
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    const ResidualWeights<T> weights{matrix(Role::kAttentionResidual, l),
                                     matrix(Role::kFeedForwardResidual, l)};
    add_magnitudes<T>(design_, l, weights, stream.x[at].view(), stream.x[at + 1].view(),
                      memory(l, stream), (*tape_.magnitudes)[at]);
  }
}

template <class T>
void EncoderRun<T>::make_streams() {
  const auto layers = static_cast<std::size_t>(design_.num_hidden_layers);
  tape_.recomputes = recomputes();
  for (Stream* stream : {&tape_.content, &tape_.selected}) {
    stream->x.resize(layers + 1);
    stream->layers.resize(tape_.recomputes ? std::min<std::size_t>(1, layers) : layers);
  }
  tape_.masks.clear();
  tape_.rotary.clear();
  Stream& content = tape_.content;
  content.begins = chunk_.begins;
  content.positions = chunk_.positions;
  content.segments = chunk_.segments;
  content.text_lengths = model::text_lengths(design_, content);
  content.ids = chunk_.ids;
  if (encoder_.detector_) {
    static_cast<model::StreamRows&>(masked()) = content;
    masked().ids.assign(chunk_.ids.size(), mask_token());
    masked().x.resize(1);
  }
  const bool fewer = std::ssize(chunk_.wanted) < chunk_.rows();
  // Of the last layer only the requested rows are computed.
  const bool narrow_end = design_.streams == model::Streams::kOne && fewer &&
                          encoder_.mixer_ == nullptr && !encoder_.materialized_ && layers > 0 &&
                          layer(static_cast<Index>(layers) - 1).convolution.empty();
  tape_.split = fixed_keys() || two_streams() || two_towers() || narrow_end;
  if (!tape_.split) return;
  Stream& query = tape_.selected;
  const bool mixes = encoder_.mixer_ != nullptr;
  if (two_towers() || (fixed_keys() && mixes)) {
    static_cast<model::StreamRows&>(query) = content;
    query.ids.clear();
    if (fixed_keys()) query.ids.assign(chunk_.ids.size(), mask_token());
    return;
  }
  const auto kind = two_streams() ? model::StreamKind::kQuery : model::StreamKind::kSelectedRows;
  static_cast<model::StreamRows&>(query) =
      model::selected_rows(content, kind, chunk_.wanted, chunk_.wanted_begins);
  query.ids.clear();
  if (fixed_keys()) query.ids.assign(query.rows.size(), mask_token());
}

template <class T>
void EncoderRun<T>::forward(MatrixView<T> last) {
  make_streams();
  make_latents();
  tape_.diversity = {};
  make_distances();
  model::streams_forward(*this, last);
}

template <class T>
void EncoderRun<T>::part_towers(MatrixView<const T> d_last) {
  const Index width = design_.hidden_size;
  Matrix<T>& d_states = tape_.d_state;
  d_states = Matrix<T>::zero(d_last.rows, d_last.columns);
  for (const Index column : {Index{0}, width}) {
    const MatrixView<const T> d_normed = d_last.middle_columns(column, width);
    const MatrixView<T> d = d_states.view().middle_columns(column, width);
    if (design_.final_norm) {
      encoder_.final_norm_.backward(tape_.last.view().middle_columns(column, width), d_normed, d);
    } else {
      kernel::add_to<T>(d_normed, d);
    }
  }
  const auto add = [&](const T* from, MatrixView<T> to, Index row) {
    for (Index c = 0; row >= 0 && c < width; ++c) to.at(row, c) += from[c];
  };
  model::forward::for_each_tower_row(wanted(), tape_.content.begins,
                                     [&](Index k, Index before, Index after) {
                                       const T* d = d_states.view().row(k);
                                       add(d, tape_.d_content.view(), before);
                                       add(d + width, tape_.d_query.view(), after);
                                     });
}

template <class T>
void EncoderRun<T>::backward(MatrixView<const T> d_last) {
  tape_.magnitudes = nullptr;  // layers that are computed once more are not counted again
  Stream& content = tape_.content;
  Stream& query = tape_.selected;
  const Index width = design_.hidden_size;
  const auto fill_zero = [](Matrix<T>& m, Index rows, Index columns) {
    m.resize(rows, columns);
    zero_rows<T>(m.view());
  };
  fill_zero(tape_.d_content, content.count(), width);
  if (tape_.split) fill_zero(tape_.d_query, query.count(), width);
  if (two_towers()) {
    part_towers(d_last);
  } else {
    Matrix<T>& d_last_states = tape_.d_state;
    d_last_states = Matrix<T>::zero(d_last.rows, width);
    if (design_.final_norm) {
      encoder_.final_norm_.backward(tape_.last.view(), d_last, d_last_states.view());
    } else {
      kernel::add_to<T>(d_last, d_last_states.view());
    }
    if (tape_.split && query.kind != model::StreamKind::kContent) {
      kernel::add_to<T>(d_last_states.view(), tape_.d_query.view());
    } else {
      Matrix<T>& d_rows = tape_.split ? tape_.d_query : tape_.d_content;
      kernel::embedding_backward<T, Index>(chunk_.wanted, d_last_states.view(), d_rows.view());
    }
  }
  if (tape_.distances.rows() > 0)
    fill_zero(tape_.d_distances, tape_.distances.rows(), tape_.distances.columns());
  const bool further = encoder_.learns_embeddings_ || encoder_.learns_detector_ ||
                       (tape_.wants_given && !chunk_.given.empty());
  if (tape_.passed) tape_.passed(design_.num_hidden_layers);
  backward_layers(further ? 0 : encoder_.lowest_);
  distances_backward();
  if (!further) return;
  if (encoder_.detector_) return soft_mask_backward(d_last);
  if (fixed_keys()) embed_backward(query, tape_.d_query.view());
  // Both towers begin with the same embeddings.
  if (two_towers()) kernel::add_to<T>(tape_.d_query.view(), tape_.d_content.view());
  if (two_streams()) {
    const std::span<T> start = vector_gradient(encoder_.map_.weight(Role::kQueryStart));
    for (Index i = 0; i < query.count(); ++i) {
      for (std::size_t c = 0; c < start.size(); ++c)
        start[c] += tape_.d_query.view().at(i, static_cast<Index>(c));
    }
  }
  embed_backward(content, tape_.d_content.view());
}

template <class T>
void EncoderRun<T>::backward_layers(Index lowest) {
  Stream& content = tape_.content;
  Stream& query = tape_.selected;
  const Index width = design_.hidden_size;
  const auto layers = static_cast<std::size_t>(design_.num_hidden_layers);
  const Index first_latent = model::first_latent_layer(design_);
  Matrix<T> before;
  const auto step = [&](Index l, Stream& stream, Matrix<T>& d, MatrixView<const T> m,
                        MatrixView<T> d_m) {
    before.resize(stream.count(), width);
    zero_rows<T>(before.view());
    const bool own = &stream == &content || two_towers();
    if (tape_.recomputes) model::layer_forward(*this, l, stream, own ? stream : content, m);
    layer_backward(l, stream, own ? stream : content, m, d.view(), before.view(),
                   own ? before.view() : d_m);
    std::swap(before, d);
  };
  const auto layer_step = [&](std::size_t l) {
    const auto number = static_cast<Index>(l);
    if (fixed_keys())
      return step(number, query, tape_.d_query, content.x[0].view(), tape_.d_content.view());
    if (two_towers()) {
      const bool second = number >= model::tower_layers(design_);
      Stream& tower = second ? query : content;
      return step(number, tower, second ? tape_.d_query : tape_.d_content, tower.x[l].view(), {});
    }
    const MatrixView<const T> m = content.x[l].view();
    const bool last = l + 1 == layers;
    if (!(last && tape_.split)) step(number, content, tape_.d_content, m, {});
    if (two_streams() || (last && tape_.split))
      step(number, query, tape_.d_query, m, tape_.d_content.view());
    if (last && tape_.split && !two_streams()) {
      kernel::embedding_backward<T, Index>(query.rows, tape_.d_query.view(),
                                           tape_.d_content.view());
    }
    if (number >= first_latent) latent_backward(number, tape_.d_content.view());
    const Index late = encoder_.map_.weight(Role::kLatePositions);
    if (late == ParameterMap::kNone || number != model::late_position_layer(design_)) return;
    if (const MatrixView<T> table = gradient(late); table.data != nullptr)
      kernel::embedding_backward<T, Index>(content.positions, tape_.d_content.view(), table);
  };
  for (std::size_t l = layers; l-- > static_cast<std::size_t>(lowest);) {
    layer_step(l);
    if (tape_.passed) tape_.passed(static_cast<Index>(l));
  }
}

template <class T>
MatrixView<T> EncoderRun<T>::value(Index parameter) const {
  return parameter == ParameterMap::kNone ? MatrixView<T>()
                                          : encoder_.parameters_->value(parameter);
}

template <class T>
MatrixView<T> EncoderRun<T>::gradient(Index parameter) const {
  return parameter == ParameterMap::kNone ? MatrixView<T>()
                                          : encoder_.parameters_->gradient(parameter);
}

template <class T>
MatrixView<const T> EncoderRun<T>::matrix(Role role, Index l) const {
  const bool once = role == Role::kQueryStart || role == Role::kLatePositions;
  return value(encoder_.map_.weight(role, once ? 0 : weights_of(l)));
}

template <class T>
std::span<T> EncoderRun<T>::vector_gradient(Index parameter) const {
  const MatrixView<T> v = gradient(parameter);
  return {v.data, static_cast<std::size_t>(v.columns)};
}

template <class T>
RandomStream EncoderRun<T>::stream_of(DropoutPlace place, Index l, const Stream& stream) const {
  const bool query = &stream == &tape_.selected;
  return {dropout_.seed, fmt::format("dropout {} {} {}", static_cast<int>(place), l, query ? 1 : 0),
          dropout_.step};
}

template <class T>
template <class Work>
void EncoderRun<T>::for_dropped(DropoutPlace place, Index l, const Stream& stream, MatrixView<T> x,
                                const Work& work) const {
  if (dropout_.hidden_dropout == 0) return;
  const RandomStream random = stream_of(place, l, stream);
  const auto number = [&](Index row) {
    return static_cast<std::uint64_t>((dropout_.first_row + row) * x.columns);
  };
  if (stream.kind == model::StreamKind::kContent) return work(random, number(0), x);
  kernel::for_rows(x.rows, x.columns, [&](Index i) {
    work(random, number(stream.rows[static_cast<std::size_t>(i)]), x.middle_rows(i, 1));
  });
}

template <class T>
void EncoderRun<T>::drop(DropoutPlace place, Index l, const Stream& stream, MatrixView<T> x) const {
  for_dropped(place, l, stream, x,
              [&](const RandomStream& random, std::uint64_t first, MatrixView<T> rows) {
                kernel::dropout_forward<T>(dropout_.hidden_dropout, random, first, rows);
              });
}

template <class T>
void EncoderRun<T>::drop_backward(DropoutPlace place, Index l, const Stream& stream,
                                  MatrixView<T> x) const {
  for_dropped(place, l, stream, x,
              [&](const RandomStream& random, std::uint64_t first, MatrixView<T> rows) {
                kernel::dropout_backward<T>(dropout_.hidden_dropout, random, first, rows);
              });
}

template <class T>
MatrixView<T> EncoderRun<T>::scratch(std::size_t which, Index rows, Index columns) const {
  if (tape_.scratch.size() <= which) tape_.scratch.resize(which + 1);
  tape_.scratch[which].resize(rows, columns);
  return tape_.scratch[which].view();
}

template <class T>
MatrixView<T> EncoderRun<T>::zeros(std::size_t which, Index rows, Index columns) const {
  const MatrixView<T> x = scratch(which, rows, columns);
  zero_rows<T>(x);
  return x;
}

#define MASQUE_INSTANTIATE(T)                                                                 \
  template void Encoder<T>::forward(const ExampleChunk&, const DropoutOptions&, Tape<T>&,     \
                                    MatrixView<T>) const;                                     \
  template void Encoder<T>::backward(const ExampleChunk&, const DropoutOptions&, Tape<T>&,    \
                                     MatrixView<const T>) const;                              \
  template EncoderRun<T>::EncoderRun(const Encoder<T>&, const ExampleChunk&,                  \
                                     const DropoutOptions&, Tape<T>&);                        \
  template void EncoderRun<T>::forward(MatrixView<T>);                                        \
  template MatrixView<T> EncoderRun<T>::value(Index) const;                                   \
  template MatrixView<T> EncoderRun<T>::gradient(Index) const;                                \
  template MatrixView<const T> EncoderRun<T>::matrix(Role, Index) const;                      \
  template std::span<T> EncoderRun<T>::vector_gradient(Index) const;                          \
  template RandomStream EncoderRun<T>::stream_of(DropoutPlace, Index, const Stream&) const;   \
  template void EncoderRun<T>::drop(DropoutPlace, Index, const Stream&, MatrixView<T>) const; \
  template MatrixView<T> EncoderRun<T>::scratch(std::size_t, Index, Index) const;             \
  template MatrixView<T> EncoderRun<T>::zeros(std::size_t, Index, Index) const;
#define MASQUE_INSTANTIATE_BACKWARD(T)                                                          \
  template void EncoderRun<T>::backward(MatrixView<const T>);                                   \
  template void EncoderRun<T>::drop_backward(DropoutPlace, Index, const Stream&, MatrixView<T>) \
      const;
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
