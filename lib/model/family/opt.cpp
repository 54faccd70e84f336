// OPT: decoder with learned positions, pre-norm or post-norm. Zhang 2022, arXiv:2205.01068.
#include <string>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// The rows of the position table that no position uses.
constexpr Index kUnusedPositions = 2;
constexpr Index kPadTokenId = 1;

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "opt";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 50272);
  design.hidden_size = config.size({"hidden_size"}, 768);
  design.embedding_size = config.size({"word_embed_proj_dim"}, design.hidden_size);
  design.positions_after_projection = design.embedding_size != design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers"}, 12);
  design.num_attention_heads = config.size({"num_attention_heads"}, 12);
  design.intermediate_size = config.size({"ffn_dim"}, 3072);
  design.max_position_embeddings = config.size({"max_position_embeddings"}, 2048);
  design.position_offset = kUnusedPositions;
  const bool pre = config.flag("do_layer_norm_before", true);
  design.norm_placement = pre ? NormPlacement::kPre : NormPlacement::kPost;
  design.norm.epsilon = 1e-5;
  design.norm_weights = config.flag("layer_norm_elementwise_affine", true);
  design.final_norm = pre && !config.flag("_remove_final_layer_norm", false);
  design.activation = config.activation("activation_function", "relu");
  design.mask = DefaultMask::kCausal;
  split_heads(design, config, "hidden_size", "num_attention_heads");
  fill_layers(design);
  return design;
}

/// OPT-350m: the word table is narrower than the states, and so is what its matrix reads. Last
/// states are those in front of project_out, which belongs to the head. transformers' class without
/// a head has it too: its files are opened with the head, as nothing else is missing.
void add_projections(ModelPlan& plan) {
  plan.rows.push_back({"~decoder.project_in", {Role::kEmbeddingProjection}, Parts::kWeight});
  HeadPlan& head = plan.heads.front();
  head.evidence = "~decoder.project_out.weight";
  head.design.transform = true;
  head.design.activation = kernel::Activation::kNone;
  head.rows = {{"~decoder.project_out", {Role::kHeadTransform}, Parts::kWeight}};
}

ModelPlan make_plan(const FamilyConfig& config) {
  const Parts parts = config.flag("enable_bias", true) ? Parts::kBoth : Parts::kWeight;
  ModelPlan plan;
  plan.prefix = "model.";
  plan.design = read_design(config);
  const std::string layer = "~decoder.layers.{l}.";
  plan.rows = {{"~decoder.embed_tokens", {Role::kWordTable}, Parts::kWeight},
               {"~decoder.embed_positions", {Role::kPositionTable}, Parts::kWeight},
               {layer + "self_attn.q_proj", {Role::kQuery}, parts},
               {layer + "self_attn.k_proj", {Role::kKey}, parts},
               {layer + "self_attn.v_proj", {Role::kValue}, parts},
               {layer + "self_attn.out_proj", {Role::kOutput}, parts},
               {layer + "self_attn_layer_norm", {Role::kAttentionNorm}},
               {layer + "fc1", {Role::kUp}, parts},
               {layer + "fc2", {Role::kDown}, parts},
               {layer + "final_layer_norm", {Role::kFeedForwardNorm}}};
  if (plan.design.final_norm)
    plan.rows.push_back({"~decoder.final_layer_norm", {Role::kFinalNorm}});
  if (!plan.design.norm_weights) {
    std::erase_if(plan.rows, [](const TensorRow& row) { return is_norm(row.roles.front()); });
  }
  add_lm_head(plan, config, true);
  if (plan.design.positions_after_projection) add_projections(plan);
  return plan;
}

/// The row of the padding token of the word table is 0.
std::vector<StartRule> opt_starts(const FamilyConfig& config, const Design& design) {
  Design padded = design;
  padded.pad_token_id =
      config.has("pad_token_id") ? config.optional_count("pad_token_id") : kPadTokenId;
  return padded_starts(config, padded);
}

const Family kFamily{
    .name = "opt",
    .model_types = {"opt"},
    .classes = {"OPT"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads =
        "OPT, with the causal-LM head or without; OPT-350m, whose tables are narrower, with it "
        "alone",
    .plan = make_plan,
    .starts = opt_starts,
    .files = {.wide_configs = {R"("word_embed_proj_dim": 512)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
