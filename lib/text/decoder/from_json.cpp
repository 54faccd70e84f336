#include <array>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "text/decoder.hpp"
#include "text/decoder/decoders.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

std::unique_ptr<Decoder> make_decoder(const JsonValue& json, const std::string& path) {
  struct Variant {
    std::string_view type;
    std::unique_ptr<Decoder> (*make)(const JsonValue&, const std::string&);
  };
  static constexpr std::array kVariants{Variant{"WordPiece", make_word_piece_decoder},
                                        Variant{"ByteLevel", make_byte_level_decoder},
                                        Variant{"Metaspace", make_metaspace_decoder},
                                        Variant{"ByteFallback", make_byte_fallback_decoder},
                                        Variant{"Fuse", make_fuse_decoder},
                                        Variant{"Strip", make_strip_decoder},
                                        Variant{"Replace", make_replace_decoder},
                                        Variant{"BPEDecoder", make_bpe_decoder},
                                        Variant{"Sequence", make_sequence_decoder}};
  const std::string& type = type_field(json, path);
  std::string known;
  for (const Variant& variant : kVariants) {
    if (variant.type == type) return variant.make(json, path);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", variant.type);
  }
  refuse_json(json, path, fmt::format("decoder '{}', expected one of {}", escape(type), known));
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

}  // namespace masque::text
