#include "surgery/convert/convert_checkpoint.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/comma_list.hpp"
#include "model/checkpoint/training_state.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/config.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_model.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/gguf/gguf_tokenizer.hpp"
#include "store/markers.hpp"
#include "store/names/scaled_weights.hpp"
#include "store/numpy/unpacked_tensor.hpp"
#include "store/quantized/decoded_checkpoint.hpp"
#include "store/safetensors/safetensors.hpp"
#include "store/sharding.hpp"
#include "store/tensorflow/bundle_place.hpp"
#include "store/tensorflow/object_graph.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "store/transfer.hpp"
#include "surgery/convert/aliases.hpp"
#include "surgery/convert/to_llama_cpp.hpp"
#include "surgery/names/name_rules.hpp"
#include "surgery/names/rename_tensors.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

// The files of a converted folder next to its weights.

/// A config that takes the place of the input's.
struct ConvertedConfig {
  std::string name;      ///< of its file
  std::string text;      ///< its content, a JSON object
  bool of_file = false;  ///< the input's weights hold it: it is written without a folder, too
};

/// Keeps the files open that it copies: must live until they are written.
class ConvertedFolder {
 public:
  /// `checkpoint` is the input. `config`: instead of the input's; nothing: that one. `dtype` is the
  /// new floating-point type; nothing: that of the input. `markers` are those that the weights have
  /// no place for. `follow_links` as in WriteOptions. What is referred to must outlive it.
  /// `made` are files that the weights of the input hold, and that take the place of others.
  ConvertedFolder(const store::Checkpoint& checkpoint, const std::optional<ConvertedConfig>& config,
                  std::span<const text::VocabularyText> made, std::optional<DType> dtype,
                  const store::Metadata& markers, bool follow_links);

  /// The index of `shards`, the weights of the output, at least one; the config with its new dtype
  /// and markers, and, if the input is a folder, copies of its other files. Left out, with a note
  /// in `notes`, are files whose name the weights take and weights that would be opened instead of
  /// the new ones. Called once. Throws InputError.
  std::vector<store::OutputExtra> files(const std::vector<store::OutputWeights>& shards,
                                        std::vector<std::string>& notes);

 private:
  std::vector<store::OutputExtra> copies(std::vector<std::string>& notes);
  std::optional<std::string> new_config() const;
  std::string config_file() const;

  const store::Checkpoint& checkpoint_;
  const std::optional<ConvertedConfig>& config_;
  std::span<const text::VocabularyText> made_;
  std::optional<DType> dtype_;
  const store::Metadata& markers_;
  bool follow_links_;
  std::deque<InputFile> opened_;
};

store::OutputExtra text_file(std::string name, std::string text, unsigned mode) {
  const std::uint64_t size = text.size();
  return {std::move(name), store::Literal{std::move(text)}, size, mode};
}

ConvertedFolder::ConvertedFolder(const store::Checkpoint& checkpoint,
                                 const std::optional<ConvertedConfig>& config,
                                 std::span<const text::VocabularyText> made,
                                 std::optional<DType> dtype, const store::Metadata& markers,
                                 bool follow_links)
    : checkpoint_(checkpoint),
      config_(config),
      made_(made),
      dtype_(dtype),
      markers_(markers),
      follow_links_(follow_links) {}

/// The name of the output's config.
std::string ConvertedFolder::config_file() const {
  return config_ ? config_->name : store::config_name(checkpoint_.folder());
}

/// The text of the output's config; nothing if it is the input's file.
std::optional<std::string> ConvertedFolder::new_config() const {
  auto before = config_ ? store::ModelConfig::parse(config_->text, config_->name)
                        : store::ModelConfig::find(checkpoint_.folder());
  if (!before) return std::nullopt;
  const std::string own = before->text();
  if (checkpoint_.is_decoded()) before = store::without_quantization(*before);
  std::string text =
      store::with_markers(dtype_ ? store::with_dtype(*before, *dtype_) : before->text(), markers_);
  const bool same = !config_ && text == own;
  return same ? std::nullopt : std::optional(std::move(text));
}

