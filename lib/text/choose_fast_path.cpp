#include "text/json_fields.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

namespace {

bool has_type(const JsonValue* json, std::string_view type) {
  const JsonValue* own = json == nullptr ? nullptr : json->find("type");
  return own != nullptr && own->text == type;
}

BertFields bert_fields(const JsonValue& json, const std::string& path) {
  BertFields fields;
  fields.clean_text = bool_field(json, "clean_text", true, path);
  fields.handle_chinese_chars = bool_field(json, "handle_chinese_chars", true, path);
  fields.lowercase = bool_field(json, "lowercase", true, path);
  fields.strip_accents = bool_field(json, "strip_accents", fields.lowercase, path);
  return fields;
}

}  // namespace

void choose_fast_path(const JsonValue& json, TokenizerParts& parts) {
  const JsonValue* normalizer = find_field(json, "normalizer", JsonKind::kObject, parts.path);
  const JsonValue* words = find_field(json, "pre_tokenizer", JsonKind::kObject, parts.path);
  if (has_type(normalizer, "BertNormalizer") && has_type(words, "BertPreTokenizer")) {
    parts.make_fast = [fields = bert_fields(*normalizer, parts.path)](const Steps& steps, bool) {
      return make_bert_encoder(steps, fields);
    };
  } else if (normalizer == nullptr && has_type(words, "ByteLevel") &&
             bool_field(*words, "use_regex", true, parts.path)) {
    const bool prefix = bool_field(*words, "add_prefix_space", true, parts.path);
    parts.make_fast = [prefix](const Steps& steps, bool) {
      return make_byte_level_encoder(steps, prefix);
    };
  } else if (has_type(words, "Metaspace") && bool_field(*words, "split", true, parts.path) &&
             text_field(*words, "replacement", "\xE2\x96\x81", parts.path) == "\xE2\x96\x81") {
    const bool prefix = bool_field(*words, "add_prefix_space", true, parts.path);
    const std::string scheme =
        text_field(*words, "prepend_scheme", prefix ? "always" : "never", parts.path);
    parts.make_fast = [scheme](const Steps& steps, bool first) {
      const Prepend prepend = scheme == "always"           ? Prepend::kAlways
                              : scheme == "first" && first ? Prepend::kFirst
                                                           : Prepend::kNever;
      return make_metaspace_encoder(steps, prepend);
    };
  }
}

}  // namespace masque::text
