// Reading an output back: everything that was not to change is bit-identical, the rest is what was
// computed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "store/checkpoint.hpp"
#include "surgery/edit/verify_parts.hpp"

namespace masque::surgery {

/// The proof that all else is as it was.
struct VerifyResult {
  std::uint64_t tensors_unchanged = 0;
  std::uint64_t bytes_unchanged = 0;
  std::string digest_before;  ///< XXH3-128 over all unchanged tensors, by name
  std::string digest_after;
  std::uint64_t files_unchanged = 0;
};

struct VerifyRequest {
  const store::Checkpoint* before = nullptr;
  std::string staged;                                       ///< the output, before its rename
  std::vector<std::string> changed;                         ///< tensors that were computed
  std::vector<std::pair<std::string, std::string>> copies;  ///< new tensor, tensor it copies
  std::vector<std::string> edited_files;                    ///< files of a folder with new text
  /// Bytes of a computed tensor from an offset that is a multiple of chunk_bytes. Thread-safe.
  ExpectedBytes expected;
  std::uint64_t chunk_bytes = 0;
  int threads = 0;
};

/// Compares by XXH3-128. Throws InputError naming the first tensor or file that differs.
VerifyResult verify_checkpoint(const VerifyRequest& request);

}  // namespace masque::surgery
