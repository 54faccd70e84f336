// The normal form NFC.
#include "text/normal_form.hpp"
#include "text/normalizer.hpp"

namespace masque::text {

namespace {

class Nfc : public Normalizer {
 public:
  void apply(AlignedText& text) const override { normalize(text, NormalForm::kNfc); }
};

const NormalizerRegistration kRegistration{
    {"NFC", [](const PartFields&) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Nfc>();
     }}};

}  // namespace

}  // namespace masque::text
