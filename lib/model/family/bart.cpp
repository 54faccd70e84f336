// BART and mBART: an encoder, and a decoder that reads its states. Learned positions from row 2 on,
// post-norm; mBART pre-norm with a norm after the last layer. Lewis 2019, arXiv:1910.13461; Liu
// 2020, arXiv:2001.08210.
#include <cmath>
#include <string>

#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// The rows of the position tables that no position uses.
constexpr Index kUnusedPositions = 2;
constexpr Index kPadTokenId = 1;
constexpr Index kStartTokenId = 2;

/// The design of the encoder, or with `decoder` of that part.
Design read_design(const FamilyConfig& config, bool decoder) {
  const bool multilingual = config.raw().model_type() == "mbart";
  Design design;
  design.family = "bart";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 50265);
  design.hidden_size = config.size({"d_model", "hidden_size"}, 1024);
  design.embedding_size = design.hidden_size;
  design.max_position_embeddings = config.size({"max_position_embeddings"}, 1024);
  design.position_offset = kUnusedPositions;
  if (decoder) {
    design.num_hidden_layers = config.layers({"decoder_layers"}, 12);
    design.num_attention_heads = config.size({"decoder_attention_heads"}, 16);
    design.intermediate_size = config.size({"decoder_ffn_dim"}, 4096);
    design.mask = DefaultMask::kCausal;
    design.source = SourceDesign{};
    if (multilingual) {
      design.source->begins_with_last = true;
    } else {
      design.source->start_token_id = kStartTokenId;
    }
    if (config.has("decoder_start_token_id"))
      design.source->start_token_id = config.optional_count("decoder_start_token_id");
  } else {
    design.num_hidden_layers = config.layers({"encoder_layers", "num_hidden_layers"}, 12);
    design.num_attention_heads =
        config.size({"encoder_attention_heads", "num_attention_heads"}, 16);
    design.intermediate_size = config.size({"encoder_ffn_dim"}, 4096);
  }
  design.norm.epsilon = 1e-5;
  design.embedding_norm = design.norm;
  design.norm_placement = multilingual ? NormPlacement::kPre : NormPlacement::kPost;
  design.final_norm = multilingual;
  design.activation = config.activation("activation_function", "gelu");
  if (config.flag("scale_embedding", false))
    design.embedding_scale = std::sqrt(static_cast<double>(design.hidden_size));
  split_heads(design, config, config.has("hidden_size") ? "hidden_size" : "d_model",
              decoder ? "decoder_attention_heads" : "encoder_attention_heads");
  fill_layers(design);
  return design;
}

/// The rows of a stack, "encoder" or "decoder", of `design`.
std::vector<TensorRow> stack_rows(const Design& design, const std::string& stack) {
  const std::string own = "~" + stack + ".";
  const std::string layer = own + "layers.{l}.";
  std::vector<TensorRow> rows = {{own + "embed_tokens|~shared", {Role::kWordTable}, Parts::kWeight},
                                 {own + "embed_positions", {Role::kPositionTable}, Parts::kWeight},
                                 {own + "layernorm_embedding", {Role::kEmbeddingNorm}},
                                 {layer + "self_attn.q_proj", {Role::kQuery}},
                                 {layer + "self_attn.k_proj", {Role::kKey}},
                                 {layer + "self_attn.v_proj", {Role::kValue}},
                                 {layer + "self_attn.out_proj", {Role::kOutput}},
                                 {layer + "self_attn_layer_norm", {Role::kAttentionNorm}},
                                 {layer + "fc1", {Role::kUp}},
                                 {layer + "fc2", {Role::kDown}},
                                 {layer + "final_layer_norm", {Role::kFeedForwardNorm}}};
  if (design.source) {
    append(rows, {{layer + "encoder_attn.q_proj", {Role::kSourceQuery}},
                  {layer + "encoder_attn.k_proj", {Role::kSourceKey}},
                  {layer + "encoder_attn.v_proj", {Role::kSourceValue}},
                  {layer + "encoder_attn.out_proj", {Role::kSourceOutput}},
                  {layer + "encoder_attn_layer_norm", {Role::kSourceNorm}}});
  }
  if (design.final_norm) rows.push_back({own + "layer_norm", {Role::kFinalNorm}});
  return rows;
}

