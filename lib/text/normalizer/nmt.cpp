// The cleaning of neural machine translation: no controls, one kind of space.
#include "text/normalizer.hpp"
#include "text/rewriter.hpp"

namespace masque::text {

namespace {

bool is_removed(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool is_space(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

class Nmt : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    filter(text, [](char32_t c) { return !is_removed(c); });
    Rewriter rewriter(text);
    for (std::size_t i = 0; i < text.text.size();) {
      const char32_t c = next_char(text.text, i);
      rewriter.put(is_space(c) ? U' ' : c, 0);
    }
    rewriter.finish();
  }
};

const NormalizerRegistration kRegistration{
    {"Nmt", [](const PartFields&) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Nmt>();
     }}};

}  // namespace

}  // namespace masque::text
