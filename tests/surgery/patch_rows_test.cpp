#include "surgery/patch/patch_rows.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "store/inspect/compare_checkpoints.hpp"
#include "support/message.hpp"
#include "support/near.hpp"
#include "surgery/example.hpp"
#include "surgery/rows/row_expression.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::far_off;
using test::message_of;
using test::names_in;
using test::read_file;
using test::TempFolder;
using test::write_file;

using Vector = std::vector<double>;

/// A table of known rows with names, to run expressions on.
struct Table {
  explicit Table(const std::string& vocabulary = "[PAD]\nMASK\n[MASK]\nking\n##s\na\"b\n[X]\n") {
    ExampleTensor tensor{kTable, DType::kF32, {8, 2}, {}};
    for (int i = 0; i < 16; ++i) tensor.values.push_back(i);
    write_file(folder / "in/model.safetensors", example_file({tensor}));
    if (!vocabulary.empty()) write_file(folder / "in/vocab.txt", vocabulary);
    checkpoint = store::open_checkpoint(folder / "in");
    names = TokenNames::load(folder / "in");
  }

  std::map<std::uint64_t, Vector> after(std::string_view program) const {
    RowExpressions expressions(checkpoint, checkpoint.get(kTable), names);
    expressions.run(program);
    return expressions.rows();
  }
  /// The value of an expression.
  Vector value(const std::string& expression) const { return after("#0 = " + expression).at(0); }
  std::string error(std::string_view program) const {
    return message_of<UsageError>([&] { after(program); });
  }

  TempFolder folder;
  store::Checkpoint checkpoint;
  TokenNames names;
};

Vector row(double i) { return {2 * i, 2 * i + 1}; }

