// Deletes marks, which a normal form has set apart before.
#include "text/normalizer.hpp"
#include "text/rewriter.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

class StripAccents : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    filter(text, [](char32_t c) { return !is(c, kMark); });
  }
};

const NormalizerRegistration kRegistration{
    {"StripAccents", [](const PartFields&) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<StripAccents>();
     }}};

}  // namespace

}  // namespace masque::text
