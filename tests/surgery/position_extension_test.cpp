// Every way to make a table of positions longer against its plain formula.
#include <cmath>
#include <functional>
#include <map>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/near.hpp"
#include "surgery/positions/resize_positions.hpp"

namespace masque::surgery {
namespace {

using test::far_off;
using test::message_of;

using PositionTable = std::vector<std::vector<double>>;

PositionTable example_table(Index rows) {
  PositionTable table;
  for (Index i = 0; i < rows; ++i) {
    const auto x = static_cast<double>(i);
    table.push_back({std::sin(x + 1), std::cos(3 * x), x * x - 2});
  }
  return table;
}

std::vector<double> made(const PositionExtension& way, const PositionTable& table, Index place,
                         Index length) {
  const TableRows sum = way.row(place, std::ssize(table), length);
  std::vector<double> row(3);
  for (std::size_t k = 0; k < sum.count; ++k) {
    for (std::size_t d = 0; d < 3; ++d)
      row[d] += sum.parts[k].weight * table.at(static_cast<std::size_t>(sum.parts[k].row))[d];
  }
  return row;
}

/// Row `place` of `length`, in numbers of its own: the definition.
using Formula = std::function<double(const PositionTable& p, std::size_t place, std::size_t length,
                                     std::size_t d)>;

Formula hierarchical(double alpha) {
  return [alpha](const PositionTable& p, std::size_t place, std::size_t, std::size_t d) {
    const std::size_t n = p.size();
    const auto u = [&](std::size_t i) { return (p[i][d] - alpha * p[0][d]) / (1 - alpha); };
    return alpha * u(place / n) + (1 - alpha) * u(place % n);
  };
}

const std::map<std::string, Formula>& formulas() {
  static const std::map<std::string, Formula> all = {
      {"truncate",
       [](const PositionTable& p, std::size_t i, std::size_t, std::size_t d) { return p[i][d]; }},
      {"repeat", [](const PositionTable& p, std::size_t i, std::size_t,
                    std::size_t d) { return p[i % p.size()][d]; }},
      {"last", [](const PositionTable& p, std::size_t i, std::size_t,
                  std::size_t d) { return p[std::min(i, p.size() - 1)][d]; }},
      {"interpolate",
       [](const PositionTable& p, std::size_t i, std::size_t length, std::size_t d) {
         if (length == 1) return p[0][d];
         const double x = static_cast<double>(i) * static_cast<double>(p.size() - 1) /
                          static_cast<double>(length - 1);
         double value = 0;  // hats around every row
         for (std::size_t k = 0; k < p.size(); ++k)
           value += std::max(0.0, 1 - std::abs(x - static_cast<double>(k))) * p[k][d];
         return value;
       }},
      {"hierarchical", hierarchical(0.4)},
      {"hierarchical:0.25", hierarchical(0.25)},
  };
  return all;
}

TEST_CASE("every way makes the rows of its formula") {
  for (const PositionExtensionInfo& info : position_extensions())
    CHECK_MESSAGE(formulas().contains(std::string(info.name)), info.name);
  for (const auto& entry : formulas()) {
    const auto& name = entry.first;
    const auto& formula = entry.second;
    CAPTURE(name);
    const auto way = parse_position_extension(name);
    CHECK(!way->about().empty());
    for (const Index rows : {1, 2, 5}) {
      const PositionTable table = example_table(rows);
      const Index most = std::min<Index>(way->most(rows), 40);
      for (Index length = way->fewest(rows); length <= most; ++length) {
        for (Index place = 0; place < length; ++place) {
          std::vector<double> expected(3);
          for (std::size_t d = 0; d < 3; ++d) {
            expected[d] = formula(table, static_cast<std::size_t>(place),
                                  static_cast<std::size_t>(length), d);
          }
          CHECK(far_off(made(*way, table, place, length), expected, 1e-14, 1e-14) == "");
        }
      }
    }
  }
}

TEST_CASE("all but interpolate leave the first rows as they are, interpolate leaves the ends") {
  const PositionTable table = example_table(4);
  for (const PositionExtensionInfo& info : position_extensions()) {
    CAPTURE(info.name);
    const auto way = info.make({});
    const Index length = std::min<Index>(way->most(4), 13);
    for (const Index place : {0, 1, 2, 3}) {
      const bool end = place == 0;
      if (info.name == "interpolate" && !end) continue;
      CHECK(made(*way, table, place, length) == table[static_cast<std::size_t>(place)]);
    }
    if (info.name == "interpolate") CHECK(made(*way, table, length - 1, length) == table.back());
  }
}

TEST_CASE("hierarchical reaches the square of the rows, and no further") {
  CHECK(parse_position_extension("hierarchical")->most(512) == 512 * 512);
  CHECK(parse_position_extension("last")->fewest(512) == 512);
  CHECK(parse_position_extension("truncate")->most(512) == 512);
}

TEST_CASE("what is no way is refused by name") {
  const auto refused = [](const char* text) {
    return message_of<UsageError>([&] { parse_position_extension(text); });
  };
  CHECK(refused("mirror") ==
        "how: found 'mirror', expected one of hierarchical[:ALPHA], interpolate, last, repeat, "
        "truncate");
  CHECK(refused("last:2") == "how: found 'last:2', expected last");
  CHECK(refused("hierarchical:") ==
        "how: found 'hierarchical:', expected a number after 'hierarchical:'");
  CHECK(refused("hierarchical:0.4x") ==
        "how: found 'hierarchical:0.4x', expected a number after 'hierarchical:'");
  for (const char* alpha : {"0", "1", "-0.1", "nan"}) {
    CHECK(refused((std::string("hierarchical:") + alpha).c_str()) ==
          "how hierarchical: expected ALPHA between 0 and 1");
  }
}

}  // namespace
}  // namespace masque::surgery
