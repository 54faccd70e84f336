#include "store/checkpoint_writer.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/output_file.hpp"
#include "base/file/output_folder.hpp"
#include "base/file/undo_journal.hpp"
#include "base/thread/interrupt.hpp"
#include "store/safetensors/safetensors.hpp"
#include "store/tensorflow/bundle_place.hpp"
#include "text/open/google_folder.hpp"

namespace masque::store {

namespace {

/// Largest power of two, at most a page, that divides the place where data begins.
std::uint64_t alignment_of(std::uint64_t data_begin) {
  std::uint64_t alignment = 8;
  while (alignment < 4096 && data_begin % (2 * alignment) == 0) alignment *= 2;
  return alignment;
}

/// A file that is being written, with what the others share.
struct Plan {
  int descriptor = -1;
  int index = -1;  ///< of a writer with a second file: the first one
  std::string path;
  FilePlan plan;
  std::size_t first_sum = 0;
};

/// Makes an output file: its descriptor, which stays open.
using Create = std::function<int(const std::string& name)>;

/// The bytes of several files as one transfer.
class Writing {
 public:
  /// `path` is that of the weights, whatever file of theirs the bytes go into.
  void add(const OutputWeights& weights, const std::string& path, const Create& create) {
    const WeightsWriter& writer = weights_writer(weights.writer);
    if (!weights.opaque.empty() && !writer.has_opaque) {
      const OpaqueTensor& first = weights.opaque.front().info;
      throw InputError(path, fmt::format("tensor '{}' is {}, which {} cannot hold",
                                         escape(first.name), escape(first.type), weights.writer));
    }
    Plan& file = plans_.emplace_back(Plan{-1, -1, path, writer.plan(weights, path), sums_});
    MASQUE_CHECK(writer.data.empty() == !file.plan.index);
    if (!writer.data.empty()) {
      file.index = create(base_name(path));
      file.path = data_name(writer, path);
    }
    file.descriptor = create(base_name(file.path));
    sums_ += file.plan.sums;
    std::uint64_t offset = 0;
    const std::size_t first = pieces_.size();
    for (PlannedPart& part : file.plan.parts) {
      const int sum = part.sum < 0 ? -1 : static_cast<int>(file.first_sum) + part.sum;
      append({file.descriptor, file.path, offset, part.size, std::move(part.source), sum,
              file.plan.checksum},
             first);
      offset = place_after(offset, part.size, file.path);
    }
    reserve_space(file.descriptor, offset, file.path);
  }

  void add(const OutputExtra& extra, int descriptor, const std::string& path) {
    pieces_.push_back({descriptor, path, 0, extra.size, extra.source});
  }

  void run(const WriteOptions& options) const {
    std::vector<std::uint32_t> sums(sums_);
    transfer(pieces_, options.threads, options.progress, sums);
    for (const Plan& file : plans_) {
      const auto own = std::span(sums).subspan(file.first_sum, file.plan.sums);
      if (file.plan.index) write_at(file.index, 0, as_bytes(file.plan.index(own)), file.path);
      if (!file.plan.late) continue;
      for (const LatePart& part : file.plan.late(own))
        write_at(file.descriptor, part.offset, as_bytes(part.text), file.path);
    }
  }

 private:
  /// Neighbours of the same file are one copy.
  void append(OutputRange piece, std::size_t first) {
    if (pieces_.size() > first) {
      OutputRange& last = pieces_.back();
      const auto* copy = std::get_if<CopyFrom>(&piece.source);
      const auto* before = std::get_if<CopyFrom>(&last.source);
      if (copy && before && copy->file == before->file && piece.sum == last.sum &&
          before->begin + last.size == copy->begin) {
        last.size += piece.size;
        return;
      }
    }
    pieces_.push_back(std::move(piece));
  }

