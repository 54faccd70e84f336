#include "nn/normalizer.hpp"

#include <algorithm>

namespace masque::nn {

namespace {

std::vector<std::unique_ptr<const Normalizer>>& owners() {
  static std::vector<std::unique_ptr<const Normalizer>> all;
  return all;
}

std::vector<const Normalizer*>& registry() {
  static std::vector<const Normalizer*> all;
  return all;
}

}  // namespace

double Normalizer::temperature(Index /*visible*/) const { return 1; }
double Normalizer::constant(Index /*visible*/) const { return 1; }

NormalizerRegistration::NormalizerRegistration(std::unique_ptr<const Normalizer> normalizer) {
  auto& all = registry();
  all.insert(std::upper_bound(all.begin(), all.end(), normalizer.get(),
                              [](const auto* a, const auto* b) { return a->name() < b->name(); }),
             normalizer.get());
  owners().push_back(std::move(normalizer));
}

std::span<const Normalizer* const> normalizers() { return registry(); }

const Normalizer* find_normalizer(std::string_view name) {
  for (const Normalizer* normalizer : normalizers()) {
    if (normalizer->name() == name) return normalizer;
  }
  return nullptr;
}

}  // namespace masque::nn
