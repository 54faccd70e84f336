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
  std::uint64_t tensors_unchanged = 0;  ///< their number
  std::uint64_t bytes_unchanged = 0;    ///< of these tensors
  std::string digest_before;            ///< XXH3-128 over all unchanged tensors, by name
  std::string digest_after;           ///< of the same tensors in the output; equal to digest_before
  std::uint64_t files_unchanged = 0;  ///< other files of a folder; 0 for a lone file
};

/// What verify_checkpoint() compares.
struct VerifyRequest {
  const store::Checkpoint* before = nullptr;                ///< the input; must not be nullptr
  std::string staged;                                       ///< the output, before its rename
  std::vector<std::string> changed;                         ///< tensors that were computed
  std::vector<std::pair<std::string, std::string>> copies;  ///< new tensor, tensor it copies
  std::vector<std::string> edited_files;                    ///< files of a folder with new text
  /// Bytes of every tensor of `changed`, which all get the same ones. Thread-safe.
  ExpectedBytes expected;
  std::uint64_t chunk_bytes = 0;  ///< bytes that `expected` is asked for at once; above 0
  int threads = 0;                ///< ≤ 0: all processors
};

/// Reads back the output that `request` names. Compares unchanged tensors, copies and files by
/// XXH3-128, changed tensors byte by byte. Throws InputError naming a tensor or file that differs.
VerifyResult verify_checkpoint(const VerifyRequest& request);

}  // namespace masque::surgery