TEST_CASE("rows are written in brackets, in quotes or as ids") {
  const Table t;
  CHECK(t.value("[king]") == row(3));
  CHECK(t.value("\"king\"") == row(3));
  CHECK(t.value("'king'") == row(3));
  CHECK(t.value("#3") == row(3));
  CHECK(t.value("#7") == row(7));  // a row without a token
  CHECK(t.value("[##s]") == row(4));
  CHECK(t.value("[[MASK]]") == row(2));
  CHECK(t.value("\"[MASK]\"") == row(2));
  CHECK(t.value("\"MASK\"") == row(1));
  CHECK(t.value("[X]") == row(6));  // there is no token X
  CHECK(t.value("[[X]]") == row(6));
  CHECK(t.value("[a\"b]") == row(5));
  CHECK(t.value(R"("a\"b")") == row(5));
  CHECK(t.error("#0 = [MASK]") ==
        "'#0 = [MASK]': byte 6: 'MASK' and '[MASK]' are both tokens: write \"MASK\" or \"[MASK]\"");
}

TEST_CASE("sums, products, functions, and what binds first") {
  const Table t;
  CHECK(t.value("0.5*[king] + 0.5*mean([PAD], #4)") == Vector{0.5 * 6 + 2, 0.5 * 7 + 2.5});
  CHECK(t.value("#1 + #2 * 2 - -#3 / 2") == Vector{2 + 8 + 3, 3 + 10 + 3.5});
  CHECK(t.value("(#1 + #2) * 2") == Vector{12, 16});
  CHECK(t.value("2 * 3 * #1 / (1 + 1)") == Vector{6, 9});
  CHECK(t.value("1e-1*#1") == Vector{0.1 * 2, 0.1 * 3});
  CHECK(t.value("sum(#1, #2, #3)") == Vector{12, 15});
  CHECK(t.value("mean(#1)") == row(1));
  const double norm = std::sqrt(6.0 * 6 + 7 * 7);
  CHECK(t.value("unit([king])") == Vector{6 / norm, 7 / norm});
  CHECK(t.value("norm([king]) * #1") == Vector{norm * 2, norm * 3});
}

TEST_CASE("assignments run in order, each on what the earlier ones left") {
  const Table t;
  const auto rows = t.after(" king = #1 + #1 ; [##s]=[king]+#0\n;#1 = [king] ");
  CHECK(rows == std::map<std::uint64_t, Vector>{{1, {4, 6}}, {3, {4, 6}}, {4, {4, 7}}});
}

TEST_CASE("every mistake is reported with its byte") {
  const Table t;
  struct Case {
    const char* program;
    const char* message;
  };
  for (const Case& c : {
           Case{"", "byte 1: expected ROW = EXPRESSION"},
           {"#1 = #2;", "byte 9: expected ROW = EXPRESSION"},
           {"= #2", "byte 1: found '=', expected a row"},
           {"#1 #2", "byte 4: found '#', expected '=' after the row"},
           {"#1 = ", "byte 6: ends, expected a row, a number, a function or '('"},
           {"#1 = #2 #3", "byte 9: found '#', expected an operator, ';' or the end"},
           {"#1 = #8", "byte 6: id 8, expected an id below 8"},
           {"#1 = #x", "byte 6: expected an id after '#'"},
           {"#1 = [queen]", "byte 6: no token 'queen' in vocab.txt"},
           {"queen = #1", "byte 1: no token 'queen' in vocab.txt"},
           {"#1 = [king", "byte 6: unclosed bracket"},
           {"#1 = 'king", "byte 6: unterminated quote"},
           {"#1 = 3", "byte 6: found a number, expected a row"},
           {"#1 = #2 + 3", "byte 9: cannot add or subtract a row and a number"},
           {"#1 = #2 * #3", "byte 9: cannot multiply two rows"},
           {"#1 = 1 / #3", "byte 8: cannot divide by a row, expected a number"},
           {"#1 = #3 / (1 - 1)", "byte 9: division by zero"},
           {"#1 = mean(#1, 2)", "byte 15: found a number, expected a row"},
           {"#1 = mean()", "byte 11: found ')', expected a row, a number, a function or '('"},
           {"#1 = unit(#1, #2)", "byte 6: unit takes one row"},
           {"#1 = unit(#1 - #1)",
            "byte 6: unit of a row with norm 0 or values that are not finite"},
           {"#1 = king",
            "byte 6: 'king': expected mean, norm, sum, unit, or a row, written [king]"},
           {"#1 = (#2", "byte 9: ends, expected ')'"},
           {"#1 = 1e999*#1", "byte 6: expected a number"},
       }) {
    CAPTURE(c.program);
    CHECK(t.error(c.program) == "'" + std::string(c.program) + "': " + c.message);
  }
  const std::string deep = "#1 = " + std::string(200, '(');
  CHECK(contains(t.error(deep), "nested deeper than 100 levels"));
  CHECK(contains(t.error("#1 = " + std::string(200, '-') + "#1"), "nested deeper than 100 levels"));
  CHECK(contains(Table("").error("#1 = [king]"), "no tokenizer file, expected #ID"));
}

PatchRequest request_of() {
  PatchRequest request;
  request.write.threads = 2;
  return request;
}

TEST_CASE("expressions change their rows and nothing else, in every type") {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    CAPTURE(dtype_name(dtype));
    const TempFolder folder;
    ExampleBert bert;
    bert.dtype = dtype;
    bert.rows = 300;
    bert.width = 1000;  // several blocks
    bert.write(folder);
    const auto report =
        apply_expressions(folder / "in", folder / "out",
                          {"the = 0.25*[of] - [and]", "#299 = mean([the], #298)"}, request_of());
    const auto before = values_of(store::open_checkpoint(folder / "in"), kTable);
    const auto after = values_of(store::open_checkpoint(folder / "out"), kTable);
    Vector expected = before;
    for (std::size_t d = 0; d < 1000; ++d) {
      const double the = 0.25 * before[7 * 1000 + d] - before[8 * 1000 + d];
      expected[6 * 1000 + d] = the;
      expected[299 * 1000 + d] = (the + before[298 * 1000 + d]) / 2;
    }
    std::vector<std::byte> bytes(expected.size() * dtype_bits(dtype) / 8);
    from_double(dtype, expected, bytes);
    to_double(dtype, bytes, expected);  // rounded once
    CHECK(after == expected);
    REQUIRE(report.rows.size() == 2);
    CHECK(report.rows[0].token == "the");
    CHECK(report.rows[1].row == 299);
    CHECK(report.changed == std::vector<std::string>{kTable});
  }
}

TEST_CASE("a tied head changes with the table, or is untied, or stops it") {
  for (const bool stored : {false, true}) {
    CAPTURE(stored);
    const TempFolder folder;
    ExampleBert bert;
    bert.decoder = stored;
    bert.write(folder);
    const std::string head = "cls.predictions.decoder.weight";
    PatchRequest request = request_of();
    const auto report = apply_expressions(folder / "in", folder / "kept", {"#1 = #2"}, request);
    const store::Checkpoint in = store::open_checkpoint(folder / "in");
    const store::Checkpoint kept = store::open_checkpoint(folder / "kept");
    CHECK(report.changed.size() == (stored ? 2 : 1));
    if (stored) {
      CHECK(values_of(kept, head) == values_of(kept, kTable));
    } else {
      CHECK(kept.find(head) == nullptr);
    }
    CHECK(read_file(folder / "kept/config.json") == bert.config);
    request.tied = TiedPolicy::kUntie;
    apply_expressions(folder / "in", folder / "untied", {"#1 = #2"}, request);
    const store::Checkpoint untied = store::open_checkpoint(folder / "untied");
    CHECK(values_of(untied, kTable) == values_of(kept, kTable));
    CHECK(values_of(untied, head) == values_of(in, kTable));
    CHECK(contains(read_file(folder / "untied/config.json"), "\"tie_word_embeddings\": false"));
    request.tied = TiedPolicy::kRefuse;
    CHECK(contains(
        message_of([&] { apply_expressions(folder / "in", folder / "no", {"#1 = #2"}, request); }),
        "the output head is tied"));
  }
}

