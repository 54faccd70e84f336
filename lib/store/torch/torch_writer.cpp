// PyTorch's zip files, as torch.save has written them since 1.6.
#include "store/torch/torch_writer.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/torch/pickle.hpp"
#include "store/weights_writer.hpp"
#include "store/zip/zip.hpp"
#include "store/zip/zip_stream.hpp"

namespace masque::store {

namespace {

using zip::kSaturated;

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint16_t kZero16 = 0;
constexpr std::uint32_t kZero32 = 0;
constexpr std::uint16_t kPaddingId = 'F' | 'B' << 8;
constexpr std::uint16_t kMadeBy = 0x031E;    // of miniz
constexpr std::uint16_t kZip64Version = 45;  // of the specification: ZIP64

/// Flags, method (stored), time and date.
void put_start(std::string& out, const TorchRecord& record) {
  const unsigned flags = zip::kFlagUtf8 | (record.bytes > 0 ? zip::kFlagDescriptor : 0);
  append_number(out, kZero16, static_cast<std::uint16_t>(flags), kZero16, kZero16, kZero16);
}

std::uint32_t narrow(std::uint64_t number) {
  return static_cast<std::uint32_t>(std::min(number, kSaturated));
}

std::uint16_t size16(std::string_view text) { return static_cast<std::uint16_t>(text.size()); }

/// The numbers that their own fields have no room for.
std::string wide_numbers(const TorchRecord& record) {
  std::string numbers;
  if (record.bytes >= kSaturated) append_number(numbers, record.bytes, record.bytes);
  if (record.header_begin >= kSaturated) append_number(numbers, record.header_begin);
  std::string out;
  if (!numbers.empty()) append_number(out, zip::kExtra64, size16(numbers));
  return out + numbers;
}

}  // namespace

std::string write_torch_local_header(const TorchRecord& record) {
  std::string extra = wide_numbers(record);
  const std::uint64_t data = record.header_begin + zip::kLocalHeaderBytes + record.name.size() +
                             extra.size() + 2 * sizeof(std::uint16_t);
  const std::string padding(kAlignment - data % kAlignment, 'Z');
  append_number(extra, kPaddingId, size16(padding));
  extra += padding;
  std::string out;
  append_number(out, zip::kLocalHeader);
  put_start(out, record);
  append_number(out, kZero32, kZero32, kZero32, size16(record.name), size16(extra));
  return out + record.name + extra;
}

std::string write_torch_descriptor(const TorchRecord& record) {
  std::string out;
  if (record.bytes == 0) return out;
  append_number(out, zip::kDescriptor, record.crc);
  if (wide_numbers(record).empty()) {
    append_number(out, narrow(record.bytes), narrow(record.bytes));
  } else {
    append_number(out, record.bytes, record.bytes);
  }
  return out;
}

std::string write_torch_directory(const std::vector<TorchRecord>& records, std::uint64_t begin) {
  std::string out;
  for (const TorchRecord& record : records) {
    const std::string extra = wide_numbers(record);
    append_number(out, zip::kEntry, kZero16);
    put_start(out, record);
    append_number(out, record.crc, narrow(record.bytes), narrow(record.bytes), size16(record.name),
                  size16(extra), kZero16, kZero16, kZero16, kZero32, narrow(record.header_begin));
    out += record.name;
    out += extra;
  }
  const std::uint64_t size = out.size();
  const std::uint64_t count = records.size();
  append_number(out, zip::kEnd64, std::uint64_t{zip::kEnd64Bytes - 12}, kMadeBy, kZip64Version,
                kZero32, kZero32, count, count, size, begin);
  append_number(out, zip::kLocator64, kZero32, begin + size, std::uint32_t{1});
  const auto count16 = static_cast<std::uint16_t>(std::min(count, zip::kSaturatedCount));
  append_number(out, zip::kEnd, kZero16, kZero16, count16, count16, narrow(size), narrow(begin),
                kZero16);
  return out;
}

namespace {

constexpr std::size_t kBatch = 1000;  // items between two marks, as in Python

class Writer {
 public:
  std::string write(const std::vector<PickledTensor>& tensors) {
    out_ = "\x80\x02";
    ordered_dict();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (i % kBatch == 0) out_ += '(';
      text(tensors[i].name);
      tensor(tensors[i]);
      if (i + 1 == tensors.size() || (i + 1) % kBatch == 0) out_ += 'u';
    }
    return out_ + '.';
  }

