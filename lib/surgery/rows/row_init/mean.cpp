// The mean of the rows that have a token: the logit of a new token is then the mean of the others'.
// Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language Models".
#include <algorithm>

#include "surgery/rows/row_init.hpp"

namespace masque::surgery {
namespace {

RowValues mean_values(const RowInitContext& context, const std::string& /*argument*/,
                      const store::TensorInfo& table, bool /*vector*/) {
  const std::vector<double> weights = assigned_weights(context);
  return [mean = mean_row_of(context, table, weights)](
             std::uint64_t /*id*/, std::span<double> out) { std::ranges::copy(mean, out.begin()); };
}

const RowInit kInit{.name = "mean",
                    .argument = "",
                    .help = "the mean of the rows that have a token",
                    .means = nullptr,
                    .values = mean_values};
const RowInitRegistration kRegistration{kInit};

}  // namespace
}  // namespace masque::surgery
