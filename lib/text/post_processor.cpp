#include "text/post_processor.hpp"

#include "base/registry.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

PostProcessorRegistration::PostProcessorRegistration(const PostProcessorKind& kind) {
  Registry<PostProcessorKind>::of_process().add(std::make_unique<const PostProcessorKind>(kind));
}

std::unique_ptr<PostProcessor> make_post_processor(const JsonValue& json, const std::string& path) {
  return kind_of_type<PostProcessorKind>(json, "post-processor", path).make(json, path);
}

}  // namespace masque::text
