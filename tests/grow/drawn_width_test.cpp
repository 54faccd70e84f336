// Widths that are no multiple: which numbers of the small model stand where.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "grow/grow_model.hpp"
#include "model/model.hpp"
#include "store/checkpoint.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"
#include "tensor/convert.hpp"

namespace masque::grow {
namespace {

using test::message_of;
using test::TempFolder;

struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
  double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
  std::vector<double> column(std::size_t j) const {
    std::vector<double> out;
    for (std::size_t i = 0; i < rows; ++i) out.push_back(at(i, j));
    return out;
  }
};

Matrix read(const std::string& folder, const std::string& name) {
  const store::Checkpoint checkpoint = store::open_checkpoint(folder);
  const store::TensorInfo& tensor = checkpoint.get(name);
  Matrix matrix;
  matrix.columns = tensor.shape.back();
  matrix.rows = tensor.elements() / matrix.columns;
  matrix.values.resize(tensor.elements());
  std::vector<std::byte> bytes(tensor.elements() * dtype_bits(tensor.dtype) / 8);
  checkpoint.read(tensor, 0, bytes);
  to_double(tensor.dtype, bytes, matrix.values);
  return matrix;
}

std::string folder_of(const std::string& name) {
  for (const test::ModelCase& one : test::model_cases())
    if (one.name == name) return one.folder;
  FAIL("no model ", name);
  return {};
}

std::string layer(int number, const std::string& name) {
  return "model.layers." + std::to_string(number) + "." + name;
}

void grow(const std::string& in, const std::string& out, WidthRule rule, double factor) {
  ModelGrowth growth(in, {.factor = factor, .width = rule, .seed = 3});
  CHECK(growth.report().sameness == Sameness::kOther);
  growth.write(out, {});
}

/// Which state each state of the wide model is a copy of, found by the columns of its word table.
std::vector<std::size_t> states_of(const Matrix& small, const Matrix& wide) {
  std::vector<std::size_t> from;
  for (std::size_t j = 0; j < wide.columns; ++j) {
    std::size_t found = small.columns;
    for (std::size_t k = 0; k < small.columns; ++k)
      if (small.column(k) == wide.column(j)) found = k;
    REQUIRE(found < small.columns);
    from.push_back(found);
  }
  return from;
}

/// What row `i` of a wide matrix gives for copies of the states: the row of the small one it is.
std::vector<double> sums(const Matrix& wide, std::size_t i, const std::vector<std::size_t>& from,
                         std::size_t states) {
  std::vector<double> row(states, 0.0);
  for (std::size_t j = 0; j < wide.columns; ++j) row[from[j]] += wide.at(i, j);
  return row;
}

/// Whether it is a row of the matrix, up to rounding.
bool is_row(const Matrix& matrix, const std::vector<double>& row) {
  for (std::size_t i = 0; i < matrix.rows; ++i) {
    bool same = true;
    for (std::size_t k = 0; k < matrix.columns && same; ++k)
      same = std::abs(matrix.at(i, k) - row[k]) <= 1e-6;
    if (same) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("drawn copies share the weights of their readers, and of aki they are the next layer's") {
  const std::string llama = folder_of("llama_bias");
  const std::string words = "model.embed_tokens.weight";
  const Matrix small_words = read(llama, words);
  const std::size_t width = small_words.columns;
  for (const WidthRule rule : {WidthRule::kFpi, WidthRule::kAki}) {
    CAPTURE(name_in(width_rules(), rule));
    const TempFolder folder;
    const std::string wide = folder / "wide";
    grow(llama, wide, rule, 1.5);
    const std::vector<std::size_t> from = states_of(small_words, read(wide, words));
    REQUIRE(from.size() == width * 3 / 2);
    CHECK(std::ranges::is_sorted(from));
    for (const std::string name : {"self_attn.q_proj.weight", "mlp.up_proj.weight"}) {
      CAPTURE(name);
      const Matrix own = read(llama, layer(0, name));
      const Matrix next = read(llama, layer(1, name));
      const Matrix grown = read(wide, layer(0, name));
      const Matrix last = read(wide, layer(1, name));
      REQUIRE(grown.rows == own.rows * 3 / 2);
      std::size_t of_next = 0;
      for (std::size_t i = 0; i < grown.rows; ++i) {
        const std::vector<double> row = sums(grown, i, from, width);
        CHECK((is_row(own, row) || is_row(next, row)));
        if (!is_row(own, row)) ++of_next;
        // The last layer has no next one.
        CHECK(is_row(next, sums(last, i, from, width)));
      }
      CHECK(of_next == (rule == WidthRule::kAki ? own.rows / 2 : 0));
    }
    const std::string norm = layer(0, "post_attention_layernorm.weight");
    const Matrix before = read(llama, norm);
    const Matrix after = read(wide, norm);
    for (std::size_t j = 0; j < from.size(); ++j) CHECK(after.at(0, j) == before.at(0, from[j]));
    CHECK(message_of<UsageError>([&] {
            grow(llama, folder / "none", rule, 1.3);
          }).ends_with("expected a whole number"));
  }
}

TEST_CASE("a model half as wide again opens, whatever its family") {
  int opened = 0;
  for (const test::ModelCase& one : test::model_cases()) {
    const auto small = model::open_model(one.folder, {.mask_token_id = TokenId{4}});
    const Index heads = small->design().num_attention_heads;
    if (heads % 2 != 0 || small->design().num_key_value_heads % 2 != 0) continue;
    for (const WidthRule rule : {WidthRule::kFpi, WidthRule::kAki}) {
      CAPTURE(one.name);
      const TempFolder folder;
      try {
        grow(one.folder, folder / "wide", rule, 1.5);
      } catch (const UsageError& error) {
        CHECK(std::string(error.what()).find("cannot make this model wider") != std::string::npos);
        continue;
      }
      const auto wide = model::open_model(folder / "wide", {.mask_token_id = TokenId{4}});
      CHECK(wide->design().hidden_size * 2 == small->design().hidden_size * 3);
      CHECK(wide->design().num_attention_heads * 2 == heads * 3);
      ++opened;
    }
  }
  CHECK(opened >= 10);
}

}  // namespace masque::grow
