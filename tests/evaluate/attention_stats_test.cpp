// Statistics of heads: maps that are known, and what numpy computes from transformers' output.
#include "evaluate/attention/attention_stats.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "base/json/json.hpp"
#include "kernel/parallel.hpp"
#include "model/checkpoint/save.hpp"
#include "model/random_model.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
namespace {

constexpr Index kSize = 8;

/// The fields of a map with all keys visible and tokens that are all different.
HeadSample sample_of(const Matrix<double>& weights) {
  const Index n = weights.rows();
  std::vector<TokenId> ids;
  for (Index i = 0; i < n; ++i) ids.push_back(static_cast<TokenId>(i));
  const SentenceFacts facts(ids, {}, {});
  Matrix<float> map(n, padded(n));
  std::vector<float> mass(static_cast<std::size_t>(n));
  std::vector<float> entropy(static_cast<std::size_t>(n));
  const std::vector<Index> visible(static_cast<std::size_t>(n), n);
  load_map(weights.view(), map.view(), mass.data());
  return measure_head({map.view(), mass, visible, {}}, facts, {}, entropy);
}

template <class Weight>
HeadSample sample_of(Index n, const Weight& weight) {
  Matrix<double> weights(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) weights.view().at(i, j) = weight(i, j);
  }
  return sample_of(weights);
}

TEST_CASE("diversity of maps that are known, to four decimals") {
  struct Row {
    double (*weight)(Index i, Index j);
    double d1, d2, row_std, d3, mi;
  };
  const Row rows[] = {
      {[](Index, Index) { return 1.0 / kSize; }, 0, 0, 0, 0, 0},
      {[](Index i, Index j) { return i == j ? 1.0 : 0.0; }, 0.3307, 0, 0.3307, 0, 2.0794},
      {[](Index, Index j) { return j == 0 ? 1.0 : 0.0; }, 0, 0, 0.3307, 0, 0},
      // Half of the rows read key 0, the others themselves.
      {[](Index i, Index j) { return j == (i < kSize / 2 ? 0 : i) ? 1.0 : 0.0; }, 0.2279, 0.1844,
       0.3307, 0, 1.3863},
  };
  for (const Row& row : rows) {
    HeadSample sample = sample_of(kSize, row.weight);
    CHECK(std::fabs(sample[HeadField::kD1].mean - row.d1) < 5e-5);
    CHECK(std::fabs(sample[HeadField::kD2].mean - row.d2) < 5e-5);
    CHECK(std::fabs(sample[HeadField::kRowStd].mean - row.row_std) < 5e-5);
    CHECK(std::fabs(sample[HeadField::kD3].mean - row.d3) < 5e-5);
    CHECK(std::fabs(sample[HeadField::kMutualInformation].mean - row.mi) < 5e-5);
  }
}

TEST_CASE("uniform and one-hot rows, any length") {
  for (const Index n : {1, 2, 15, 16, 17, 100}) {
    HeadSample uniform = sample_of(n, [](Index, Index) { return 1.0; });  // sums are n
    const double log_n = std::log(static_cast<double>(n));
    CHECK(uniform[HeadField::kEntropy].n == static_cast<std::uint64_t>(n));
    CHECK(std::fabs(uniform[HeadField::kEntropy].mean - log_n) < 1e-6);
    CHECK(std::fabs(uniform[HeadField::kSupport].mean / static_cast<double>(n) - 1) < 1e-6);
    CHECK(std::fabs(uniform[HeadField::kSparsity].mean - 1) < 1e-6);
    CHECK(uniform[HeadField::kEntropyRelative].n == static_cast<std::uint64_t>(n == 1 ? 0 : n));
    CHECK(uniform[HeadField::kSink].mean == (n < 4 ? 1 : 0));
    CHECK(uniform[HeadField::kSpecial].n == 0);
    HeadSample first = sample_of(n, [](Index, Index j) { return j == 0 ? 0.5 : 0.0; });
    CHECK(first[HeadField::kEntropy].mean == 0);
    CHECK(first[HeadField::kFirst].mean == 1);
    CHECK(first[HeadField::kSink].mean == 1);
    CHECK(std::fabs(first[HeadField::kDistance].mean - static_cast<double>(n - 1) / 2) < 1e-5);
    CHECK(first[HeadField::kDistanceSpread].mean == 0);
    CHECK(first[HeadField::kNext].n == static_cast<std::uint64_t>(n - 1));
    CHECK(std::fabs(first[HeadField::kSparsity].mean * static_cast<double>(n) - 1) < 1e-6);
  }
}

