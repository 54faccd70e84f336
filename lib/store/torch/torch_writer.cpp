// PyTorch's zip files, as torch.save has written them since 1.6.
#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/torch/torch_pickle.hpp"
#include "store/torch/torch_records.hpp"
#include "store/weights_writer.hpp"
#include "store/zip/zip_stream.hpp"

namespace masque::store {

namespace {

/// torch reads the folder's name from the file; this is the one that it gives to streams.
constexpr std::string_view kFolder = "archive/";

/// Whether two sources give the same bytes for sure.
bool is_same(const Source& a, const Source& b) {
  const auto* copy_a = std::get_if<CopyFrom>(&a);
  const auto* copy_b = std::get_if<CopyFrom>(&b);
  if (copy_a != nullptr && copy_b != nullptr)
    return copy_a->file == copy_b->file && copy_a->begin == copy_b->begin;
  const auto* computed_a = std::get_if<Computed>(&a);
  const auto* computed_b = std::get_if<Computed>(&b);
  return computed_a != nullptr && computed_b != nullptr && computed_a->origin != nullptr &&
         computed_a->origin == computed_b->origin;
}

/// A file in the making: parts one after the other, and the records that its directory lists.
class Plan {
 public:
  explicit Plan(const OutputWeights& weights, const std::string& path) {
    std::unordered_map<std::string_view, std::size_t> place;
    std::vector<std::size_t> key(weights.tensors.size());
    std::vector<const OutputTensor*> stored;
    std::vector<PickledTensor> pickled;
    for (std::size_t i = 0; i < weights.tensors.size(); ++i) {
      const OutputTensor& tensor = weights.tensors[i];
      const auto twin =
          tensor.info.alias_of.empty() ? place.end() : place.find(tensor.info.alias_of);
      const bool tied = twin != place.end() && is_twin(tensor, weights.tensors[twin->second]);
      key[i] = tied ? key[twin->second] : stored.size();
      if (!tied) stored.push_back(&tensor);
      place.emplace(tensor.info.name, i);
      pickled.push_back(
          {tensor.info.name, tensor.info.dtype, torch_shape(tensor.info, path), key[i]});
    }
    literal("data.pkl", write_torch_pickle(pickled));
    literal("byteorder", "little");
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const TensorInfo& info = stored[i]->info;
      const int sum = static_cast<int>(sums_.size());
      sums_.push_back(records_.size());
      record(fmt::format("data/{}", i), byte_count(info.dtype, info.shape).value(), 0,
             stored[i]->source, sum);
    }
    literal("version", "3\n");
  }

  FilePlan finish() && {
    const std::uint64_t directory = at_;
    append(write_torch_directory(records_, directory));
    FilePlan plan;
    plan.parts = std::move(parts_);
    plan.sums = sums_.size();
    plan.late = [records = std::move(records_), places = std::move(sums_),
                 directory](std::span<const std::uint32_t> sums) {
      std::vector<TorchRecord> known = records;
      std::vector<LatePart> late;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        TorchRecord& record = known[places[i]];
        if (record.bytes == 0) continue;
        record.crc = sums[i];
        const std::uint64_t data = record.header_begin + write_torch_local_header(record).size();
        late.push_back({data + record.bytes, write_torch_descriptor(record)});
      }
      late.push_back({directory, write_torch_directory(known, directory)});
      return late;
    };
    return plan;
  }

 private:
  static bool is_twin(const OutputTensor& a, const OutputTensor& b) {
    return a.info.dtype == b.info.dtype && a.info.shape == b.info.shape &&
           is_same(a.source, b.source);
  }

  /// torch counts the bytes of packed types, which hold two elements each.
  static Shape torch_shape(const TensorInfo& info, const std::string& path) {
    Shape shape = info.shape;
    if (!is_packed(info.dtype)) return shape;
    if (shape.empty() || shape.back() % 2 != 0) {
      throw InputError(path,
                       fmt::format("tensor '{}': torch packs {} by twos along the last "
                                   "dimension, found {}",
                                   escape(info.name), dtype_name(info.dtype), shape_text(shape)));
    }
    shape.back() /= 2;
    return shape;
  }

  void append(std::string text) {
    const std::uint64_t size = text.size();
    parts_.push_back({size, Literal{std::move(text)}});
    at_ += size;
  }

  void literal(std::string_view name, std::string text) {
    const std::uint32_t crc = crc32_of(as_bytes(text));
    const std::uint64_t size = text.size();
    record(name, size, crc, Literal{std::move(text)}, -1);
  }

  void record(std::string_view name, std::uint64_t bytes, std::uint32_t crc, Source source,
              int sum) {
    const TorchRecord record{fmt::format("{}{}", kFolder, name), bytes, crc, at_};
    append(write_torch_local_header(record));
    parts_.push_back({bytes, std::move(source), sum});
    at_ += bytes;
    append(write_torch_descriptor(record));
    records_.push_back(record);
  }

  std::vector<PlannedPart> parts_;
  std::vector<TorchRecord> records_;
  std::vector<std::size_t> sums_;  ///< which record each sum is of
  std::uint64_t at_ = 0;
};

FilePlan plan(const OutputWeights& weights, const std::string& path) {
  return Plan(weights, path).finish();
}

const WeightsWriter kWriter{.name = "torch",
                            .extension = ".bin",
                            .single = "pytorch_model.bin",
                            .shard = "pytorch_model-{:05}-of-{:05}.bin",
                            .has_metadata = false,
                            .has_aliases = true,
                            .holds = is_torch_dtype,
                            .plan = plan};
const WriterRegistration kRegistration{kWriter};

}  // namespace

}  // namespace masque::store
