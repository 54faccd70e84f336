// Texts and the points of a model's latent bottlenecks (VariantDesign::latent): from one to the
// other, between two, with parts exchanged. Su 2021, kexue.fm/archives/8475.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evaluate/score/sentence.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// The points of all bottlenecks one after the other, from the first layer on; each has length 1.
using LatentPoints = std::vector<double>;

/// Throws InputError for a `design` without bottlenecks, or without a vocabulary to write with.
void check_latents(const model::Design& design);

/// Reads sentences into points, in order: the mean directions. A point does not depend on the other
/// sentences. Memory: one batch.
class LatentEncoder {
 public:
  /// Takes the points of the sentence that was added with `id`.
  using Sink = std::function<void(std::uint64_t id, LatentPoints&& points)>;

  /// `model` must outlive it and pass check_latents(). At most `batch_tokens` tokens run together;
  /// a longer sentence runs alone. `sink` receives points in the order of the sentences, during
  /// add() and flush().
  LatentEncoder(const model::Model& model, Index batch_tokens, Sink sink);

  /// What is wrong with the length of `sentence`; nothing if it can be added.
  std::optional<std::string> length_problem(const Sentence& sentence) const;
  /// Adds `sentence`, which has no length_problem(), all in segment 0; runs the batch first if it
  /// would become too large. `id` is only handed to the sink. Throws as Model::run does.
  void add(std::uint64_t id, const Sentence& sentence);
  /// Runs the waiting sentences. All points have then been given to the sink.
  void flush();

 private:
  const model::Model& model_;
  Index batch_tokens_;
  Sink sink_;
  model::Batch batch_;
  std::vector<std::uint64_t> ids_;
};

/// Points of text number `id`, uniform on each sphere of `latent`: a function of `seed` and number.
LatentPoints random_points(const model::LatentDesign& latent, std::uint64_t seed, std::uint64_t id);

/// At a `share` from 0 to 1 of the way from `a` to `b`: on each sphere of `latent` along the great
/// circle, at equal angles. Between opposite points, where there are many such ways, by a fixed
/// one.
LatentPoints points_between(const model::LatentDesign& latent, const LatentPoints& a,
                            const LatentPoints& b, double share);

/// `a` with the point of one `bottleneck` of `latent` from `b`, counted from 0.
LatentPoints with_point_of(const model::LatentDesign& latent, const LatentPoints& a,
                           const LatentPoints& b, Index bottleneck);

}  // namespace masque::evaluate
