// What files of model families call their tensors, for changes to checkpoints that need no model.
// They are made of the families' tables (model/family/).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/family.hpp"
#include "store/config.hpp"

namespace masque::model {

/// A tensor that an untied head needs besides the decoder weight.
struct HeadCopy {
  std::string name;    ///< "cls.predictions.decoder.bias"
  std::string source;  ///< "cls.predictions.bias": copied from here
};

/// Matrices that a family keeps as [in, out], where other programs keep [out, in].
struct InOutMatrices {
  std::vector<std::string> tensors;  ///< as FamilyNames::tensors
  std::string witness;               ///< one of them that is not square, and so shows which it is
  std::uint64_t wide = 1;            ///< the second dimension of the witness over its first
};

/// Where a family keeps its vocabulary-sized parts. Names with a leading "~" carry the base prefix.
struct FamilyNames {
  std::string name;                      ///< stem: "bert"
  std::vector<std::string> model_types;  ///< values of config.json's model_type
  std::vector<std::string> lm_classes;   ///< values of `architectures` that carry the head
  std::string prefix;                    ///< "bert."; headless exports lack it; may be empty
  std::string input_table;               ///< "~embeddings.word_embeddings.weight", [V, E]
  std::string position_table;            ///< empty if there is none
  std::string segment_table;             ///< empty if there is none
  std::string decoder_positions = {};    ///< a decoder's own table; empty if there is none
  std::string decoder_weight;            ///< output matrix, usually tied to the input table
  /// Other names of the input table, in the order in which readers take them.
  std::vector<std::string> input_spellings = {};
  /// Other names of the decoder, in the order in which readers take them.
  std::vector<std::string> decoder_spellings = {};
  std::string output_bias;                 ///< [V]; empty if the head has none
  std::vector<HeadCopy> head_copies;       ///< further aliases that untying must write out
  std::vector<std::string> head_evidence;  ///< any of these present: the checkpoint has a head
  /// Any of these present: it has a head of another layout, which always shares the input table.
  std::vector<std::string> tied_head_evidence = {};
  bool tied_head_first = false;  ///< it counts although the first head is there, too
  /// Where the config alone says whether there is a head; nothing: its class or tensors do.
  std::optional<bool> head_by_config = {};
  bool tied_by_default = true;                    ///< without tie_word_embeddings
  std::string tie_field = "tie_word_embeddings";  ///< config.json's name of the tie
  /// A tied head does something that one of its own does not: it can be neither tied nor untied.
  bool tied_head_differs = false;
  std::vector<std::string> vocab_fields = {};  ///< config.json's names of V
  /// Field of config.json with the rows of the position table.
  std::string position_field = {};
  /// Further tensors that have a row for each token, besides the tables, decoder and bias above.
  std::vector<std::string> vocabulary = {};
  /// All that the language model saves when tied. A leading "~" stands for the prefix, "{x}" for a
  /// number; "NAME.*" is NAME.weight and NAME.bias.
  std::vector<std::string> tensors = {};
  InOutMatrices in_out = {};        ///< empty: none
  bool computed_positions = false;  ///< the position table is made, not learned
  /// The first position has the row after that of pad_token_id (1 where the config has none).
  bool positions_after_padding = false;
  /// Rows of the position table in front of that of the first token, else.
  Index position_offset = 0;
  std::vector<BufferTensor> buffers = {};  ///< tensors of its files without weights
};

/// All families, sorted by name. Thread-safe; made at the first call.
std::span<const FamilyNames> family_names();

/// The family whose stem or model_type is `name`, one of family_names(); nullptr if none.
const FamilyNames* find_family_names(std::string_view name);

/// The names of just the model that `config` describes; nullptr if no family is its. Throws nothing
/// for options that masque does not have: then those of the family.
std::shared_ptr<const FamilyNames> family_names_of(const store::ModelConfig& config);

/// The tables by llama.cpp's names, which are the same for all its models: token_embd.weight,
/// position_embd.weight, token_types.weight, output.weight. Not one of family_names(): a model has
/// a family of its own, of which only these parts are known.
const FamilyNames& gguf_family();

/// `name` with a leading "~" replaced by `prefix`.
std::string with_prefix(std::string_view name, std::string_view prefix);

/// One spelling for the tensor `name` whatever file it comes from: without the base prefix of any
/// family, and with LayerNorm.weight and .bias for LayerNorm.gamma and .beta (only there: other
/// layers have a gamma of their own).
std::string canonical_name(std::string_view name);

}  // namespace masque::model