  std::vector<Plan> plans_;
  std::vector<OutputRange> pieces_;
  std::size_t sums_ = 0;
};

void write_one(const std::string& path, const OutputWeights& weights, const WriteOptions& options) {
  OutputFile output(path);
  Writing writing;
  writing.add(weights, path, [&](const std::string&) { return output.descriptor(); });
  writing.run(options);
  if (options.verify) options.verify(join(folder_of(path), staging_name(base_name(path))));
  output.commit();
}

/// Whether no program that opens models reads it: ".git/hooks", ".cache".
bool is_hidden(const std::string& name) {
  return name.starts_with('.') || name.find("/.") != std::string::npos;
}

/// Weights of two files.
void write_both(const std::string& path, const OutputWeights& weights,
                const WriteOptions& options) {
  OutputGroup output(path);
  Writing writing;
  writing.add(weights, path, [&](const std::string& name) { return output.create(name); });
  writing.run(options);
  if (options.verify) options.verify(join(output.staging_path(), base_name(path)));
  output.commit();
}

}  // namespace

void write_checkpoint_file(const std::string& path, const OutputWeights& weights,
                           const WriteOptions& options) {
  const WeightsWriter& writer = weights_writer(weights.writer);
  std::vector<std::string> names = {base_name(path)};
  if (!writer.data.empty()) names.push_back(base_name(data_name(writer, path)));
  refuse_unfinished(folder_of(path), names);
  writer.data.empty() ? write_one(path, weights, options) : write_both(path, weights, options);
}

void write_checkpoint_folder(const std::string& path, const std::vector<OutputWeights>& weights,
                             const std::vector<OutputExtra>& extras, const WriteOptions& options) {
  OutputFolder output(path, options.existing, options.input);
  std::vector<Descriptor> descriptors;
  Writing writing;
  for (const OutputWeights& file : weights) {
    // The name may lead into a folder of its own: "generator/model.safetensors".
    const std::string inside = file.name.substr(0, file.name.rfind('/') + 1);
    writing.add(file, join(path, file.name), [&](const std::string& name) {
      return descriptors.emplace_back(output.create(inside + name, file.mode)).get();
    });
  }
  for (const OutputExtra& extra : extras) {
    descriptors.push_back(output.create(extra.name, extra.mode));
    writing.add(extra, descriptors.back().get(), join(path, extra.name));
  }
  output.check_replaced();
  writing.run(options);
  if (options.verify) options.verify(output.staging_path());
  output.commit();
}

Source source_of(const InputFile& file, const TensorInfo& tensor) {
  if (!tensor.reader) return CopyFrom{&file, tensor.begin};
  Computed computed;
  computed.fill = [&file, &tensor](std::uint64_t offset, MutableBytes out) {
    tensor.reader->read(file, offset, out);
  };
  computed.origin = tensor.reader.get();
  return computed;
}

OutputWeights copy_of(const WeightsFile& file) {
  // What is written gets sums of its own, which would hide the damage.
  if (const auto broken = check_sums(file.file, file.content)) throw_violation(*broken);
  if (file.content.unknown_fields > 0) {
    throw InputError(file.file.path(),
                     fmt::format("'{}' is not a field of safetensors and would be lost",
                                 escape(file.content.unknown_field)));
  }
  OutputWeights out;
  out.name = file.name;
  out.writer = file.content.writer;
  out.metadata = file.content.metadata;
  if (out.writer == "safetensors" && find_metadata(out.metadata, "format") == nullptr)
    set_metadata(out.metadata, "format", "pt");
  if (out.writer == "safetensors") out.alignment = alignment_of(file.content.data_begin);
  out.mode = file.file.mode() & 0777U;
  for (const TensorInfo& tensor : file.content.tensors) {
    out.tensors.push_back({tensor, source_of(file.file, tensor)});
  }
  auto after = file.content.tensors.begin();
  for (const OpaqueTensor& tensor : file.content.opaque) {
    while (after != file.content.tensors.end() && after->begin <= tensor.begin) ++after;
    const bool first = after == file.content.tensors.begin();
    out.opaque.push_back({tensor, CopyFrom{&file.file, tensor.begin},
                          first ? std::string() : std::prev(after)->name});
  }
  out.typed = file.content.typed;
  return out;
}

OutputWeights copy_of_bundle(const Checkpoint& checkpoint) {
  MASQUE_CHECK(checkpoint.bundle());
  OutputWeights all;
  for (const WeightsFile& file : checkpoint.files()) {
    OutputWeights one = copy_of(file);
    all.writer = one.writer;
    all.mode = one.mode;
    std::ranges::move(one.tensors, std::back_inserter(all.tensors));
    std::ranges::move(one.opaque, std::back_inserter(all.opaque));
  }
  all.name = checkpoint.index_name();
  return all;
}

std::vector<std::string> weight_files(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const WeightsFile& file : checkpoint.files()) names.push_back(file.name);
  if (!checkpoint.bundle()) return names;
  const std::string& index = checkpoint.index_name();
  const WeightsWriter& writer = weights_writer(checkpoint.files().front().content.writer);
  names.insert(names.end(), {index, data_name(writer, index)});
  return names;
}