std::vector<store::OutputExtra> ConvertedFolder::copies(std::vector<std::string>& notes) {
  std::vector<std::string> except = {checkpoint_.index_name()};
  for (const store::WeightsWriter* writer : store::weights_writers()) {
    if (!writer->shard.empty()) except.push_back(store::index_name(*writer));
  }
  for (const store::WeightsFile& file : checkpoint_.files()) {
    except.push_back(file.name);
    except.push_back(store::side_path(store::weights_name(checkpoint_, file)));
  }
  for (const text::VocabularyText& file : made_) except.push_back(file.name);
  auto config = new_config();
  const std::string before = store::config_name(checkpoint_.folder());
  if (config) {
    except.push_back(before);
    except.push_back(config_file());
  }
  auto extras = store::other_files(checkpoint_.folder(), except, opened_, follow_links_, notes);
  if (config) {
    const std::string path = join(checkpoint_.folder(), before);
    const auto mode = exists(path) ? InputFile::open(path).mode() & 0777U : 0644U;
    extras.push_back(text_file(config_file(), *std::move(config), mode));
  }
  return extras;
}

std::vector<store::OutputExtra> ConvertedFolder::files(
    const std::vector<store::OutputWeights>& shards, std::vector<std::string>& notes) {
  std::vector<store::OutputExtra> extras;
  if (checkpoint_.is_folder()) {
    extras = copies(notes);
  } else if (config_ && config_->of_file) {
    extras.push_back(text_file(config_file(), *new_config(), 0644));
  }
  for (const text::VocabularyText& file : made_)
    extras.push_back(text_file(file.name, file.content, 0644));
  const store::WeightsWriter& writer = store::weights_writer(shards.front().writer);
  // Another bundle would be a choice; a graph and a list would lead to what is not there any more.
  const std::string prefix =
      checkpoint_.index_name().substr(0, checkpoint_.index_name().rfind('.'));
  const bool one_of_many = !store::other_bundle_files(checkpoint_).empty();
  const auto stale = [&](const std::string& name) {
    if (!checkpoint_.bundle() || !store::is_bundle_file(name)) return false;
    if (name == "checkpoint" && one_of_many) return true;
    return writer.data.empty() || (name != prefix + ".meta" && name != "checkpoint");
  };
  std::size_t left_out = 0;
  std::erase_if(extras, [&](const store::OutputExtra& extra) {
    const auto takes = [&](const store::OutputWeights& shard) {
      return extra.name == shard.name ||
             (!writer.data.empty() && extra.name == store::data_name(writer, shard.name));
    };
    const bool taken = std::ranges::any_of(shards, takes);
    const bool first = store::is_opened_before(extra.name, std::string(writer.single)) ||
                       (shards.size() > 1 && extra.name == writer.single);
    if (!taken && !first) {
      const bool left = stale(extra.name);
      left_out += left ? 1 : 0;
      return left;
    }
    notes.push_back(left_out_note(extra.name));
    return true;
  });
  if (left_out > 0)
    notes.push_back(fmt::format("{} other files of TensorFlow checkpoints are left out", left_out));
  if (shards.size() > 1) extras.push_back(store::index_extra(shards));
  const bool config =
      std::ranges::find(extras, config_file(), &store::OutputExtra::name) != extras.end();
  if (!markers_.empty() && !config) {
    for (const store::OutputWeights& shard : shards)
      extras.push_back(
          text_file(store::side_path(shard.name), store::side_file_text(markers_), 0644));
  }
  return extras;
}

// The conversion.

/// Matrices up to here are transposed by each thread for itself.
constexpr std::uint64_t kMostWholeBytes = 16 << 20;

std::string writer_names() {
  return comma_list(store::weights_writers(), &store::WeightsWriter::name);
}

/// The writer that the request asks for by its name; nullptr if by none.
const store::WeightsWriter* requested_writer(const ConvertRequest& request) {
  if (request.format.empty()) return nullptr;
  const auto writers = store::weights_writers();
  const auto found = std::ranges::find(writers, request.format, &store::WeightsWriter::name);
  if (found != writers.end()) return *found;
  throw UsageError(fmt::format("{}: found '{}', expected one of {}", field("format"),
                               escape(request.format), writer_names()));
}