/// Tensors of the other stack, whose name is `stack`; `what` as Skipped has it. "version" is a
/// buffer of the first files.
std::vector<Skipped> skipped_of(const std::string& stack, const std::string& what) {
  return {{"model." + stack + ".", what}, {stack + ".", what},     {"model.encoder.version", ""},
          {"model.decoder.version", ""},  {"encoder.version", ""}, {"decoder.version", ""}};
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "model.";
  plan.design = read_design(config, false);
  plan.rows = stack_rows(plan.design, "encoder");
  plan.design.missing_head = kEncoderAlone;
  plan.tied_tables = "~decoder.embed_tokens.weight|lm_head.weight";
  plan.skipped = skipped_of("decoder", "the decoder");
  plan.skipped.push_back({"lm_head.", "the decoder's head"});
  plan.skipped.push_back({"final_logits_bias", "the decoder's head"});
  return plan;
}

ModelPlan make_decoder_plan(const FamilyConfig& config) {
  constexpr std::string_view kBias = "final_logits_bias";
  if (config.has("is_causal")) config.refuse("is_causal", "no value");
  ModelPlan plan;
  plan.prefix = "model.";
  plan.design = read_design(config, true);
  plan.rows = stack_rows(plan.design, "decoder");
  HeadPlan head =
      bare_head(vocabulary_head(plan.design, config), config, "decoder's head", "lm_head.weight");
  plan.heads = {head};
  // The bias may be absent: then it is 0.
  head.evidence = kBias;
  head.rows = {{.name = std::string(kBias),
                .roles = {Role::kDecoder},
                .parts = Parts::kBiasTensor,
                .shape = {1, static_cast<std::uint64_t>(plan.design.vocab_size)},
                .fixed = true}};
  plan.heads.insert(plan.heads.begin(), head);
  plan.tied_tables = "~encoder.embed_tokens.weight";
  plan.skipped = skipped_of("encoder", "the encoder");
  return plan;
}

/// Normal with init_std, the row of the padding token of the word table 0.
std::vector<StartRule> bart_starts(const FamilyConfig& config, const Design& /*design*/) {
  const double range = config.number("init_std", 0.02);
  if (!(range >= 0)) config.refuse("init_std", "a number from 0");
  std::vector<StartRule> rules;
  for (const Role role :
       {Role::kWordTable, Role::kPositionTable, Role::kQuery, Role::kKey, Role::kValue,
        Role::kOutput, Role::kUp, Role::kDown, Role::kSourceQuery, Role::kSourceKey,
        Role::kSourceValue, Role::kSourceOutput, Role::kDecoder})
    rules.push_back({role, StartValue::normal(range)});
  if (!config.is_null("pad_token_id")) {
    rules.front().start.zero_row =
        config.has("pad_token_id") ? config.optional_count("pad_token_id") : kPadTokenId;
  }
  return rules;
}

const Family kFamily{
    .name = "bart",
    .model_types = {"bart", "mbart"},
    .classes = {"Bart", "MBart"},
    .heads = {{HeadKind::kCausal, "ForConditionalGeneration"}},
    .loads = "BART and mBART: encoder and decoder, or the encoder alone",
    .plan = make_plan,
    .starts = bart_starts,
    .files = {.decoder_weight = "lm_head.weight",
              // The last one has tokens in its columns, by which edits of the vocabulary refuse it.
              .vocabulary = {"~decoder.embed_tokens.weight", "final_logits_bias"},
              .tied_head_differs = true},
    .decoder = make_decoder_plan,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
