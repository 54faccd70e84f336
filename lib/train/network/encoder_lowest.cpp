// How deep the backward pass goes.
#include <algorithm>
#include <complex>
#include <vector>

#include "train/network/encoder.hpp"
#include "train/network/network_part.hpp"

namespace masque::train {

namespace {

/// The lowest layer with these weights, which layers may share; their number: none has.
Index lowest_layer(const model::Design& design, Index weights) {
  Index layer = 0;
  while (layer < design.num_hidden_layers &&
         design.layers[static_cast<std::size_t>(layer)].weights != weights)
    ++layer;
  return layer;
}

}  // namespace

template <class T>
void Encoder<T>::find_lowest() {
  const bool input = scheme_ != nullptr && scheme_->facts().input;
  learns_ = learns_embeddings_ = false;
  lowest_ = design_.num_hidden_layers;
  map_.for_each([&](model::Role role, bool, Index layer, Index, Index parameter) {
    const NetworkPart part = network_part(role);
    if (!(*parameters_)[parameter].trained || part == NetworkPart::kHead) return;
    learns_ = true;
    const bool position =
        role == model::Role::kPositionPart || role == model::Role::kSharedPositionPart;
    if (part == NetworkPart::kEmbeddings || (position && input)) {
      learns_embeddings_ = true;
    } else if (part == NetworkPart::kAllLayers) {
      lowest_ = 0;
    } else if (part == NetworkPart::kLayers) {
      lowest_ = std::min(lowest_, lowest_layer(design_, layer));
    }
  });
  learns_detector_ = detector_ && any_trained(map_.detector(), *parameters_);
  learns_ = learns_ || learns_detector_;
}

template <class T>
std::vector<Index> Encoder<T>::last_layers() const {
  constexpr Index kAfterAll = -1;
  const Index layers = design_.num_hidden_layers;
  std::vector<Index> last(static_cast<std::size_t>(parameters_->count()), layers);
  const auto at_most = [&](Index parameter, Index layer) {
    Index& own = last[static_cast<std::size_t>(parameter)];
    own = std::min(own, layer);
  };
  map_.for_each([&](model::Role role, bool, Index layer, Index, Index parameter) {
    const NetworkPart part = network_part(role);
    if (part == NetworkPart::kHead || part == NetworkPart::kEnd) return;
    // A position scheme may act on the embeddings, and the divergence of latents comes last.
    const bool own = part == NetworkPart::kLayers && role != model::Role::kPositionPart &&
                     role != model::Role::kLatentKappa;
    at_most(parameter, own ? lowest_layer(design_, layer) : kAfterAll);
  });
  if (detector_) {
    map_.detector().for_each(
        [&](model::Role, bool, Index, Index, Index parameter) { at_most(parameter, kAfterAll); });
  }
  return last;
}

template std::vector<Index> Encoder<float>::last_layers() const;
template std::vector<Index> Encoder<double>::last_layers() const;
template std::vector<Index> Encoder<std::complex<double>>::last_layers() const;

template void Encoder<float>::find_lowest();
template void Encoder<double>::find_lowest();
template void Encoder<std::complex<double>>::find_lowest();

}  // namespace masque::train
