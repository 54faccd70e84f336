#include "surgery/edit/verify_checkpoint.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/output_folder.hpp"
#include "base/thread/parallel.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/tensor_stats.hpp"
#include "text/open/google_folder.hpp"

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
  const auto chunks = static_cast<Index>(divide_up(tensor.bytes(), chunk_bytes));
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

namespace {

/// out ← bytes of a source from `offset`, which is a multiple of its chunk.
void read_source(const store::Source& source, std::uint64_t offset, MutableBytes out) {
  if (const auto* computed = std::get_if<store::Computed>(&source)) {
    computed->fill(offset, out);
  } else if (const auto* copied = std::get_if<store::CopyFrom>(&source)) {
    copied->file->read(copied->begin + offset, out);
  } else {
    const Bytes text = as_bytes(std::get<store::Literal>(source).text);
    std::ranges::copy(text.subspan(offset, out.size()), out.begin());
  }
}

void check_computed(const store::Checkpoint& after, const store::TensorInfo& found,
                    const store::OutputTensor& expected, int threads) {
  const auto* computed = std::get_if<store::Computed>(&expected.source);
  check_computed_bytes(
      after, found,
      [&](std::uint64_t offset, MutableBytes out) { read_source(expected.source, offset, out); },
      computed == nullptr ? 1 << 20 : computed->chunk_bytes, threads);
}

}  // namespace

EditProof::EditProof(const CheckpointEdit& edit) : edit_(&edit), added_(edit.added_tensors()) {
  for (const std::string& name : edit.edited_files()) {
    // The index is compared by opening it: it must agree with the files.
    if (name != edit.checkpoint().index_name()) texts_[name] = edit.file_text(name).value_or("");
  }
  if (const auto text = text::tokenizer_config_by_name(edit.checkpoint().folder()))
    texts_.emplace("tokenizer_config.json", *text);
}

VerifyResult EditProof::check(const std::string& staged, int threads) const {
  const store::Checkpoint& before = edit_->checkpoint();
  const store::Checkpoint after = store::open_checkpoint(
      before.index_name().empty() ? staged : join(staged, before.index_name()));
  check_typed(after);
  std::map<std::string, const store::TensorInfo*> unchanged;
  std::size_t expected = added_.size();
  for (const store::TensorInfo& tensor : before.tensors()) {
    if (edit_->removes(tensor.name)) continue;
    ++expected;
    if (edit_->replacement(tensor.name) == nullptr) unchanged[tensor.name] = &tensor;
  }
  if (after.tensors().size() != expected) verify_failed("the number of tensors differs");
  if (const auto name = store::different_opaque(before, after))
    verify_failed(fmt::format("tensor '{}' differs", escape(*name)));
  const auto found = [&](const store::TensorInfo& info) -> const store::TensorInfo& {
    const store::TensorInfo* tensor = after.find(info.name);
    if (tensor == nullptr || tensor->dtype != info.dtype || tensor->shape != info.shape)
      verify_failed(
          fmt::format("tensor '{}' is missing or has another dtype or shape", escape(info.name)));
    return *tensor;
  };
  VerifyResult result;
  std::vector<std::string> left;
  std::vector<std::string> right;
  for (const auto& [name, tensor] : unchanged) {
    result.bytes_unchanged += tensor->bytes();
    left.push_back(store::tensor_hash(before, *tensor, store::HashKind::kXxh3));
    right.push_back(store::tensor_hash(after, found(*tensor), store::HashKind::kXxh3));
    if (left.back() != right.back())
      verify_failed(fmt::format("tensor '{}' differs", escape(name)));
  }
  for (const std::string& name : edit_->replaced()) {
    const store::OutputTensor& wanted = *edit_->replacement(name);
    check_computed(after, found(wanted.info), wanted, threads);
  }
  for (const store::OutputTensor& wanted : added_)
    check_computed(after, found(wanted.info), wanted, threads);
  result.tensors_unchanged = unchanged.size();
  result.digest_before = combined_digest(left);
  result.digest_after = combined_digest(right);
  if (before.is_folder()) check_files(staged, result);
  return result;
}

void EditProof::check_typed(const store::Checkpoint& after) const {
  using Key = std::pair<std::size_t, std::string>;  // a staged file has another name
  const auto all = [](const store::Checkpoint& checkpoint) {
    std::map<Key, std::string> values;
    for (std::size_t i = 0; i < checkpoint.files().size(); ++i) {
      for (const store::TypedValue& value : checkpoint.files()[i].content.typed)
        if (value.type != "STRING") values[{i, value.key}] = value.bytes;
    }
    return values;
  };
  auto wanted = all(edit_->checkpoint());
  for (auto& [key, bytes] : wanted) {
    const auto changed = edit_->typed().find(key.second);
    if (changed != edit_->typed().end()) bytes = changed->second.bytes;
  }
  if (all(after) != wanted) verify_failed("the metadata differ");
}

void EditProof::check_files(const std::string& staged, VerifyResult& result) const {
  const store::Checkpoint& before = edit_->checkpoint();
  std::set<std::string> wanted;
  for (const std::string& name : list_files(before.folder())) {
    if (!edit_->drops(name)) wanted.insert(name);
  }
  for (const std::string& name : store::other_bundle_files(before)) wanted.erase(name);
  for (const auto& [name, text] : texts_) wanted.insert(name);
  const std::vector<std::string> names = list_files(staged);
  std::set<std::string> there(names.begin(), names.end());
  for (const std::string& name : store::weight_files(before)) {
    wanted.erase(name);
    there.erase(name);
  }
  if (wanted != there) verify_failed("the files of the folder differ");
  wanted.erase(before.index_name());
  for (const std::string& name : wanted) {
    const auto text = texts_.find(name);
    if (text == texts_.end()) ++result.files_unchanged;
    const bool good =
        text == texts_.end()
            ? same_file(join(before.folder(), name), join(staged, name))
            : InputFile::open(join(staged, name)).read_all(text->second.size() + 1) == text->second;
    if (!good) verify_failed(fmt::format("file '{}' differs", escape(name)));
  }
}

}  // namespace masque::surgery
