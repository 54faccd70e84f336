// Transformer-XL's memory: gradients that stop at the states of earlier blocks.
#include <algorithm>
#include <complex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

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

template void Encoder<float>::stop_at_blocks(Index);
template void Encoder<double>::stop_at_blocks(Index);
template void Encoder<std::complex<double>>::stop_at_blocks(Index);
template std::vector<Index> EncoderRun<float>::block_begins(const Stream&, const Stream&,
                                                            Index) const;
template std::vector<Index> EncoderRun<double>::block_begins(const Stream&, const Stream&,
                                                             Index) const;
template std::vector<Index> EncoderRun<std::complex<double>>::block_begins(const Stream&,
                                                                           const Stream&,
                                                                           Index) const;
template void EncoderRun<float>::earlier_backward(Index, MatrixView<const float>,
                                                  MatrixView<const float>);
template void EncoderRun<double>::earlier_backward(Index, MatrixView<const double>,
                                                   MatrixView<const double>);

}  // namespace masque::train
