// The normal form NFKD.
#include "text/normal_form.hpp"
#include "text/normalizer.hpp"

namespace masque::text {

namespace {

class Nfkd : public Normalizer {
 public:
  void apply(AlignedText& text) const override { normalize(text, NormalForm::kNfkd); }
};

const NormalizerRegistration kRegistration{
    {"NFKD", [](const PartFields&) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Nfkd>();
     }}};

}  // namespace

}  // namespace masque::text
