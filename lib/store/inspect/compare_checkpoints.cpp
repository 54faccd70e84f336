#include "store/inspect/compare_checkpoints.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/thread/parallel.hpp"
#include "store/gguf/gguf_model.hpp"
#include "store/numpy/unpacked_tensor.hpp"
#include "store/transpose.hpp"

namespace masque::store {

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

/// A tensor of either kind; both are nullptr if there is none.
struct Found {
  const TensorInfo* tensor = nullptr;
  const OpaqueTensor* opaque = nullptr;
  std::string type;  // as the file calls it

  bool there() const { return tensor != nullptr || opaque != nullptr; }
  const std::string& name() const { return tensor == nullptr ? opaque->name : tensor->name; }
  const Shape& shape() const { return tensor == nullptr ? opaque->shape : tensor->shape; }
};

/// The tensors of a checkpoint by the names that they are matched by.
struct Side {
  std::map<std::string, Found> tensors;
  std::shared_ptr<const void> owner;  // of those that its files do not have as they are
};

/// `tensor`, a matrix of elements of whole bytes, the other way round: read whole, by way of
/// `last`.
TensorInfo transposed(const TensorInfo& tensor, const std::shared_ptr<UnpackedTensor>& last) {
  const std::size_t width = dtype_bits(tensor.dtype) / 8;
  MASQUE_CHECK(tensor.shape.size() == 2 && width > 0);
  const auto unpack = [tensor, width](const InputFile& file, MutableBytes out) {
    std::vector<std::byte> bytes(tensor.bytes());
    read_tensor(file, tensor, 0, bytes);
    const std::size_t rows = tensor.shape[0];
    transpose(bytes.data(), rows, tensor.shape[1], width, out.data(), rows * width);
  };
  TensorInfo other = tensor;
  std::swap(other.shape[0], other.shape[1]);
  other.begin = 0;
  other.end = tensor.bytes();
  other.reader = unpacking_reader(tensor.bytes(), unpack, last);
  return other;
}

Side by_name(const Checkpoint& checkpoint, const CompareOptions& options) {
  Side side;
  const auto add = [&](const std::string& own, Found found) {
    const std::string name = options.canonical ? options.canonical(own) : own;
    const auto [at, added] = side.tensors.emplace(name, std::move(found));
    if (!added) {
      throw InputError(checkpoint.path(),
                       fmt::format("tensors '{}' and '{}' are both '{}'", escape(at->second.name()),
                                   escape(own), escape(name)));
    }
  };
  if (options.as_transformers && runs_gguf(checkpoint)) {
    const auto made = std::make_shared<std::map<std::string, TensorInfo>>(gguf_tensors(checkpoint));
    const auto last = std::make_shared<UnpackedTensor>();
    for (auto& [name, tensor] : *made) {
      const TensorInfo* own = checkpoint.find(tensor.name);
      std::string type = own != nullptr ? std::string(dtype_name(own->dtype))
                                        : checkpoint.find_opaque(tensor.name)->type;
      if (is_transposed_in_gguf(checkpoint, tensor)) tensor = transposed(tensor, last);
      add(name, {&tensor, nullptr, std::move(type)});
    }
    side.owner = made;
    return side;
  }
  for (const TensorInfo& tensor : checkpoint.tensors())
    add(tensor.name, {&tensor, nullptr, std::string(dtype_name(tensor.dtype))});
  for (const OpaqueTensor& tensor : checkpoint.opaque())
    add(tensor.name, {nullptr, &tensor, tensor.type});
  return side;
}

Found find_in(const Side& side, const std::string& name) {
  const auto found = side.tensors.find(name);
  return found == side.tensors.end() ? Found{} : found->second;
}

/// Bytes that differ, where both have the same number.
TensorDiff opaque_diff(const Checkpoint& a, const OpaqueTensor& in_a, const Checkpoint& b,
                       const OpaqueTensor& in_b) {
  constexpr std::uint64_t kChunk = 1 << 20;
  TensorDiff diff;
  // Bytes have no distance.
  diff.max_absolute = diff.max_relative = diff.relative_error = diff.cosine =
      std::numeric_limits<double>::quiet_NaN();
  std::vector<std::byte> left;
  std::vector<std::byte> right;
  for (std::uint64_t done = 0; done < in_a.bytes(); done += kChunk) {
    left.resize(std::min(kChunk, in_a.bytes() - done));
    right.resize(left.size());
    a.files()[in_a.file].file.read(in_a.begin + done, left);
    b.files()[in_b.file].file.read(in_b.begin + done, right);
    if (left == right) continue;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i] == right[i]) continue;
      if (diff.count++ == 0) diff.first = done + i;
      diff.last = done + i;
    }
  }
  return diff;
}

