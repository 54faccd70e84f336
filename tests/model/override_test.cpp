// Attention that is taken out or levelled, layer by layer.
#include <algorithm>
#include <cmath>
#include <mutex>

#include <doctest/doctest.h>

#include "model/checkpoint/save.hpp"
#include "model/model.hpp"
#include "model/random_model.hpp"
#include "model/variants.hpp"
#include "support/changed_model.hpp"
#include "support/model_cases.hpp"
#include "support/temp_folder.hpp"

namespace masque::model {
namespace {

class States final : public Observer {
 public:
  void hidden_states(Index, Index, MatrixView<const double> x) override {
    states.push_back(Matrix<double>::copy(x));
  }
  std::vector<Matrix<double>> states;
};

std::vector<Matrix<double>> states_of(const Model& model,
                                      const std::vector<AttentionOverride>& attention) {
  Batch batch;
  std::vector<TokenId> ids;
  for (Index i = 0; i < 9; ++i)
    ids.push_back(static_cast<TokenId>((7 * i + 3) % model.design().vocab_size));
  batch.add(ids);
  Request request;
  request.hidden_states = true;
  request.attention = attention;
  States seen;
  model.run(batch, request, &seen);
  return std::move(seen.states);
}

std::unique_ptr<Model> open(const std::string& path) {
  ModelOptions options;
  options.precision = kernel::Precision::kF64;
  options.mask_token_id = 4;
  return open_model(path, options);
}

double distance(const Matrix<double>& a, const Matrix<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.span().size(); ++i)
    worst = std::max(worst, std::abs(a.span()[i] - b.span()[i]));
  return worst;
}

/// The same model with projections of layer 2 zeroed by hand, biases included.
test::ChangedModel without(const std::string& name, const std::vector<std::string>& parts) {
  return test::ChangedModel(name, [&](const std::string& tensor, std::span<float> x) {
    for (const std::string& part : parts) {
      if (tensor.find(part) != std::string::npos) std::fill(x.begin(), x.end(), 0.0F);
    }
  });
}

}  // namespace

TEST_CASE("an override is what zeroed weights give, in its layer alone") {
  struct Case {
    const char* model;
    std::vector<std::string> query, output;  ///< of layer 2
  };
  const std::vector<Case> cases = {
      {"bert", {"layer.1.attention.self.query."}, {"layer.1.attention.output.dense."}},
      {"tta", {"layer.1.attention.self.query."}, {"layer.1.attention.output.dense."}},
      {"llama", {"layers.1.self_attn.q_proj."}, {"layers.1.self_attn.o_proj."}},
      {"llama_bias", {"layers.1.self_attn.q_proj."}, {"layers.1.self_attn.o_proj."}},
      {"roformer", {"layer.1.attention.self.query."}, {"layer.1.attention.output.dense."}},
      {"gpt_neox", {}, {"layers.1.attention.dense."}},
      {"gau_alpha_softmax", {"layer.1.gau.q_scaleoffset."}, {"layer.1.gau.o_dense."}},
      {"modernbert", {}, {"layers.1.attn.Wo."}},
      {"xlnet", {}, {"layer.1.rel_attn.o"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.model);
    const auto model = open(std::string(MASQUE_TEST_DATA "/model/") + c.model);
    std::vector<AttentionOverride> overrides(
        static_cast<std::size_t>(model->design().num_hidden_layers), AttentionOverride::kIntact);
    const auto intact = states_of(*model, {});
    CHECK(distance(states_of(*model, overrides).back(), intact.back()) == 0);
    const auto check = [&](AttentionOverride override, const std::vector<std::string>& parts) {
      if (parts.empty()) return;
      overrides[1] = override;
      const auto seen = states_of(*model, overrides);
      const auto changed = without(c.model, parts);
      const auto expected = states_of(*open(changed.path()), {});
      CHECK(distance(seen[1], intact[1]) == 0);
      CHECK(distance(seen[2], intact[2]) > 1e-4);
      CHECK(distance(seen.back(), expected.back()) <= 1e-12);
    };
    check(AttentionOverride::kZero, c.output);
    check(AttentionOverride::kMean, c.query);
  }
}

TEST_CASE("a levelled attention weighs every visible key alike, whatever scheme and normalizer") {
  class Maps final : public Observer {
   public:
    void attention(Index, Index layer, Index, MatrixView<const double> weights) override {
      const std::lock_guard lock(mutex);  // heads may come from any thread
      const bool causal = weights.at(0, weights.columns - 1) == 0;
      for (Index i = 0; i < weights.rows; ++i) {
        for (Index j = 0; j < weights.columns; ++j) {
          const double n = static_cast<double>(causal ? i + 1 : weights.columns);
          const double expected = causal && j > i ? 0 : 1 / n;
          if (layer == 0) worst = std::max(worst, std::abs(weights.at(i, j) - expected));
        }
      }
      ++maps;
    }
    std::mutex mutex;
    double worst = 0;
    int maps = 0;
  };
  const auto check = [](const Model& model) {
    Batch batch;
    batch.add(std::vector<TokenId>{5, 9, 17, 5, 30, 2});
    Request request;
    request.attentions = true;
    request.attention.assign(static_cast<std::size_t>(model.design().num_hidden_layers),
                             AttentionOverride::kMean);
    Maps maps;
    model.run(batch, request, &maps);
    CHECK(maps.maps == model.design().num_hidden_layers * value_heads(model.design()));
    CHECK(maps.worst <= 1e-15);
  };
  for (const test::ModelCase& one : test::model_cases()) {
    CAPTURE(one.name);
    const auto model = open(one.folder);
    if (model->design().mask == DefaultMask::kOthers) continue;  // all but itself
    if (model->design().layers.front().window || model->design().variants.mixer != nullptr)
      continue;
    check(*model);
  }
  const Design design = test::tiny_design(R"("talking_heads": "after", "value_heads": 3)");
  const masque::test::TempFolder folder = masque::test::TempFolder::in_memory();
  save_model(folder / "saved", design, test::random_weights<float>(design, 5));
  check(*open(folder / "saved"));
}

}  // namespace masque::model
