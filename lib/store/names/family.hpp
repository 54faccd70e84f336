// Model families as data: tensor names, shapes, what is tied. One file per family under
// store/names/family/ registers itself; nothing outside these tables knows a tensor name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque::store {

/// How a tensor of a new checkpoint is filled.
enum class Init {
  kNormal,    ///< normal with the config's initializer_range
  kPadded,    ///< as kNormal, with the row of `pad_token_id` zero where the config names one
  kZero,      ///< 0
  kOne,       ///< 1
  kResidual,  ///< normal with initializer_range / √(2L): GPT-2's projections onto the residual
  kSinusoid,  ///< row p: sin(p·10000^(−2i/n)) in the first half, cos in the second
};

/// A config.json field that gives a size. `names` are tried in order; the first that is present and
/// not null counts. Without any, `fallback` is evaluated like a dimension ("4*H", "30522").
struct SizeField {
  char symbol;                          ///< the letter that dimensions use
  std::vector<std::string_view> names;  ///< spellings in config.json
  std::string_view fallback;            ///< the family's default
};

/// One tensor, or one per layer, of a family's language model.
struct TensorPattern {
  /// Name. A leading "~" stands for the base model's prefix; "{l}" counts layers from 0 to L−1, and
  /// so does any letter for the size of its upper case ("{g}": from 0 to G−1); two of them, nested.
  std::string_view name;
  /// Comma-separated dimensions; each a product, quotient or sum of symbols and numbers: "V,E",
  /// "3*H", "H/A" (rounded down), "".
  std::string_view shape;
  Init init = Init::kNormal;
  /// Empty, or "E!=H": the tensor exists only when the two sizes differ.
  std::string_view when = {};
};

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
  std::string_view name;  ///< as TensorPattern::name
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
  std::vector<SizeField> sizes;
  std::vector<TensorPattern> tensors;  ///< as the language model saves them when tied
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

/// `name` with a leading "~" replaced by `prefix`.
std::string with_prefix(std::string_view name, std::string_view prefix);

/// One spelling for a tensor whatever file it comes from: without the base prefix of any family,
/// and with LayerNorm.weight and .bias for LayerNorm.gamma and .beta (only there: other layers have
/// a gamma of their own).
std::string canonical_name(std::string_view name);

}  // namespace masque::store
