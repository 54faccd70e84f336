// Normal values as in a new model: with initializer_range of the config, else with the deviation
// of the table's values. A bias begins with 0, as in a new model.
#include "base/random.hpp"

#include <algorithm>
#include <cmath>

#include "surgery/rows/row_init.hpp"
#include "surgery/rows/row_map.hpp"

namespace masque::surgery {
namespace {

/// Standard deviation of all values in rows that have a token, around their common mean.
double deviation_of(const RowInitContext& context, const store::TensorInfo& table) {
  const std::vector<double> weights = assigned_weights(context);
  const std::vector<double> means = mean_row_of(context, table, weights);
  const auto width = static_cast<double>(means.size());
  double mean = 0;
  for (const double value : means) mean += value / width;
  const std::uint64_t step = rows_per_block(table);
  std::vector<double> parts((context.rows + step - 1) / step);
  for_each_row_block(context.checkpoint, table, context.threads,
                     [&](std::uint64_t first, std::span<const double> rows) {
                       double sum = 0;
                       for (std::size_t i = 0; i < rows.size(); ++i) {
                         const std::uint64_t row = first + i / means.size();
                         const double weight =
                             weights.empty() ? 1 / static_cast<double>(context.rows) : weights[row];
                         if (weight != 0) sum += weight * (rows[i] - mean) * (rows[i] - mean);
                       }
                       parts[first / step] = sum;
                     });
  double variance = 0;
  for (const double part : parts) variance += part / width;
  return std::sqrt(variance);
}

RowValues random_values(const RowInitContext& context, const std::string& /*argument*/,
                        const store::TensorInfo& table, bool vector) {
  if (vector)
    return [](std::uint64_t /*id*/, std::span<double> out) { std::ranges::fill(out, 0.0); };
  const double deviation =
      context.initializer_range ? *context.initializer_range : deviation_of(context, table);
  return [deviation, stream = RandomStream(context.seed, table.name)](std::uint64_t id,
                                                                      std::span<double> out) {
    stream.for_item(id).normal(0, out.size(), out.data());
    for (double& value : out) value *= deviation;
  };
}

const RowInit kInit{.name = "random",
                    .argument = "",
                    .help =
                        "normal with initializer_range of the config as standard deviation, else "
                        "that of the table; 0 for a bias",
                    .means = nullptr,
                    .values = random_values};
const RowInitRegistration kRegistration{kInit};

}  // namespace
}  // namespace masque::surgery
