// Post-processors of Hugging Face's tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json/json.hpp"
#include "text/step/encoding.hpp"

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

/// The post-processor of the object `json` of tokenizer.json, which is the file `path`. Throws
/// InputError for an unknown type, by its name.
std::unique_ptr<PostProcessor> make_post_processor(const JsonValue& json, const std::string& path);

}  // namespace masque::text
