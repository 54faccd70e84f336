#include "nn/normalizer.hpp"

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/named_arguments.hpp"
#include "base/registry.hpp"

namespace masque::nn {

namespace {

using Normalizers = Registry<AttentionNormalizer>;

std::string parameter_text(const AttentionNormalizer& normalizer) {
  return comma_list(normalizer.parameters(), [](const NormalizerParameter& p) {
    return fmt::format("{}={}", p.name, p.value);
  });
}

std::vector<VariantInfo> list_variants() {
  std::vector<VariantInfo> out;
  out.reserve(normalizers().size());
  for (const AttentionNormalizer* normalizer : normalizers()) {
    VariantInfo info;
    info.kind = "normalizer";
    info.name = normalizer->name();
    info.parameters = parameter_text(*normalizer);
    if (normalizer->offset_of_learned()) info.parameters += "; one trained s per head";
    info.masks = "any";
    info.cost = normalizer->unit_length() == UnitLength::kNeither ? "h n²" : "h n² + n d";
    info.source = normalizer->source();
    info.use = {{info.kind, info.name}};
    out.push_back(std::move(info));
  }
  return out;
}

const VariantSource kVariants(list_variants);

}  // namespace

double AttentionNormalizer::temperature(Index /*visible*/) const { return 1; }
double AttentionNormalizer::constant(Index /*visible*/) const { return 1; }
UnitLength AttentionNormalizer::unit_length() const { return UnitLength::kNeither; }
bool AttentionNormalizer::scaled() const { return true; }
std::optional<double> AttentionNormalizer::offset_of_learned() const { return std::nullopt; }
std::vector<NormalizerParameter> AttentionNormalizer::parameters() const { return {}; }
std::unique_ptr<const AttentionNormalizer> AttentionNormalizer::with(
    std::span<const double> /*values*/) const {
  MASQUE_CHECK(false);
  return nullptr;
}

NormalizerRegistration::NormalizerRegistration(
    std::unique_ptr<const AttentionNormalizer> normalizer) {
  Normalizers::of_process().add(std::move(normalizer));
}

std::span<const AttentionNormalizer* const> normalizers() {
  return Normalizers::of_process().all();
}

const AttentionNormalizer* find_normalizer(std::string_view name) {
  return Normalizers::of_process().find(name);
}

std::shared_ptr<const AttentionNormalizer> parse_normalizer(std::string_view text) {
  NamedArguments arguments(text);
  const AttentionNormalizer* plain = find_normalizer(arguments.name());
  if (plain == nullptr) {
    std::vector<std::string_view> names;
    for (const AttentionNormalizer* other : normalizers()) names.push_back(other->name());
    throw UsageError(fmt::format("no normalizer '{}', expected one of {}{}",
                                 escape(arguments.name()), Normalizers::of_process().names(),
                                 did_you_mean(arguments.name(), names)));
  }
  std::vector<double> values;
  bool own = true;
  for (const NormalizerParameter& p : plain->parameters()) {
    values.push_back(arguments.number(p.name, p.value, p.least, p.most));
    own = own && values.back() == p.value;
  }
  arguments.check_all_known();
  // The registry owns it and outlives all.
  if (own) return {std::shared_ptr<const AttentionNormalizer>(), plain};
  return plain->with(values);
}

}  // namespace masque::nn
