#include "surgery/rows/row_init.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "support/near.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::far_off;
using test::message_of;
using test::TempFolder;
using test::write_file;

using Rows = std::vector<std::vector<double>>;

/// A folder with a table, its bias, and two new tokens after nine old ones (and two rows without
/// any).
struct InitExample {
  explicit InitExample(DType dtype = DType::kF32, const ExampleBert& bert = {}) {
    ExampleBert example = bert;
    example.dtype = dtype;
    example.write(folder);
    checkpoint.emplace(store::open_checkpoint(folder / "in"));
    names = TokenNames::load(folder / "in");
    for (std::uint64_t row = 0; row < 9; ++row) change.from.push_back(row);
    change.tokens.assign(9, "");
    for (const char* token : {"the of", "and"}) add(token);
  }

  void add(const std::string& token) {
    change.from.push_back(VocabularyChange::kNew);
    change.tokens.push_back(token);
  }

  const store::TensorInfo& table() const { return checkpoint->get(kTable); }
  const store::TensorInfo& bias() const { return checkpoint->get("cls.predictions.bias"); }

  RowInitContext context() {
    return {*checkpoint, names, change, table().shape[0], range, seed, 2, &notes};
  }

  std::vector<double> new_row(const std::string& spec, const store::TensorInfo& tensor,
                              std::uint64_t id) {
    const RowInitContext context = this->context();
    std::vector<double> out(tensor.shape.size() == 1 ? 1 : tensor.shape[1]);
    NewRows(context, spec).of(tensor)(id, out);
    return out;
  }

  Rows rows(const store::TensorInfo& tensor) const {
    const auto values = values_of(*checkpoint, tensor.name);
    const std::size_t width = values.size() / tensor.shape[0];
    Rows out;
    for (auto at = values.begin(); at != values.end(); at += static_cast<std::ptrdiff_t>(width))
      out.emplace_back(at, at + static_cast<std::ptrdiff_t>(width));
    return out;
  }

  TempFolder folder;
  std::optional<store::Checkpoint> checkpoint;
  TokenNames names;
  VocabularyChange change;
  std::vector<std::string> notes;
  std::optional<double> range;
  std::uint64_t seed = 0;
};

std::vector<double> mean_of(const Rows& rows, const std::vector<std::size_t>& which) {
  std::vector<double> mean(rows[0].size());
  for (std::size_t j = 0; j < mean.size(); ++j) {
    for (const std::size_t i : which) mean[j] += rows[i][j];
    mean[j] /= static_cast<double>(which.size());
  }
  return mean;
}

const std::vector<std::size_t> kAssigned{0, 1, 2, 3, 4, 5, 6, 7, 8};

double deviation_of(const Rows& rows) {
  double sum = 0;
  double squares = 0;
  double n = 0;
  for (const std::size_t i : kAssigned) {
    for (const double value : rows[i]) {
      sum += value;
      squares += value * value;
      ++n;
    }
  }
  return std::sqrt(squares / n - sum / n * sum / n);
}

/// What the first new row of an initializer is, by a plain formula; of a table of 11 rows.
const std::map<std::string, std::function<std::vector<double>(const Rows&, bool vector)>>&
init_formulas() {
  static const std::map<std::string, std::function<std::vector<double>(const Rows&, bool)>> kAll{
      {"mean", [](const Rows& rows, bool) { return mean_of(rows, kAssigned); }},
      {"zero", [](const Rows& rows, bool) { return std::vector<double>(rows[0].size()); }},
      {"copy:of", [](const Rows& rows, bool) { return rows[7]; }},
      {"compound:the,5,of",
       [](const Rows& rows, bool) {
         return mean_of(rows, {6, 5, 7});
       }},
      {"subword",
       [](const Rows& rows, bool) {
         return mean_of(rows, {6, 7});
       }},
      {"random",
       [](const Rows& rows, bool vector) {
         std::vector<double> out(rows[0].size());
         if (vector) return out;
         RandomStream(0, kTable, 9).normal(0, out.size(), out.data());
         for (double& value : out) value *= deviation_of(rows);
         return out;
       }},
      {"cov:0", [](const Rows& rows, bool) { return mean_of(rows, kAssigned); }},
  };
  return kAll;
}