/// What differs of a tensor that is in both, and opaque in at least one; nothing if nothing does.
std::optional<TensorChange> opaque_change(const std::string& name, const Checkpoint& a,
                                          const Found& left, const Checkpoint& b,
                                          const Found& right) {
  TensorChange change{name, ChangeKind::kDtype, left.tensor, right.tensor,
                      {},   left.opaque,        right.opaque};
  const bool typed = left.opaque == nullptr || right.opaque == nullptr;
  if (left.shape() != right.shape()) {
    change.kind = ChangeKind::kShape;
  } else if (!typed && left.opaque->type == right.opaque->type) {
    change.kind = ChangeKind::kValues;
    if (left.opaque->bytes() != right.opaque->bytes()) return change;
    change.diff = opaque_diff(a, *left.opaque, b, *right.opaque);
    if (change.diff.count == 0) return std::nullopt;
  }
  return change;
}

}  // namespace

std::vector<TensorChange> compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                              const CompareOptions& options) {
  const Side in_a = by_name(a, options);
  const Side in_b = by_name(b, options);
  std::set<std::string> names;
  for (const Side* side : {&in_a, &in_b}) {
    for (const auto& [name, tensor] : side->tensors) names.insert(name);
  }
  std::uint64_t total = 0;
  for (const auto& [name, found] : in_a.tensors)
    total += found.tensor == nullptr ? 0 : found.tensor->bytes();
  std::uint64_t done = 0;
  std::vector<TensorChange> changes;
  for (const std::string& name : names) {
    const Found found_a = find_in(in_a, name);
    const Found found_b = find_in(in_b, name);
    const TensorInfo* left = found_a.tensor;
    const TensorInfo* right = found_b.tensor;
    const auto add = [&](TensorChange change) {
      change.type_a = found_a.type;
      change.type_b = found_b.type;
      for (const auto& owner : {in_a.owner, in_b.owner}) {
        if (owner != nullptr) change.owners.push_back(owner);
      }
      changes.push_back(std::move(change));
    };
    if (left != nullptr) done += left->bytes();
    if (!found_a.there() || !found_b.there()) {
      add({name, found_a.there() ? ChangeKind::kOnlyA : ChangeKind::kOnlyB, left, right,
           TensorDiff{}, found_a.opaque, found_b.opaque});
      continue;
    }
    if (left == nullptr || right == nullptr) {
      if (auto change = opaque_change(name, a, found_a, b, found_b)) add(*std::move(change));
      continue;
    }
    if (left->shape != right->shape) {
      add({name, ChangeKind::kShape, left, right, {}});
      continue;
    }
    const TensorDiff diff = tensor_diff(a, *left, b, *right, options.tolerance, options.threads);
    if (found_a.type != found_b.type) {
      add({name, ChangeKind::kDtype, left, right, diff});
    } else if (diff.count > 0) {
      add({name, ChangeKind::kValues, left, right, diff});
    }
    if (options.progress) options.progress(done, total);
  }
  return changes;
}

std::optional<std::string> different_opaque(const Checkpoint& a, const Checkpoint& b) {
  const auto is_same = [](const Checkpoint& in, const OpaqueTensor& x, const Checkpoint& other) {
    const OpaqueTensor* y = other.find_opaque(x.name);
    return y != nullptr && x.type == y->type && x.shape == y->shape && x.bytes() == y->bytes() &&
           opaque_hash(in, x, HashKind::kXxh3) == opaque_hash(other, *y, HashKind::kXxh3);
  };
  for (const OpaqueTensor& tensor : a.opaque()) {
    if (!is_same(a, tensor, b)) return tensor.name;
  }
  for (const OpaqueTensor& tensor : b.opaque()) {
    if (a.find_opaque(tensor.name) == nullptr) return tensor.name;
  }
  return std::nullopt;
}

CheckpointHash hash_checkpoint(const Checkpoint& checkpoint, HashKind kind, int threads,
                               const ProgressFunction& progress) {
  const auto& tensors = checkpoint.tensors();
  CheckpointHash out;
  const auto& opaque = checkpoint.opaque();
  out.tensors.resize(tensors.size());
  out.tensors.reserve(tensors.size() + opaque.size());
  std::atomic<std::uint64_t> done{0};
  parallel_for(static_cast<Index>(tensors.size()), threads, [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    out.tensors[at] = tensor_hash(checkpoint, tensors[at], kind);
    const std::uint64_t now = done += tensors[at].bytes();
    if (progress) progress(now, checkpoint.tensor_bytes());
  });
  std::map<std::string, std::string> lines;
  const auto add_line = [&](const std::string& name, std::string_view type, const Shape& shape,
                            const std::string& hash) {
    lines[name] = fmt::format("{}\t{}\t{}\t{}\n", quote_json(name), type, shape_text(shape), hash);
  };
  for (std::size_t i = 0; i < tensors.size(); ++i)
    add_line(tensors[i].name, dtype_name(tensors[i].dtype), tensors[i].shape, out.tensors[i]);
  for (const OpaqueTensor& tensor : opaque) {
    out.tensors.push_back(opaque_hash(checkpoint, tensor, kind));
    add_line(tensor.name, tensor.type, tensor.shape, out.tensors.back());
  }
  const auto hasher = kind == HashKind::kSha256 ? make_sha256() : make_xxh3();
  for (const auto& [name, line] : lines) hasher->add(as_bytes(line));
  out.total = hasher->digest();
  return out;
}

}  // namespace masque::store
