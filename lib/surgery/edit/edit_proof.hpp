// Reads an edited checkpoint back and checks it: changed parts hold the computed bytes, and all
// else is bit-identical.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/edit/verify_checkpoint.hpp"

namespace masque::surgery {

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
