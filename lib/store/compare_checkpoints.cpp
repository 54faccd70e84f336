#include "store/compare_checkpoints.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/parallel.hpp"
#include "store/family.hpp"

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

namespace {

using ByName = std::map<std::string, const TensorInfo*>;

ByName by_name(const Checkpoint& checkpoint, NameMatch match) {
  ByName out;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const std::string name = match == NameMatch::kExact ? tensor.name : canonical_name(tensor.name);
    const auto [at, added] = out.emplace(name, &tensor);
    if (!added) {
      throw InputError(checkpoint.path(),
                       fmt::format("tensors '{}' and '{}' are both '{}'", escape(at->second->name),
                                   escape(tensor.name), escape(name)));
    }
  }
  return out;
}

const TensorInfo* find_in(const ByName& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : found->second;
}

}  // namespace

std::vector<TensorChange> compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                              const CompareOptions& options) {
  const ByName in_a = by_name(a, options.names);
  const ByName in_b = by_name(b, options.names);
  std::set<std::string> names;
  for (const auto& [name, tensor] : in_a) names.insert(name);
  for (const auto& [name, tensor] : in_b) names.insert(name);
  const std::uint64_t total = a.tensor_bytes();
  std::uint64_t done = 0;
  std::vector<TensorChange> changes;
  for (const std::string& name : names) {
    const TensorInfo* left = find_in(in_a, name);
    const TensorInfo* right = find_in(in_b, name);
    if (left != nullptr) done += left->bytes();
    if (left == nullptr || right == nullptr) {
      changes.push_back({name, left ? ChangeKind::kOnlyA : ChangeKind::kOnlyB, left, right, {}});
      continue;
    }
    if (left->shape != right->shape) {
      changes.push_back({name, ChangeKind::kShape, left, right, {}});
      continue;
    }
    const TensorDiff diff = tensor_diff(a, *left, b, *right, options.tolerance, options.threads);
    if (left->dtype != right->dtype) {
      changes.push_back({name, ChangeKind::kDtype, left, right, diff});
    } else if (diff.count > 0) {
      changes.push_back({name, ChangeKind::kValues, left, right, diff});
    }
    if (options.progress) options.progress(done, total);
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
    const std::string line =
        fmt::format("{}\t{}\t{}\t{}\n", quote_json(name), dtype_name(tensors[i].dtype),
                    shape_text(tensors[i].shape), out.tensors[i]);
    hasher->add(as_bytes(line));
  }
  out.total = hasher->digest();
  return out;
}

}  // namespace masque
