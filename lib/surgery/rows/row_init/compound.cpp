// The mean of some rows, as bert4keras' compound_tokens.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/split.hpp"
#include "surgery/rows/row_init.hpp"

namespace masque::surgery {
namespace {

RowMeans means(const RowInitContext& context, const std::string& argument) {
  std::vector<std::uint64_t> rows;
  for (const std::string_view name : split(argument, ',')) {
    if (name.empty())
      throw UsageError(
          fmt::format("{} compound: an empty name, expected compound:A,B", field("init")));
    rows.push_back(
        find_row(context, std::string(name), fmt::format("{} compound:", field("init"))));
  }
  const auto count =
      static_cast<std::size_t>(std::ranges::count(context.change.from, VocabularyChange::kNew));
  return RowMeans(count, rows);
}

const RowInit kInit{.name = "compound",
                    .argument = "A,B",
                    .help = "the mean of the rows of these tokens or ids",
                    .means = means,
                    .values = nullptr};
const RowInitRegistration kRegistration{kInit};

}  // namespace
}  // namespace masque::surgery