TEST_CASE("rows without mass are left out") {
  HeadSample sample =
      sample_of(4, [](Index i, Index j) { return i == 2 ? 0.0 : (j == i ? 1.0 : 0.0); });
  CHECK(sample[HeadField::kEntropy].n == 3);
  CHECK(sample[HeadField::kDiagonal].mean == 1);
  CHECK(sample[HeadField::kDiagonal].sum_squares == 0);
  CHECK(sample_of(3, [](Index, Index) { return 0.0; })[HeadField::kD1].n == 0);
}

TEST_CASE("places of earlier occurrences") {
  const std::vector<TokenId> ids{7, 7, 5, 7};
  const SentenceFacts facts(ids, {}, {});
  const auto list = [](std::span<const Index> places) {
    return std::vector<Index>(places.begin(), places.end());
  };
  CHECK(list(facts.earlier(0)).empty());
  CHECK(list(facts.earlier(1)) == std::vector<Index>{0});
  CHECK(list(facts.after_earlier(1)).empty());  // the token itself
  CHECK(list(facts.earlier(3)) == std::vector<Index>{0, 1});
  CHECK(list(facts.after_earlier(3)) == std::vector<Index>{1, 2});
}

TEST_CASE("lines through points, in parts") {
  LinePoints all, left, right;
  const double x[] = {1, 2, 4, 7};
  const double y[] = {3, 5, 8, 16};
  for (std::size_t i = 0; i < 4; ++i) {
    all.add(x[i], y[i]);
    (i < 2 ? left : right).add(x[i], y[i]);
  }
  left.add(right);
  CHECK(std::fabs(all.slope() - 45.0 / 21.0) < 1e-12);
  CHECK(std::fabs(left.slope() - all.slope()) < 1e-12);
  CHECK(std::fabs(left.slope_error() - all.slope_error()) < 1e-12);
  LinePoints equal;
  for (const double each : y) equal.add(std::log(20.0), each);
  CHECK(std::isnan(equal.slope()));
  CHECK(std::isnan(right.slope_error()));
}

MarkedItem marked(const test::ModelLine& line) {
  MarkedItem item;
  item.sequence.ids = line.ids;
  item.sequence.segments = line.segments;
  for (const TokenId id : line.ids) {
    item.special.push_back(id % 5 == 0 ? 1 : 0);
    item.punctuation.push_back(id % 7 == 0 ? 1 : 0);
  }
  return item;
}

AttentionTotals run(const test::ModelCase& one, kernel::Precision precision,
                    const AttentionStatsOptions& options) {
  const auto model = model::open_model(
      one.folder, {.precision = precision,
                   .mask_token_id = one.name == "tta" ? std::optional(4) : std::nullopt});
  AttentionStatsOptions all = options;
  all.compares_layers = true;
  AttentionStats stats(*model, all);
  for (const test::ModelLine& line : one.lines) {
    if (line.positions.empty()) stats.add(marked(line));
  }
  stats.flush();
  return stats.totals();
}

double number(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  REQUIRE(value != nullptr);
  return value->is(JsonKind::kNumber) ? value->number().value() : std::nan("");
}

/// n, mean and standard error; both sides may have none.
void check_field(const JsonValue& line, std::string_view name, double n, double mean,
                 double error) {
  const JsonValue* field = line.find(name);
  REQUIRE(field != nullptr);
  INFO(name);
  CHECK(number(*field, "n") == n);
  const double values[] = {mean, error};
  const std::string_view names[] = {"mean", "se"};
  for (std::size_t i = 0; i < 2; ++i) {
    const double expected = number(*field, names[i]);
    INFO(names[i], " ", values[i], ", expected ", expected);
    CHECK(std::isnan(expected) == std::isnan(values[i]));
    if (std::isnan(expected)) continue;
    CHECK(std::fabs(values[i] - expected) <= 1e-5 * std::max(1.0, std::fabs(expected)));
  }
}

