// SentencePiece's compiled replacements.
#include "text/base64.hpp"
#include "text/charsmap.hpp"
#include "text/normalizer.hpp"
#include "text/part_fields.hpp"

namespace masque::text {

namespace {

class Precompiled : public Normalizer {
 public:
  Precompiled(std::string_view bytes, const std::string& path) : charsmap_(bytes, path) {}

  void apply(AlignedText& text) const override { replace_graphemes(text, charsmap_); }

 private:
  Charsmap charsmap_;
};

const NormalizerRegistration kRegistration{
    {"Precompiled", [](const PartFields& fields) -> std::shared_ptr<const Normalizer> {
       const auto bytes = decode_base64(fields.text("precompiled_charsmap"));
       if (!bytes) fields.refuse("'precompiled_charsmap' is not base64");
       return std::make_shared<Precompiled>(*bytes, fields.path());
     }}};

}  // namespace

}  // namespace masque::text
