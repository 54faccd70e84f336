// The normal form NFKC.
#include "text/normal_form.hpp"
#include "text/normalizer.hpp"

namespace masque::text {

namespace {

class Nfkc : public Normalizer {
 public:
  void apply(AlignedText& text) const override { normalize(text, NormalForm::kNfkc); }
};

const NormalizerRegistration kRegistration{
    {"NFKC", [](const PartFields&) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Nfkc>();
     }}};

}  // namespace

}  // namespace masque::text
