// The post-processors, one function for each type that tokenizer.json names. `path` is for
// messages: all throw InputError with it and the place of a field of another kind.
#pragma once

#include "text/post_processor.hpp"

namespace masque::text {

/// "single", "pair" and "special_tokens". Throws InputError too for a token or a text that is not
/// there.
std::unique_ptr<PostProcessor> make_template_processing(const JsonValue& json,
                                                        const std::string& path);
/// "cls" and "sep", as read_named_token.
std::unique_ptr<PostProcessor> make_bert_processing(const JsonValue& json, const std::string& path);
/// "cls" and "sep", as read_named_token; "trim_offsets" (true) and "add_prefix_space" (true).
std::unique_ptr<PostProcessor> make_roberta_processing(const JsonValue& json,
                                                       const std::string& path);
/// "trim_offsets" (true) and "add_prefix_space" (true).
std::unique_ptr<PostProcessor> make_byte_level_processing(const JsonValue& json,
                                                          const std::string& path);
/// "processors": what each of them says.
std::unique_ptr<PostProcessor> make_sequence_processing(const JsonValue& json,
                                                        const std::string& path);

/// A special token of BertProcessing and RobertaProcessing.
struct NamedToken {
  std::string token;
  TokenId id = 0;
};
/// The member `name`: ["token", id]. Throws InputError for anything else.
NamedToken read_named_token(const JsonValue& json, std::string_view name, const std::string& path);

/// Moves offsets past the spaces that byte-level tokens begin and end with; with `add_prefix_space`
/// not past a single one at the begin of the text.
void trim_byte_level_offsets(Encoding& encoding, bool add_prefix_space);

}  // namespace masque::text
