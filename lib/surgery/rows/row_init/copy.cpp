// A copy of one row.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "surgery/rows/row_init.hpp"

namespace masque::surgery {
namespace {

RowMeans copied_means(const RowInitContext& context, const std::string& argument) {
  const auto count =
      static_cast<std::size_t>(std::ranges::count(context.change.from, VocabularyChange::kNew));
  return RowMeans(count, {find_row(context, argument, fmt::format("{} copy:", field("init")))});
}

const RowInit kInit{.name = "copy",
                    .argument = "T",
                    .help = "the row of the token or id T",
                    .means = copied_means,
                    .values = nullptr};
const RowInitRegistration kRegistration{kInit};

}  // namespace
}  // namespace masque::surgery
