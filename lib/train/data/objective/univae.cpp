// UniVAE: a sentence is written once more from a few points on spheres.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/variants.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class Univae final : public Objective {
 public:
  explicit Univae(const ObjectiveOptions& given) : Objective(given) {}

  void adapt(model::Design& design) const override {
    adapt_design({.objective = "univae",
                  .segments = true,
                  .own_masks = true,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
    // Of a model that has bottlenecks, those.
    const bool has_some = design.variants.latent.has_value();
    model::LatentDesign latent = design.variants.latent.value_or(model::LatentDesign{});
    if (!has_some)
      latent.layers = std::max<Index>(1, std::min<Index>(4, design.num_hidden_layers / 3));
    latent.layers = options().latent_layers.value_or(latent.layers);
    // Before the first layer the first token has read no other one: its point would be a constant.
    if (!has_some && latent.layers == design.num_hidden_layers) {
      throw UsageError(
          fmt::format("{} {} of {} layers: a bottleneck before the first layer carries nothing; "
                      "expected fewer, or more layers",
                      field("latent_layers"), latent.layers, design.num_hidden_layers));
    }
    latent.size = options().latent_size.value_or(latent.size);
    if (latent.learned_kappa && options().kappa) {
      throw UsageError(fmt::format("{} has no effect: the model has learned its own; remove it",
                                   field("kappa")));
    }
    latent.kappa = options().kappa.value_or(latent.kappa);
    latent.learned_kappa = latent.learned_kappa || options().learned_kappa;
    design.variants.latent = latent;
    model::check_latent(design);
  }

  void check(const Corpus& corpus) const override {
    Objective::check(corpus);
    for (const Index i : corpus.first_of_lengths()) {
      if (corpus.length(i) < 2)
        throw InputError(corpus.source(),
                         fmt::format("sequence {} has one token, expected at least 2", i + 1));
    }
  }

  std::optional<Index> target_offset(Index /*size*/) const override { return 1; }

 protected:
  /// The sequence twice, both with its positions; the second copy is predicted.
  Example make(records::Record& record) const override {
    const std::size_t n = record.size();
    const auto twice = [&](auto& values) {
      values.resize(n);
      values.reserve(2 * n);
      std::copy_n(values.begin(), n, std::back_inserter(values));
    };
    if (!record.pos.present) {
      record.pos.make(n);
      for (std::size_t i = 0; i < n; ++i)
        record.pos.values[i] = static_cast<std::decay_t<decltype(record.pos.values[i])>>(i);
    }
    twice(record.ids);
    twice(record.pos.values);
    auto& segments = record.seg.make(2 * n);
    for (std::size_t i = 0; i < 2 * n; ++i) segments[i] = i < n ? 0 : 1;
    std::vector<std::int32_t>& labels = record.labels.make(2 * n);
    std::ranges::fill(labels, records::kNoLabel);
    for (std::size_t i = n; i + 1 < 2 * n; ++i) labels[i] = record.ids[i + 1];
    record.mask = fmt::format("uniae({},{})", n, n);
    return example_of(record);
  }
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const Univae>(options);
}

const ObjectiveKind kUnivae{"univae",
                            "the sequence once more, from points on spheres that its first token "
                            "passes on",
                            "UniVAE, Su 2021, kexue.fm/archives/8475",
                            {.options = {"latent_layers", "latent_size", "kappa", "learned_kappa",
                                         "kl_weight", "kl_cycle", "free_nats"},
                             .latent = true},
                            read_objective};
const ObjectiveRegistration kUnivaeRegistration{kUnivae};

}  // namespace

}  // namespace masque::train