void check_request(const std::string& out, const ConvertRequest& request) {
  const store::WeightsWriter* by_path = store::writer_for_path(out);
  const store::WeightsWriter* requested = requested_writer(request);
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
const store::WeightsWriter& target_of(const store::Checkpoint& checkpoint, const std::string& out,
                                      const ConvertRequest& request) {
  if (const store::WeightsWriter* by_path = store::writer_for_path(out)) return *by_path;
  if (const store::WeightsWriter* requested = requested_writer(request)) return *requested;
  const store::WeightsWriter& own =
      store::weights_writer(checkpoint.files().front().content.writer);
  // transformers' names in a GGUF file would be a model of nobody.
  const bool leaves_gguf = request.names == NameStyle::kHf && store::runs_gguf(checkpoint);
  const bool fits =
      !leaves_gguf && !own.single.empty() && (!request.shard_bytes || !own.shard.empty());
  return fits ? own : store::weights_writer("safetensors");
}

/// The tensors of `file`, one of `checkpoint`, with weights in the place of their parts.
std::vector<store::OutputTensor> decoded_of(const store::Checkpoint& checkpoint,
                                            const store::WeightsFile& file) {
  std::vector<store::OutputTensor> tensors;
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    if (&checkpoint.files()[tensor.file] == &file)
      tensors.push_back({tensor, store::source_of(file.file, tensor)});
  }
  return tensors;
}

