// Any bytes as a Snappy stream: no crash, and as many bytes as announced.
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "store/tensorflow/leveldb_table.hpp"
#include "store/tensorflow/wire.hpp"

namespace {

const char* wrong(std::string_view packed) {
  const auto unpacked = masque::store::unpack_snappy(packed);
  std::size_t at = 0;
  if (!unpacked || unpacked->size() == masque::store::read_varint(packed, at)) return nullptr;
  return "another length than announced";
}

}  // namespace

MASQUE_FUZZ_TARGET(wrong)