TEST_CASE("in place it is the same bytes, and untying is refused") {
  for (const bool stored : {false, true}) {
    const TempFolder folder;
    ExampleBert bert;
    bert.decoder = stored;
    bert.write(folder);
    PatchRequest request = request_of();
    apply_expressions(folder / "in", folder / "out", {"the = [of] + [and]"}, request);
    request.in_place = true;
    request.tied = TiedPolicy::kUntie;
    CHECK(message_of([&] {
            apply_expressions(folder / "in", "", {"the = [of] + [and]"}, request);
          }) != "(nothing thrown)");
    request.tied = TiedPolicy::kKeep;
    request.dry_run = true;
    const std::string before = read_file(folder / "in/model.safetensors");
    apply_expressions(folder / "in", "", {"the = [of] + [and]"}, request);
    CHECK(read_file(folder / "in/model.safetensors") == before);
    request.dry_run = false;
    apply_expressions(folder / "in", "", {"the = [of] + [and]"}, request);
    CHECK(read_file(folder / "in/model.safetensors") ==
          read_file(folder / "out/model.safetensors"));
    CHECK(names_in(folder / "in") == names_in(folder / "out"));
  }
}

NormReport scaled(const TempFolder& folder, const std::string& out, std::optional<double> to,
                  std::optional<std::string> rows = {}) {
  NormRequest request;
  request.to = to;
  request.rows = std::move(rows);
  request.write.threads = 2;
  return scale_to_norm(folder / "in", folder / out, request);
}

TEST_CASE("norms: listed rows of zeros are not all rows") {
  const TempFolder folder;
  ExampleBert bert;
  auto tensors = bert.tensors();
  std::fill_n(tensors[0].values.begin(), bert.width, 0.0);
  bert.write(folder);
  write_file(folder / "in/model.safetensors", example_file(tensors));
  NormRequest request;
  request.tied = TiedPolicy::kKeep;
  request.rows = "0";
  CHECK(contains(message_of([&] { scale_to_norm(folder / "in", folder / "out", request); }),
                 "every listed row has norm 0"));
}

TEST_CASE("norms: to a number, to the mean, of some rows, rows of zeros stay") {
  const TempFolder folder;
  ExampleBert bert;
  bert.dtype = DType::kF64;
  bert.head = false;
  auto tensors = bert.tensors();
  for (std::size_t d = 0; d < 5; ++d) tensors[0].values[d] = 0;  // the row of [PAD]
  bert.write(folder);
  write_file(folder / "in/model.safetensors", example_file(tensors));
  const auto& before = tensors[0].values;
  const auto norm = [](std::span<const double> values, std::size_t i) {
    double sum = 0;
    for (std::size_t d = 0; d < 5; ++d) sum += values[5 * i + d] * values[5 * i + d];
    return std::sqrt(sum);
  };
  double mean = 0;
  for (std::size_t i = 1; i < 11; ++i) mean += norm(before, i) / 10;
  for (const bool to_mean : {false, true}) {
    const std::string out = to_mean ? "mean" : "unit";
    const auto report = scaled(folder, out, to_mean ? std::nullopt : std::optional(1.0));
    CHECK(report.rows == 10);
    CHECK(report.zero_rows == 1);
    CHECK(report.norm_before == doctest::Approx(mean).epsilon(1e-14));
    const double target = to_mean ? mean : 1;
    const auto after = values_of(store::open_checkpoint(folder / out), kTable);
    Vector expected = before;
    for (std::size_t i = 5; i < expected.size(); ++i)
      expected[i] = before[i] * target / norm(before, i / 5);
    CHECK(far_off(after, expected, 0, 1e-14) == "");
  }
  scaled(folder, "some", 2, "3-4,the,8");
  const auto after = values_of(store::open_checkpoint(folder / "some"), kTable);
  for (std::size_t i = 0; i < 11; ++i) {
    const bool listed = i == 3 || i == 4 || i == 6 || i == 8;
    CHECK(norm(after, i) == doctest::Approx(listed ? 2 : norm(before, i)).epsilon(1e-14));
  }
  for (const char* list : {"11", "4-3", "9-11", "nobody", ""}) {
    CAPTURE(list);
    CHECK(message_of([&] { scaled(folder, "no", 1, list); }) != "(nothing thrown)");
  }
  CHECK(contains(message_of([&] { scaled(folder, "no", 1, "0"); }), "nothing to scale"));
}

}  // namespace
}  // namespace masque::surgery
