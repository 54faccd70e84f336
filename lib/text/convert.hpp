// What the conversions of vocabularies to whole tokenizers share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/model.hpp"

namespace masque::text {

/// The added token `content` with the flags `special` and `lstrip` and its id in `model`, as an
/// item of "added_tokens"; empty if the model lacks it.
std::string added_json(const TokenModel& model, std::string_view content, bool special,
                       bool lstrip = false);

/// Items of "added_tokens", special ones, for those of `contents` that `model` has, separated by
/// commas.
std::string added_json(const TokenModel& model, const std::vector<std::string_view>& contents);

/// A TemplateProcessing with the templates `single` of one text and `pair` of two: texts "$A" and
/// "$B" and special tokens (without spaces), each with its type, as in "[CLS]:0 $A:0 [SEP]:0".
/// "null" if `model` lacks one of the tokens.
std::string template_json(const TokenModel& model, std::string_view single, std::string_view pair);

/// The parts of a tokenizer.json as JSON.
struct TokenizerText {
  std::string normalizer = "null";      ///< an object or null
  std::string pre_tokenizer = "null";   ///< an object or null
  std::string post_processor = "null";  ///< an object or null
  std::string decoder = "null";         ///< an object or null
  std::string added_tokens = {};        ///< items with commas between
};

/// The parts of `text` as a tokenizer.json without its model.
std::string tokenizer_json(const TokenizerText& text);

/// Whether `piece` ends with a digit (any that Python's isdigit knows) and a comma: ALBERT and
/// XLNet take 100 off its score.
bool is_number_comma(std::string_view piece);

}  // namespace masque::text
