// What files of model families call their tensors, for changes to checkpoints that need no model.
// One file per family under store/names/family/ registers itself. Shapes, defaults and start values
// belong to model/family/, whose names are the same.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque::store {

/// A tensor that an untied head needs besides the decoder weight.
struct HeadCopy {
  std::string_view name;    ///< "cls.predictions.decoder.bias"
  std::string_view source;  ///< "cls.predictions.bias": copied from here
};

/// A tensor of old files that is as long as the position table and says nothing: readers make it
/// themselves.
struct PositionBuffer {
  enum class Content {
    kCount,   ///< [1, P]: 0, 1, 2 …
    kZero,    ///< [1, P]: 0
    kCausal,  ///< [1, 1, P, P]: 1 up to the diagonal, 0 after it
  };
  std::string_view name;  ///< as one of FamilyNames::tensors
  Content content;
};

/// Where a family keeps its vocabulary-sized parts. Names with a leading "~" carry the base prefix.
struct FamilyNames {
  std::string_view name;                        ///< stem: "bert"
  std::vector<std::string_view> model_types;    ///< values of config.json's model_type
  std::vector<std::string_view> lm_classes;     ///< values of `architectures` that carry the head
  std::string_view prefix;                      ///< "bert."; headless exports lack it
  std::string_view input_table;                 ///< "~embeddings.word_embeddings.weight", [V, E]
  std::string_view position_table;              ///< empty if there is none
  std::string_view segment_table;               ///< empty if there is none
  std::string_view decoder_weight;              ///< output matrix, usually tied to the input table
  std::string_view output_bias;                 ///< [V]; empty if the head has none
  std::vector<HeadCopy> head_copies;            ///< further aliases that untying must write out
  std::vector<std::string_view> head_evidence;  ///< any of these present: the checkpoint has a head
  std::vector<std::string_view> vocab_fields = {};     ///< config.json's names of V
  std::vector<std::string_view> position_fields = {};  ///< of the position table's rows
  /// Further tensors that have a row for each token, besides the tables, decoder and bias above.
  std::vector<std::string_view> vocabulary = {};
  /// All that the language model saves when tied. A leading "~" stands for the prefix, "{x}" for a
  /// number; "NAME.*" is NAME.weight and NAME.bias.
  std::vector<std::string_view> tensors = {};
  bool computed_positions = false;  ///< the position table is made, not learned
  /// The first position has the row after that of pad_token_id (1 where the config has none).
  bool positions_after_padding = false;
  std::vector<PositionBuffer> position_buffers = {};
};

/// All registered families, sorted by name. Thread-safe; never empty.
std::span<const FamilyNames* const> family_names();

/// The family with this stem or model_type; nullptr if none.
const FamilyNames* find_family_names(std::string_view name);

/// Adds a family at program start: `const FamilyNamesRegistration registration{family};` in its
/// file.
struct FamilyNamesRegistration {
  explicit FamilyNamesRegistration(const FamilyNames& family);
};

/// `names`, and those of the layers of BERT's encoder, "~encoder.layer.{l}.…".
std::vector<std::string_view> with_bert_layers(std::vector<std::string_view> names);

/// `name` with a leading "~" replaced by `prefix`.
std::string with_prefix(std::string_view name, std::string_view prefix);

/// One spelling for a tensor whatever file it comes from: without the base prefix of any family,
/// and with LayerNorm.weight and .bias for LayerNorm.gamma and .beta (only there: other layers have
/// a gamma of their own).
std::string canonical_name(std::string_view name);

}  // namespace masque::store
