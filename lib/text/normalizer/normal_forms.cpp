// The normal forms NFC, NFD, NFKC and NFKD.
#include "text/normal_form.hpp"
#include "text/normalizer.hpp"

namespace masque::text {

namespace {

template <NormalForm kForm>
class InNormalForm : public Normalizer {
 public:
  void apply(AlignedText& text) const override { normalize(text, kForm); }
};

template <NormalForm kForm>
std::shared_ptr<const Normalizer> make_form(const PartFields& /*fields*/) {
  return std::make_shared<InNormalForm<kForm>>();
}

const NormalizerRegistration kForms[] = {
    NormalizerRegistration({"NFC", make_form<NormalForm::kNfc>}),
    NormalizerRegistration({"NFD", make_form<NormalForm::kNfd>}),
    NormalizerRegistration({"NFKC", make_form<NormalForm::kNfkc>}),
    NormalizerRegistration({"NFKD", make_form<NormalForm::kNfkd>}),
};

}  // namespace

}  // namespace masque::text
