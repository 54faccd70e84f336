#include "store/convert/convert_checkpoint.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/config.hpp"
#include "store/convert/aliases.hpp"
#include "store/convert/converted_folder.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/markers.hpp"
#include "store/names/name_rules.hpp"
#include "store/names/rename_tensors.hpp"
#include "store/names/scaled_weights.hpp"
#include "store/safetensors/safetensors.hpp"
#include "store/sharding.hpp"
#include "store/tensorflow/object_graph.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "tensor/convert.hpp"

namespace masque::store {

namespace {

/// Matrices up to here are transposed by each thread for itself.
constexpr std::uint64_t kMostWholeBytes = 16 << 20;

std::string writer_names() { return comma_list(weights_writers(), &WeightsWriter::name); }

/// The writer that the request asks for by its name; nullptr if by none.
const WeightsWriter* requested_writer(const ConvertRequest& request) {
  if (request.format.empty()) return nullptr;
  const auto writers = weights_writers();
  const auto found = std::ranges::find(writers, request.format, &WeightsWriter::name);
  if (found != writers.end()) return *found;
  throw UsageError(fmt::format("{}: found '{}', expected one of {}", field("format"),
                               escape(request.format), writer_names()));
}

void check_request(const std::string& out, const ConvertRequest& request) {
  const WeightsWriter* by_path = writer_for_path(out);
  const WeightsWriter* requested = requested_writer(request);
  if (by_path != nullptr && request.shard_bytes) {
    throw UsageError(fmt::format("{} needs an output folder, found the file '{}'",
                                 field("shard_size"), escape(out)));
  }
  if (by_path != nullptr && requested != nullptr && requested != by_path) {
    throw UsageError(fmt::format("{} {}: the name of the file '{}' means {}", field("format"),
                                 requested->name, escape(out), by_path->name));
  }
  if (by_path == nullptr && requested != nullptr && requested->single.empty()) {
    throw UsageError(fmt::format("{} {} cannot be written to a folder, expected a file like '{}{}'",
                                 field("format"), requested->name, escape(out),
                                 requested->extension));
  }
  if (requested != nullptr && request.shard_bytes && requested->shard.empty())
    throw UsageError(
        fmt::format("{}: {} files cannot be sharded", field("shard_size"), requested->name));
  if (request.dtype && !can_encode(*request.dtype)) {
    throw UsageError(fmt::format("{} {}: conversion to this type is not supported", field("dtype"),
                                 dtype_name(*request.dtype)));
  }
  if (request.strict && request.names != NameStyle::kHf && request.names != NameStyle::kTf)
    throw UsageError(fmt::format("{} needs {} hf or tf", field("strict"), field("names")));
}

/// The format of the output.
const WeightsWriter& target_of(const Checkpoint& checkpoint, const std::string& out,
                               const ConvertRequest& request) {
  if (const WeightsWriter* by_path = writer_for_path(out)) return *by_path;
  if (const WeightsWriter* requested = requested_writer(request)) return *requested;
  const WeightsWriter& own = weights_writer(checkpoint.files().front().content.writer);
  const bool fits = !own.single.empty() && (!request.shard_bytes || !own.shard.empty());
  return fits ? own : weights_writer("safetensors");
}

/// All files as one, in order; true in `sorted` if each was in the reference writer's order.
OutputWeights merged(const Checkpoint& checkpoint, bool& sorted, std::vector<std::string>& notes) {
  OutputWeights all;
  std::map<std::string, std::string> metadata;
  sorted = true;
  for (const WeightsFile& file : checkpoint.files()) {
    OutputWeights one = copy_of(file);
    // A bundle has the order of its names, which is nobody's choice.
    sorted = sorted && (checkpoint.bundle() ||
                        std::is_sorted(one.tensors.begin(), one.tensors.end(),
                                       [](const OutputTensor& a, const OutputTensor& b) {
                                         return safetensors_before(a.info, b.info);
                                       }));
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
    std::ranges::move(one.opaque, std::back_inserter(all.opaque));
    if (all.typed.empty()) all.typed = std::move(one.typed);
  }
  if (checkpoint.files().size() > 1) all.metadata.assign(metadata.begin(), metadata.end());
  return all;
}

/// Metadata that are no texts, where the output has no place for their types.
void drop_typed(OutputWeights& weights, std::vector<std::string>& notes) {
  if (weights_writer(weights.writer).has_typed) return;
  std::erase_if(weights.typed, [&](const TypedValue& value) {
    return find_metadata(weights.metadata, value.key) != nullptr;
  });
  if (!weights.typed.empty()) {
    const TypedValue& first = weights.typed.front();
    notes.push_back(fmt::format(
        "{} metadata values that are not text are lost, the first '{}' of {}: {} has no such types",
        weights.typed.size(), escape(first.key), escape(first.type), weights.writer));
  }
  weights.typed.clear();
}

/// Metadata of the input in the output, as far as it has a place for them.
void settle_metadata(OutputWeights& weights, const Metadata& markers,
                     const std::optional<ModelConfig>& config, std::vector<std::string>& notes) {
  drop_typed(weights, notes);
  if (weights_writer(weights.writer).has_typed) {
    if (weights.typed.empty()) erase_metadata(weights.metadata, "format");
    const std::string type = config ? config->model_type() : "";
    if (!type.empty() && find_metadata(weights.metadata, kGgufArchitecture) == nullptr)
      weights.metadata.insert(weights.metadata.begin(), {std::string(kGgufArchitecture), type});
    for (const auto& [key, value] : markers) set_metadata(weights.metadata, key, value);
    return;
  }
  if (weights_writer(weights.writer).has_metadata) {
    if (find_metadata(weights.metadata, "format") == nullptr)
      set_metadata(weights.metadata, "format", "pt");
    for (const auto& [key, value] : markers) set_metadata(weights.metadata, key, value);
    return;
  }
  for (const auto& [key, value] : weights.metadata) {
    if (key == "format" || key.starts_with(kMarkerPrefix)) continue;
    notes.push_back(fmt::format("metadata '{}' is lost: {} files have no metadata", escape(key),
                                weights.writer));
  }
  weights.metadata.clear();
}

/// Lets what a GGUF file says of the type of its values follow a new one. With quantised tensors it
/// speaks of these.
void set_file_type(OutputWeights& weights, DType dtype, const std::string& path,
                   std::vector<std::string>& notes) {
  const auto value = std::ranges::find(weights.typed, kGgufFileType, &TypedValue::key);
  if (value == weights.typed.end() || !weights.opaque.empty()) return;
  if (const auto type = gguf_file_type(dtype); type && gguf_integer(*value)) {
    *value = make_gguf_integer(*value, *type, path);
  } else {
    notes.push_back(fmt::format("metadata '{}' stays {}: there is no number for {}", kGgufFileType,
                                value->text, dtype_name(dtype)));
  }
}

/// New types and orders of elements: what the sources of the tensors do.
class Values {
 public:
  Values(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config,
         const ConvertRequest& request, const NameMap& names)
      : checkpoint_(checkpoint), config_(config), request_(request), names_(names) {}

