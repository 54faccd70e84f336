#include "store/compare_checkpoints.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "base/parallel.hpp"

namespace masque {

const char* change_name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kOnlyA: return "only-a";
    case ChangeKind::kOnlyB: return "only-b";
    case ChangeKind::kDtype: return "dtype";
    case ChangeKind::kShape: return "shape";
    default: return "values";
  }
}

std::vector<TensorChange> compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                              Tolerance tolerance, int threads,
                                              const ProgressFunction& progress) {
  std::set<std::string> names;
  for (const TensorInfo& tensor : a.tensors()) names.insert(tensor.name);
  for (const TensorInfo& tensor : b.tensors()) names.insert(tensor.name);
  const std::uint64_t total = a.tensor_bytes();
  std::uint64_t done = 0;
  std::vector<TensorChange> changes;
  for (const std::string& name : names) {
    const TensorInfo* left = a.find(name);
    const TensorInfo* right = b.find(name);
    if (left != nullptr) done += left->bytes();
    if (left == nullptr || right == nullptr) {
      changes.push_back({name, left ? ChangeKind::kOnlyA : ChangeKind::kOnlyB, left, right, {}});
      continue;
    }
    if (left->shape != right->shape) {
      changes.push_back({name, ChangeKind::kShape, left, right, {}});
      continue;
    }
    const TensorDiff diff = tensor_diff(a, *left, b, *right, tolerance, threads);
    if (left->dtype != right->dtype) {
      changes.push_back({name, ChangeKind::kDtype, left, right, diff});
    } else if (diff.count > 0) {
      changes.push_back({name, ChangeKind::kValues, left, right, diff});
    }
    if (progress) progress(done, total);
  }
  return changes;
}

CheckpointHash hash_checkpoint(const Checkpoint& checkpoint, HashKind kind, int threads,
                               const ProgressFunction& progress) {
  const auto& tensors = checkpoint.tensors();
  CheckpointHash out;
  out.tensors.resize(tensors.size());
  std::atomic<std::uint64_t> done{0};
  parallel_for(static_cast<Index>(tensors.size()), threads, [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    out.tensors[at] = tensor_hash(checkpoint, tensors[at], kind);
    const std::uint64_t now = done += tensors[at].bytes();
    if (progress) progress(now, checkpoint.tensor_bytes());
  });
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < tensors.size(); ++i) by_name[tensors[i].name] = i;
  const auto hasher = kind == HashKind::kSha256 ? make_sha256() : make_xxh3();
  for (const auto& [name, i] : by_name) {
    const std::string line = fmt::format("{}\t{}\t{}\t{}\n", name, dtype_name(tensors[i].dtype),
                                         shape_text(tensors[i].shape), out.tensors[i]);
    hasher->add(as_bytes(line));
  }
  out.total = hasher->digest();
  return out;
}

}  // namespace masque
