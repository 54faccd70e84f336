// Members of configurations that hold token ids, by name and by form.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/text_splice.hpp"
#include "surgery/vocabulary/id_map.hpp"

namespace masque::surgery {

/// How a member holds ids.
enum class IdForm {
  kId,         ///< 5 or [5, 6]: each must have a token ("eos_token_id")
  kList,       ///< [5, 6], in lists of any depth: those without a token go ("suppress_tokens")
  kSequences,  ///< [[5, 6], [7]]: sequences go whole ("bad_words_ids")
  kPairs,      ///< [[1, 5]]: a position and an id ("forced_decoder_ids")
  kBiases,     ///< [[[5], -10.0]] or {"(5,)": -10.0} ("sequence_bias")
  kByName,     ///< {"<|en|>": 5} ("lang_to_id")
  kOther,      ///< of another vocabulary ("codec_eos_token_id")
};

/// The form of the member `name` of a configuration, as transformers and PEFT name them; nothing if
/// no member of this name holds token ids.
std::optional<IdForm> id_form_of(std::string_view name);

/// Whether `value`, the member `name`, may hold token ids although no table knows it: a list of
/// whole numbers, of any depth, with a name like those of ids or tokens.
bool may_hold_ids(std::string_view name, const JsonValue& value);

/// What renumber_ids() did not carry over.
struct LostIds {
  std::vector<std::uint64_t> gone;    ///< whose tokens were removed: their entries are left out
  std::vector<std::uint64_t> beyond;  ///< that are no row of the table: unchanged
};

/// Renumbers `value` of `text`, a member of the `form` (not kId, not kOther), by `ids` of a
/// vocabulary of `rows` rows, with edits in `splice`. An entry with an id whose token is gone is
/// left out; a list that becomes empty by this becomes null, which transformers reads as none.
/// Anything that is not of the form stays unchanged. Returns the ids that were not carried over.
LostIds renumber_ids(const std::string& text, const JsonValue& value, IdForm form, const IdMap& ids,
                     std::uint64_t rows, TextSplice& splice);

}  // namespace masque::surgery
