#include "surgery/correction/mlm_correction.hpp"

#include <cmath>
#include <limits>

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

/// The formula, straight from its definition.
std::vector<double> corrected(const std::vector<double>& table, std::size_t width,
                              const MlmCorrection& c, const std::vector<double>& weights) {
  const std::size_t rows = table.size() / width;
  std::vector<double> out = table;
  for (std::size_t i = 0; i < rows; ++i) {
    bool kept = false;
    for (const std::uint64_t row : c.kept_rows) kept = kept || row == i;
    if (kept) continue;
    for (std::size_t j = 0; j < width; ++j) {
      double mean = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        const double w = weights.empty() ? 1.0 / static_cast<double>(rows) : weights[r];
        mean += w * table[r * width + j];
      }
      const MlmRates& p = c.rates;
      out[i * width + j] = (1 - p.rate + p.rate * p.keep) * table[i * width + j] +
                           p.rate * p.mask * table[c.mask_row * width + j] +
                           p.rate * p.random * mean;
    }
  }
  return out;
}

std::vector<double> applied(const store::Checkpoint& checkpoint, const AffineRows& map) {
  const store::TensorInfo& table = checkpoint.get(kTable);
  std::vector<std::byte> bytes(table.bytes());
  checkpoint.read(table, 0, bytes);
  map_rows(map, table.dtype, table.shape[1], 0, bytes, bytes);
  std::vector<double> values(table.elements());
  to_double(table.dtype, bytes, values);
  return values;
}

TEST_CASE("a table of 5 rows by hand") {
  // Rows of one number; [MASK] is row 4, kept; mean 3.
  const TempFolder folder;
  write_file(folder / "a.safetensors",
             example_file({{kTable, DType::kF64, {5, 1}, {1, 2, 3, 4, 5}}}));
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "a.safetensors");
  MlmCorrection c;
  c.mask_row = 4;
  c.kept_rows = {4};
  const auto map = mlm_map(checkpoint, checkpoint.get(kTable), c, {}, 1);
  // 0.865·E + 0.12·5 + 0.015·3 = 0.865·E + 0.645
  const std::vector<double> expected = {1.51, 2.375, 3.24, 4.105, 5};
  CHECK(far_off(applied(checkpoint, map), expected, 1e-15, 1e-15) == "");
}

TEST_CASE("the map is the formula, for every kind of mean, kept rows and type") {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const bool weighted : {false, true}) {
      for (const bool keep : {false, true}) {
        CAPTURE(dtype_name(dtype));
        CAPTURE(weighted);
        CAPTURE(keep);
        const TempFolder folder;
        ExampleBert bert;
        bert.rows = 301;
        bert.width = 37;
        bert.dtype = dtype;
        bert.write(folder);
        const store::Checkpoint checkpoint = store::open_checkpoint(folder / "in");
        const auto table = values_of(checkpoint, kTable);
        MlmCorrection c;
        c.rates = {0.4, 0.5, 0.2, 0.3};
        c.mask_row = 4;
        if (keep) c.kept_rows = {0, 2, 3, 4};
        std::vector<double> weights;
        if (weighted) {
          weights.assign(bert.rows, 0.0);
          weights[6] = 0.75;
          weights[300] = 0.25;
        }
        const auto map = mlm_map(checkpoint, checkpoint.get(kTable), c, weights, 2);
        const auto expected = corrected(table, bert.width, c, weights);
        // Half a unit in the last place of the type, of the exact value.
        const double half_ulp = dtype == DType::kF16    ? 0x1p-11
                                : dtype == DType::kBF16 ? 0x1p-8
                                : dtype == DType::kF32  ? 0x1p-24
                                                        : 0x1p-50;
        const double tiny = dtype == DType::kF16 ? 0x1p-25 : 1e-17;
        CHECK(far_off(applied(checkpoint, map), expected, tiny, half_ulp * (1 + 1e-9)) == "");
      }
    }
  }
}

TEST_CASE("the inverse recovers the table up to rounding, whatever was kept and averaged") {
  for (const bool weighted : {false, true}) {
    for (const std::vector<std::uint64_t>& kept :
         {std::vector<std::uint64_t>{}, {0, 2, 3, 4}, {4}, {0, 6}}) {
      CAPTURE(weighted);
      CAPTURE(kept.size());
      const TempFolder folder;
      ExampleBert bert;
      bert.rows = 97;
      bert.width = 8;
      bert.dtype = DType::kF64;
      bert.write(folder);
      const store::Checkpoint before = store::open_checkpoint(folder / "in");
      MlmCorrection c;
      c.rates = {0.5, 0.6, 0.1, 0.3};
      c.mask_row = 4;
      c.kept_rows = kept;
      std::vector<double> weights;
      if (weighted) {
        weights.assign(bert.rows, 0.5 / 96);
        weights[6] = 0.5;
      }
      const auto map = mlm_map(before, before.get(kTable), c, weights, 1);
      auto tensors = bert.tensors();
      tensors[0].values = applied(before, map);
      write_file(folder / "out/model.safetensors", example_file(tensors));
      const store::Checkpoint after = store::open_checkpoint(folder / "out");
      const auto inverse = inverse_mlm_map(after, after.get(kTable), c, weights, 1);
      CHECK(far_off(applied(after, inverse), values_of(before, kTable), 1e-15, 1e-13) == "");
    }
  }
}

TEST_CASE("a correction that leaves nothing of a row has no inverse") {
  const TempFolder folder;
  ExampleBert().write(folder);
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "in");
  MlmCorrection c;
  c.rates = {1, 1, 0, 0};
  c.mask_row = 4;
  CHECK(contains(message_of([&] { inverse_mlm_map(checkpoint, checkpoint.get(kTable), c, {}, 1); }),
                 "cannot be inverted"));
}

