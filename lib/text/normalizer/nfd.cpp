// The normal form NFD.
#include "text/normal_form.hpp"
#include "text/normalizer.hpp"

namespace masque::text {

namespace {

class Nfd : public Normalizer {
 public:
  void apply(AlignedText& text) const override { normalize(text, NormalForm::kNfd); }
};

const NormalizerRegistration kRegistration{
    {"NFD", [](const PartFields&) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Nfd>();
     }}};

}  // namespace

}  // namespace masque::text
