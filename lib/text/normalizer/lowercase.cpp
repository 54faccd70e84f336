// Lower case, character by character.
#include "text/bert.hpp"
#include "text/normalizer.hpp"

namespace masque::text {

namespace {

class Lowercase : public Normalizer {
 public:
  void apply(AlignedText& text) const override { lower(text); }
};

const NormalizerRegistration kRegistration{
    {"Lowercase", [](const PartFields&) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<Lowercase>();
     }}};

}  // namespace

}  // namespace masque::text