void check_state(const JsonValue& line, const StateTotals& state) {
  check_field(line, "residual", static_cast<double>(state.residual.n), state.residual.mean,
              standard_error(state.residual));
  check_field(line, "cosine", static_cast<double>(state.cosine.n), state.cosine.mean,
              standard_error(state.cosine));
}

TEST_CASE("every field as numpy has it") {
  for (const test::ModelCase& one : test::model_cases()) {
    std::ifstream in(MASQUE_TEST_DATA "/attn_probe/" + one.name + ".json");
    if (!in) continue;
    INFO(one.name);
    std::vector<JsonValue> lines;
    for (std::string text; std::getline(in, text);)
      lines.push_back(parse_json_file(text, "golden"));
    for (const auto precision : {kernel::Precision::kF32, kernel::Precision::kF64}) {
      const AttentionTotals totals = run(one, precision, {.rank_sentences = 100, .tokens = {9}});
      REQUIRE(std::ssize(lines) == 1 + totals.layers * totals.heads);
      CHECK(totals.sentences == 4);
      check_state(lines[0], totals.state[0]);
      for (std::size_t i = 1; i < lines.size(); ++i) {
        const HeadTotals& head = totals.head[i - 1];
        const std::size_t layer = (i - 1) / static_cast<std::size_t>(totals.heads);
        INFO("head ", i - 1);
        for (const HeadFieldInfo& field : kHeadFieldTable) {
          check_field(lines[i], field.name, static_cast<double>(head.count(field.field)),
                      head.mean(field.field), head.error(field.field));
        }
        REQUIRE(head.tokens.size() == 1);
        const Moments& token = head.tokens.front();
        check_field(lines[i], "token_9", static_cast<double>(token.n),
                    token.n == 0 ? std::nan("") : token.mean, standard_error(token));
        check_state(lines[i], totals.state[layer + 1]);
        const JsonValue* others = lines[i].find("js_to");
        REQUIRE(others != nullptr);
        for (std::size_t g = 0; g < others->items.size(); ++g) {
          const double mean =
              totals.divergence[(i - 1) * static_cast<std::size_t>(totals.heads) + g].mean;
          CHECK(std::fabs(mean - others->items[g].number().value()) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("layers are compared within their tower") {
  const model::Design design =
      model::test::tiny_design("\"num_hidden_layers\": 4, \"streams\": \"towers\"");
  test::TempFolder folder;
  model::save_model(folder / "towers", design, model::test::random_weights<float>(design, 5));
  const auto model = model::open_model(folder / "towers");
  AttentionStats stats(*model, {.compares_layers = true});
  MarkedItem item;
  item.sequence.ids = {2, 7, 9, 8, 11, 3};
  stats.add(std::move(item));
  stats.flush();
  const AttentionTotals& totals = stats.totals();
  REQUIRE(totals.layers == 4);
  for (Index layer = 0; layer < 4; ++layer) {
    const HeadTotals& head = totals.of(layer, 0);
    const std::uint64_t compared = layer % 2 == 1 ? 1 : 0;
    CHECK(head.count(HeadField::kBelowCosine) == compared);
    CHECK(head.count(HeadField::kLowestDivergence) == compared);
    if (compared == 1)
      CHECK(head.mean(HeadField::kBelowCosine) == head.mean(HeadField::kLowestCosine));
  }
}

TEST_CASE("the same bits for any batches and threads") {
  for (const test::ModelCase& one : test::model_cases()) {
    if (one.name != "bert") continue;
    const AttentionTotals all = run(one, kernel::Precision::kF32, {});
    for (const int threads : {1, 3}) {
      kernel::set_threads(threads);
      for (const Index tokens : {1, 10}) {
        const AttentionTotals parts = run(one, kernel::Precision::kF32, {.batch_tokens = tokens});
        REQUIRE(parts.head.size() == all.head.size());
        for (std::size_t h = 0; h < all.head.size(); ++h) {
          for (std::size_t f = 0; f < kHeadFields; ++f) {
            CHECK(parts.head[h].fields[f].mean == all.head[h].fields[f].mean);
            CHECK(parts.head[h].fields[f].sum_squares == all.head[h].fields[f].sum_squares);
          }
          CHECK(parts.head[h].partition.xy == all.head[h].partition.xy);
        }
        CHECK(parts.state.back().cosine.mean == all.state.back().cosine.mean);
      }
    }
    kernel::set_threads(0);
  }
}

/// The model in another folder, with tensors whose names hold `part` set to 0.
void copy_without(const std::string& from, const std::string& to, std::string_view part) {
  std::filesystem::create_directories(to);
  std::filesystem::copy_file(from + "/config.json", to + "/config.json");
  std::ifstream in(from + "/model.safetensors", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  const JsonValue header = parse_json_file(std::string_view(bytes).substr(8, size), "header");
  for (const JsonMember& tensor : header.members) {
    const JsonValue* offsets = tensor.value.find("data_offsets");
    if (offsets == nullptr || tensor.name.find(part) == std::string::npos) continue;
    const std::uint64_t begin = offsets->items[0].integer().value();
    const std::uint64_t end = offsets->items[1].integer().value();
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(8 + size + begin), end - begin, '\0');
  }
  std::ofstream(to + "/model.safetensors", std::ios::binary) << bytes;
}

TEST_CASE("queries that are 0 read everything alike") {
  const test::TempFolder temp;
  for (test::ModelCase one : test::model_cases()) {
    if (one.name != "bert" && one.name != "distilbert") continue;
    const std::string folder = temp.path() + "/" + one.name;
    copy_without(one.folder, folder, one.name == "bert" ? "self.query" : "attention.q_lin");
    one.folder = folder;
    double log_n = 0;
    double rows = 0;
    for (const test::ModelLine& line : one.lines) {
      if (!line.positions.empty()) continue;
      const auto n = static_cast<double>(line.ids.size());
      log_n += n * std::log(n);
      rows += n;
    }
    const AttentionTotals totals = run(one, kernel::Precision::kF32, {.rank_sentences = 100});
    for (const HeadTotals& head : totals.head) {
      CHECK(std::fabs(head.mean(HeadField::kEntropy) - log_n / rows) < 1e-6);
      CHECK(std::fabs(head.mean(HeadField::kEntropyRelative) - 1) < 1e-6);
      CHECK(std::fabs(head.mean(HeadField::kSparsity) - 1) < 1e-6);
      CHECK(std::fabs(head.mean(HeadField::kMutualInformation)) < 1e-6);
      CHECK(head.mean(HeadField::kDivergence) < 1e-6);
      CHECK(std::fabs(head.mean(HeadField::kPartitionSlope) - 1) < 1e-6);  // Z = n
      CHECK(head.mean(HeadField::kMapRank) == 1);
      CHECK(head.count(HeadField::kLogitsRank) == 0);  // a matrix of zeros has none
    }
  }
}

TEST_CASE("models of all designs: finite, within bounds, and nan for one length") {
  for (const test::ModelCase& one : test::model_cases()) {
    INFO(one.name);
    if (one.name.starts_with("fnet")) {
      CHECK(test::message_of<UsageError>([&] { run(one, kernel::Precision::kF32, {}); }) ==
            "fnet has no attention weights");
      continue;
    }
    const AttentionTotals totals = run(one, kernel::Precision::kF32, {});
    for (const HeadTotals& head : totals.head) {
      CHECK(head.count(HeadField::kEntropy) > 0);
      CHECK(head.mean(HeadField::kEntropyRelative) <= 1 + 1e-6);
      CHECK(head.mean(HeadField::kEntropyRelative) >= 0);
      CHECK(head.mean(HeadField::kMaxWeight) <= 1 + 1e-6);
      CHECK(head.mean(HeadField::kMutualInformation) >= -1e-6);
      CHECK(head.count(HeadField::kPartitionSlope) > 0);
      CHECK(std::isfinite(head.mean(HeadField::kPartitionSlope)));
    }
    test::ModelCase same = one;
    same.lines.assign(3, one.lines[2]);
    for (const HeadTotals& head : run(same, kernel::Precision::kF32, {}).head)
      CHECK(std::isnan(head.mean(HeadField::kPartitionSlope)));
  }
}

}  // namespace
}  // namespace masque::evaluate
