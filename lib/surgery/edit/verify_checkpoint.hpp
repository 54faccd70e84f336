// Reading an output back: everything that was not to change is bit-identical, the rest is what was
// computed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/checkpoint.hpp"
#include "surgery/edit/checkpoint_edit.hpp"

namespace masque::surgery {

// What both ways of reading an output back share.

/// Throws InputError: `what` is not as it must be in an output that was read back.
[[noreturn]] void verify_failed(const std::string& what);

/// One XXH3-128 over the texts of several `digests`, in their order.
std::string combined_digest(const std::vector<std::string>& digests);

/// Whether the files at the paths `a` and `b` have the same bytes, by XXH3-128. Throws InputError
/// if one cannot be read.
bool same_file(const std::string& a, const std::string& b);

/// Writes the bytes of a computed tensor from byte `offset`, a multiple of the size of its chunks,
/// to `out`. Thread-safe.
using ExpectedBytes = std::function<void(std::uint64_t offset, MutableBytes out)>;

/// Compares the bytes of `tensor` of `after` with those of `expected`, in chunks of `chunk_bytes`,
/// on up to `threads` threads (≤ 0: all processors). Throws InputError naming it if a byte differs.
void check_computed_bytes(const store::Checkpoint& after, const store::TensorInfo& tensor,
                          const ExpectedBytes& expected, std::uint64_t chunk_bytes, int threads);

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

// Reads an edited checkpoint back and checks it: changed parts hold the computed bytes, and all
// else is bit-identical.

/// Made of an edit before it is written; for WriteOptions::verify.
class EditProof {
 public:
  /// The edit must outlive the proof, and be complete.
  explicit EditProof(const CheckpointEdit& edit);

  /// Compares the output at the path `staged`, perhaps before its rename, tensor by tensor
  /// (XXH3-128, computed ones byte by byte on up to `threads` threads) and file by file. Computes
  /// the replaced and added tensors again. Throws InputError naming the first that differs.
  VerifyResult check(const std::string& staged, int threads) const;

 private:
  void check_typed(const store::Checkpoint& after) const;
  void check_files(const std::string& staged, VerifyResult& result) const;

  const CheckpointEdit* edit_;
  std::vector<store::OutputTensor> added_;
  std::map<std::string, std::string> texts_;  ///< of edited files
};

}  // namespace masque::surgery
