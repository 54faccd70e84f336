// What Llama and its relatives share.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {

/// The class defaults of a relative of Llama, and its names of options.
struct DecoderDefaults {
  Index vocab_size = 32000;              ///< Design::vocab_size
  Index hidden_size = 4096;              ///< Design::hidden_size
  Index num_hidden_layers = 32;          ///< Design::num_hidden_layers
  Index num_attention_heads = 32;        ///< Design::num_attention_heads
  Index num_key_value_heads = 0;         ///< Design::num_key_value_heads; 0: num_attention_heads
  Index head_dim = 0;                    ///< Design::head_size; 0: hidden_size / heads
  bool reads_head_dim = true;            ///< config.json may say head_dim
  Index intermediate_size = 11008;       ///< Design::intermediate_size
  Index max_position_embeddings = 2048;  ///< Design::max_position_embeddings
  std::optional<Index> pad_token_id = std::nullopt;     ///< Design::pad_token_id
  std::string_view activation = "hidden_act";           ///< the option that names the activation
  std::string_view hidden_act = "silu";                 ///< its value
  bool gated = true;                                    ///< Design::gated
  kernel::Norm norm = kernel::Norm::kRms;               ///< NormDesign::kind of all norms
  std::string_view norm_epsilon_name = "rms_norm_eps";  ///< the option of ε; empty: none
  double norm_epsilon = 1e-6;                           ///< NormDesign::epsilon
};

/// The design of a pre-norm decoder with rotary positions for the family `family`: Llama's
/// spellings of `config`, with `defaults` where it says nothing; layers without angles and windows.
/// Throws InputError for a value that is not supported.
Design decoder_design(const FamilyConfig& config, std::string_view family,
                      const DecoderDefaults& defaults);

/// Gives all layers of `design` the angles that `config` describes (read_rotary()), with `defaults`
/// where it says nothing. Throws InputError as that does.
void set_angles(Design& design, const FamilyConfig& config, const RotaryDefaults& defaults);
/// The defaults of a relative of Llama of the base `theta` that rotates whole heads.
RotaryDefaults whole_heads(double theta = 10000);

/// The word of layer_types for a layer that reads everything.
inline constexpr std::string_view kFullAttention = "full_attention";
/// The word of layer_types for a layer that reads a window.
inline constexpr std::string_view kSlidingAttention = "sliding_attention";

/// Whether each layer of `design` reads a window alone, by `layer_types` of `config`, else by
/// `fallback`, one a layer. Throws InputError for other words, and for another number of them.
std::vector<bool> read_local_layers(const Design& design, const FamilyConfig& config,
                                    std::vector<bool> fallback);
/// Layers of `design`, all of them local or none.
std::vector<bool> all_layers(const Design& design, bool local);
/// The option sliding_window of `config`, `fallback` where it is absent: a token reads itself and
/// the tokens before it, so many in all. Nothing where it is null.
std::optional<Index> read_sliding_window(const FamilyConfig& config, std::optional<Index> fallback);
/// Gives the `local` layers of `design` the `window` of read_sliding_window(). Throws InputError of
/// `config` where there is none.
void set_windows(Design& design, const FamilyConfig& config, const std::vector<bool>& local,
                 std::optional<Index> window);

/// Which tensors of Llama's names have which parts.
struct DecoderParts {
  Parts query_key_value = Parts::kWeight;  ///< of the three projections
  Parts output = Parts::kWeight;           ///< of the one after attention
  Parts inner = Parts::kWeight;            ///< of the feed-forward layer
  Parts norm = Parts::kWeight;             ///< of norms
};
/// Llama's: parts of all projections by the options attention_bias and mlp_bias of `config`.
DecoderParts parts_by_config(const FamilyConfig& config);

/// ~embed_tokens and ~NORM, which stand around the rows `layers`, of which the names follow
/// "~layers.{l}."; the norm has the parts `norm`, and the name `norm_name`.
std::vector<TensorRow> decoder_rows(const std::vector<TensorRow>& layers, Parts norm,
                                    std::string_view norm_name = "norm");
/// Llama's self_attn.{q,k,v}_proj, and o_proj, with the `parts`, for decoder_rows().
std::vector<TensorRow> attention_rows(const DecoderParts& parts);
/// Llama's mlp.{gate,up,down}_proj, with the `parts`, for decoder_rows().
std::vector<TensorRow> gated_rows(const DecoderParts& parts);

/// Gives the layers of `design` that are `sparse`, one a layer, a mixture of experts of
/// `intermediate_size`: how many by an option of `config`, one of `count_names`, by
/// num_experts_per_tok how many a token goes through; `count` and `per_token` where it says
/// nothing. Throws InputError for more than there are, and for more than 4096.
void set_experts(Design& design, const FamilyConfig& config, const std::vector<bool>& sparse,
                 Names count_names, Index count, Index per_token, Index intermediate_size);
/// The names of an expert's matrices.
struct ExpertNames {
  std::string_view gate = "gate_proj";  ///< Role::kExpertGate
  std::string_view up = "up_proj";      ///< Role::kExpertUp
  std::string_view down = "down_proj";  ///< Role::kExpertDown
};
/// `mixture`.gate and `mixture`.experts.N.{gate,up,down} of `design`, with their `names`, for
/// decoder_rows(); nothing of a design without experts.
std::vector<TensorRow> expert_rows(const Design& design, std::string_view mixture,
                                   const ExpertNames& names = {});

/// All of Llama's rows, with `parts`: norms in front of attention and feed-forward layer.
std::vector<TensorRow> llama_rows(const DecoderParts& parts);

/// Llama's plan for `design`, as `config` describes it, with the `rows`: prefix, the head lm_head,
/// which is tied where `config` says so, else as `tied`, and buffers.
ModelPlan decoder_plan(Design design, const FamilyConfig& config, std::vector<TensorRow> rows,
                       bool tied);

/// The head of `plan`: lm_head alone, which is tied where `config` says so, else as `tied`.
void add_lm_head(ModelPlan& plan, const FamilyConfig& config, bool tied);

/// √hidden_size of `design`, in the type of which `config` says that transformers computes in it.
double root_of_width(const Design& design, const FamilyConfig& config);

}  // namespace masque::model