TEST_CASE("every initializer against a plain formula, for tables and biases of every type") {
  for (const RowInit& init : row_inits()) {
    const auto is_spec = [&](const auto& pair) {
      return pair.first.substr(0, pair.first.find(':')) == init.name;
    };
    const auto formula = std::ranges::find_if(init_formulas(), is_spec);
    CAPTURE(std::string(init.name));
    REQUIRE(formula != init_formulas().end());
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
      InitExample example(dtype);
      for (const store::TensorInfo* tensor : {&example.table(), &example.bias()}) {
        const auto found = example.new_row(formula->first, *tensor, 9);
        const bool vector = tensor->shape.size() == 1;
        const auto expected = formula->second(example.rows(*tensor), vector);
        CHECK(far_off(found, expected, 1e-15, 1e-13) == "");
      }
    }
  }
}

TEST_CASE("a subword mean takes the pieces of each token") {
  InitExample example;
  const auto rows = example.rows(example.table());
  CHECK(example.new_row("subword", example.table(), 10) == rows[8]);
  CHECK(example.notes.empty());
  example.add("of the");
  example.add("queen of");
  CHECK(far_off(example.new_row("subword", example.table(), 11), mean_of(rows, {7, 6}), 0, 1e-15) ==
        "");
  CHECK(far_off(example.new_row("subword", example.table(), 12), mean_of(rows, {1, 7}), 0, 1e-15) ==
        "");
  CHECK(contains(example.notes.back(), "'queen of' has pieces"));
  example.add("");  // a row that pads
  CHECK(far_off(example.new_row("subword", example.table(), 13), mean_of(rows, kAssigned), 0,
                1e-13) == "");
  example.change.tokens.back() = " ";
  CHECK(contains(message_of([&] { example.new_row("subword", example.table(), 9); }),
                 "splits ' ' into no tokens"));
}

TEST_CASE("a subword mean of a continuation takes pieces that continue a word") {
  ExampleBert bert;
  bert.vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nin\n##in\n##g\ng\n";
  InitExample example(DType::kF32, bert);
  const auto rows = example.rows(example.table());
  example.add("##ing");
  example.add("ing");
  CHECK(far_off(example.new_row("subword", example.table(), 11), mean_of(rows, {6, 7}), 0, 1e-15) ==
        "");
  CHECK(far_off(example.new_row("subword", example.table(), 12), mean_of(rows, {5, 7}), 0, 1e-15) ==
        "");
}

/// Mean and covariance of many samples against those of the rows.
void check_gaussian(std::uint64_t rows, std::uint64_t width) {
  ExampleBert bert;
  bert.rows = rows;
  bert.width = width;
  bert.vocabulary.clear();
  InitExample example(DType::kF64, bert);
  const Rows old = example.rows(example.table());
  std::vector<std::size_t> all(rows);
  for (std::size_t i = 0; i < rows; ++i) all[i] = i;
  const auto mean = mean_of(old, all);
  const RowInitContext context = example.context();
  const RowValues values = NewRows(context, "cov:1").of(example.table());
  constexpr std::uint64_t kSamples = 40000;
  std::vector<double> sum(width);
  std::vector<double> products(width * width);
  std::vector<double> sample(width);
  for (std::uint64_t id = 0; id < kSamples; ++id) {
    values(id, sample);
    for (std::size_t i = 0; i < width; ++i) {
      sum[i] += (sample[i] - mean[i]) / kSamples;
      for (std::size_t j = 0; j < width; ++j)
        products[i * width + j] += (sample[i] - mean[i]) * (sample[j] - mean[j]) / kSamples;
    }
  }
  std::vector<double> covariance(width * width);
  for (const auto& row : old) {
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t j = 0; j < width; ++j) {
        covariance[i * width + j] +=
            (row[i] - mean[i]) * (row[j] - mean[j]) / static_cast<double>(rows);
      }
    }
  }
  // Six standard errors: values of 0.05 have variances of 0.0025.
  CHECK(far_off(sum, std::vector<double>(width), 6 * 0.05 / 200, 0) == "");
  CHECK(far_off(products, covariance, 6 * 0.0025 * std::sqrt(2.0) / 200, 0) == "");
}

