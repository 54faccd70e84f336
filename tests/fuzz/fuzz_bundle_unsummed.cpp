// Any bytes as the index of a TensorFlow checkpoint whose sums are always right, so that
// changed bytes get through: no crash, and tensors inside of their files.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "support/bundle_oracle.hpp"

namespace {

std::string wrong(std::string_view bytes) {
  return masque::test::wrong_bundle(bytes, masque::store::TableSums::kIgnored);
}

}  // namespace

MASQUE_FUZZ_TARGET(wrong)
