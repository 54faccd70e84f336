// randomized: in training the positions of a sequence are a sorted sample, without replacement, of
// [0, length), which another scheme then sees; so a model meets all distances that it will
// need later. Without a draw positions stay as they are. A sequence longer than `length` keeps 0,
// 1, 2 …
#include <algorithm>
#include <complex>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "base/string/named_arguments.hpp"
#include "nn/position/distinct_positions.hpp"
#include "nn/position/inner_terms.hpp"

namespace masque::nn {

namespace {

/// count of [0, length), sorted: number i is taken with the chance that the rest of the sample has.
std::vector<Index> sorted_sample(Index count, Index length, std::uint64_t seed,
                                 std::uint64_t draw) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(length));
  RandomStream(seed, "position/randomized", draw).words(words.size(), words.data());
  std::vector<Index> sample;
  sample.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < length && std::ssize(sample) < count; ++i) {
    const auto needed = static_cast<std::uint64_t>(count - std::ssize(sample));
    const auto left = static_cast<std::uint64_t>(length - i);
    // ⌊word · left / 2³²⌋ is uniform below `left`.
    if (words[static_cast<std::size_t>(i)] * left >> 32 < needed) sample.push_back(i);
  }
  return sample;
}

/// The shape that the scheme sees: tables reach the positions that are drawn.
PositionShape longer(PositionShape shape, Index length) {
  shape.max_position_embeddings = std::max(length, shape.max_position_embeddings);
  return shape;
}

/// The scheme's terms with positions of their own.
template <class T>
class RandomizedTerms final : public InnerTerms<T> {
 public:
  RandomizedTerms(const PositionScheme& scheme, Index length, std::uint64_t seed,
                  PositionProblem<T> problem)
      : queries_(problem.positions.queries.begin(), problem.positions.queries.end()),
        keys_(problem.positions.keys.begin(), problem.positions.keys.end()) {
    if (problem.draw) replace(length, seed, *problem.draw);
    problem.positions = {queries_, keys_};
    problem.draw.reset();
    problem.shape = longer(problem.shape, length);
    this->inner_ = scheme.terms(problem);
  }

 private:
  /// The k-th smallest position becomes the k-th of the sample.
  void replace(Index length, std::uint64_t seed, std::uint64_t draw) {
    const std::vector<Index> sorted = distinct_positions({queries_, keys_});
    const std::vector<Index> sample =
        sorted_sample(std::ssize(sorted), std::max(length, Index{std::ssize(sorted)}), seed, draw);
    for (std::vector<Index>* positions : {&queries_, &keys_}) {
      for (Index& position : *positions) {
        const auto rank = std::lower_bound(sorted.begin(), sorted.end(), position) - sorted.begin();
        position = sample[static_cast<std::size_t>(rank)];
      }
    }
  }

  std::vector<Index> queries_;
  std::vector<Index> keys_;
};

class Randomized final : public PositionSchemeOf<Randomized> {
 public:
  Randomized(std::shared_ptr<const PositionScheme> scheme, Index length, std::uint64_t seed)
      : scheme_(std::move(scheme)), length_(length), seed_(seed) {}

  PositionFacts facts() const override { return scheme_->facts(); }
  VariantInfo info() const override {
    VariantInfo info = scheme_->info();
    info.parameters = "parameters of the inner scheme";
    info.source = "Ruoss et al. 2023, arXiv:2305.16843";
    return info;
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    return scheme_->parameters(longer(shape, length_));
  }
  double scale(const PositionShape& shape) const override { return scheme_->scale(shape); }
  Index position_count(Index rows) const override {
    return scheme_->position_count(std::max(length_, rows));
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return std::make_unique<RandomizedTerms<T>>(*scheme_, length_, seed_, problem);
  }

 private:
  std::shared_ptr<const PositionScheme> scheme_;
  Index length_;
  std::uint64_t seed_;
};

const PositionRegistration kRegistration(
    "randomized", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      const Index length = arguments.count("length", 2048, 1, 1 << 24);
      const Index seed = arguments.count("seed", 0, 0, Index{1} << 62);
      const std::string scheme = arguments.text("scheme", "rope");
      if (NamedArguments(scheme).name() == "randomized") {
        throw UsageError("randomized: the inner scheme is randomized too, expected another scheme");
      }
      return std::make_unique<Randomized>(parse_position(scheme), length,
                                          static_cast<std::uint64_t>(seed));
    });

}  // namespace

}  // namespace masque::nn
