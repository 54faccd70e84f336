#include "store/tensorflow/snappy.hpp"

#include <snappy.h>

namespace masque::store {

namespace {

constexpr std::size_t kMostGrowth = 22;  // 64 bytes from a copy of 3

}  // namespace

std::optional<std::string> unpack_snappy(std::string_view packed) {
  // The library believes what is announced; memory is allocated when it is known to be possible.
  std::size_t announced = 0;
  if (!snappy::GetUncompressedLength(packed.data(), packed.size(), &announced)) return std::nullopt;
  if (announced / kMostGrowth > packed.size()) return std::nullopt;
  std::string out(announced, '\0');
  if (!snappy::RawUncompress(packed.data(), packed.size(), out.data())) return std::nullopt;
  return out;
}

}  // namespace masque::store
