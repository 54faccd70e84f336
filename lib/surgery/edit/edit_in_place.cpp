#include "surgery/edit/edit_in_place.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/thread/parallel.hpp"
#include "store/strided_reader.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/bundle.hpp"

namespace masque::surgery {

namespace {

constexpr std::uint64_t kChunk = 1 << 20;

/// An edit on its way into the files.
class EditInPlace {
 public:
  EditInPlace(const CheckpointEdit& edit, const LockedFiles& locked, const InPlaceOptions& options)
      : edit_(edit),
        checkpoint_(edit.checkpoint()),
        locked_(locked),
        options_(options),
        change_(locked) {}

  InPlaceResult run() {
    if (const auto reason = edit_.against_in_place()) refuse(*reason);
    if (const auto reason = edit_.against_shared_files()) refuse(*reason);
    for (const std::string& name : edit_.replaced()) check(checkpoint_.get(name));
    write_tensors();
    write_what_follows();
    erase_metadata();
    for (auto& [name, text] : edit_.texts_in_place()) change_.set_text(name, text);
    if (options_.computed) options_.computed();
    InPlaceResult result{change_.bytes(), std::nullopt};
    if (!options_.verify) {
      change_.commit();
      return result;
    }
    const std::vector<std::string> before = digests();
    change_.commit([&] { result.verified = verify(before); });
    // Where nothing changes, commit() does not ask.
    if (!result.verified) result.verified = verify(before);
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(checkpoint_.path(), fmt::format("{}: not supported in place, use {} OUTPUT",
                                                     what, field("output")));
  }

  std::size_t locked_file(std::size_t file) const {
    return locked_.find(checkpoint_.files()[file].name);
  }

  void check(const store::TensorInfo& tensor) const {
    const store::WeightsFile& file = checkpoint_.files()[tensor.file];
    if (file.content.in_place == nullptr && !checkpoint_.bundle())
      refuse(fmt::format("'{}' has a format that must be rewritten as a whole", escape(file.name)));
    if (tensor.reader)
      refuse(fmt::format("tensor '{}' is not stored contiguously", escape(tensor.name)));
    if (checkpoint_.bundle()) return;  // whose tensors never share bytes
    for (const store::TensorInfo& other : file.content.tensors) {
      const auto strided = other.reader ? store::strided_extent(*other.reader) : std::nullopt;
      const auto [begin, end] = strided.value_or(std::pair(other.begin, other.end));
      const bool apart = end <= tensor.begin || tensor.end <= begin;
      if (other.name == tensor.name || apart || tensor.bytes() == 0 || other.bytes() == 0) continue;
      if (!other.reader && edit_.replacement(other.name) != nullptr &&
          other.begin == tensor.begin && other.end == tensor.end)
        continue;
      refuse(fmt::format("tensor '{}' shares its bytes with '{}'", escape(tensor.name),
                         escape(other.name)));
    }
    for (const auto& [begin, end] : file.content.other_extents) {
      if (end <= tensor.begin || tensor.end <= begin || tensor.bytes() == 0) continue;
      refuse(fmt::format("tensor '{}' shares its bytes with a tensor outside the state dict",
                         escape(tensor.name)));
    }
  }

  void write_tensors() {
    struct Job {
      const store::TensorInfo* stored;
      const store::Source* source;
      std::uint64_t begin;
      std::uint64_t size;
    };
    std::vector<Job> jobs;
    std::vector<const store::TensorInfo*> twins;
    std::uint64_t total = 0;
    for (const std::string& name : edit_.replaced()) {
      const store::TensorInfo& tensor = checkpoint_.get(name);
      const store::Source& source = edit_.replacement(name)->source;
      const bool twin = std::ranges::any_of(jobs, [&](const Job& job) {
        return job.stored->file == tensor.file && job.stored->begin == tensor.begin;
      });
      if (twin && tensor.bytes() > 0) {
        twins.push_back(&tensor);
        continue;
      }
      const auto* computed = std::get_if<store::Computed>(&source);
      const std::uint64_t chunk = computed != nullptr ? computed->chunk_bytes : kChunk;
      for (std::uint64_t begin = 0; begin < tensor.bytes(); begin += chunk)
        jobs.push_back({&tensor, &source, begin, std::min(chunk, tensor.bytes() - begin)});
      total += tensor.bytes();
    }
    std::atomic<std::uint64_t> done{0};
    parallel_for(static_cast<Index>(jobs.size()), options_.threads, [&](Index i) {
      thread_local std::vector<std::byte> buffer;
      const Job& job = jobs[static_cast<std::size_t>(i)];
      buffer.resize(job.size);
      read_source(*job.source, job.begin, buffer);
      change_.write(locked_file(job.stored->file), job.stored->begin + job.begin, buffer);
      const std::uint64_t now = done += job.size;
      if (options_.progress) options_.progress(now, total);
    });
    for (const store::TensorInfo* tensor : twins) check_twin(*tensor);
  }

