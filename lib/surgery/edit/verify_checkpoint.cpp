#include "surgery/edit/verify_checkpoint.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/output_folder.hpp"
#include "base/parallel.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/tensor_stats.hpp"
#include "surgery/edit/verify_parts.hpp"

namespace masque::surgery {

namespace {

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::uint64_t check_files(const VerifyRequest& request) {
  const std::string& before = request.before->folder();
  // Compared tensor by tensor, so not as files. Of a bundle there may be fewer than before.
  const std::vector<std::string> weights = store::weight_files(*request.before);
  const std::vector<std::string> others = store::other_bundle_files(*request.before);
  const auto names_of = [&](const std::string& folder) {
    std::vector<std::string> names = list_files(folder);
    std::erase_if(names, [&](const auto& name) {
      return contains(request.edited_files, name) || contains(weights, name);
    });
    return names;
  };
  std::vector<std::string> wanted = names_of(before);
  std::erase_if(wanted, [&](const auto& name) { return contains(others, name); });
  if (wanted != names_of(request.staged)) verify_failed("the files of the folder differ");
  std::uint64_t count = 0;
  for (const std::string& name : wanted) {
    if (!same_file(join(before, name), join(request.staged, name)))
      verify_failed(fmt::format("file '{}' differs", escape(name)));
    ++count;
  }
  return count;
}

}  // namespace

VerifyResult verify_checkpoint(const VerifyRequest& request) {
  const store::Checkpoint& before = *request.before;
  const store::Checkpoint after = store::open_checkpoint(
      before.index_name().empty() ? request.staged : join(request.staged, before.index_name()));
  // What each tensor of the output must equal, by name so that the digest has one order.
  std::map<std::string, const store::TensorInfo*> sources;
  for (const store::TensorInfo& tensor : before.tensors()) {
    if (!contains(request.changed, tensor.name)) sources[tensor.name] = &tensor;
  }
  const std::uint64_t unchanged = sources.size();
  VerifyResult result;
  for (const auto& [name, tensor] : sources) result.bytes_unchanged += tensor->bytes();
  std::vector<std::pair<std::string, const store::TensorInfo*>> checks(sources.begin(),
                                                                       sources.end());
  for (const auto& [name, source] : request.copies) checks.emplace_back(name, &before.get(source));
  if (after.tensors().size() != checks.size() + request.changed.size()) {
    verify_failed("the number of tensors differs");
  }
  if (const auto name = store::different_opaque(before, after))
    verify_failed(fmt::format("tensor '{}' differs", escape(*name)));
  std::vector<std::string> digests_before(checks.size());
  std::vector<std::string> digests_after(checks.size());
  parallel_for(static_cast<Index>(checks.size()), request.threads, [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    const auto& [name, source] = checks[at];
    const store::TensorInfo* found = after.find(name);
    if (found == nullptr || found->dtype != source->dtype || found->shape != source->shape) {
      verify_failed(
          fmt::format("tensor '{}' is missing or has another dtype or shape", escape(name)));
    }
    digests_before[at] = store::tensor_hash(before, *source, store::HashKind::kXxh3);
    digests_after[at] = store::tensor_hash(after, *found, store::HashKind::kXxh3);
    if (digests_before[at] != digests_after[at]) {
      verify_failed(fmt::format("tensor '{}' differs", escape(name)));
    }
  });
  for (const std::string& name : request.changed)
    check_computed_bytes(after, after.get(name), request.expected, request.chunk_bytes,
                         request.threads);
  digests_before.resize(unchanged);
  digests_after.resize(unchanged);
  result.tensors_unchanged = unchanged;
  result.digest_before = combined_digest(digests_before);
  result.digest_after = combined_digest(digests_after);
  if (before.is_folder()) result.files_unchanged = check_files(request);
  return result;
}

}  // namespace masque::surgery