/// All files as one, in order; true in `sorted` if each was in the reference writer's order.
store::OutputWeights one_file(const store::Checkpoint& checkpoint, bool& sorted,
                              std::vector<std::string>& notes) {
  store::OutputWeights all;
  std::map<std::string, std::string> metadata;
  sorted = true;
  for (const store::WeightsFile& file : checkpoint.files()) {
    store::OutputWeights one = store::copy_of(file);
    // A bundle has the order of its names, which is nobody's choice.
    sorted =
        sorted && (checkpoint.bundle() ||
                   std::is_sorted(one.tensors.begin(), one.tensors.end(),
                                  [](const store::OutputTensor& a, const store::OutputTensor& b) {
                                    return store::safetensors_before(a.info, b.info);
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
    if (checkpoint.is_decoded()) one.tensors = decoded_of(checkpoint, file);
    for (store::OutputTensor& tensor : one.tensors) {
      tensor.info = *checkpoint.find(tensor.info.name);
      all.tensors.push_back(std::move(tensor));
    }
    std::ranges::move(one.opaque, std::back_inserter(all.opaque));
    if (all.typed.empty()) all.typed = std::move(one.typed);
  }
  if (checkpoint.files().size() > 1) {
    all.metadata.assign(metadata.begin(), metadata.end());
    // What was split is one file now.
    std::erase_if(all.typed,
                  [](const store::TypedValue& value) { return value.key.starts_with("split."); });
  }
  return all;
}

/// Metadata that are no texts, where the output has no place for their types.
void drop_typed(store::OutputWeights& weights, std::vector<std::string>& notes) {
  if (store::weights_writer(weights.writer).has_typed) return;
  std::erase_if(weights.typed, [&](const store::TypedValue& value) {
    return store::find_metadata(weights.metadata, value.key) != nullptr;
  });
  if (!weights.typed.empty()) {
    const store::TypedValue& first = weights.typed.front();
    notes.push_back(fmt::format(
        "{} metadata values that are not text are lost, the first '{}' of {}: {} has no such types",
        weights.typed.size(), escape(first.key), escape(first.type), weights.writer));
  }
  weights.typed.clear();
}

/// Metadata of the input in the output, as far as it has a place for them.
void settle_metadata(store::OutputWeights& weights, const store::Metadata& markers,
                     const std::optional<store::ModelConfig>& config,
                     std::vector<std::string>& notes) {
  drop_typed(weights, notes);
  if (store::weights_writer(weights.writer).has_typed) {
    if (weights.typed.empty()) store::erase_metadata(weights.metadata, "format");
    const std::string type = config ? config->model_type() : "";
    if (!type.empty() &&
        store::find_metadata(weights.metadata, store::kGgufArchitecture) == nullptr)
      weights.metadata.insert(weights.metadata.begin(),
                              {std::string(store::kGgufArchitecture), type});
    for (const auto& [key, value] : markers) store::set_metadata(weights.metadata, key, value);
    return;
  }
  if (store::weights_writer(weights.writer).has_metadata) {
    if (store::find_metadata(weights.metadata, "format") == nullptr)
      store::set_metadata(weights.metadata, "format", "pt");
    for (const auto& [key, value] : markers) store::set_metadata(weights.metadata, key, value);
    return;
  }
  for (const auto& [key, value] : weights.metadata) {
    if (key == "format" || key.starts_with(store::kMarkerPrefix)) continue;
    notes.push_back(fmt::format("metadata '{}' is lost: {} files have no metadata", escape(key),
                                weights.writer));
  }
  weights.metadata.clear();
}

/// Lets what a GGUF file says of the type of its values follow a new one. With quantised tensors it
/// speaks of these.
void set_file_type(store::OutputWeights& weights, DType dtype, const std::string& path,
                   std::vector<std::string>& notes) {
  const auto value =
      std::ranges::find(weights.typed, store::kGgufFileType, &store::TypedValue::key);
  if (value == weights.typed.end() || !weights.opaque.empty()) return;
  if (const auto type = store::gguf_file_type(dtype); type && store::gguf_integer(*value)) {
    *value = store::make_gguf_integer(*value, *type, path);
  } else {
    notes.push_back(fmt::format("metadata '{}' stays {}: there is no number for {}",
                                store::kGgufFileType, value->text, dtype_name(dtype)));
  }
}

/// New types and orders of elements: what the sources of the tensors do.
class Values {
 public:
  Values(const store::Checkpoint& checkpoint, const std::optional<store::ModelConfig>& config,
         const ConvertRequest& request, const store::NameMap& names,
         const std::map<std::string, store::TensorInfo>& made)
      : checkpoint_(checkpoint),
        config_(config),
        request_(request),
        names_(names),
        made_(made),
        scales_(checkpoint) {}

  /// The bytes of one tensor, which has its old name and place still. Returns whether its type
  /// changed.
  bool settle(store::OutputTensor& tensor) {
    const auto made = made_.find(tensor.info.name);
    const store::TensorInfo& source =
        made != made_.end() ? made->second : *checkpoint_.find(tensor.info.name);
    const auto name = names_.find(tensor.info.name);
    const bool transposed = name != names_.end() && name->second.transposed;
    // What is the same bytes now stays the same bytes.
    const store::TensorInfo* first =
        source.alias_of.empty() ? &source : checkpoint_.find(source.alias_of);
    const bool converted =
        request_.dtype && is_float(source.dtype) && source.dtype != *request_.dtype;
    // Without its scale a weight of 8 bits would look like a whole one in the new type.
    if (converted && dtype_bits(source.dtype) == 8) {
      store::check_has_no_scale(checkpoint_, config_, source);
      scales_.check_none_beside(source);
    }
    tensor.info.reader = nullptr;
    if (!transposed && !converted) return false;
    ReadFunction read = transposed ? transposed_values(checkpoint_, source, unpacked_)
                                   : plain_values(checkpoint_, source);
    if (transposed) std::swap(tensor.info.shape[0], tensor.info.shape[1]);
    if (!converted) {
      // Whole, a matrix is transposed where it is written from, and each thread has its own.
      const bool whole = source.bytes() <= kMostWholeBytes;
      tensor.source = whole ? store::Computed{std::move(read), source.bytes()}
                            : store::Computed{std::move(read)};
      return false;
    }
    store::Computed rounded = converted_values(std::move(read), source.dtype, *request_.dtype,
                                               request_.overflow, source.name, overflow_);
    if (!transposed) rounded.origin = first;
    tensor.source = std::move(rounded);
    tensor.info.dtype = *request_.dtype;
    return true;
  }

  Overflow& overflow() { return overflow_; }

 private:
  const store::Checkpoint& checkpoint_;
  const std::optional<store::ModelConfig>& config_;
  const ConvertRequest& request_;
  const store::NameMap& names_;
  const std::map<std::string, store::TensorInfo>& made_;
  store::ScaleNames scales_;
  std::shared_ptr<store::UnpackedTensor> unpacked_ = std::make_shared<store::UnpackedTensor>();
  Overflow overflow_;
};

/// Throws if the target has no type for a tensor.
void check_types(const store::OutputWeights& weights, const std::string& in) {
  const store::WeightsWriter& writer = store::weights_writer(weights.writer);
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
void settle_opaque(store::OutputWeights& weights, const store::Checkpoint& checkpoint, bool skip,
                   std::vector<std::string>& notes) {
  if (weights.opaque.empty()) return;
  if (skip) {
    for (const store::OutputOpaque& tensor : weights.opaque)
      notes.push_back(fmt::format("'{}' is left out: {} {}", escape(tensor.info.name),
                                  escape(tensor.info.type), shape_text(tensor.info.shape)));
    weights.opaque.clear();
    return;
  }
  const bool same = std::ranges::all_of(checkpoint.files(), [&](const store::WeightsFile& file) {
    return file.content.writer == weights.writer;
  });
  if (same && store::weights_writer(weights.writer).has_opaque) return;
  const store::OpaqueTensor& first = weights.opaque.front().info;
  const std::size_t more = weights.opaque.size() - 1;
  throw InputError(checkpoint.path(),
                   fmt::format("tensor '{}' is {}, which {} cannot hold{} ({} leaves {} out)",
                               escape(first.name), escape(first.type), weights.writer,
                               more == 0 ? "" : fmt::format(", nor {} more", more),
                               field("skip_opaque"), more == 0 ? "it" : "them"));
}

/// The new names, checked, and the config that goes with them if it changes.
struct NewNames {
  store::NamePlan plan;
  std::optional<ConvertedConfig> config;
  /// Of a model of llama.cpp: its tensors as transformers has them, by their names.
  std::map<std::string, store::TensorInfo> made = {};
};

/// The names of transformers for a model of llama.cpp, with what undoes its layouts.
NewNames names_of_llama_cpp(const store::Checkpoint& checkpoint) {
  NewNames names;
  names.made = store::gguf_tensors(checkpoint);
  for (const auto& [name, tensor] : names.made)
    names.plan.names[name] = {name, store::is_transposed_in_gguf(checkpoint, tensor)};
  names.config = {"config.json", store::gguf_config(checkpoint)->text(), true};
  return names;
}

/// Puts the tensors `made` in the place of those of the file.
void take_made(const store::Checkpoint& checkpoint,
               const std::map<std::string, store::TensorInfo>& made,
               store::OutputWeights& weights) {
  if (made.empty()) return;
  weights.tensors.clear();
  for (const auto& [name, by] : made) {
    store::OutputTensor& tensor = weights.tensors.emplace_back();
    tensor.info = by;
    tensor.info.name = name;
    if (by.reader != nullptr) {
      tensor.source = store::Computed{plain_values(checkpoint, by)};
    } else {
      tensor.source = store::source_of(checkpoint.files()[by.file].file, by);
    }
  }
  weights.opaque.clear();
  // They describe the file that it was.
  weights.typed.clear();
  weights.metadata.clear();
}

/// The files of the tokenizer inside a model of llama.cpp; none where it has none.
std::vector<text::VocabularyText> tokenizer_files(const store::Checkpoint& checkpoint,
                                                  std::vector<std::string>& notes) {
  const text::GgufVocabulary vocabulary = store::gguf_vocabulary(checkpoint);
  if (!vocabulary.tokens.empty())
    return text::files_of_gguf_vocabulary(vocabulary, checkpoint.path());
  notes.emplace_back("no tokenizer in the file: the folder has none");
  return {};
}

NewNames names_for(const store::Checkpoint& checkpoint,
                   const std::optional<store::ModelConfig>& config, NameStyle style,
                   const store::WeightsWriter& writer) {
  const bool llama_cpp = style == NameStyle::kHf && writer.name != std::string_view("gguf") &&
                         store::runs_gguf(checkpoint);
  NewNames names = llama_cpp ? names_of_llama_cpp(checkpoint) : NewNames();
  if (llama_cpp || style == NameStyle::kKeep || style == NameStyle::kUsual) return names;
  if (style == NameStyle::kVariable) {
    names.plan = store::variable_names(checkpoint);
  } else if (style == NameStyle::kHf) {
    names.plan = hf_names(checkpoint, config);
    if (config && store::find_tf_family(checkpoint, config) != nullptr)
      names.config = {"config.json", config->text()};
  } else {
    store::TfPlan tf = store::tf_names(checkpoint, config, hf_names(checkpoint, config));
    names.plan = std::move(tf.plan);
    if (config && tf.family != nullptr)
      names.config = {std::string(tf.family->config), store::tf_config(*config)};
  }
  check_new_names(checkpoint, names.plan.names);
  return names;
}

/// Takes tensors out; what shared its bytes with one of them has its own then.
void leave_out(store::OutputWeights& weights, const std::vector<std::string>& names) {
  const std::set<std::string_view> gone(names.begin(), names.end());
  std::erase_if(weights.tensors,
                [&](const store::OutputTensor& tensor) { return gone.contains(tensor.info.name); });
  std::erase_if(weights.opaque,
                [&](const store::OutputOpaque& tensor) { return gone.contains(tensor.info.name); });
  for (store::OutputTensor& tensor : weights.tensors)
    if (gone.contains(tensor.info.alias_of)) tensor.info.alias_of.clear();
}

/// What is said of the `tensor` that overflowed.
std::string overflow_text(const std::string& tensor, const ConvertRequest& request) {
  if (request.dtype)
    return fmt::format("tensor '{}': values overflow {} ({} clips them)", escape(tensor),
                       dtype_name(*request.dtype), field("saturate"));
  return fmt::format("tensor '{}': values are too large for the scales of {}", escape(tensor),
                     request.blocks.empty() ? "float" : request.blocks);
}

/// Whether the output is a file of llama.cpp made of a model of transformers.
bool becomes_llama_cpp(const store::Checkpoint& checkpoint,
                       const std::optional<store::ModelConfig>& config,
                       const store::WeightsWriter& writer, const ConvertRequest& request,
                       bool to_file) {
  const bool wanted = request.names == NameStyle::kLlamaCpp;
  if (!wanted && request.names != NameStyle::kUsual) return false;
  const bool gguf = to_file && writer.name == std::string_view("gguf");
  if (wanted && !gguf)
    throw UsageError(fmt::format("{} gguf needs a .gguf file as output", field("names")));
  const bool own_names = store::has_gguf_names(checkpoint);
  if (wanted && (own_names || !config))
    throw InputError(checkpoint.path(),
                     fmt::format("{}, expected a model of transformers with its config.json",
                                 own_names ? "a file of llama.cpp" : "no config.json"));
  return gguf && !own_names && (wanted || has_llama_cpp_architecture(config));
}

/// The blocks that a file of llama.cpp gets that is one already; nullptr for none.
const BlockFormat* blocks_of_request(const store::Checkpoint& checkpoint,
                                     const store::WeightsWriter& writer,
                                     const ConvertRequest& request) {
  if (request.blocks.empty()) return nullptr;
  if (writer.name != std::string_view("gguf") || !store::has_gguf_names(checkpoint))
    throw UsageError(fmt::format("{} {}: only a .gguf file with llama.cpp's names has such blocks",
                                 field("dtype"), request.blocks));
  store::check_whole_gguf(checkpoint);
  return find_block_format(request.blocks);
}

ConvertResult convert_to_llama_cpp(const store::Checkpoint& checkpoint,
                                   const store::ModelConfig& config, const std::string& out,
                                   const ConvertRequest& request, ConvertResult result) {
  LlamaCppModel model(checkpoint, config,
                      {.dtype = request.dtype,
                       .blocks = find_block_format(request.blocks),
                       .overflow = request.overflow});
  store::OutputWeights weights = model.weights(result.notes);
  check_types(weights, checkpoint.path());
  const store::Metadata markers = store::markers_of(checkpoint);
  for (const auto& [key, value] : markers) store::set_metadata(weights.metadata, key, value);
  result.tensors = weights.tensors.size() + weights.opaque.size();
  result.converted = model.converted();
  result.renamed = result.tensors;
  result.files = 1;
  store::WriteOptions options = request.write;
  options.input = checkpoint.path();
  options.verify = [&](const std::string& staged) {
    if (const std::string& tensor = model.overflow().first(); !tensor.empty())
      throw InputError(checkpoint.path(), overflow_text(tensor, request));
    model.verify(staged);
  };
  store::write_marked_file(out, weights, {}, options);
  return result;
}

}  // namespace

std::string left_out_note(const std::string& name) {
  std::string note = fmt::format("'{}' of the input is left out", escape(name));
  if (name != model::kTrainingStateName) return note;
  return note + ", and with it the record of the training, whose rate mlm-correct reads";
}

ConvertResult convert_checkpoint(const std::string& in, const std::string& out,
                                 const ConvertRequest& request) {
  check_request(out, request);
  const bool to_file = store::writer_for_path(out) != nullptr;
  const bool decodes = request.dtype || !request.blocks.empty();
  const store::Checkpoint checkpoint =
      decodes ? store::open_decoded(in) : store::open_checkpoint(in);
  const store::WeightsWriter& writer = target_of(checkpoint, out, request);
  if (request.dtype && !writer.holds(*request.dtype)) {
    throw UsageError(fmt::format("{} {}: {} has no such type", field("dtype"),
                                 dtype_name(*request.dtype), writer.name));
  }
  ConvertResult result;
  result.notes = checkpoint.notes();
  const auto config = store::find_config(checkpoint);
  if (becomes_llama_cpp(checkpoint, config, writer, request, to_file))
    return convert_to_llama_cpp(
        checkpoint, checkpoint.is_decoded() ? store::without_quantization(*config) : *config, out,
        request, std::move(result));
  const BlockFormat* blocks = blocks_of_request(checkpoint, writer, request);
  const NewNames new_names = names_for(checkpoint, config, request.names, writer);
  const store::NameMap& names = new_names.plan.names;
  result.notes.insert(result.notes.end(), new_names.plan.notes.begin(), new_names.plan.notes.end());
  result.unknown = new_names.plan.unknown;
  if (request.strict && !result.unknown.empty()) return result;
  const store::Metadata markers = store::markers_of(checkpoint);
  bool sorted = true;
  store::OutputWeights all = one_file(checkpoint, sorted, result.notes);
  all.writer = writer.name;
  leave_out(all, new_names.plan.left_out);
  take_made(checkpoint, new_names.made, all);
  settle_metadata(all, markers, config, result.notes);
  settle_opaque(all, checkpoint, request.skip_opaque, result.notes);
  Values values(checkpoint, config, request, names, new_names.made);
  for (store::OutputTensor& tensor : all.tensors) {
    if (values.settle(tensor)) ++result.converted;
  }
  if (request.dtype) set_file_type(all, *request.dtype, in, result.notes);
  if (blocks != nullptr)
    result.converted +=
        quantise_llama_cpp(checkpoint, *blocks, all, values.overflow(), result.notes);
  const std::uint64_t renamed = apply_names(all, names);
  result.renamed = new_names.made.empty() ? renamed : new_names.made.size();
  settle_aliases(all, config, result.notes);
  check_types(all, in);
  result.tensors = all.tensors.size() + all.opaque.size();
  store::WriteOptions options = request.write;
  options.input = in;
  options.verify = [&](const std::string&) {
    const std::string& tensor = values.overflow().first();
    if (tensor.empty()) return;
    throw InputError(in, overflow_text(tensor, request));
  };
  const store::TensorOrder order =
      sorted ? store::TensorOrder::kReference : store::TensorOrder::kAsGiven;
  std::vector<store::OutputWeights> shards =
      store::split_into_shards(std::move(all), request.shard_bytes, order);
  for (store::OutputWeights& shard : shards) order_aliases(shard);
  // A bundle keeps its prefix, which other files of the folder may name.
  if (checkpoint.bundle() && !writer.data.empty()) shards[0].name = checkpoint.index_name();
  result.files = shards.size();
  const store::Metadata outside = writer.has_metadata ? store::Metadata{} : markers;
  if (to_file) {
    if (checkpoint.is_folder() && exists(join(checkpoint.folder(), model::kTrainingStateName)))
      result.notes.push_back(left_out_note(model::kTrainingStateName));
    store::write_marked_file(out, shards[0], outside, options);
    return result;
  }
  std::vector<text::VocabularyText> tokenizer;
  if (!new_names.made.empty()) tokenizer = tokenizer_files(checkpoint, result.notes);
  ConvertedFolder folder(checkpoint, new_names.config, tokenizer, request.dtype, outside,
                         request.write.follow_links);
  store::write_checkpoint_folder(out, shards, folder.files(shards, result.notes), options);
  return result;
}

}  // namespace masque::surgery