TEST_CASE("cov: samples have the rows' mean and covariance, also where that has not full rank") {
  check_gaussian(40, 4);
  check_gaussian(3, 5);
  check_gaussian(1, 3);
  check_gaussian(300, 130);  // more than one panel
}

TEST_CASE("cov: the scale multiplies the covariance, 1e-5 by itself") {
  InitExample example(DType::kF64);
  const auto mean = mean_of(example.rows(example.table()), kAssigned);
  const auto whole = example.new_row("cov:1", example.table(), 9);
  const auto usual = example.new_row("cov", example.table(), 9);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    CHECK(usual[i] - mean[i] ==
          doctest::Approx(std::sqrt(1e-5) * (whole[i] - mean[i])).epsilon(1e-9));
    CHECK(usual[i] != mean[i]);
  }
}

TEST_CASE("random: the config's deviation, keyed by seed, tensor and id") {
  InitExample example;
  example.range = 0.5;
  std::vector<double> expected(5);
  RandomStream(3, kTable, 10).normal(0, 5, expected.data());
  for (double& value : expected) value *= 0.5;
  example.seed = 3;
  CHECK(example.new_row("random", example.table(), 10) == expected);
  CHECK(example.new_row("random", example.table(), 9) != expected);
  example.seed = 4;
  CHECK(example.new_row("random", example.table(), 10) != expected);
}

TEST_CASE("rows without a token may hold anything, others must be finite") {
  for (const std::uint64_t row : {std::uint64_t{10}, std::uint64_t{8}}) {
    const TempFolder folder;
    auto tensors = ExampleBert().tensors();
    tensors[0].values[row * 5 + 1] = NAN;
    write_file(folder / "in/model.safetensors", example_file(tensors));
    write_file(folder / "in/vocab.txt", kVocabulary);
    InitExample example;
    example.checkpoint.emplace(store::open_checkpoint(folder / "in"));
    for (const char* spec : {"mean", "cov", "random"}) {
      const std::string message = message_of([&] { example.new_row(spec, example.table(), 9); });
      CHECK(contains(message, row == 10 ? "nothing thrown" : "is not finite"));
    }
  }
}

TEST_CASE("what is no initializer") {
  InitExample example;
  const auto message = [&](const std::string& spec) {
    return message_of<Error>([&] { example.new_row(spec, example.table(), 9); });
  };
  CHECK(message("none") ==
        "init: found 'none', expected one of compound:A,B, copy:T, cov[:S], mean, random, "
        "subword, zero");
  CHECK(message("mean:1") == "init: found 'mean:1', expected mean");
  CHECK(message("copy") == "init: found 'copy', expected copy:T");
  CHECK(message("copy:") == "init: found 'copy:', expected copy:T");
  CHECK(message("cov:") == "init: found 'cov:', expected cov[:S]");
  CHECK(message("cov:-1") == "init cov: found '-1', expected a number from 0");
  CHECK(message("cov:inf") == "init cov: found 'inf', expected a number from 0");
  CHECK(contains(message("copy:nobody"), "no such token in vocab.txt"));
  CHECK(contains(message("copy:11"), "found row 11, expected a row below 11"));
  CHECK(contains(message("compound:the,,of"), "an empty name"));
  example.names = TokenNames();
  CHECK(contains(message("copy:the"), "no tokenizer file, expected an id"));
  CHECK(contains(message("subword"), "no tokenizer file"));
}

}  // namespace
}  // namespace masque::surgery
