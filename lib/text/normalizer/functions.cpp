// The normalizers that are a function of the text alone: lower case, character by character; a
// character for each byte, as byte-level BPE writes them; no marks, which a normal form has set
// apart before.
#include "text/bert.hpp"
#include "text/byte_level.hpp"
#include "text/normalizer.hpp"
#include "text/rewriter.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

void strip_accents(AlignedText& text) {
  filter(text, [](char32_t c) { return !is(c, kMark); });
}

template <void (*kFunction)(AlignedText&)>
class FunctionNormalizer final : public Normalizer {
 public:
  void apply(AlignedText& text) const override { kFunction(text); }
};

template <void (*kFunction)(AlignedText&)>
std::shared_ptr<const Normalizer> make_function(const PartFields& /*fields*/) {
  return std::make_shared<FunctionNormalizer<kFunction>>();
}

const NormalizerRegistration kFunctions[] = {
    NormalizerRegistration({"ByteLevel", make_function<byte_level>}),
    NormalizerRegistration({"Lowercase", make_function<lower>}),
    NormalizerRegistration({"StripAccents", make_function<strip_accents>}),
};

}  // namespace

}  // namespace masque::text
