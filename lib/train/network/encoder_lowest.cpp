// How deep the backward pass goes.
#include <complex>

#include "train/network/encoder.hpp"
#include "train/network/network_part.hpp"

namespace masque::train {

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
      // Layers may share weights.
      Index first = 0;
      while (first < lowest_ && design_.layers[static_cast<std::size_t>(first)].weights != layer)
        ++first;
      lowest_ = first;
    }
  });
  learns_detector_ = detector_ && any_trained(map_.detector(), *parameters_);
  learns_ = learns_ || learns_detector_;
}

template void Encoder<float>::find_lowest();
template void Encoder<double>::find_lowest();
template void Encoder<std::complex<double>>::find_lowest();

}  // namespace masque::train
