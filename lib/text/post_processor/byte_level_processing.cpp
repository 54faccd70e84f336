// ByteLevel: with "trim_offsets" (true) offsets without the spaces that are part of tokens; with
// "add_prefix_space" (true) a single first one stays.
#include <algorithm>

#include "base/escape.hpp"
#include "text/code_points.hpp"
#include "text/json_fields.hpp"
#include "text/post_processor/parts.hpp"

namespace masque::text {

namespace {

constexpr char32_t kByteLevelSpace = 0x120;  ///< Ġ, the byte-level space

bool is_trimmed_space(char32_t c) { return c == kByteLevelSpace || is_white_space(c); }

std::uint32_t leading_spaces(std::string_view token) {
  std::uint32_t count = 0;
  char32_t c = 0;
  for (int size = 0; (size = decode_utf8(token, c)) > 0 && is_trimmed_space(c);) {
    token.remove_prefix(static_cast<std::size_t>(size));
    ++count;
  }
  return count;
}

std::uint32_t trailing_spaces(std::string_view token) {
  std::uint32_t count = 0;
  while (!token.empty() && is_trimmed_space(last_code_point(token))) {
    token = token.substr(0, last_begin(token));
    ++count;
  }
  return count;
}

class ByteLevelProcessing final : public PostProcessor {
 public:
  ByteLevelProcessing(bool trim, bool prefix) : trim_(trim), prefix_(prefix) {}

  void process(std::vector<Encoding>& parts, bool /*special*/) const override {
    if (!trim_) return;
    for (Encoding& part : parts) trim_byte_level_offsets(part, prefix_);
  }

  std::size_t added(bool /*pair*/) const override { return 0; }

 private:
  bool trim_;
  bool prefix_;
};

std::unique_ptr<PostProcessor> make_byte_level_processing(const JsonValue& json,
                                                          const std::string& path) {
  return std::make_unique<ByteLevelProcessing>(bool_field(json, "trim_offsets", true, path),
                                               bool_field(json, "add_prefix_space", true, path));
}

const PostProcessorRegistration kRegistration{{"ByteLevel", make_byte_level_processing}};

}  // namespace

void trim_byte_level_offsets(Encoding& encoding, bool add_prefix_space) {
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    std::uint32_t leading = leading_spaces(encoding.tokens[i]);
    const std::uint32_t trailing = trailing_spaces(encoding.tokens[i]);
    Span& offset = encoding.offsets[i];
    if (leading > 0) {
      // A single first space is the one that was put there.
      if ((i == 0 || offset.begin == 0) && add_prefix_space && leading == 1) leading = 0;
      offset.begin = std::min(offset.begin + leading, offset.end);
    }
    if (trailing > 0 && offset.end >= trailing)
      offset.end = std::max(offset.end - trailing, offset.begin);
  }
}

}  // namespace masque::text
