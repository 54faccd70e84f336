// The post-processors, by type.
#pragma once

#include "text/post_processor.hpp"

namespace masque::text {

std::unique_ptr<PostProcessor> make_template_processing(const JsonValue& json,
                                                        const std::string& path);
std::unique_ptr<PostProcessor> make_bert_processing(const JsonValue& json, const std::string& path);
std::unique_ptr<PostProcessor> make_roberta_processing(const JsonValue& json,
                                                       const std::string& path);
std::unique_ptr<PostProcessor> make_byte_level_processing(const JsonValue& json,
                                                          const std::string& path);
std::unique_ptr<PostProcessor> make_sequence_processing(const JsonValue& json,
                                                        const std::string& path);

/// A special token of BertProcessing and RobertaProcessing.
struct NamedToken {
  std::string token;
  TokenId id = 0;
};
/// The member `name`: ["token", id].
NamedToken read_named_token(const JsonValue& json, std::string_view name, const std::string& path);

/// Moves offsets past the spaces that byte-level tokens begin and end with.
void trim_byte_level_offsets(Encoding& encoding, bool add_prefix_space);

}  // namespace masque::text
