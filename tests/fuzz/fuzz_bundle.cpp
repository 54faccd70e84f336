// Any bytes as the index of a TensorFlow checkpoint: no crash, and tensors inside of their files.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "support/bundle_oracle.hpp"

namespace {

std::string wrong(std::string_view bytes) {
  return masque::test::wrong_bundle(bytes, masque::store::TableSums::kCompared);
}

}  // namespace

MASQUE_FUZZ_TARGET(wrong)
