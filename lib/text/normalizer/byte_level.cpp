// A character for each byte, as byte-level BPE writes them.
#include "text/byte_level.hpp"

#include "text/normalizer.hpp"

namespace masque::text {

namespace {

class ByteLevelNormalizer : public Normalizer {
 public:
  void apply(AlignedText& text) const override { byte_level(text); }
};

const NormalizerRegistration kRegistration{
    {"ByteLevel", [](const PartFields&) -> std::shared_ptr<const Normalizer> {
       return std::make_shared<ByteLevelNormalizer>();
     }}};

}  // namespace

}  // namespace masque::text