 private:
  void ordered_dict() {
    global("collections", "OrderedDict");
    out_ += ")R";
  }

  void tensor(const PickledTensor& tensor) {
    const PickleGlobal* typed = storage_class_of(tensor.dtype);
    const PickleGlobal* dtype = torch_dtype_of(tensor.dtype);
    MASQUE_CHECK(dtype != nullptr);
    const std::uint64_t elements = element_count(tensor.shape).value();
    const std::uint64_t element_bytes = divide_up(dtype_bits(tensor.dtype), std::uint64_t{8});
    global("torch._utils", typed != nullptr ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_ += "((";
    known_text("storage");
    if (typed != nullptr) {
      global(typed->module, typed->name);
    } else {
      global("torch.storage", "UntypedStorage");
    }
    text(std::to_string(tensor.storage));
    known_text("cpu");
    number(typed != nullptr ? elements : elements * element_bytes);
    out_ += "tQ";
    number(0);  // offset
    tuple(tensor.shape);
    tuple(strides_of(tensor.shape));
    out_ += '\x89';  // needs no gradient
    ordered_dict();  // of no hooks
    if (typed == nullptr) global(dtype->module, dtype->name);
    out_ += "tR";
  }

  static Shape strides_of(const Shape& shape) {
    Shape strides(shape.size());
    std::uint64_t step = 1;
    for (std::size_t i = shape.size(); i > 0; --i) {
      strides[i - 1] = step;
      step *= shape[i - 1] == 0 ? 1 : shape[i - 1];
    }
    return strides;
  }

  void tuple(const Shape& sizes) {
    if (sizes.empty()) {
      out_ += ')';
      return;
    }
    if (sizes.size() > 3) out_ += '(';
    for (const std::uint64_t size : sizes) number(size);
    out_ += sizes.size() > 3 ? 't' : static_cast<char>(0x84U + sizes.size());
  }

  void number(std::uint64_t value) {
    if (value <= 0xFF) {
      append_number(out_, 'K', static_cast<std::uint8_t>(value));
    } else if (value <= 0xFFFF) {
      append_number(out_, 'M', static_cast<std::uint16_t>(value));
    } else if (value <= 0x7FFF'FFFF) {
      append_number(out_, 'J', static_cast<std::uint32_t>(value));
    } else {
      MASQUE_CHECK(value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
      append_number(out_, '\x8A', std::uint8_t{8}, value);
    }
  }

  void text(std::string_view text) {
    append_number(out_, 'X', static_cast<std::uint32_t>(text.size()));
    out_ += text;
  }

  void known_text(std::string_view value) {
    if (get(std::string(value))) return;
    text(value);
    remember(std::string(value));
  }

  void global(std::string_view module, std::string_view name) {
    const std::string lines = std::string(module) + '\n' + std::string(name) + '\n';
    if (get(lines)) return;
    out_ += 'c';
    out_ += lines;
    remember(lines);
  }

  bool get(const std::string& value) {
    const auto found = memo_.find(value);
    if (found == memo_.end()) return false;
    append_number(out_, 'h', found->second);
    return true;
  }

  void remember(const std::string& value) {
    const auto at = static_cast<std::uint8_t>(memo_.size());  // a few dozens at most
    memo_.emplace(value, at);
    append_number(out_, 'q', at);
  }

  std::string out_;
  std::unordered_map<std::string, std::uint8_t> memo_;
};

}  // namespace

bool is_torch_dtype(DType dtype) { return torch_dtype_of(dtype) != nullptr; }

std::string write_torch_pickle(const std::vector<PickledTensor>& tensors) {
  return Writer().write(tensors);
}

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
