// Any bytes as an npz file: no crash, members that lie apart, the naive reading agrees, and so does
// the reading as a checkpoint.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "support/npz_oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = masque::test::wrong_npz({reinterpret_cast<const char*>(data), size});
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "fuzz_npz: %s\n", wrong.c_str());
  std::abort();
}
