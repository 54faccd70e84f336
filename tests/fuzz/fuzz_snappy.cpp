// Any bytes as a Snappy stream: no crash, and as many bytes as announced.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "store/tensorflow/snappy.hpp"
#include "store/tensorflow/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view packed(reinterpret_cast<const char*>(data), size);
  const auto unpacked = masque::store::unpack_snappy(packed);
  std::size_t at = 0;
  if (!unpacked || unpacked->size() == masque::store::read_varint(packed, at)) return 0;
  std::fprintf(stderr, "fuzz_snappy: another length than announced\n");
  std::abort();
}
