// A tensor's values as text that reads back to the same bits, and as bytes.
#include "store/inspect/print_tensor.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "store/values.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/naive_json.hpp"
#include "support/table.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::make_safetensors;
using test::message_of;
using test::naive_json;
using test::Row;
using test::SmallTensor;
using test::split;
using test::TempFolder;
using test::write_file;

TensorInfo tensor_of(const Shape& shape) {
  return {.name = "t\n", .dtype = DType::kF32, .shape = shape};
}

TEST_CASE("row ranges are read as slices of the first dimension") {
  struct Range {
    const char* text;
    std::uint64_t begin;
    std::uint64_t end;
  };
  const TensorInfo ten = tensor_of({10, 3});
  for (const Range& range : {Range{"", 0, 10},
                             {":", 0, 10},
                             {"0:10", 0, 10},
                             {"0:", 0, 10},
                             {":10", 0, 10},
                             {"3:7", 3, 7},
                             {"3:", 3, 10},
                             {":7", 0, 7},
                             {"3", 3, 4},
                             {"9", 9, 10},
                             {"5:5", 5, 5},
                             {"10:10", 10, 10},
                             {"10:", 10, 10},
                             {":0", 0, 0}}) {
    const RowRange found = parse_row_range(range.text, ten);
    CAPTURE(range.text);
    CHECK(found.begin == range.begin);
    CHECK(found.end == range.end);
  }
  CHECK(parse_row_range("", tensor_of({})).end == 1);  // a scalar has one row
  CHECK(parse_row_range("0", tensor_of({})).end == 1);
  CHECK(parse_row_range("", tensor_of({0, 5})).end == 0);
}

TEST_CASE("rows that a tensor does not have are an error that says how many it has") {
  for (const char* text : {"10", "11", "0:11", "11:", "11:11", "7:3", ":11", "18446744073709551615",
                           "18446744073709551615:", "0:18446744073709551615"}) {
    CAPTURE(text);
    CHECK(message_of([&] { parse_row_range(text, tensor_of({10})); }) ==
          fmt::format("tensor 't\\n': rows {}, the tensor has 10 rows", text));
  }
  CHECK(contains(message_of([] { parse_row_range("1", tensor_of({})); }), "the tensor has 1 rows"));
  CHECK(
      contains(message_of([] { parse_row_range("0", tensor_of({0})); }), "the tensor has 0 rows"));
}

TEST_CASE("what is no range is a wrong command line") {
  for (const char* text : {"a", "1:b", "a:2", "-1", "-3:", ":-1", "1-2", "1:2:3", "::", " 1", "1 ",
                           "1: 2", "0x1", "+1", "1.0", "01", "18446744073709551616", "\xFF"}) {
    CAPTURE(text);
    const std::string message =
        message_of<UsageError>([&] { parse_row_range(text, tensor_of({10})); });
    CHECK(message.starts_with("rows: found '"));
    CHECK(message.ends_with("', expected A:B, A: or A"));
  }
}

struct Printer {
  explicit Printer(const std::vector<SmallTensor>& tensors) {
    write_file(folder / "x.safetensors", make_safetensors(tensors));
    checkpoint.emplace(open_checkpoint(folder / "x.safetensors"));
  }
  std::string print(PrintForm form, const std::string& rows = "",
                    const std::string& name = "a") const {
    const TensorInfo& tensor = checkpoint->get(name);
    std::string out;
    print_tensor(*checkpoint, tensor, parse_row_range(rows, tensor), form,
                 [&](std::string_view text) { out += text; });
    return out;
  }
  TempFolder folder;
  std::optional<Checkpoint> checkpoint;
};

