// The tokenizer classes of transformers: which vocabulary file each reads, by whose rules, and
// which models it belongs to.
#pragma once

#include <string_view>

namespace masque::text {

/// The vocabulary that a class reads where there is no tokenizer.json.
enum class VocabularyFile { kVocabTxt, kVocabJson, kSpiece };

/// A tokenizer class that is read here.
struct TokenizerClass {
  std::string_view name;          ///< "RobertaTokenizer"; never with "Fast"
  std::string_view architecture;  ///< whose rules: "roberta"
  VocabularyFile file;            ///< what it reads
  std::string_view model_types;   ///< the model types of config.json that it belongs to
};

/// The class `name`, with or without "Fast" at its end; nullptr if it is not read here.
const TokenizerClass* find_tokenizer_class(std::string_view name);
/// The class that transformers reads the tokenizer of a model of `model_type` with; nullptr if it
/// is not read here.
const TokenizerClass* tokenizer_class_of_type(std::string_view model_type);
/// The first class of `architecture`, a known one.
const TokenizerClass& first_tokenizer_class(std::string_view architecture);

/// Whether the class `name`, with or without "Fast" at its end, lowers the case of every text,
/// whatever do_lower_case says.
bool always_lowers(std::string_view name);

/// Whether `name` is a class that any tokenizer.json is loaded with, and so names no rules:
/// "PreTrainedTokenizerFast", "TokenizersBackend" and others.
bool is_general_class(std::string_view name);
/// Whether transformers takes the class of `model_type` instead of one that tokenizer_config.json
/// names: published folders of these models name a wrong one.
bool overrules_class(std::string_view model_type);
/// Whether transformers reads a SentencePiece file of a model of `model_type` by the rules that the
/// file states, even where a class is `named`.
bool reads_any_spiece(std::string_view model_type, bool named);
/// Whether `model_type` is one of masque's own models without a tokenizer class: their vocabularies
/// are read by their files.
bool is_own_type(std::string_view model_type);

}  // namespace masque::text
