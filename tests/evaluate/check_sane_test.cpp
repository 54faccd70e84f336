// What a broken conversion leaves is found, where it is, and a sound model is not blamed.
#include "evaluate/check/check_sane.hpp"

#include <algorithm>
#include <limits>

#include <doctest/doctest.h>

#include "support/changed_model.hpp"
#include "support/message.hpp"
#include "support/model_cases.hpp"

namespace masque::evaluate {
namespace {

CheckInput some_sane_input(Index n, Index vocabulary) {
  CheckInput input;
  for (Index i = 0; i < n; ++i) input.ids.push_back(static_cast<TokenId>((7 * i + 3) % vocabulary));
  return input;
}

SaneRow row_of(const std::vector<SaneRow>& rows, const std::string& check) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const SaneRow& r) { return r.check == check; });
  REQUIRE(found != rows.end());
  return *found;
}

std::vector<SaneRow> heads_of(const std::string& path, model::ModelOptions options = {}) {
  options.mask_token_id = 4;
  const auto model = model::open_model(path, options);
  SaneHeads heads(*model, 1e-3);
  for (const Index n : {11, 1, 5}) heads.add(some_sane_input(n, model->design().vocab_size));
  return heads.rows();
}

using Places = std::vector<std::string>;

}  // namespace

TEST_CASE("random models of all families are sane") {
  for (const test::ModelCase& one : test::model_cases()) {
    CAPTURE(one.name);
    if (one.name.starts_with("fnet")) {
      CHECK(test::message_of<UsageError>([&] { heads_of(one.folder); }) ==
            "fnet has no attention weights");
      continue;
    }
    const std::vector<SaneRow> heads = heads_of(one.folder);
    REQUIRE(heads.size() == 4);
    for (const SaneRow& row : heads) {
      CAPTURE(row.check);
      CHECK(row.checked > 0);
      CHECK(row.found == 0);
    }
    const SaneRow finite = check_finite(store::open_checkpoint(one.folder), 1);
    CHECK(finite.checked > 5);
    CHECK(finite.found == 0);
    const auto weights = check_weights(model::load_model<float>(one.folder), {{"mask", 4}});
    for (const SaneRow& row : weights) CHECK(row.found == 0);
    CHECK(row_of(weights, "special_row").checked == 1);
  }
}

TEST_CASE("heads whose weights are all 0 are dead") {
  const test::ChangedModel zero("bert", [](const std::string& name, std::span<float> x) {
    if (name.find("attention.self.query") != std::string::npos) std::fill(x.begin(), x.end(), 0.0F);
  });
  model::ModelOptions options;
  options.normalizer = "squared_relu";
  const std::vector<SaneRow> heads = heads_of(zero.path(), options);
  CHECK(row_of(heads, "dead_head").found == row_of(heads, "dead_head").checked);
  CHECK(row_of(heads, "dead_head").found > 0);
}

TEST_CASE("a head without queries is uniform, and named") {
  const test::ChangedModel zero("bert", [](const std::string& name, std::span<float> x) {
    // Head 2 of 3, 8 rows of 24.
    if (name.find("layer.1.attention.self.query.weight") != std::string::npos)
      std::fill(x.begin() + 16 * 24, x.end(), 0.0F);
    if (name.find("layer.1.attention.self.query.bias") != std::string::npos)
      std::fill(x.begin() + 16, x.end(), 0.0F);
  });
  for (const char* mask : {"full", "causal", "window(2)"}) {
    model::ModelOptions options;
    options.masks = mask::parse_mask_layers(mask);
    const auto rows = heads_of(zero.path(), options);
    CHECK(row_of(rows, "uniform_head").places == Places{"layer 1 head 2"});
    CHECK(row_of(rows, "uniform_head").value < 1e-5);
    CHECK(row_of(rows, "stuck_head").found == 0);
  }
}

TEST_CASE("a head that always looks at one key is stuck") {
  const auto model = model::open_model(MASQUE_TEST_DATA "/model/bert");
  const auto seen = [&](const std::vector<Matrix<double>>& maps) {
    SaneHeads heads(*model, 1e-3);
    for (const Matrix<double>& map : maps) heads.attention(0, 0, 1, map.view());
    return heads.rows();
  };
  const auto map = [](Index n, Index key, double share) {
    Matrix<double> m = Matrix<double>::zero(n, n);
    for (Index i = 0; i < n; ++i) {
      m.view().at(i, key) = share;
      m.view().at(i, (key + 1) % n) += 1 - share;
    }
    return m;
  };
  const auto list = [](auto... m) {
    std::vector<Matrix<double>> maps;
    (maps.push_back(std::move(m)), ...);
    return maps;
  };
  CHECK(row_of(seen(list(map(4, 0, 0.9995), map(6, 0, 1))), "stuck_head").places ==
        Places{"layer 0 head 1 key 0"});
  CHECK(row_of(seen(list(map(4, 3, 1), map(6, 5, 1))), "stuck_head").places ==
        Places{"layer 0 head 1"});
  CHECK(row_of(seen(list(map(4, 0, 0.99))), "stuck_head").found == 0);
  CHECK(row_of(seen(list(map(4, 0, 1), map(4, 0, 0.5))), "stuck_head").found == 0);
  // One row tells nothing.
  CHECK(row_of(seen(list(map(1, 0, 1))), "stuck_head").checked == 0);
}

