#include "text/post_processor.hpp"

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/registry.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

PostProcessorRegistration::PostProcessorRegistration(const PostProcessorKind& kind) {
  Registry<PostProcessorKind>::of_process().add(std::make_unique<const PostProcessorKind>(kind));
}

std::unique_ptr<PostProcessor> make_post_processor(const JsonValue& json, const std::string& path) {
  const auto& kinds = Registry<PostProcessorKind>::of_process();
  const std::string& type = type_field(json, path);
  if (const auto* kind = kinds.find(type); kind != nullptr) return kind->make(json, path);
  refuse_json(json, path,
              fmt::format("post-processor '{}', expected one of {}", escape(type), kinds.names()));
}

}  // namespace masque::text
