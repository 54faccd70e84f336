// What BERT and its relatives share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/family.hpp"

namespace masque::model {

/// The class defaults of a relative of BERT.
struct EncoderDefaults {
  Index vocab_size = 30522;               ///< Design::vocab_size
  Index hidden_size = 768;                ///< Design::hidden_size
  Index num_hidden_layers = 12;           ///< Design::num_hidden_layers
  Index num_attention_heads = 12;         ///< Design::num_attention_heads
  Index intermediate_size = 3072;         ///< Design::intermediate_size
  Index max_position_embeddings = 512;    ///< Design::max_position_embeddings
  Index type_vocab_size = 2;              ///< Design::type_vocab_size; 0: no token types
  double layer_norm_eps = 1e-12;          ///< NormDesign::epsilon of all norms
  std::string_view hidden_act = "gelu";   ///< Design::activation, as config.json names it
  std::optional<Index> pad_token_id = 0;  ///< Design::pad_token_id; none: no padding token
  bool any_position = false;  ///< the family reads position_embedding_type; else it is absolute
};

/// The design of a post-norm encoder with learned positions, for the family `family`: BERT's
/// spellings of `config`, with `defaults` where it says nothing. Throws InputError for a value that
/// is not supported.
Design encoder_design(const FamilyConfig& config, std::string_view family,
                      const EncoderDefaults& defaults);

/// Reads `design.mask_token_id` from `config`, which only files that masque wrote have; leaves it
/// as it is if that is absent.
void read_mask_token(Design& design, const FamilyConfig& config);

/// Sets `design.layers` to num_hidden_layers copies of `layer`, each with weights of its own.
void fill_layers(Design& design, const LayerDesign& layer = {});

/// Sets `design.head_size` to hidden_size / heads, attention_scale to 1/√head_size, and the heads
/// of keys and values to those of queries. Throws InputError of `config` that names both options,
/// `hidden_name` and `heads_name`, if the heads do not divide the hidden size.
void split_heads(Design& design, const FamilyConfig& config, std::string_view hidden_name,
                 std::string_view heads_name);

/// Makes the mask of `design` causal where `is_decoder` of `config` says so. Throws InputError for
/// cross-attention.
void read_is_decoder(Design& design, const FamilyConfig& config);

/// ~embeddings.…: the tables of words, of positions with `position_table`, and of token types if
/// `design` has any; and their norm.
std::vector<TensorRow> embedding_rows(const Design& design, bool position_table = true);

/// Design::missing_head of the encoder of an encoder–decoder.
inline constexpr const char* kEncoderAlone =
    "the encoder alone is used, which has no head (the decoder is for pairs of a source and a "
    "target)";

/// The buffers embeddings.position_ids, and embeddings.token_type_ids if `type_ids`.
std::vector<BufferTensor> embedding_buffers(bool type_ids = true);

/// ~encoder.layer.{l}.…: BERT's names, with those of `query`, `key` and `value` after that prefix.
std::vector<TensorRow> encoder_layer_rows(std::string_view query = "attention.self.query",
                                          std::string_view key = "attention.self.key",
                                          std::string_view value = "attention.self.value");

/// A vocabulary at each position, tied where `config` says so or nothing; causal if the mask of
/// `design` is.
HeadDesign vocabulary_head(const Design& design, const FamilyConfig& config);
/// vocabulary_head() of `design` and `config` after a dense layer, `activation` and a norm as in
/// the layers.
HeadDesign transform_head(const Design& design, const FamilyConfig& config,
                          kernel::Activation activation);

/// What says that `head`, without tensors of its own, is there (HeadPlan::evidence): its `decoder`,
/// unless that is tied and `architectures` of `config` names a language model or nothing; then "".
std::string bare_head_evidence(const HeadDesign& head, const FamilyConfig& config,
                               std::string_view decoder);

/// The plan of a `head` that is its vocabulary matrix alone, the tensor `decoder`; `what` is
/// HeadPlan::what. Whether it is there follows from `config` (bare_head_evidence).
HeadPlan bare_head(const HeadDesign& head, const FamilyConfig& config, std::string_view what,
                   std::string_view decoder);

/// cls.predictions.…: BERT's masked-LM head for `design` and `config` (a causal one of a decoder).
HeadPlan bert_head(const Design& design, const FamilyConfig& config);

/// lm_head.…: RoBERTa's for `design` and `config`, with an exact GELU.
HeadPlan roberta_head(const Design& design, const FamilyConfig& config);

/// padded_starts() of `config` and `design`, and the same for the position table: it has a row of
/// the padding token, too.
std::vector<StartRule> padded_position_starts(const FamilyConfig& config, const Design& design);

/// Appends `more` to `rows`.
void append(std::vector<TensorRow>& rows, std::vector<TensorRow> more);

}  // namespace masque::model
