// MPNet: BERT without token types, with learned positions and a bias by distance that all layers
// share. Song 2020, arXiv:2004.09297.
#include <fmt/format.h>

#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

constexpr Index kMostRows = 1 << 20;

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "mpnet.";
  Design& design = plan.design;
  design = encoder_design(config, "mpnet",
                          {.vocab_size = 30527, .type_vocab_size = 0, .pad_token_id = 1});
  design.type_vocab_size = 0;
  design.position = PositionType::kT5;
  // The class sorts distances into 32 buckets, whatever the config says: that is the table's size.
  design.relative_buckets = 32;
  design.relative_max_distance = 128;
  design.position_offset = 2;  // whatever pad_token_id says, as in transformers
  design.pad_token_id = 1;
  const Index rows = config.size({"relative_attention_num_buckets"}, design.relative_buckets);
  if (rows < design.relative_buckets || rows > kMostRows) {
    config.refuse("relative_attention_num_buckets",
                  fmt::format("{} to {}: the model reads {} rows of the table",
                              design.relative_buckets, kMostRows, design.relative_buckets));
  }
  design.unused_relative_rows = rows - design.relative_buckets;
  if (design.max_position_embeddings <= design.position_offset) {
    config.refuse("max_position_embeddings", "more than 2");
  }
  design.max_position_embeddings -= design.position_offset;
  const std::string layer = "~encoder.layer.{l}.";
  plan.rows = embedding_rows(design);
  append(plan.rows,
         {
             {"~encoder.relative_attention_bias", {Role::kRelativeTable}, Parts::kWeight},
             {layer + "attention.attn.q", {Role::kQuery}},
             {layer + "attention.attn.k", {Role::kKey}},
             {layer + "attention.attn.v", {Role::kValue}},
             {layer + "attention.attn.o", {Role::kOutput}},
             {layer + "attention.LayerNorm", {Role::kAttentionNorm}},
             {layer + "intermediate.dense", {Role::kUp}},
             {layer + "output.dense", {Role::kDown}},
             {layer + "output.LayerNorm", {Role::kFeedForwardNorm}},
         });
  plan.heads = {roberta_head(design, config)};
  plan.buffers = embedding_buffers(false);
  return plan;
}

const Family kFamily{
    .name = "mpnet",
    .model_types = {"mpnet"},
    .classes = {"MPNet"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "MPNet, with its masked-LM head or without",
    .plan = make_plan,
    .starts = padded_position_starts,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
