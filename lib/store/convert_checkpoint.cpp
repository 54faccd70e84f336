#include "store/convert_checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "store/config.hpp"
#include "store/safetensors.hpp"
#include "store/sharding.hpp"
#include "tensor/convert.hpp"

namespace masque {

namespace {

constexpr std::uint64_t kChunkElements = 1 << 17;

/// The first tensor that overflowed, noted by whichever thread saw it.
class Overflow {
 public:
  void note(const std::string& tensor) {
    const std::lock_guard lock(mutex_);
    if (first_.empty() || tensor < first_) first_ = tensor;
  }
  const std::string& first() const { return first_; }

 private:
  std::mutex mutex_;
  std::string first_;
};

/// Largest finite value of a type that can be encoded.
double largest_of(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3: return 448;
    case DType::kF8E4M3Fnuz: return 240;
    case DType::kF8E5M2:
    case DType::kF8E5M2Fnuz: return 57344;
    case DType::kF16: return 65504;
    case DType::kBF16: return 0x1.FEp127;
    case DType::kF32: return 0x1.FFFFFEp127;
    default: return std::numeric_limits<double>::max();
  }
}

bool has_infinity(DType dtype) {
  return dtype != DType::kF8E4M3 && dtype != DType::kF8E4M3Fnuz && dtype != DType::kF8E5M2Fnuz;
}

/// Doubles into a narrower type; true if a value cannot be held: a finite one that is too large, or
/// an infinity where the type has none.
bool encode(DType dtype, std::span<double> values, OverflowPolicy policy, MutableBytes out) {
  const double largest = largest_of(dtype);
  const bool infinity = has_infinity(dtype);
  const auto beyond = [&](double value) {
    return std::abs(value) > largest && (std::isfinite(value) || !infinity);
  };
  const bool suspicious = std::any_of(values.begin(), values.end(), beyond);
  if (suspicious && policy == OverflowPolicy::kSaturate) {
    for (double& value : values) {
      if (beyond(value)) value = std::copysign(largest, value);
    }
  }
  from_double(dtype, values, out);
  if (!suspicious || policy == OverflowPolicy::kSaturate) return false;
  // Values just above the largest may still round down to it.
  std::vector<double> back(values.size());
  to_double(dtype, out, back);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (beyond(values[i]) && !std::isfinite(back[i])) return true;
  }
  return false;
}

Source converted(const Checkpoint& checkpoint, const TensorInfo& tensor, DType dtype,
                 OverflowPolicy policy, Overflow& overflow) {
  const std::uint64_t from = dtype_bits(tensor.dtype) / 8;
  const std::uint64_t to = dtype_bits(dtype) / 8;
  Computed source;
  source.chunk_bytes = kChunkElements * to;
  source.fill = [&checkpoint, &tensor, &overflow, dtype, policy, from, to](std::uint64_t offset,
                                                                           MutableBytes out) {
    thread_local std::vector<std::byte> bytes;
    thread_local std::vector<double> values;
    bytes.resize(out.size() / to * from);
    values.resize(out.size() / to);
    checkpoint.read(tensor, offset / to * from, bytes);
    to_double(tensor.dtype, bytes, values);
    if (encode(dtype, values, policy, out)) overflow.note(tensor.name);
  };
  return source;
}

/// All files as one, in order; true in `sorted` if each was in the reference writer's order.
OutputWeights merged(const Checkpoint& checkpoint, bool& sorted, std::vector<std::string>& notes) {
  OutputWeights all;
  std::map<std::string, std::string> metadata;
  sorted = true;
  for (const WeightsFile& file : checkpoint.files()) {
    OutputWeights one = copy_of(file);
    sorted = sorted && std::is_sorted(one.tensors.begin(), one.tensors.end(),
                                      [](const OutputTensor& a, const OutputTensor& b) {
                                        return safetensors_before(a.info, b.info);
                                      });
    all.mode = one.mode;
    all.metadata = one.metadata;  // a single file keeps its order; several are merged below
    // The smallest: a single file may be aligned further by accident.
    all.alignment = all.tensors.empty() ? one.alignment : std::min(all.alignment, one.alignment);
    for (const auto& [key, value] : one.metadata) {
      const auto [at, added] = metadata.emplace(key, value);
      if (!added && at->second != value) {
        notes.push_back(
            fmt::format("metadata '{}' differs between files: the first one is kept", escape(key)));
      }
    }
    for (OutputTensor& tensor : one.tensors) {
      tensor.info = *checkpoint.find(tensor.info.name);
      all.tensors.push_back(std::move(tensor));
    }
  }
  if (checkpoint.files().size() > 1) all.metadata.assign(metadata.begin(), metadata.end());
  return all;
}

