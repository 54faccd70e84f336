#include "nn/normalizer.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/registry.hpp"

namespace masque::nn {

namespace {

using Normalizers = Registry<Normalizer>;

std::string parameter_text(const Normalizer& normalizer) {
  std::string out;
  for (const NormalizerParameter& p : normalizer.parameters()) {
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", p.name, p.value);
  }
  return out;
}

std::vector<VariantInfo> list_variants() {
  std::vector<VariantInfo> out;
  out.reserve(normalizers().size());
  for (const Normalizer* normalizer : normalizers()) {
    VariantInfo info;
    info.kind = "normalizer";
    info.name = normalizer->name();
    info.parameters = parameter_text(*normalizer);
    info.masks = "any";
    info.cost = normalizer->unit_length() == UnitLength::kNeither ? "h n²" : "h n² + n d";
    info.source = normalizer->source();
    out.push_back(std::move(info));
  }
  return out;
}

const VariantSource kVariants(list_variants);

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Takes "name=value" into the values of the parameters.
void read_value(const Normalizer& normalizer, std::string_view text,
                std::vector<NormalizerParameter>& parameters,
                std::vector<std::string_view>& given) {
  const std::size_t equals = text.find('=');
  const std::string_view name = trim(text.substr(0, equals));
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const NormalizerParameter& p) { return p.name == name; });
  if (equals == std::string_view::npos || found == parameters.end()) {
    throw UsageError(fmt::format("'{}': expected one of {}({})", escape(text), normalizer.name(),
                                 parameter_text(normalizer)));
  }
  if (std::find(given.begin(), given.end(), name) != given.end()) {
    throw UsageError(fmt::format("{} of {} is given twice", name, normalizer.name()));
  }
  given.push_back(name);
  const std::string_view digits = trim(text.substr(equals + 1));
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      !(value >= found->least && value <= found->most)) {
    throw UsageError(fmt::format("{} of {} is '{}': expected a number from {} to {}", name,
                                 normalizer.name(), escape(digits), found->least, found->most));
  }
  found->value = value;
}

const Normalizer& find_or_throw(std::string_view name) {
  if (const Normalizer* found = find_normalizer(name)) return *found;
  std::string names;
  for (const Normalizer* normalizer : normalizers()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", normalizer->name());
  }
  throw UsageError(fmt::format("no normalizer '{}': there are {}", escape(name), names));
}

}  // namespace

double Normalizer::temperature(Index /*visible*/) const { return 1; }
double Normalizer::constant(Index /*visible*/) const { return 1; }
UnitLength Normalizer::unit_length() const { return UnitLength::kNeither; }
bool Normalizer::scaled() const { return true; }
std::vector<NormalizerParameter> Normalizer::parameters() const { return {}; }
std::unique_ptr<const Normalizer> Normalizer::with(std::span<const double> /*values*/) const {
  MASQUE_CHECK(false);
  return nullptr;
}

NormalizerRegistration::NormalizerRegistration(std::unique_ptr<const Normalizer> normalizer) {
  Normalizers::of_process().add(std::move(normalizer));
}

std::span<const Normalizer* const> normalizers() { return Normalizers::of_process().all(); }

const Normalizer* find_normalizer(std::string_view name) {
  return Normalizers::of_process().find(name);
}

std::string normalizer_text(const Normalizer& normalizer) {
  const std::string parameters = parameter_text(normalizer);
  if (parameters.empty()) return std::string(normalizer.name());
  return fmt::format("{}({})", normalizer.name(), parameters);
}

std::shared_ptr<const Normalizer> parse_normalizer(std::string_view text) {
  text = trim(text);
  const std::size_t open = text.find('(');
  const Normalizer& plain = find_or_throw(trim(text.substr(0, open)));
  // The registry owns it and outlives all.
  if (open == std::string_view::npos) return {std::shared_ptr<const Normalizer>(), &plain};
  if (text.back() != ')') {
    throw UsageError(fmt::format("'{}': expected {}", escape(text), normalizer_text(plain)));
  }
  std::vector<NormalizerParameter> parameters = plain.parameters();
  if (parameters.empty()) {
    throw UsageError(fmt::format("'{}': {} has no parameters", escape(text), plain.name()));
  }
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  std::vector<std::string_view> given;
  for (bool more = !trim(rest).empty(); more;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    read_value(plain, trim(rest.substr(0, comma)), parameters, given);
    more = comma < rest.size();
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  std::vector<double> values;
  values.reserve(parameters.size());
  for (const NormalizerParameter& p : parameters) values.push_back(p.value);
  return plain.with(values);
}

}  // namespace masque::nn
