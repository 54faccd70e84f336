// Any bytes as an npy file: no crash, and the naive reading and a second writing agree.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "support/npy_oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = masque::test::wrong_npy({reinterpret_cast<const char*>(data), size});
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "fuzz_npy: %s\n", wrong.c_str());
  std::abort();
}