std::vector<std::string> other_bundle_files(const Checkpoint& checkpoint) {
  if (!checkpoint.bundle() || !checkpoint.is_folder()) return {};
  return files_of_other_bundles(checkpoint.folder(), list_files(checkpoint.folder()),
                                checkpoint.index_name());
}

std::vector<std::string> other_bundle_notes(const std::vector<std::string>& files) {
  if (files.empty()) return {};
  return {fmt::format("{} files of other TensorFlow checkpoints are left out", files.size())};
}

void insert_tensors(OutputWeights& weights, std::vector<InsertedTensor> inserted) {
  auto& tensors = weights.tensors;
  const auto before = [](const OutputTensor& a, const OutputTensor& b) {
    return safetensors_before(a.info, b.info);
  };
  if (std::is_sorted(tensors.begin(), tensors.end(), before)) {
    const auto middle = std::ssize(tensors);
    for (InsertedTensor& one : inserted) tensors.push_back(std::move(one.tensor));
    std::stable_sort(tensors.begin() + middle, tensors.end(), before);
    std::inplace_merge(tensors.begin(), tensors.begin() + middle, tensors.end(), before);
    return;
  }
  for (InsertedTensor& one : inserted) {
    throw_if_interrupted();
    auto place = std::find_if(tensors.begin(), tensors.end(), [&](const OutputTensor& other) {
      return other.info.name == one.after;
    });
    if (place != tensors.end()) ++place;
    tensors.insert(place, std::move(one.tensor));
  }
}

std::vector<OutputExtra> other_files(const std::string& folder,
                                     const std::vector<std::string>& except,
                                     std::deque<InputFile>& opened, bool follow_links,
                                     std::vector<std::string>& notes) {
  std::vector<OutputExtra> out;
  std::vector<std::string> left_out;
  std::vector<std::string> names = list_files(folder, &left_out);
  const auto excepted = [&](const std::string& name) {
    return std::find(except.begin(), except.end(), name) != except.end();
  };
  std::erase_if(names, excepted);
  for (const std::string& name : links_outside(folder, names)) {
    if (!follow_links) {
      throw InputError(
          join(folder, name),
          fmt::format("is a link to outside of the folder; {} copies the file", field("follow")));
    }
    notes.push_back(
        fmt::format("'{}' is a link to outside of the folder: the file is copied", escape(name)));
  }
  for (std::string& name : left_out) {
    if (excepted(name)) continue;
    if (is_hidden(name)) {
      notes.push_back(fmt::format("'{}' is not a file and is not copied", escape(name)));
    } else {
      names.push_back(std::move(name));  // opening it says what is wrong with it
    }
  }
  for (const std::string& name : names) {
    const InputFile& file = opened.emplace_back(InputFile::open(join(folder, name)));
    out.push_back({name, CopyFrom{&file, 0}, file.size(), file.mode() & 0777U});
  }
  constexpr const char* kTokenizerConfig = "tokenizer_config.json";
  const auto by_name = text::tokenizer_config_by_name(folder);
  if (by_name && !excepted(kTokenizerConfig))
    out.push_back({kTokenizerConfig, Literal{*by_name}, by_name->size(), 0644});
  return out;
}

}  // namespace masque::store