  /// The bytes of one tensor, which has its old name and place still. Returns whether its type
  /// changed.
  bool settle(OutputTensor& tensor) {
    const TensorInfo& source = *checkpoint_.find(tensor.info.name);
    const auto name = names_.find(source.name);
    const bool transposed = name != names_.end() && name->second.transposed;
    // What is the same bytes now stays the same bytes.
    const TensorInfo* first = source.alias_of.empty() ? &source : checkpoint_.find(source.alias_of);
    const bool converted =
        request_.dtype && is_float(source.dtype) && source.dtype != *request_.dtype;
    // Without its scale a weight of 8 bits would look like a whole one in the new type.
    if (converted && dtype_bits(source.dtype) == 8)
      check_has_no_scale(checkpoint_, config_, source);
    tensor.info.reader = nullptr;
    if (!transposed && !converted) return false;
    ReadFunction read = transposed ? transposed_values(checkpoint_, source, unpacked_)
                                   : plain_values(checkpoint_, source);
    if (transposed) std::swap(tensor.info.shape[0], tensor.info.shape[1]);
    if (!converted) {
      // Whole, a matrix is transposed where it is written from, and each thread has its own.
      const bool whole = source.bytes() <= kMostWholeBytes;
      tensor.source = whole ? Computed{std::move(read), source.bytes()} : Computed{std::move(read)};
      return false;
    }
    Computed rounded = converted_values(std::move(read), source.dtype, *request_.dtype,
                                        request_.overflow, source.name, overflow_);
    if (!transposed) rounded.origin = first;
    tensor.source = std::move(rounded);
    tensor.info.dtype = *request_.dtype;
    return true;
  }