TEST_CASE("weights: zero heads, zero norms, numbers that are not finite") {
  const test::ChangedModel zero("bert", [](const std::string& name, std::span<float> x) {
    const bool value = name.find("layer.0.attention.self.value.") != std::string::npos;
    if (value) std::fill(x.begin(), x.begin() + std::ssize(x) / 3, 0.0F);
    if (name.find("layer.1.attention.output.dense.weight") != std::string::npos) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (i % 24 >= 8 && i % 24 < 16) x[i] = 0;
      }
    }
    if (name.find("layer.1.output.LayerNorm.weight") != std::string::npos)
      std::fill(x.begin(), x.end(), 0.0F);
  });
  const auto rows = check_weights(model::load_model<float>(zero.path()), {});
  CHECK(row_of(rows, "zero_head").places == Places{"layer 0 head 0", "layer 1 head 1"});
  CHECK(row_of(rows, "zero_head").checked == 6);
  CHECK(row_of(rows, "zero_norm").places == Places{"layer 1 feed-forward norm"});
  const test::ChangedModel broken("bert", [](const std::string& name, std::span<float> x) {
    if (name.find("layer.0.output.dense.bias") == std::string::npos) return;
    x[3] = std::numeric_limits<float>::quiet_NaN();
    x[4] = std::numeric_limits<float>::infinity();
  });
  const SaneRow finite = check_finite(store::open_checkpoint(broken.path()), 1);
  CHECK(finite.places == Places{"bert.encoder.layer.0.output.dense.bias (1 nan, 1 inf)"});
  CHECK(finite.value == 2);
  const test::ChangedModel large("gpt2", [](const std::string& name, std::span<float> x) {
    if (name.find("h.0.mlp.c_proj.weight") == std::string::npos) return;
    std::fill(x.begin(), x.end(), 3e38F);
  });
  CHECK(row_of(heads_of(large.path()), "not_finite_state").places ==
        Places{"hidden_states 1", "hidden_states 2"});
}

TEST_CASE("a text that the model refuses is an error, also after states that are not finite") {
  const test::ChangedModel large("gpt2", [](const std::string& name, std::span<float> x) {
    if (name.find("h.0.mlp.c_proj.weight") == std::string::npos) return;
    std::fill(x.begin(), x.end(), 3e38F);
  });
  const auto model = model::open_model(large.path());
  const Index vocabulary = model->design().vocab_size;
  SaneHeads heads(*model, 1e-3);
  heads.add(some_sane_input(5, vocabulary));
  CHECK(row_of(heads.rows(), "not_finite_state").found > 0);
  CheckInput input = some_sane_input(5, vocabulary);
  input.ids.back() = static_cast<TokenId>(vocabulary);
  CHECK_THROWS_AS(heads.add(input), InputError);
}

TEST_CASE("rows of special tokens: the mean, zero, and trained ones") {
  const test::ChangedModel odd("bert", [](const std::string& name, std::span<float> x) {
    if (name.find("word_embeddings.weight") == std::string::npos) return;
    const std::size_t rows = x.size() / 24;
    for (std::size_t c = 0; c < 24; ++c) {
      double sum = 0;
      x[c] = 0;       // [PAD]
      x[24 + c] = 0;  // [UNK]
      for (std::size_t i = 0; i < rows; ++i) sum += i == 4 ? 0 : x[i * 24 + c];
      x[4 * 24 + c] = static_cast<float>(sum / static_cast<double>(rows - 1));
    }
  });
  const auto model = model::load_model<float>(odd.path());
  const SaneRow row = row_of(
      check_weights(model, {{"pad", 0}, {"unk", 1}, {"cls", 2}, {"mask", 4}, {"far", 1 << 20}}),
      "special_row");
  CHECK(row.checked == 4);
  CHECK(row.found == 2);
  REQUIRE(row.places.size() == 4);
  const auto bad = [](const std::string& text) { return text.ends_with(", bad"); };
  CHECK(!bad(row.places[0]));
  CHECK(bad(row.places[1]));
  CHECK(!bad(row.places[2]));
  CHECK(bad(row.places[3]));
  CHECK(row.places[3].starts_with("mask (id 4): norm "));
  CHECK(row.places[3].find("cosine 1") != std::string::npos);
  CHECK(row.value < 1e-6);
}

}  // namespace masque::evaluate