TEST_CASE("a row that is not finite is named if it counts in the mean, and harmless if not") {
  const TempFolder folder;
  ExampleBert bert;
  auto tensors = bert.tensors();
  tensors[0].values[7 * bert.width + 1] = std::numeric_limits<double>::infinity();
  write_file(folder / "model.safetensors", example_file(tensors));
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "model.safetensors");
  MlmCorrection c;
  c.mask_row = 4;
  CHECK(contains(message_of([&] { mlm_map(checkpoint, checkpoint.get(kTable), c, {}, 1); }),
                 "row 7 holds inf"));
  std::vector<double> weights(bert.rows, 0.1);
  weights[7] = 0;
  const auto map = mlm_map(checkpoint, checkpoint.get(kTable), c, weights, 1);
  for (const double value : map.shift) CHECK(std::isfinite(value));
}

TEST_CASE("the same bits for any number of threads") {
  const TempFolder folder;
  ExampleBert bert;
  bert.rows = 20011;
  bert.width = 33;
  bert.write(folder);
  const store::Checkpoint checkpoint = store::open_checkpoint(folder / "in");
  MlmCorrection c;
  c.mask_row = 4;
  const auto one = mlm_map(checkpoint, checkpoint.get(kTable), c, {}, 1);
  for (const int threads : {2, 3, 7}) {
    CHECK(mlm_map(checkpoint, checkpoint.get(kTable), c, {}, threads).shift == one.shift);
  }
}

TEST_CASE("rates outside their range, or that do not add up, are refused") {
  const auto message = [](MlmRates rates) {
    return message_of<UsageError>([&] { check_rates(rates); });
  };
  CHECK(message({}) == "(nothing thrown)");
  CHECK(message({0.15, 0.7, 0.1, 0.1}).starts_with("mask, keep and random add up to 0.9"));
  CHECK(message({1.5, 0.8, 0.1, 0.1}) == "rate: found 1.5, expected 0 to 1");
  CHECK(message({0.15, std::nan(""), 0.1, 0.1}) == "mask: found nan, expected 0 to 1");
}

TEST_CASE("a marker reads back to the correction that wrote it, others are not ours") {
  MlmCorrection c;
  c.rates = {0.3, 0.5, 0.25, 0.25};
  c.mask_row = 103;
  c.kept_rows = {0, 101, 102, 103};
  c.mean = MeanKind::kFrequency;
  c.weights_digest = "abc";
  const auto read = MlmCorrection::parse(c.marker());
  REQUIRE(read);
  CHECK(read->rates == c.rates);
  CHECK(read->mask_row == 103);
  CHECK(read->kept_rows == c.kept_rows);
  CHECK(read->mean == MeanKind::kFrequency);
  CHECK(read->weights_digest == "abc");
  for (const char* text :
       {"", "rate=0.15", "rate=x mask=0.8 keep=0.1 random=0.1 mask_row=1 kept= mean=vocab",
        "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=-1 kept= mean=vocab",
        "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=1 kept=1 mean=vocab x=1",
        "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=1 kept=1 mean=median",
        "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=1 kept=2,1 mean=vocab",
        "rate=0.15 mask=0.8 keep=0.1 random=0.1 mask_row=1 kept=1,1 mean=vocab",
        "rate=0.15 mask=0.8 keep=0.1 random=0.1 kept=1 kept=2 mean=vocab"}) {
    CAPTURE(text);
    CHECK_FALSE(MlmCorrection::parse(text));
  }
}

TEST_CASE("counts: by tokens, by ids, and every way in which a line can be wrong") {
  const TempFolder folder;
  write_file(folder / "vocab.txt", "[PAD]\nthe\nof\n7\n");
  const TokenNames names = TokenNames::load(folder.path());
  const auto weights = [&](std::string_view text) {
    return frequency_weights(text, "counts", 6, names);
  };
  CHECK(weights("the\t3\nof\t1\n") == std::vector<double>{0, 0.75, 0.25, 0, 0, 0});
  CHECK(weights("1\t1\r\n4\t1") == std::vector<double>{0, 0.5, 0, 0, 0.5, 0});
  CHECK(weights("the\t1\n7\t1\n") == std::vector<double>{0, 0.5, 0, 0.5, 0, 0});
  const auto message = [&](std::string_view text) { return message_of([&] { weights(text); }); };
  CHECK(message("the 3\n") == "counts:1: found 'the 3', expected a token or id, a tab and a count");
  CHECK(message("the\t3\nof\tx\n").starts_with("counts:2: found"));
  CHECK(message("the\t-3\n").starts_with("counts:1: found"));
  CHECK(message("the\tinf\n").starts_with("counts:1: found"));
  CHECK(message("the\t3\nnone\t1\n") == "counts:2: no token 'none' in the vocabulary");
  CHECK(message("6\t3\n") == "counts:1: id 6, expected an id below 6");
  CHECK(message("the\t3\nthe\t1\n") == "counts:2: 'the' is listed twice");
  CHECK(message("the\t0\n").starts_with("counts: no count above 0"));
  CHECK(message("").starts_with("counts: no count above 0"));
}

TEST_CASE("used rows leave out [unusedN] and rows without a token") {
  const TempFolder folder;
  write_file(folder / "vocab.txt", "[PAD]\n[unused1]\nthe\n");
  const auto weights = used_weights(5, TokenNames::load(folder.path()));
  CHECK(weights == std::vector<double>{0.5, 0, 0.5, 0, 0});
}

}  // namespace
}  // namespace masque::surgery
