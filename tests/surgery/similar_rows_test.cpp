// All neighbours at once, against one row at a time.

#include <algorithm>

#include <doctest/doctest.h>

#include "support/temp_folder.hpp"
#include "surgery/example.hpp"
#include "surgery/rows/table_stats.hpp"

namespace masque::surgery {
namespace {

using test::TempFolder;

TEST_CASE("the neighbours of all rows are those of each row by itself") {
  const TempFolder folder;
  std::vector<double> values = numbers(7, std::size_t{101} * 30);
  std::fill_n(values.begin(), 30, 0.0);
  test::write_file(folder / "m.safetensors",
                   example_file({{kTable, DType::kF32, {101, 30}, std::move(values)}}));
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "m.safetensors");
  const store::TensorInfo& table = checkpoint.get(kTable);
  std::vector<std::uint8_t> skip = {0, 1, 0, 1};  // row 0 is the pad token's: all zero
  const auto all = similar_rows(checkpoint, table, {.count = 5, .skip = skip, .threads = 2});
  REQUIRE(all.size() == table.shape[0]);
  CHECK(all == similar_rows(checkpoint, table, {.count = 5, .skip = skip, .threads = 1}));
  CHECK(all[0].empty());
  CHECK(all[1].empty());
  for (std::size_t row = 2; row < all.size(); ++row) {
    if (row == 3) continue;
    CAPTURE(row);
    std::vector<std::uint32_t> expected;
    for (const Neighbour& near : nearest_rows(checkpoint, table, row, 7, 1)) {
      if (near.row == 1 || near.row == 3 || expected.size() == 5) continue;
      expected.push_back(static_cast<std::uint32_t>(near.row));
    }
    CHECK(all[row] == expected);
  }
  CHECK(similar_rows(checkpoint, table, {.count = 0})[5].empty());
}

}  // namespace
}  // namespace masque::surgery
