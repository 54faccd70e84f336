#include "text/decoder.hpp"

#include <array>
#include <utility>

#include "base/registry.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

DecoderRegistration::DecoderRegistration(const DecoderKind& kind) {
  Registry<DecoderKind>::of_process().add(std::make_unique<const DecoderKind>(kind));
}

std::unique_ptr<Decoder> make_decoder(const JsonValue& json, const std::string& path) {
  return kind_of_type<DecoderKind>(json, "decoder", path).make(json, path);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  std::size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    out.append(text, done, at - done);
    out += to;
    done = at + from.size();
  }
  out.append(text, done);
  text = std::move(out);
}

void clean_up_spaces(std::string& text, CleanUp how) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kRules{
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
  if (how == CleanUp::kTokenizers) replace_all(text, " do not", " don't");
}

}  // namespace masque::text
