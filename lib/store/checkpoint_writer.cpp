#include "store/checkpoint_writer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/output_file.hpp"
#include "store/safetensors.hpp"

namespace masque {

namespace {

/// Largest power of two, at most a page, that divides the place where data begins.
std::uint64_t alignment_of(std::uint64_t data_begin) {
  std::uint64_t alignment = 8;
  while (alignment < 4096 && data_begin % (2 * alignment) == 0) alignment *= 2;
  return alignment;
}

std::uint64_t append_pieces(const OutputWeights& weights, int descriptor, const std::string& path,
                            std::vector<Piece>& pieces) {
  std::vector<TensorInfo> infos;
  for (const OutputTensor& tensor : weights.tensors) infos.push_back(tensor.info);
  std::string header = write_safetensors_header(infos, weights.metadata, weights.alignment);
  std::uint64_t offset = header.size();
  pieces.push_back({descriptor, path, 0, offset, Literal{std::move(header)}});
  for (const OutputTensor& tensor : weights.tensors) {
    const std::uint64_t size = byte_count(tensor.info.dtype, tensor.info.shape).value();
    // Neighbours of the same file are one copy.
    Piece& last = pieces.back();
    const auto* copy = std::get_if<CopyFrom>(&tensor.source);
    auto* before = std::get_if<CopyFrom>(&last.source);
    if (copy && before && copy->file == before->file && before->begin + last.size == copy->begin) {
      last.size += size;
    } else {
      pieces.push_back({descriptor, path, offset, size, tensor.source});
    }
    const auto next = checked_add(offset, size);
    if (!next) throw InputError(path, "would have more than 2^64 bytes");
    offset = *next;
  }
  return offset;
}

}  // namespace

void write_checkpoint_file(const std::string& path, const OutputWeights& weights,
                           const WriteOptions& options) {
  OutputFile output(path);
  std::vector<Piece> pieces;
  const std::uint64_t size = append_pieces(weights, output.descriptor(), path, pieces);
  reserve_space(output.descriptor(), size, path);
  transfer(pieces, options.threads, options.progress);
  if (options.verify) options.verify(join(folder_of(path), staging_name(base_name(path))));
  output.commit();
}

void write_checkpoint_folder(const std::string& path, const std::vector<OutputWeights>& weights,
                             const std::vector<OutputExtra>& extras, const WriteOptions& options) {
  OutputFolder output(path, options.existing, options.input);
  std::vector<Descriptor> descriptors;
  std::vector<Piece> pieces;
  for (const OutputWeights& file : weights) {
    const std::string name = join(path, file.name);
    descriptors.push_back(output.create(file.name, file.mode));
    const std::uint64_t size = append_pieces(file, descriptors.back().get(), name, pieces);
    reserve_space(descriptors.back().get(), size, name);
  }
  for (const OutputExtra& extra : extras) {
    descriptors.push_back(output.create(extra.name, extra.mode));
    pieces.push_back(
        {descriptors.back().get(), join(path, extra.name), 0, extra.size, extra.source});
  }
  output.check_replaced();
  transfer(pieces, options.threads, options.progress);
  if (options.verify) options.verify(output.staging_path());
  output.commit();
}

OutputWeights copy_of(const WeightsFile& file) {
  if (file.content.unknown_fields > 0) {
    throw InputError(file.file.path(),
                     fmt::format("'{}' is no field of safetensors and would be lost",
                                 escape(file.content.unknown_field)));
  }
  OutputWeights out;
  out.name = file.name;
  out.metadata = file.content.metadata;
  if (find_metadata(out.metadata, "format") == nullptr) set_metadata(out.metadata, "format", "pt");
  out.alignment = alignment_of(file.content.data_begin);
  out.mode = file.file.mode() & 0777U;
  for (const TensorInfo& tensor : file.content.tensors) {
    out.tensors.push_back({tensor, CopyFrom{&file.file, tensor.begin}});
  }
  return out;
}

void insert_tensor(OutputWeights& weights, OutputTensor tensor, const std::string& after) {
  auto& tensors = weights.tensors;
  const auto before = [](const OutputTensor& a, const OutputTensor& b) {
    return safetensors_before(a.info, b.info);
  };
  auto place = std::upper_bound(tensors.begin(), tensors.end(), tensor, before);
  if (!std::is_sorted(tensors.begin(), tensors.end(), before)) {
    place = std::find_if(tensors.begin(), tensors.end(),
                         [&](const OutputTensor& other) { return other.info.name == after; });
    if (place != tensors.end()) ++place;
  }
  tensors.insert(place, std::move(tensor));
}

std::vector<OutputExtra> other_files(const std::string& folder,
                                     const std::vector<std::string>& except,
                                     std::deque<InputFile>& opened,
                                     std::vector<std::string>* left_out) {
  std::vector<OutputExtra> out;
  std::vector<std::string> names = list_files(folder, left_out);
  std::erase_if(names, [&](const std::string& name) {
    return std::find(except.begin(), except.end(), name) != except.end();
  });
  for (const std::string& name : names) {
    const InputFile& file = opened.emplace_back(InputFile::open(join(folder, name)));
    out.push_back({name, CopyFrom{&file, 0}, file.size(), file.mode() & 0777U});
  }
  return out;
}

}  // namespace masque