TEST_CASE("rows are lines, and the rows of rows stay on them") {
  const Printer p({{"a", "I16", {2, 3}, raw<std::int16_t>({1, -2, 3, 4, 5, -6})},
                   {"b", "I16", {2, 1, 3}, raw<std::int16_t>({1, -2, 3, 4, 5, -6})},
                   {"c", "I16", {3}, raw<std::int16_t>({1, -2, 3})},
                   {"d", "I16", {}, raw<std::int16_t>({-7})}});
  CHECK(p.print(PrintForm::kTsv) == "1\t-2\t3\n4\t5\t-6\n");
  CHECK(p.print(PrintForm::kJson) == "[1,-2,3]\n[4,5,-6]\n");
  CHECK(p.print(PrintForm::kRaw) == raw<std::int16_t>({1, -2, 3, 4, 5, -6}));
  CHECK(p.print(PrintForm::kTsv, "1") == "4\t5\t-6\n");
  CHECK(p.print(PrintForm::kJson, ":1") == "[1,-2,3]\n");
  CHECK(p.print(PrintForm::kRaw, "1:") == raw<std::int16_t>({4, 5, -6}));
  CHECK(p.print(PrintForm::kTsv, "1:1") == "");
  CHECK(p.print(PrintForm::kTsv, "", "b") == "1\t-2\t3\n4\t5\t-6\n");
  CHECK(p.print(PrintForm::kTsv, "", "c") == "1\n-2\n3\n");
  CHECK(p.print(PrintForm::kJson, "1", "c") == "[-2]\n");
  CHECK(p.print(PrintForm::kTsv, "", "d") == "-7\n");
  CHECK(p.print(PrintForm::kJson, "0", "d") == "[-7]\n");
}

TEST_CASE("a tensor without elements prints nothing") {
  const Printer p({{"a", "F32", {0}, ""}, {"b", "F32", {2, 0}, ""}, {"c", "F4", {0, 2}, ""}});
  for (const char* name : {"a", "b"}) {
    for (const PrintForm form : {PrintForm::kTsv, PrintForm::kJson, PrintForm::kRaw}) {
      CHECK(p.print(form, "", name) == "");
    }
  }
  CHECK(p.print(PrintForm::kRaw, "", "c") == "");
}

TEST_CASE("numbers of every type read back to the same bits") {
  for (const DType dtype : all_dtypes()) {
    if (is_packed(dtype)) continue;
    const std::size_t each = dtype_bits(dtype) / 8;
    std::string bytes = random_bytes(1, 512 * each);
    if (dtype == DType::kBool) {
      for (char& c : bytes) c &= 1;
    }
    const auto values = decoded(dtype, bytes);
    const Printer p({{"a", std::string(dtype_name(dtype)), {64, 8}, bytes}});
    const std::string text = p.print(PrintForm::kTsv);
    CAPTURE(dtype_name(dtype));
    std::size_t i = 0;
    std::size_t wrong = 0;
    const Row lines = split(text, '\n');
    REQUIRE(lines.size() == 65);
    for (std::size_t row = 0; row < 64; ++row) {
      const Row fields = split(lines[row], '\t');
      REQUIRE(fields.size() == 8);
      for (const std::string& field : fields) {
        const Row parts = split(field, ',');
        REQUIRE(parts.size() == components(dtype));
        for (const std::string& part : parts) {
          const double x = values[i++];
          if (std::isnan(x)) {
            wrong += !contains(part, "nan");
          } else if (dtype == DType::kI64) {
            std::int64_t whole = 0;
            std::memcpy(&whole, &bytes[8 * (i - 1)], 8);
            wrong += part != std::to_string(whole);
          } else if (dtype == DType::kU64) {
            std::uint64_t whole = 0;
            std::memcpy(&whole, &bytes[8 * (i - 1)], 8);
            wrong += part != std::to_string(whole);
          } else if (dtype == DType::kF64) {
            wrong += std::strtod(part.c_str(), nullptr) != x;
          } else if (is_float(dtype) || dtype == DType::kC64) {
            wrong += std::strtof(part.c_str(), nullptr) != static_cast<float>(x);
          } else {
            wrong += part != fmt::format("{}", static_cast<std::int64_t>(x));
          }
        }
      }
    }
    CHECK(wrong == 0);
    CHECK(i == values.size());
    CHECK((p.print(PrintForm::kRaw) == bytes));
  }
}