  const Overflow& overflow() const { return overflow_; }

 private:
  const Checkpoint& checkpoint_;
  const std::optional<ModelConfig>& config_;
  const ConvertRequest& request_;
  const NameMap& names_;
  std::shared_ptr<UnpackedTensor> unpacked_ = std::make_shared<UnpackedTensor>();
  Overflow overflow_;
};

/// Throws if the target has no type for a tensor.
void check_types(const OutputWeights& weights, const std::string& in) {
  const WeightsWriter& writer = weights_writer(weights.writer);
  for (const auto& [info, source] : weights.tensors) {
    if (writer.holds(info.dtype)) continue;
    const bool convertible = is_float(info.dtype);
    throw InputError(
        in, fmt::format("tensor '{}' is {}, for which {} has no type{}", escape(info.name),
                        dtype_name(info.dtype), writer.name,
                        convertible ? fmt::format(" ({} F32 converts it)", field("dtype")) : ""));
  }
}

/// Keeps opaque tensors, leaves them out, or throws.
void settle_opaque(OutputWeights& weights, const Checkpoint& checkpoint, bool skip,
                   std::vector<std::string>& notes) {
  if (weights.opaque.empty()) return;
  if (skip) {
    for (const OutputOpaque& tensor : weights.opaque)
      notes.push_back(fmt::format("'{}' is left out: {} {}", escape(tensor.info.name),
                                  escape(tensor.info.type), shape_text(tensor.info.shape)));
    weights.opaque.clear();
    return;
  }
  const bool same = std::ranges::all_of(checkpoint.files(), [&](const WeightsFile& file) {
    return file.content.writer == weights.writer;
  });
  if (same && weights_writer(weights.writer).has_opaque) return;
  const OpaqueTensor& first = weights.opaque.front().info;
  const std::size_t more = weights.opaque.size() - 1;
  throw InputError(checkpoint.path(),
                   fmt::format("tensor '{}' is {}, which {} cannot hold{} ({} leaves {} out)",
                               escape(first.name), escape(first.type), weights.writer,
                               more == 0 ? "" : fmt::format(", nor {} more", more),
                               field("skip_opaque"), more == 0 ? "it" : "them"));
}

/// The new names, checked, and the config that goes with them if it changes.
struct NewNames {
  NamePlan plan;
  std::optional<ConvertedConfig> config;
};

NewNames names_for(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config,
                   NameStyle style) {
  NewNames names;
  if (style == NameStyle::kKeep) return names;
  if (style == NameStyle::kVariable) {
    names.plan = variable_names(checkpoint);
  } else if (style == NameStyle::kHf) {
    names.plan = hf_names(checkpoint, config);
    if (config && find_tf_family(checkpoint, config) != nullptr)
      names.config = {"config.json", config->text()};
  } else {
    TfPlan tf = tf_names(checkpoint, config, hf_names(checkpoint, config));
    names.plan = std::move(tf.plan);
    if (config && tf.family != nullptr)
      names.config = {std::string(tf.family->config), tf_config(*config)};
  }
  check_new_names(checkpoint, names.plan.names);
  return names;
}

/// Takes tensors out; what shared its bytes with one of them has its own then.
void leave_out(OutputWeights& weights, const std::vector<std::string>& names) {
  const std::set<std::string_view> gone(names.begin(), names.end());
  std::erase_if(weights.tensors,
                [&](const OutputTensor& tensor) { return gone.contains(tensor.info.name); });
  std::erase_if(weights.opaque,
                [&](const OutputOpaque& tensor) { return gone.contains(tensor.info.name); });
  for (OutputTensor& tensor : weights.tensors)
    if (gone.contains(tensor.info.alias_of)) tensor.info.alias_of.clear();
}

}  // namespace

ConvertResult convert_checkpoint(const std::string& in, const std::string& out,
                                 const ConvertRequest& request) {
  check_request(out, request);
  const bool to_file = writer_for_path(out) != nullptr;
  const Checkpoint checkpoint = open_checkpoint(in);
  const WeightsWriter& writer = target_of(checkpoint, out, request);
  if (request.dtype && !writer.holds(*request.dtype)) {
    throw UsageError(fmt::format("{} {}: {} has no such type", field("dtype"),
                                 dtype_name(*request.dtype), writer.name));
  }
  ConvertResult result;
  result.notes = checkpoint.notes();
  const auto config = find_config(checkpoint);
  const NewNames new_names = names_for(checkpoint, config, request.names);
  const NameMap& names = new_names.plan.names;
  result.notes.insert(result.notes.end(), new_names.plan.notes.begin(), new_names.plan.notes.end());
  result.unknown = new_names.plan.unknown;
  if (request.strict && !result.unknown.empty()) return result;
  const Metadata markers = markers_of(checkpoint);
  bool sorted = true;
  OutputWeights all = merged(checkpoint, sorted, result.notes);
  all.writer = writer.name;
  leave_out(all, new_names.plan.left_out);
  settle_metadata(all, markers, config, result.notes);
  settle_opaque(all, checkpoint, request.skip_opaque, result.notes);
  Values values(checkpoint, config, request, names);
  for (OutputTensor& tensor : all.tensors) {
    if (values.settle(tensor)) ++result.converted;
  }
  if (request.dtype) set_file_type(all, *request.dtype, in, result.notes);
  result.renamed = apply_names(all, names);
  settle_aliases(all, config, result.notes);
  check_types(all, in);
  result.tensors = all.tensors.size() + all.opaque.size();
  WriteOptions options = request.write;
  options.input = in;
  options.verify = [&](const std::string&) {
    const std::string& tensor = values.overflow().first();
    if (tensor.empty()) return;
    throw InputError(in,
                     fmt::format("tensor '{}': values overflow {} ({} clips them)", escape(tensor),
                                 dtype_name(*request.dtype), field("saturate")));
  };
  const TensorOrder order = sorted ? TensorOrder::kReference : TensorOrder::kAsGiven;
  std::vector<OutputWeights> shards = split_into_shards(std::move(all), request.shard_bytes, order);
  for (OutputWeights& shard : shards) order_aliases(shard);
  // A bundle keeps its prefix, which other files of the folder may name.
  if (checkpoint.bundle() && !writer.data.empty()) shards[0].name = checkpoint.index_name();
  result.files = shards.size();
  const Metadata outside = writer.has_metadata ? Metadata{} : markers;
  if (to_file) {
    write_marked_file(out, shards[0], outside, options);
    return result;
  }
  ConvertedFolder folder(checkpoint, new_names.config, request.dtype, outside,
                         request.write.follow_links);
  write_checkpoint_folder(out, shards, folder.files(shards, result.notes), options);
  return result;
}

}  // namespace masque::store