  static void read_source(const store::Source& source, std::uint64_t offset, MutableBytes out) {
    if (const auto* copy = std::get_if<store::CopyFrom>(&source)) {
      copy->file->read(copy->begin + offset, out);
    } else if (const auto* literal = std::get_if<store::Literal>(&source)) {
      std::memcpy(out.data(), literal->text.data() + offset, out.size());
    } else {
      std::get<store::Computed>(source).fill(offset, out);
    }
  }

  /// A tensor in the place of another one must get the same bytes.
  void check_twin(const store::TensorInfo& tensor) const {
    const store::Source& source = edit_.replacement(tensor.name)->source;
    const auto* computed = std::get_if<store::Computed>(&source);
    const std::uint64_t chunk = computed != nullptr ? computed->chunk_bytes : kChunk;
    std::vector<std::byte> wanted;
    std::vector<std::byte> written;
    for (std::uint64_t at = 0; at < tensor.bytes(); at += chunk) {
      wanted.resize(std::min(chunk, tensor.bytes() - at));
      written.resize(wanted.size());
      read_source(source, at, wanted);
      change_.read(locked_file(tensor.file), tensor.begin + at, written);
      if (wanted != written)
        refuse(fmt::format("tensor '{}' shares its bytes with a tensor that gets other values",
                           escape(tensor.name)));
    }
  }

  store::PatchedFile patched_file(std::size_t number) const {
    const std::size_t at = locked_file(number);
    return {&checkpoint_.files()[number].file, change_.ranges(at),
            [this, at](std::uint64_t offset, MutableBytes out) { change_.read(at, offset, out); }};
  }

  void write_what_follows() {
    std::vector<store::PatchedFile> patched;
    for (std::size_t i = 0; i < checkpoint_.files().size(); ++i) patched.push_back(patched_file(i));
    if (checkpoint_.bundle()) {
      if (change_.bytes() > 0)
        change_.set_text(checkpoint_.index_name(),
                         store::patched_bundle_index(*checkpoint_.bundle(), patched));
      return;
    }
    for (std::size_t i = 0; i < patched.size(); ++i) {
      if (patched[i].changed.empty()) continue;
      for (const store::Patch& patch : checkpoint_.files()[i].content.in_place(patched[i]))
        change_.write(locked_file(i), patch.offset, as_bytes(patch.bytes));
    }
  }

  /// The header of a safetensors file keeps its length: spaces take the marker's place.
  void erase_metadata() {
    for (const auto& [number, key] : edit_.erased_metadata()) {
      const store::WeightsFile& file = checkpoint_.files()[number];
      if (file.content.writer != "safetensors")
        refuse(fmt::format("'{}' has the mark of a correction in its metadata", escape(file.name)));
      const std::size_t at = locked_file(number);
      std::string header(file.content.data_begin - 8, '\0');
      change_.read(at, 8, std::as_writable_bytes(std::span(header)));
      const std::size_t size = header.size();
      header = erase_json_member(header, {"__metadata__", key});
      header.resize(size, ' ');
      change_.write(at, 8, as_bytes(header));
    }
  }

  /// Tensors that stay, by name.
  std::vector<const store::TensorInfo*> unchanged() const {
    std::vector<const store::TensorInfo*> out;
    for (const store::TensorInfo& tensor : checkpoint_.tensors()) {
      if (edit_.replacement(tensor.name) == nullptr) out.push_back(&tensor);
    }
    std::ranges::sort(out, {}, &store::TensorInfo::name);
    return out;
  }

  std::vector<std::string> digests() const {
    const auto tensors = unchanged();
    std::vector<std::string> out(tensors.size());
    parallel_for(static_cast<Index>(out.size()), options_.threads, [&](Index i) {
      const auto at = static_cast<std::size_t>(i);
      out[at] = store::tensor_hash(checkpoint_, *tensors[at], store::HashKind::kXxh3);
    });
    return out;
  }

