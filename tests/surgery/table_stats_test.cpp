#include "surgery/rows/table_stats.hpp"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

struct Table {
  explicit Table(const std::vector<double>& values, std::uint64_t width) {
    write_file(folder / "a.safetensors",
               example_file({{kTable, DType::kF64, {values.size() / width, width}, values}}));
    checkpoint.emplace(store::open_checkpoint(folder / "a.safetensors"));
  }
  const store::TensorInfo& info() const { return checkpoint->get(kTable); }
  TempFolder folder;
  std::optional<store::Checkpoint> checkpoint;
};

double naive_cosine(const std::vector<double>& v, std::size_t w, std::size_t a, std::size_t b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t j = 0; j < w; ++j) {
    ab += v[a * w + j] * v[b * w + j];
    aa += v[a * w + j] * v[a * w + j];
    bb += v[b * w + j] * v[b * w + j];
  }
  return ab / std::sqrt(aa * bb);
}

TEST_CASE("mean pair cosine equals the mean over all pairs") {
  const std::size_t width = 7;
  const auto values = numbers(3, 40 * width);
  const Table table(values, width);
  const TableStats stats = table_stats(*table.checkpoint, table.info(), 2);
  double sum = 0;
  for (std::size_t a = 0; a < 40; ++a) {
    for (std::size_t b = 0; b < 40; ++b) {
      if (a != b) sum += naive_cosine(values, width, a, b);
    }
  }
  CHECK(stats.mean_cosine == doctest::Approx(sum / (40 * 39)).epsilon(1e-12));
  CHECK(stats.rows == 40);
}

TEST_CASE("norms by hand, zero rows and rows that are not finite are counted") {
  const double inf = std::numeric_limits<double>::infinity();
  const Table table({3, 4, 0, 0, inf, 1, 6, 8}, 2);
  const TableStats stats = table_stats(*table.checkpoint, table.info(), 1);
  CHECK(stats.rows == 4);
  CHECK(stats.zero_rows == 1);
  CHECK(stats.not_finite_rows == 1);
  CHECK(stats.norm_minimum == 0);
  CHECK(stats.norm_maximum == 10);
  CHECK(stats.norm_mean == 5);
  CHECK(stats.norm_deviation == doctest::Approx(std::sqrt(50.0 / 3)));
  CHECK(stats.mean == std::vector<double>{3, 4});
  CHECK(stats.mean_norm == 5);
  CHECK(stats.mean_cosine == doctest::Approx(1));
  const RowAgainstMean row = row_against_mean(*table.checkpoint, table.info(), 3, stats.mean);
  CHECK(row.norm == 10);
  CHECK(row.cosine == doctest::Approx(1));
  CHECK(row.distance == 5);
  CHECK(std::isnan(row_against_mean(*table.checkpoint, table.info(), 1, stats.mean).cosine));
}

TEST_CASE("statistics have the same bits for any number of threads") {
  const Table table(numbers(5, 50000 * 9), 9);
  const TableStats one = table_stats(*table.checkpoint, table.info(), 1);
  for (const int threads : {2, 5}) {
    const TableStats other = table_stats(*table.checkpoint, table.info(), threads);
    CHECK(other.mean_cosine == one.mean_cosine);
    CHECK(other.norm_deviation == one.norm_deviation);
    CHECK(other.mean == one.mean);
  }
}

TEST_CASE("nearest rows equal a full sort, ties by row, the row itself left out") {
  const std::size_t width = 5;
  auto values = numbers(9, 200 * width);
  for (std::size_t j = 0; j < width; ++j) {
    values[50 * width + j] = values[7 * width + j];  // rows 7, 50 and 60 point the same way
    values[60 * width + j] = 2 * values[7 * width + j];
    values[99 * width + j] = 0;
  }
  const Table table(values, width);
  const auto best = nearest_rows(*table.checkpoint, table.info(), 7, 198, 2);
  REQUIRE(best.size() == 198);  // without row 7 and the zero row
  CHECK(best[0].row == 50);
  CHECK(best[1].row == 60);
  for (std::size_t i = 0; i + 1 < best.size(); ++i) {
    CHECK(best[i].cosine == doctest::Approx(naive_cosine(values, width, 7, best[i].row)));
    CHECK(best[i].cosine >= best[i + 1].cosine);
  }
  const auto few = nearest_rows(*table.checkpoint, table.info(), 7, 3, 1);
  REQUIRE(few.size() == 3);
  CHECK(few[2].row == best[2].row);
  CHECK(contains(message_of([&] { nearest_rows(*table.checkpoint, table.info(), 99, 3, 1); }),
                 "row 99 has norm 0"));
}

TEST_CASE("two tables: which rows changed, and which moved most") {
  const std::size_t width = 4;
  const auto before = numbers(11, 300 * width);
  auto after = before;
  after[10 * width] += 1;
  after[200 * width + 3] -= 2;
  const Table a(before, width);
  const Table b(after, width);
  const TableDiff diff = table_diff(*a.checkpoint, a.info(), *b.checkpoint, b.info(), 1, 2);
  CHECK(diff.rows == 300);
  CHECK(diff.changed == 2);
  CHECK(diff.max_distance == doctest::Approx(2));
  REQUIRE(diff.top.size() == 1);
  CHECK(diff.top[0].row == 200);
  const TableDiff same = table_diff(*a.checkpoint, a.info(), *a.checkpoint, a.info(), 5, 1);
  CHECK(same.changed == 0);
  CHECK(same.top.empty());
  auto broken = before;
  broken[5 * width] = std::numeric_limits<float>::quiet_NaN();
  broken[6 * width] = std::numeric_limits<float>::infinity();
  const Table c(broken, width);
  CHECK(table_diff(*c.checkpoint, c.info(), *c.checkpoint, c.info(), 5, 1).changed == 0);
  CHECK(table_diff(*a.checkpoint, a.info(), *c.checkpoint, c.info(), 5, 1).changed == 2);
  const Table narrow(numbers(1, 6), 3);
  CHECK(contains(message_of([&] {
                   table_diff(*a.checkpoint, a.info(), *narrow.checkpoint, narrow.info(), 1, 1);
                 }),
                 "expected the same number"));
}

TEST_CASE("dot sums in the same order for every length") {
  for (std::size_t n = 0; n < 40; ++n) {
    const auto a = numbers(1, n);
    const auto b = numbers(2, n);
    double lanes[8] = {};
    for (std::size_t i = 0; i < n; ++i) lanes[i % 8] += a[i] * b[i];
    const double expected = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                            ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    CHECK(dot(a, b) == expected);
  }
}

}  // namespace
}  // namespace masque::surgery
