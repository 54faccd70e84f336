#include <fmt/format.h>

#include "base/escape.hpp"
#include "text/json_fields.hpp"
#include "text/post_processor.hpp"
#include "text/post_processor/post_processors.hpp"

namespace masque::text {

std::unique_ptr<PostProcessor> make_post_processor(const JsonValue& json, const std::string& path) {
  const std::string& type = type_field(json, path);
  if (type == "TemplateProcessing") return make_template_processing(json, path);
  if (type == "BertProcessing") return make_bert_processing(json, path);
  if (type == "RobertaProcessing") return make_roberta_processing(json, path);
  if (type == "ByteLevel") return make_byte_level_processing(json, path);
  if (type == "Sequence") return make_sequence_processing(json, path);
  refuse_json(json, path,
              fmt::format("post-processor '{}', expected TemplateProcessing, BertProcessing, "
                          "RobertaProcessing, ByteLevel or Sequence",
                          escape(type)));
}

}  // namespace masque::text
