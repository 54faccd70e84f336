// What BERT and its relatives share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/family.hpp"

namespace masque::model {

/// The class defaults of a relative of BERT.
struct EncoderDefaults {
  Index vocab_size = 30522;
  Index hidden_size = 768;
  Index num_hidden_layers = 12;
  Index num_attention_heads = 12;
  Index intermediate_size = 3072;
  Index max_position_embeddings = 512;
  Index type_vocab_size = 2;
  double layer_norm_eps = 1e-12;
  std::string_view hidden_act = "gelu";
  std::optional<Index> pad_token_id = 0;
};

/// A post-norm encoder with learned positions, from config.json's BERT spellings.
Design encoder_design(const FamilyConfig& config, std::string_view family,
                      const EncoderDefaults& defaults);

/// Reads `mask_token_id`, which only our own files have.
void read_mask_token(Design& design, const FamilyConfig& config);

/// Sets `layers` to num_hidden_layers copies, each with weights of its own.
void fill_layers(Design& design, const LayerDesign& layer = {});

/// Sets head_size to hidden_size / heads and attention_scale to 1/√head_size. Throws InputError
/// naming both options if it does not divide.
void split_heads(Design& design, const FamilyConfig& config, std::string_view hidden_name,
                 std::string_view heads_name);

/// Makes the model a decoder where `is_decoder` says so; cross-attention is refused.
void read_is_decoder(Design& design, const FamilyConfig& config);

/// ~embeddings.… : word, position and token type tables and their norm.
std::vector<TensorRow> embedding_rows(const Design& design, bool position_table = true);

/// embeddings.position_ids, and embeddings.token_type_ids if `type_ids`.
std::vector<store::BufferTensor> embedding_buffers(bool type_ids = true);

/// ~encoder.layer.{l}.… : BERT's names.
std::vector<TensorRow> encoder_layer_rows(std::string_view query = "attention.self.query",
                                          std::string_view key = "attention.self.key",
                                          std::string_view value = "attention.self.value");

/// A vocabulary at each position, tied where config.json says so or nothing; causal if the mask is.
HeadDesign vocabulary_head(const Design& design, const FamilyConfig& config);
/// The same after dense layer, activation and norm.
HeadDesign transform_head(const Design& design, const FamilyConfig& config,
                          kernel::Activation activation);

/// What says that a head without tensors of its own is there: its decoder, unless that is tied and
/// `architectures` names a language model or nothing; then "".
std::string bare_head_evidence(const HeadDesign& head, const FamilyConfig& config,
                               std::string_view decoder);

/// A head that is its vocabulary matrix alone.
HeadPlan bare_head(const HeadDesign& head, const FamilyConfig& config, std::string_view what,
                   std::string_view decoder);

/// cls.predictions.…: BERT's masked-LM head (a causal one of a decoder).
HeadPlan bert_head(const Design& design, const FamilyConfig& config);

/// lm_head.…: RoBERTa's, with an exact GELU.
HeadPlan roberta_head(const Design& design, const FamilyConfig& config);

/// As padded_starts; the position table has a row of the padding token, too.
std::vector<StartRule> padded_position_starts(const FamilyConfig& config, const Design& design);

/// Appends rows.
void append(std::vector<TensorRow>& rows, std::vector<TensorRow> more);

}  // namespace masque::model
