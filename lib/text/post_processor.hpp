// Post-processors of Hugging Face's tokenizer.json, one file each under text/post_processor/.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "text/encoding.hpp"

namespace masque::text {

/// Puts special tokens around one text or two, and trims offsets. Immutable and thread-safe.
class PostProcessor {
 public:
  PostProcessor() = default;
  PostProcessor(const PostProcessor&) = delete;
  PostProcessor& operator=(const PostProcessor&) = delete;
  virtual ~PostProcessor() = default;

  /// Rewrites the parts, which are one text or two at first; together, in order, they are the
  /// result. Without `special` only offsets and type ids change.
  virtual void process(std::vector<Encoding>& parts, bool special) const = 0;
  /// Number of tokens that process() adds to one text, or with `pair` to two.
  virtual std::size_t added(bool pair) const = 0;
};

/// A type of post-processor.
struct PostProcessorKind {
  std::string_view name;  ///< its "type" in tokenizer.json
  /// Makes it of `json`, its object in the file `path`. Throws InputError with `path` and the place
  /// of a field of another kind.
  std::unique_ptr<PostProcessor> (*make)(const JsonValue& json, const std::string& path);
};

/// Adds a type at program start.
struct PostProcessorRegistration {
  /// Copies `kind` into the registry of the process; its name must be of static lifetime.
  explicit PostProcessorRegistration(const PostProcessorKind& kind);
};

/// The post-processor of the object `json` of tokenizer.json, which is the file `path`. Throws
/// InputError for an unknown type, by its name.
std::unique_ptr<PostProcessor> make_post_processor(const JsonValue& json, const std::string& path);

}  // namespace masque::text