TEST_CASE("JSON is JSON: what is not finite is null, complex numbers are pairs") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Printer p({{"a", "F32", {1, 5}, raw<float>({nan, inf, -inf, -0.0F, 1e-45F})},
                   {"b", "C64", {2, 1}, raw<float>({1, -2.5F, 3, nan})},
                   {"c", "BOOL", {2}, std::string("\0\1", 2)},
                   {"d", "U64", {1}, raw<std::uint64_t>({UINT64_MAX})}});
  CHECK(p.print(PrintForm::kJson) == "[null,null,null,-0,1e-45]\n");
  CHECK(p.print(PrintForm::kJson, "", "b") == "[[1,-2.5]]\n[null]\n");
  CHECK(p.print(PrintForm::kTsv, "", "b") == "1,-2.5\n3,nan\n");
  CHECK(p.print(PrintForm::kJson, "", "c") == "[0]\n[1]\n");
  CHECK(p.print(PrintForm::kTsv, "", "d") == "18446744073709551615\n");
  CHECK(p.print(PrintForm::kTsv) == "nan\tinf\t-inf\t-0\t1e-45\n");
  for (const char* name : {"a", "b", "c", "d"}) {
    for (const std::string& line : split(p.print(PrintForm::kJson, "", name), '\n')) {
      if (!line.empty()) CHECK(naive_json(line, 3).has_value());
    }
  }
}

/// What the text should be, value by value.
std::string expected_text(const std::vector<float>& values, std::size_t width, bool json) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % width == 0) {
      text += json ? "[" : "";
    } else {
      text += json ? "," : "\t";
    }
    text += fmt::format("{}", values[i]);
    if (i % width == width - 1) text += json ? "]\n" : "\n";
  }
  return text;
}

TEST_CASE("rows that cross the pieces in which a tensor is read stay whole") {
  for (const std::size_t width : {1U, 3U, 1000U, 16383U, 16384U, 16385U, 50000U}) {
    const std::size_t rows = 70000 / width + 2;
    std::vector<float> values;
    for (const double x : normal_values(width, rows * width, 1)) {
      values.push_back(static_cast<float>(x));
    }
    const Printer p({{"a", "F32", {rows, width}, raw(values)}});
    CAPTURE(width);
    CHECK((p.print(PrintForm::kTsv) == expected_text(values, width, false)));
    CHECK((p.print(PrintForm::kJson) == expected_text(values, width, true)));
    CHECK((p.print(PrintForm::kRaw) == raw(values)));
    const std::vector<float> last(values.end() - static_cast<std::ptrdiff_t>(width), values.end());
    CHECK((p.print(PrintForm::kTsv, fmt::format("{}:", rows - 1)) ==
           expected_text(last, width, false)));
    const std::vector<float> middle(values.begin() + static_cast<std::ptrdiff_t>(width),
                                    values.end());
    CHECK((p.print(PrintForm::kJson, "1:") == expected_text(middle, width, true)));
  }
}

TEST_CASE("text of packed types is refused, their bytes are not") {
  const Printer p({{"a", "F4", {3, 4}, "abcdef"}});
  for (const PrintForm form : {PrintForm::kTsv, PrintForm::kJson}) {
    CHECK(message_of([&] { p.print(form); }) == p.folder /
                                                    "x.safetensors: tensor 'a' is F4: values of "
                                                    "this type cannot be printed (use format raw)");
  }
  CHECK(p.print(PrintForm::kRaw) == "abcdef");
  CHECK(p.print(PrintForm::kRaw, "1") == "cd");
  CHECK(p.print(PrintForm::kRaw, "1:3") == "cdef");
}

TEST_CASE("rows of packed types that begin inside a byte lose none") {
  const Printer p({{"a", "F4", {4, 3}, "abcdef"}, {"b", "F4", {8, 1}, "wxyz"}});
  CHECK(p.print(PrintForm::kRaw) == "abcdef");
  CHECK(p.print(PrintForm::kRaw, "", "b") == "wxyz");
  CHECK(p.print(PrintForm::kRaw, "2:4") == "def");
  CHECK(contains(message_of([&] { p.print(PrintForm::kRaw, "1:4"); }),
                 "rows 1 to 4 begin or end inside a byte"));
}

}  // namespace
}  // namespace masque::store