std::vector<OutputExtra> extras_of(const Checkpoint& checkpoint, const ConvertRequest& request,
                                   std::deque<InputFile>& opened, std::vector<std::string>& notes) {
  std::vector<std::string> except = {"model.safetensors.index.json", "pytorch_model.bin.index.json",
                                     checkpoint.index_name()};
  for (const WeightsFile& file : checkpoint.files()) except.push_back(file.name);
  std::vector<std::string> left_out;
  std::optional<std::string> config;
  if (const auto before = ModelConfig::find(checkpoint.folder()); before && request.dtype) {
    config = with_dtype(*before, *request.dtype);
    if (*config == before->text()) config.reset();
  }
  if (config) except.emplace_back("config.json");
  std::vector<OutputExtra> extras = other_files(checkpoint.folder(), except, opened, &left_out);
  for (const std::string& name : left_out) {
    notes.push_back(fmt::format("'{}' is no file and is not copied", escape(name)));
  }
  if (config) {
    const std::uint64_t size = config->size();
    const unsigned mode = InputFile::open(join(checkpoint.folder(), "config.json")).mode() & 0777U;
    extras.push_back({"config.json", Literal{*std::move(config)}, size, mode});
  }
  return extras;
}

}  // namespace

ConvertResult convert_checkpoint(const std::string& in, const std::string& out,
                                 const ConvertRequest& request) {
  const bool to_file = out.ends_with(".safetensors");
  if (to_file && request.shard_bytes) {
    throw UsageError(fmt::format("--shard-size writes a folder, found the file '{}'", escape(out)));
  }
  if (request.dtype && !can_encode(*request.dtype)) {
    throw UsageError(fmt::format("--dtype {}: not a type that values are rounded to",
                                 dtype_name(*request.dtype)));
  }
  const Checkpoint checkpoint = open_checkpoint(in);
  ConvertResult result;
  result.notes = checkpoint.notes();
  bool sorted = true;
  OutputWeights all = merged(checkpoint, sorted, result.notes);
  result.tensors = all.tensors.size();
  Overflow overflow;
  for (OutputTensor& tensor : all.tensors) {
    const TensorInfo& source = *checkpoint.find(tensor.info.name);
    if (!request.dtype || !is_float(source.dtype) || source.dtype == *request.dtype) continue;
    tensor.source = converted(checkpoint, source, *request.dtype, request.overflow, overflow);
    tensor.info.dtype = *request.dtype;
    ++result.converted;
  }
  WriteOptions options = request.write;
  options.input = in;
  options.verify = [&](const std::string&) {
    if (overflow.first().empty()) return;
    throw InputError(in, fmt::format("tensor '{}': values overflow {} (--saturate clips them)",
                                     escape(overflow.first()), dtype_name(*request.dtype)));
  };
  const TensorOrder order = sorted ? TensorOrder::kReference : TensorOrder::kAsGiven;
  std::vector<OutputWeights> shards = split_into_shards(std::move(all), request.shard_bytes, order);
  result.files = shards.size();
  if (to_file) {
    write_checkpoint_file(out, shards[0], options);
    return result;
  }
  std::deque<InputFile> opened;
  std::vector<OutputExtra> extras;
  if (checkpoint.is_folder()) {
    extras = extras_of(checkpoint, request, opened, result.notes);
    std::erase_if(extras, [&](const OutputExtra& extra) {
      const bool taken = std::any_of(shards.begin(), shards.end(), [&](const OutputWeights& shard) {
        return shard.name == extra.name;
      });
      if (taken)
        result.notes.push_back(fmt::format("'{}' of the input is left out", escape(extra.name)));
      return taken;
    });
  }
  if (shards.size() > 1) extras.push_back(index_extra(shards));
  write_checkpoint_folder(out, shards, extras, options);
  return result;
}

}  // namespace masque
