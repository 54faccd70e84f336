#include "surgery/edit/verify_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/hash.hpp"
#include "base/parallel.hpp"
#include "store/tensor_stats.hpp"

namespace masque::surgery {

void verify_failed(const std::string& what) {
  throw InputError("verify", what + " after writing; the output was discarded");
}

std::string combined_digest(const std::vector<std::string>& digests) {
  const auto hasher = make_xxh3();
  for (const std::string& digest : digests) hasher->add(as_bytes(digest));
  return hasher->digest();
}

bool same_file(const std::string& a, const std::string& b) {
  const InputFile left = InputFile::open(a);
  const InputFile right = InputFile::open(b);
  return left.size() == right.size() &&
         store::range_hash(left, 0, left.size(), store::HashKind::kXxh3) ==
             store::range_hash(right, 0, right.size(), store::HashKind::kXxh3);
}

void check_computed_bytes(const store::Checkpoint& after, const store::TensorInfo& tensor,
                          const ExpectedBytes& expected, std::uint64_t chunk_bytes, int threads) {
  const auto chunks = static_cast<Index>((tensor.bytes() + chunk_bytes - 1) / chunk_bytes);
  parallel_for(chunks, threads, [&](Index i) {
    const std::uint64_t offset = static_cast<std::uint64_t>(i) * chunk_bytes;
    std::vector<std::byte> wanted(std::min(chunk_bytes, tensor.bytes() - offset));
    std::vector<std::byte> written(wanted.size());
    expected(offset, wanted);
    after.read(tensor, offset, written);
    if (wanted != written)
      verify_failed(
          fmt::format("tensor '{}' does not match the computed values", escape(tensor.name)));
  });
}

}  // namespace masque::surgery
