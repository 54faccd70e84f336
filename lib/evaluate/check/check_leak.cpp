#include "evaluate/check/check_leak.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "evaluate/write/latent_texts.hpp"

namespace masque::evaluate {

namespace {

/// Which tokens of `length` are replaced.
std::vector<Index> spread(Index length, Index wanted) {
  const Index count = wanted == 0 ? length : std::min(wanted, length);
  std::vector<Index> tokens;
  tokens.reserve(static_cast<std::size_t>(count));
  for (Index k = 0; k < count; ++k) tokens.push_back(k * length / count);
  return tokens;
}

/// A random id that is neither `original` nor `never`.
TokenId other_token(std::uint32_t word, TokenId original, std::optional<TokenId> never,
                    Index vocab_size) {
  const Index step = static_cast<Index>(word) % (vocab_size - 1);
  auto id = static_cast<TokenId>((original + 1 + step) % vocab_size);
  while (id == original || id == never) id = static_cast<TokenId>((id + 1) % vocab_size);
  return id;
}

/// The outputs that must not depend on a token of `length`.
std::vector<Index> forbidden_rows(const LeakRequest& request, Index token, Index length) {
  const Index first = request.second_copy ? length / 2 : 0;
  const bool source = token < first;
  if (request.prediction == mask::Prediction::kSelf && !source) return {token};
  std::vector<Index> rows(static_cast<std::size_t>((source ? length : token) - first));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

/// Adds the results for all replacements of one token.
void add(std::span<const Matrix<double>> results, std::span<const CheckVariant> variants,
         std::uint64_t text, Index token, double tolerance, LeakReport& report) {
  const CheckVariant& any = variants.front();
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    LayerLeaks& layer = report.layers[l];
    for (std::size_t r = 0; r < any.rows.size(); ++r) {
      double worst = 0;
      std::size_t by = 0;
      for (std::size_t k = 0; k < results.size(); ++k) {
        const double d = results[k].view().at(static_cast<Index>(l) + 1, static_cast<Index>(r));
        if (d > worst) by = k;
        worst = std::max(worst, d);
      }
      layer.largest = std::max(layer.largest, worst);
      if (worst <= tolerance) continue;
      ++layer.pairs;
      if (layer.first) continue;
      const TokenId replacement = variants[by].input.ids[static_cast<std::size_t>(token)];
      layer.first = LeakPlace{text, token, any.rows[r], replacement, worst};
    }
  }
}

}  // namespace

CheckInput two_copies(const CheckInput& text, const model::Design& design, std::uint64_t seed,
                      std::uint64_t number) {
  const bool segments = std::ranges::any_of(text.segments, [](Index one) { return one != 0; });
  if (text.mask || !text.positions.empty() || segments) {
    throw InputError(
        "has its own mask, positions or segments, which are not supported for a model with latent "
        "bottlenecks");
  }
  CheckInput out = text;
  const Index n = text.size();
  out.segments.clear();
  for (Index copy = 0; copy < 2; ++copy) {
    if (copy > 0) out.ids.insert(out.ids.end(), text.ids.begin(), text.ids.end());
    for (Index i = 0; i < n; ++i) out.positions.push_back(i);
    if (design.type_vocab_size > 1) out.segments.insert(out.segments.end(), text.ids.size(), copy);
  }
  out.mask = mask::parse_mask(fmt::format("uniae({},{})", n, n)).bind({2 * n, 2 * n});
  out.latents = random_points(*design.variants.latent, seed, number);
  return out;
}

std::optional<Index> LeakReport::first_layer() const {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (layers[l].pairs > 0) return static_cast<Index>(l) + 1;
  }
  return std::nullopt;
}

void check_leak(const model::Model& model, std::uint64_t text, const CheckInput& input,
                const LeakRequest& request, LeakReport& report) {
  const bool self = request.prediction == mask::Prediction::kSelf;
  MASQUE_CHECK((self || request.prediction == mask::Prediction::kNext) && request.replacements > 0);
  const Index vocab_size = model.design().vocab_size;
  if (vocab_size < 3)
    throw InputError(
        "a vocabulary of fewer than 3 tokens has no replacements, expected at least 3");
  report.layers.resize(static_cast<std::size_t>(model.design().num_hidden_layers) + 1);
  ++report.texts;
  report.all_tokens += input.ids.size();
  if (input.ids.empty()) return;
  const CheckStates expected = check_states(model, input);
  const RandomStream random(request.seed, "check leak", text);
  const auto replacements = static_cast<std::size_t>(request.replacements);
  for (const Index token : spread(input.size(), request.tokens)) {
    const auto at = static_cast<std::size_t>(token);
    ++report.tokens;
    const std::vector<Index> rows = forbidden_rows(request, token, input.size());
    report.pairs += rows.size();
    if (rows.empty()) continue;
    std::vector<CheckVariant> variants(replacements, CheckVariant{input, &expected, rows, rows});
    for (std::size_t k = 0; k < replacements; ++k) {
      const std::uint32_t word = random.block(at * replacements + k)[0];
      variants[k].input.ids[at] = other_token(word, input.ids[at], request.never, vocab_size);
    }
    const auto results = compare_variants(model, variants, request.batch_tokens);
    add(results, variants, text, token, request.tolerance, report);
  }
}

}  // namespace masque::evaluate
