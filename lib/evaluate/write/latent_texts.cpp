#include "evaluate/write/latent_texts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "evaluate/score/length_policy.hpp"
#include "model/variants.hpp"

namespace masque::evaluate {

namespace {

/// Collects points in the order of sequences.
class PointObserver final : public model::Observer {
 public:
  PointObserver(const model::Design& design, Index sequences)
      : first_layer_(model::first_latent_layer(design)),
        size_(design.variants.latent->size),
        points_(static_cast<std::size_t>(sequences)) {
    for (LatentPoints& own : points_)
      own.resize(static_cast<std::size_t>(design.variants.latent->layers * size_));
  }
  void latents(Index sequence, Index layer, MatrixView<const float> point) override {
    take(sequence, layer, point);
  }
  void latents(Index sequence, Index layer, MatrixView<const double> point) override {
    take(sequence, layer, point);
  }

  std::vector<LatentPoints>& points() { return points_; }

 private:
  template <class T>
  void take(Index sequence, Index layer, MatrixView<const T> point) {
    LatentPoints& own = points_[static_cast<std::size_t>(sequence)];
    const auto first = own.begin() + static_cast<std::ptrdiff_t>((layer - first_layer_) * size_);
    std::ranges::copy(point.row_span(0), first);
  }

  Index first_layer_;
  Index size_;
  std::vector<LatentPoints> points_;
};

double length_of(std::span<const double> x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

void normalize_point(std::span<double> x) {
  const double length = length_of(x);
  for (double& value : x) value /= length > 0 ? length : 1;
}

template <class Work>
void for_points(const model::LatentDesign& latent, const Work& work) {
  const auto size = static_cast<std::size_t>(latent.size);
  for (std::size_t m = 0; m < static_cast<std::size_t>(latent.layers); ++m) work(m * size, size);
}

}  // namespace

void check_latents(const model::Design& design) {
  if (!design.variants.latent)
    throw InputError(
        "the model has no latent bottlenecks, expected a model trained with objective univae");
  if (design.head.kind == model::HeadKind::kNone || has_one_number(design.head.kind))
    throw InputError("the model has no vocabulary, expected one to write text with");
}

LatentEncoder::LatentEncoder(const model::Model& model, Index batch_tokens, Sink sink)
    : model_(model), batch_tokens_(batch_tokens), sink_(std::move(sink)) {}

std::optional<std::string> LatentEncoder::length_problem(const Sentence& sentence) const {
  const Index longest = model_.design().max_position_embeddings;
  if (sentence.size() == 0) return "no token, expected at least one";
  if (longest == 0 || sentence.size() <= longest) return std::nullopt;
  return too_long(sentence.size(), longest);
}

void LatentEncoder::add(std::uint64_t id, const Sentence& sentence) {
  if (!ids_.empty() && std::ssize(batch_.ids) + sentence.size() > batch_tokens_) flush();
  batch_.add(sentence.ids);
  ids_.push_back(id);
}

void LatentEncoder::flush() {
  if (ids_.empty()) return;
  PointObserver observer(model_.design(), batch_.sequences());
  model::Request request;
  request.latents = true;
  model_.run(batch_, request, &observer);
  for (std::size_t i = 0; i < ids_.size(); ++i) sink_(ids_[i], std::move(observer.points()[i]));
  batch_ = {};
  ids_.clear();
}

LatentPoints random_points(const model::LatentDesign& latent, std::uint64_t seed,
                           std::uint64_t id) {
  LatentPoints points(static_cast<std::size_t>(latent.layers * latent.size));
  RandomStream(seed, "latent points", id).normal(0, points.size(), points.data());
  for_points(latent, [&](std::size_t first, std::size_t size) {
    normalize_point(std::span(points).subspan(first, size));
  });
  return points;
}

LatentPoints points_between(const model::LatentDesign& latent, const LatentPoints& a,
                            const LatentPoints& b, double share) {
  LatentPoints points(a.size());
  for_points(latent, [&](std::size_t first, std::size_t size) {
    const auto from = std::span(a).subspan(first, size);
    const auto to = std::span(b).subspan(first, size);
    double cosine = std::inner_product(from.begin(), from.end(), to.begin(), 0.0);
    cosine = std::clamp(cosine, -1.0, 1.0);
    const double angle = std::acos(cosine);
    const double sine = std::sin(angle);
    const bool circle = sine > 1e-6;
    const double left = circle ? std::sin((1 - share) * angle) / sine : 1 - share;
    const double right = circle ? std::sin(share * angle) / sine : share;
    for (std::size_t k = 0; k < size; ++k) points[first + k] = left * from[k] + right * to[k];
    if (!circle && cosine < 0) {
      // Of the great circles between opposite points the one through the axis that is farthest.
      std::size_t axis = 0;
      for (std::size_t k = 1; k < size; ++k) {
        if (std::abs(from[k]) < std::abs(from[axis])) axis = k;
      }
      std::vector<double> across(size);
      for (std::size_t k = 0; k < size; ++k) across[k] = (k == axis ? 1 : 0) - from[axis] * from[k];
      normalize_point(across);
      for (std::size_t k = 0; k < size; ++k)
        points[first + k] = std::cos(share * angle) * from[k] + std::sin(share * angle) * across[k];
    }
    normalize_point(std::span(points).subspan(first, size));
  });
  return points;
}

LatentPoints with_point_of(const model::LatentDesign& latent, const LatentPoints& a,
                           const LatentPoints& b, Index bottleneck) {
  LatentPoints points = a;
  const auto first = static_cast<std::ptrdiff_t>(bottleneck * latent.size);
  std::copy_n(b.begin() + first, latent.size, points.begin() + first);
  return points;
}

}  // namespace masque::evaluate
