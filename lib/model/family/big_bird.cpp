// BigBird: BERT with blocks of attention in long texts. Zaheer 2020, arXiv:2007.14062. In texts of
// up to (5 + 2 r) blocks, r of them random, transformers computes full attention. In longer ones it
// draws random blocks only while it trains; else each of them is the first block once more.
#include <cmath>
#include <string>

#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "bert.";
  Design& design = plan.design;
  design = encoder_design(
      config, "big_bird",
      {.vocab_size = 50358, .max_position_embeddings = 4096, .hidden_act = "gelu_new"});
  config.expect_flag("is_decoder", false);
  if (config.flag("rescale_embeddings", false))
    design.embedding_scale = std::sqrt(static_cast<double>(design.hidden_size));
  const std::string type = config.text("attention_type", "block_sparse");
  if (type == "block_sparse") {
    BlockSparseDesign blocks;
    blocks.block_size = config.size({"block_size"}, 64);
    blocks.repeats = config.count({"num_random_blocks"}, 3);
    blocks.full_length = (5 + 2 * blocks.repeats) * blocks.block_size;
    design.block_sparse = blocks;
  } else if (type != "original_full") {
    config.refuse("attention_type", "\"block_sparse\" or \"original_full\"");
  }
  plan.rows = embedding_rows(design);
  append(plan.rows, encoder_layer_rows());
  if (!config.flag("use_bias", true)) {
    for (TensorRow& row : plan.rows) {
      const Role role = row.roles.front();
      if (role == Role::kQuery || role == Role::kKey || role == Role::kValue)
        row.parts = Parts::kWeight;
    }
  }
  plan.heads = {bert_head(design, config)};
  plan.buffers = embedding_buffers();
  return plan;
}

const Family kFamily{
    .name = "big_bird",
    .model_types = {"big_bird"},
    .classes = {"BigBird"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "BigBird, with the masked-LM head or without",
    .plan = make_plan,
    .files = {.lm_classes = {"ForPreTraining"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