  VerifyResult verify(const std::vector<std::string>& before) const {
    const auto tensors = unchanged();
    const auto after = digests();
    VerifyResult result;
    const auto hasher_before = make_xxh3();
    const auto hasher_after = make_xxh3();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (before[i] != after[i]) fail(fmt::format("tensor '{}' differs", escape(tensors[i]->name)));
      hasher_before->add(as_bytes(before[i]));
      hasher_after->add(as_bytes(after[i]));
      result.bytes_unchanged += tensors[i]->bytes();
    }
    result.tensors_unchanged = tensors.size();
    result.digest_before = hasher_before->digest();
    result.digest_after = hasher_after->digest();
    std::vector<InputFile> now;
    for (const store::WeightsFile& file : checkpoint_.files())
      now.push_back(InputFile::open(join(checkpoint_.folder(), file.name)));
    const std::vector<store::FileContent> contents = contents_of(now);
    for (std::size_t i = 0; i < now.size(); ++i) check_written(i, now[i], contents[i]);
    return result;
  }

  [[noreturn]] static void fail(const std::string& what) {
    throw InputError("verify", what + " after writing; the change was rolled back");
  }

  /// What the files say now that they are written. The journal is still there, so that the
  /// checkpoint cannot be opened.
  std::vector<store::FileContent> contents_of(const std::vector<InputFile>& files) const {
    std::vector<store::FileContent> contents;
    if (!checkpoint_.bundle()) {
      for (const InputFile& file : files)
        contents.push_back(store::value_or_throw(store::read_weights(file)));
      return contents;
    }
    const InputFile index = InputFile::open(join(checkpoint_.folder(), checkpoint_.index_name()));
    std::vector<std::uint64_t> sizes;
    sizes.reserve(files.size());
    for (const InputFile& file : files) sizes.push_back(file.size());
    contents =
        store::value_or_throw(store::place_bundle(store::value_or_throw(store::parse_bundle_index(
                                                      index.read_all(store::kMaxBundleIndexBytes))),
                                                  sizes, {}));
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (const auto broken = store::check_sums(files[i], contents[i]))
        store::throw_violation(*broken);
    }
    return contents;
  }

  /// The header is what it was, and what was to be written is there.
  void check_written(std::size_t number, const InputFile& now,
                     const store::FileContent& content) const {
    const store::WeightsFile& file = checkpoint_.files()[number];
    const auto same = [](const store::TensorInfo& a, const store::TensorInfo& b) {
      return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.begin == b.begin;
    };
    if (!std::ranges::equal(content.tensors, file.content.tensors, same))
      fail(fmt::format("'{}' has different tensors", escape(file.name)));
    const std::size_t at = locked_file(number);
    for (const auto& [offset, size] : change_.ranges(at)) {
      std::vector<std::byte> wanted;
      std::vector<std::byte> found;
      for (std::uint64_t done = 0; done < size; done += kChunk) {
        wanted.resize(std::min(kChunk, size - done));
        found.resize(wanted.size());
        change_.read(at, offset + done, wanted);
        now.read(offset + done, found);
        if (wanted != found)
          fail(fmt::format("'{}' does not match the computed bytes", escape(file.name)));
      }
    }
  }

  const CheckpointEdit& edit_;
  const store::Checkpoint& checkpoint_;
  const LockedFiles& locked_;
  const InPlaceOptions& options_;
  InPlaceChange change_;
};

}  // namespace

std::optional<std::string> CheckpointEdit::against_in_place() const {
  if (!added_.empty())
    return fmt::format("tensor '{}' would be added", escape(added_.front().tensor.info.name));
  if (!removed_.empty())
    return fmt::format("tensor '{}' would be removed", escape(removed_.begin()->first));
  if (!typed_.empty())
    return fmt::format("metadata '{}' would change", escape(typed_.begin()->first));
  for (const auto& [name, tensor] : replaced_) {
    if (tensor.info.shape != checkpoint_->get(name).shape ||
        tensor.info.dtype != checkpoint_->get(name).dtype)
      return fmt::format("tensor '{}' would change its size", escape(name));
  }
  for (const auto& [name, text] : files_) {
    if (!text) return fmt::format("'{}' would be removed", escape(name));
  }
  return std::nullopt;
}

InPlaceResult write_in_place(const CheckpointEdit& edit, const LockedFiles& locked,
                             const InPlaceOptions& options) {
  return EditInPlace(edit, locked, options).run();
}

}  // namespace masque::surgery
