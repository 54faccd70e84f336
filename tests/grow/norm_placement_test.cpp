// Larger models for every place of the norms in a layer: random models of family masque.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "grow/compare_models.hpp"
#include "grow/grow_model.hpp"
#include "model/checkpoint/save.hpp"
#include "model/model.hpp"
#include "model/random_model.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::grow {
namespace {

using test::TempFolder;

std::unique_ptr<model::Model> opened(const std::string& path) {
  return model::open_model(path,
                           {.precision = kernel::Precision::kF64, .mask_token_id = TokenId{4}});
}

/// A random model in a folder, and how far grown ones are from it.
class SmallModel {
 public:
  explicit SmallModel(const std::string& members) {
    const model::Design design = model::test::tiny_design(members);
    const auto weights = model::test::random_weights<float>(design, 5);
    model::save_model(folder_ / "small", design, weights);
    deeper_ = design.num_hidden_layers + 3;
  }

  /// Of logits, and where both have as many layers of states, relative to the largest. `deeper`:
  /// with three more layers.
  double difference(GrowthRequest request, bool deeper, Sameness expected) {
    if (deeper) request.layers = deeper_;
    const std::string out = folder_ / std::to_string(count_++);
    ModelGrowth growth(folder_ / "small", request);
    growth.write(out, {});
    CHECK(growth.report().sameness == expected);
    const std::unique_ptr<model::Model> small = opened(folder_ / "small");
    const std::unique_ptr<model::Model> grown = opened(out);
    ModelComparison comparison({*small}, {*grown});
    for (const std::vector<TokenId>& ids : {std::vector<TokenId>{2, 7, 9, 8, 11, 5, 3}, {2, 6, 3}})
      comparison.add(ids, {});
    const ModelDifference found = comparison.result();
    CHECK(found.tokens == 10);
    REQUIRE(found.logits);
    CHECK(found.largest_logit > 0.1);
    return std::max(*found.logits / std::max(1.0, found.largest_logit),
                    found.states.value_or(0) / std::max(1.0, found.largest_state));
  }

 private:
  TempFolder folder_;
  Index deeper_ = 0;
  int count_ = 0;
};

}  // namespace

TEST_CASE("norms at every place: wider, deeper, and both") {
  struct Row {
    const char* members;
    bool post = false;  // layers that add nothing normalize once more
  };
  for (const Row& row : {Row{R"("norm_placement": "post")", true},
                         {R"("norm_placement": "post", "residual_scale": 1.5)", true},
                         {R"("norm_placement": "admin")", true},
                         {R"("norm_placement": "admin", "streams": "fixed_keys")", true},
                         {R"("norm_placement": "pre")"},
                         {R"("norm_placement": "parallel")"},
                         {R"("norm_placement": "sandwich")"},
                         {R"("norm_placement": "sandwich", "norm_weights": false)"},
                         {R"("norm_placement": "rezero")"},
                         {R"("norm_placement": "parallel_shared", "query_key_norm": "each_head")"},
                         {R"("norm_placement": "output")"},
                         {R"("norm_placement": "output", "norm": "rms", "query_key_norm": "width",
                              "norm_weight_offset": 1, "residual_multiplier": 0.5)"},
                         {R"("norm_placement": "pre", "query_key_norm": "head",
                              "attn_logit_softcapping": 2, "final_logit_softcapping": 3)"},
                         {R"("norm_placement": "normformer")"},
                         {R"("norm_placement": "normformer", "gated": true, "norm": "rms",
                              "num_key_value_heads": 1)"},
                         {R"("norm_placement": "normformer", "norm_weights": false)"}}) {
    CAPTURE(std::string(row.members));
    SmallModel model(std::string(row.members) + R"(, "tie_word_embeddings": false)");
    const double depth = row.post ? 1e-10 : 0;
    const Sameness same = row.post ? Sameness::kEpsilon : Sameness::kExact;
    CHECK(model.difference({.factor = 2}, false, Sameness::kExact) <= 1e-13);
    for (const DepthRule rule : {DepthRule::kIdentity, DepthRule::kZero}) {
      CHECK(model.difference({.depth = rule}, true, same) <= depth);
      CHECK(model.difference({.factor = 2, .depth = rule}, true, same) <= depth + 1e-13);
    }
    CHECK(model.difference({.factor = 2, .width = WidthRule::kUnequal}, true,
                           row.post ? Sameness::kEpsilon : Sameness::kRounded) <= 1e-5);
    for (const DepthRule rule : {DepthRule::kInterleave, DepthRule::kStack}) {
      CHECK(model.difference({.depth = rule}, true, Sameness::kOther) > 1e-4);
      CHECK(model.difference({.factor = 2, .depth = rule}, true, Sameness::kOther) > 1e-4);
    }
    CHECK(model.difference({.factor = 2, .width = WidthRule::kAki}, true, Sameness::kOther) > 1e-4);
  }
}

TEST_CASE("latent bottlenecks: wider with the same function, no deeper one") {
  SmallModel model(R"("latent": {"num_hidden_layers": 2, "size": 3}, "position": "rope")");
  CHECK(model.difference({.factor = 2}, false, Sameness::kExact) <= 1e-13);
  // Norms see other means: close, and nothing more.
  CHECK(model.difference({.factor = 1.5, .width = WidthRule::kFpi}, false, Sameness::kOther) < 1);
  CHECK(test::message_of<UsageError>([&] {
          model.difference({}, true, Sameness::kExact);
        }).starts_with("cannot make this model deeper: it has latent bottlenecks"));
}

TEST_CASE("a tied vocabulary: both at once, with the norm that is divided in the last layer") {
  for (const char* members :
       {R"("norm_placement": "post", "head_transform": false, "head_norm": false)",
        R"("norm_placement": "admin", "head_transform": false, "head_norm": false)",
        R"("norm_placement": "normformer", "head_transform": false, "head_norm": false)"}) {
    CAPTURE(std::string(members));
    SmallModel model(members);
    const bool post = std::string(members).find("normformer") == std::string::npos;
    const Sameness same = post ? Sameness::kEpsilon : Sameness::kExact;
    CHECK(model.difference({.factor = 2}, true, same) <= 1e-10);
    CHECK(model.difference({.factor = 2, .width = WidthRule::kUnequal}, true,
                           post ? Sameness::kEpsilon : Sameness::kRounded) <= 1e-5);
    for (const DepthRule rule : {DepthRule::kStack, DepthRule::kInterleave})
      CHECK(model.difference({.factor = 2, .depth = rule}, true, Sameness::kOther) > 1e-4);
    CHECK(model.difference({.factor = 2, .width = WidthRule::kAki}, true, Sameness::kOther) > 1e-4);
  }
}

}  // namespace masque::grow
