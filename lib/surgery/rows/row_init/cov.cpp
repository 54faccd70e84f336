// The mean of the rows and a little noise with their covariance.
// Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language Models", which scales the
// covariance by 1e-5 (transformers' resize_token_embeddings: by 1e-9).
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parse_number.hpp"
#include "base/random.hpp"
#include "surgery/rows/row_gaussian.hpp"
#include "surgery/rows/row_init.hpp"

namespace masque::surgery {
namespace {

constexpr double kUsualScale = 1e-5;

/// A finite number from 0.
std::optional<double> parse_scale(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && *value >= 0 && std::isfinite(*value) ? value : std::nullopt;
}

RowValues gaussian_values(const RowInitContext& context, const std::string& argument,
                          const store::TensorInfo& table, bool /*vector*/) {
  const auto scale = argument.empty() ? std::optional(kUsualScale) : parse_scale(argument);
  if (!scale) {
    throw UsageError(fmt::format("{} cov: found '{}', expected a number from 0", field("init"),
                                 escape(argument)));
  }
  const std::vector<double> weights = assigned_weights(context);
  std::vector<double> mean = mean_row_of(context, table, weights);
  const auto gaussian = std::make_shared<const RowGaussian>(context.checkpoint, table, weights,
                                                            std::move(mean), context.threads);
  return [gaussian, deviation = std::sqrt(*scale), stream = RandomStream(context.seed, table.name)](
             std::uint64_t id, std::span<double> out) {
    std::vector<double> noise(out.size());
    stream.for_item(id).normal(0, noise.size(), noise.data());
    for (double& value : noise) value *= deviation;
    gaussian->transform(noise, out);
  };
}

const RowInit kInit{
    .name = "cov",
    .argument = "[S]",
    .help = "normal with the mean of the rows and S times their covariance; default S 1e-5",
    .means = nullptr,
    .values = gaussian_values};
const RowInitRegistration kRegistration{kInit};

}  // namespace
}  // namespace masque::surgery
