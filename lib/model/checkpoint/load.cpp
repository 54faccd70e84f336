#include "model/checkpoint/load.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "model/checkpoint/prefix_hint.hpp"
#include "model/checkpoint/text_head.hpp"
#include "model/checkpoint/unused_tensors.hpp"
#include "model/family.hpp"
#include "model/known_keys.hpp"
#include "model/start_value.hpp"
#include "store/checkpoint.hpp"
#include "store/gguf/gguf_model.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/names/scaled_weights.hpp"
#include "store/quantized/decoded_checkpoint.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/tf_names.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "tensor/convert.hpp"

namespace masque::model {

namespace {

// Names and shapes.

/// The tensor of `checkpoint` that its metadata call the same as `name`, as safetensors' save_model
/// writes them; nullptr if there is none.
const store::TensorInfo* alias_in_metadata(const store::Checkpoint& checkpoint,
                                           const std::string& name) {
  for (const store::WeightsFile& file : checkpoint.files()) {
    const std::string* other = store::find_metadata(file.content.metadata, name);
    if (other == nullptr) continue;
    if (const store::TensorInfo* info = checkpoint.find(*other)) return info;
  }
  return nullptr;
}

class Finder {
 public:
  Finder(const ModelPlan& model, const store::Checkpoint& checkpoint,
         const store::NamedTensors& named)
      : model_(model), checkpoint_(checkpoint), named_(named) {
    plan_.design = model.design;
    plan_.layers = count_layers(plan_.design);
    choose_prefix();
  }

  LoadPlan run() && {
    for (const TensorRow& row : model_.rows) add_rows(row);
    add_head();
    for (const ComputedTensor& tensor : model_.computed) check_computed(tensor);
    list_unused();
    return std::move(plan_);
  }

 private:
  void choose_prefix();
  void add_rows(const TensorRow& row);
  void add_tensor(PlacedTensor tensor);
  void add_head();
  void add_decoder(const HeadPlan& head);
  void list_unused();
  void check_scales() const;
  void check_computed(const ComputedTensor& tensor) const;
  const store::TensorInfo* tied_table();

  std::string full_name(std::string_view name) const;
  const store::TensorInfo* find(std::string_view names);
  const store::TensorInfo* find_one(std::string_view name) const;
  void use(std::string_view name, const store::TensorInfo& info);

  const ModelPlan& model_;
  const store::Checkpoint& checkpoint_;
  const store::NamedTensors& named_;
  std::string prefix_;
  LoadPlan plan_;
  std::unordered_set<std::string> used_;
};

std::string Finder::full_name(std::string_view name) const {
  if (!name.starts_with('~')) return std::string(name);
  return prefix_ + std::string(name.substr(1));
}

const store::TensorInfo* Finder::find_one(std::string_view name) const {
  const std::string full = full_name(name);
  if (const store::TensorInfo* info = named_.find(full)) return info;
  if (const std::string old = old_norm_name(full); !old.empty()) {
    if (const store::TensorInfo* info = named_.find(old)) return info;
  }
  return named_.tf() == nullptr ? alias_in_metadata(checkpoint_, full) : nullptr;
}

/// Marks `info`, found as `name`, as used. Several of llama.cpp's models' have one name in the
/// file.
void Finder::use(std::string_view name, const store::TensorInfo& info) {
  used_.insert(named_.made() != nullptr ? full_name(name) : info.name);
}

/// The first spelling that is there; the others count as used too.
const store::TensorInfo* Finder::find(std::string_view names) {
  const store::TensorInfo* found = nullptr;
  for_spellings(names, [&](std::string_view name) {
    const store::TensorInfo* info = find_one(name);
    if (info == nullptr) return;
    use(name, *info);
    if (found == nullptr) found = info;
  });
  return found;
}

void Finder::choose_prefix() {
  const auto names_words = [](const TensorRow& row) { return row.roles[0] == Role::kWordTable; };
  const auto words = std::ranges::find_if(model_.rows, names_words);
  MASQUE_CHECK(words != model_.rows.end());
  const auto has = [&](const std::string& prefix, const TensorRow& row) {
    prefix_ = prefix;
    bool there = false;
    for (const PlacedTensor& tensor : place_row(plan_.design, row)) {
      for_spellings(tensor.names,
                    [&](std::string_view name) { there = there || find_one(name) != nullptr; });
    }
    return there;
  };
  const auto has_others = [&](const std::string& prefix) {
    return std::ranges::any_of(model_.rows, [&](const auto& row) { return has(prefix, row); });
  };
  // A tied table may be there under its head's name alone. With neither, messages name what the
  // family saves.
  if (has(model_.prefix, *words) || has("", *words)) return;
  if (!has_others(model_.prefix) && !has_others("")) prefix_ = model_.prefix;
}

/// The matrix of a head to which the word table is tied, where the table is missing; marked as
/// used.
const store::TensorInfo* Finder::tied_table() {
  const store::TensorInfo* found = nullptr;
  const auto look = [&](std::string_view names) {
    for_spellings(names, [&](std::string_view name) {
      if (found != nullptr || name.empty()) return;
      found = find_one(name);
      if (found != nullptr) use(name, *found);
    });
  };
  for (const HeadPlan& head : model_.heads) {
    if (head.design.tied) look(head.decoder);
  }
  look(model_.tied_tables);
  return found;
}

void Finder::add_rows(const TensorRow& row) {
  for (PlacedTensor& tensor : place_row(plan_.design, row)) add_tensor(std::move(tensor));
}

/// The tensor as it lies in a file that has rows and columns the other way round.
void transpose(PlacedTensor& tensor) {
  MASQUE_CHECK(tensor.layout == TensorLayout::kOutIn || tensor.layout == TensorLayout::kInOut);
  MASQUE_CHECK(tensor.shape.size() == 2);
  tensor.layout =
      tensor.layout == TensorLayout::kOutIn ? TensorLayout::kInOut : TensorLayout::kOutIn;
  std::swap(tensor.shape[0], tensor.shape[1]);
}

void Finder::add_tensor(PlacedTensor tensor) {
  const std::string& names = tensor.names;
  const store::TensorInfo* info = find(names);
  if (info == nullptr && tensor.parts[0].role == Role::kWordTable) {
    info = tied_table();
  }
  const std::string first = full_name(std::string_view(names).substr(0, names.find('|')));
  if (info != nullptr && named_.is_transposed(*info)) transpose(tensor);
  if (info == nullptr) {
    for_spellings(names, [&](std::string_view name) {
      const std::string own = named_.own_name(full_name(name));
      if (checkpoint_.find_opaque(own) != nullptr)
        static_cast<void>(checkpoint_.get(own));  // throws, naming its type
    });
    const auto own = named_.tf() == nullptr ? std::nullopt : store::tf_name(*named_.tf(), first);
    if (own && own->transposed) transpose(tensor);
    throw InputError(
        checkpoint_.path(),
        fmt::format("no tensor '{}', expected one of shape {} for family {}{}",
                    own ? own->name : first, shape_text(tensor.shape), plan_.design.family,
                    prefix_hint(checkpoint_, model_.prefix, names)));
  }
  const std::string name = escape(info->name);
  if (info->shape != tensor.shape) {
    throw InputError(checkpoint_.path(),
                     fmt::format("{}: shape {}, expected {} by config.json", name,
                                 shape_text(info->shape), shape_text(tensor.shape)));
  }
  if (!is_float(info->dtype)) {
    throw InputError(checkpoint_.path(), fmt::format("{}: type {}, expected a floating-point type",
                                                     name, dtype_name(info->dtype)));
  }
  plan_.tensors.push_back({info, std::move(tensor)});
}

void Finder::add_head() {
  if (model_.headless) {
    plan_.design.head.kind = HeadKind::kNone;
    return;
  }
  for (const HeadPlan& head : model_.heads) {
    bool there = head.evidence.empty();
    if (!there) {
      for_spellings(head.evidence,
                    [&](std::string_view name) { there = there || find_one(name) != nullptr; });
    }
    if (!there) continue;
    plan_.design.head = head.design;
    for (const TensorRow& row : head.rows) add_rows(row);
    add_decoder(head);
    return;
  }
  plan_.design.head.kind = HeadKind::kNone;
  if (model_.heads.empty()) return;
  std::string note = "no ";
  for (const HeadPlan& head : model_.heads) {
    const std::string_view evidence = head.evidence;
    note += fmt::format("{}{} ({})", note.size() > 3 ? " and no " : "", head.what,
                        full_name(evidence.substr(0, evidence.find('|'))));
  }
  plan_.design.missing_head = std::move(note);
}

// As in transformers: a decoder that is in the file and differs from the word table counts,
// whatever config.json says of ties.
void Finder::add_decoder(const HeadPlan& head) {
  if (head.decoder.empty()) return;
  const store::TensorInfo* info = find(head.decoder);
  const store::TensorInfo& words = word_table_of(plan_);
  if (head.design.tied) {
    if (info == nullptr || store::same_values(checkpoint_, *info, words)) return;
    if (head.always_tied) {
      throw InputError(checkpoint_.path(),
                       fmt::format("'{}' differs from the word embeddings, to which config.json "
                                   "ties it, expected no such tensor: its class does not read it",
                                   escape(info->name)));
    }
    plan_.design.head.tied = false;
    plan_.design.notes.push_back(
        fmt::format("'{}' is used as the decoder: it differs from the word embeddings, to which "
                    "config.json ties it",
                    escape(info->name)));
  }
  add_rows({head.decoder, {Role::kDecoder}, Parts::kTensor});
}

/// Quantised weights are refused: their values are only a part of what they mean.
void Finder::check_scales() const {
  for (const TensorPlan& tensor : plan_.tensors)
    store::check_has_no_scale(checkpoint_, std::nullopt, *tensor.info);
}

/// How far a stored number may be from the one that is computed, both at most 1: a few roundings.
double computed_tolerance(DType dtype) { return dtype_bits(dtype) >= 32 ? 1e-4 : 1e-2; }

/// Refuses a table that readers make themselves here, and transformers takes from the file, unless
/// it has the numbers that are made.
void Finder::check_computed(const ComputedTensor& tensor) const {
  const store::TensorInfo* info = find_one(tensor.name);
  if (info == nullptr) return;
  const auto refuse = [&](const std::string& what) {
    throw InputError(checkpoint_.path(),
                     fmt::format("tensor '{}' {}, expected the numbers that family {} computes: "
                                 "others are not supported",
                                 escape(info->name), what, plan_.design.family));
  };
  if (!is_float(info->dtype) || info->shape != tensor.shape) {
    refuse(fmt::format("is {} {} (expected {})", dtype_name(info->dtype), shape_text(info->shape),
                       shape_text(tensor.shape)));
  }
  std::vector<std::byte> bytes(info->bytes());
  checkpoint_.read(*info, 0, bytes);
  std::vector<double> stored(info->elements()), computed(info->elements());
  to_double(info->dtype, bytes, stored);
  fill_start(tensor.start, static_cast<Index>(tensor.shape.back()), {0, tensor.name}, 0, computed);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (std::abs(stored[i] - computed[i]) <= computed_tolerance(info->dtype)) continue;
    refuse(fmt::format("has {} at {}", stored[i], place_text(info->shape, i)));
  }
}

void Finder::list_unused() {
  check_scales();
  UnusedTensors judge(model_, prefix_, plan_.layers, used_);
  std::vector<std::size_t> counts(model_.skipped.size());
  std::size_t optimizer = 0;
  std::vector<std::pair<std::string, const store::TensorInfo*>> all;
  if (const auto* made = named_.made()) {
    for (const auto& [name, info] : *made) all.emplace_back(name, &info);
  } else {
    for (const store::TensorInfo& info : checkpoint_.tensors()) all.emplace_back(info.name, &info);
  }
  for (const auto& [name_of, info_of] : all) {
    const std::string& name = name_of;
    const store::TensorInfo& info = *info_of;
    if (used_.count(name) > 0) continue;
    if (named_.tf() != nullptr && store::is_optimizer_state(checkpoint_, info)) {
      ++optimizer;
      continue;
    }
    const auto ends = [&](const auto& buffer) { return name.ends_with(buffer.ending); };
    if (std::ranges::any_of(model_.buffers, ends)) continue;
    const auto begins = [&](const Skipped& s) { return name.starts_with(s.prefix); };
    const auto skipped = std::ranges::find_if(model_.skipped, begins);
    if (skipped == model_.skipped.end()) {
      judge.check(checkpoint_.path(), name);
      plan_.unused.push_back(name);
    } else {
      ++counts[static_cast<std::size_t>(skipped - model_.skipped.begin())];
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0 || model_.skipped[i].what.empty()) continue;
    plan_.design.notes.push_back(
        fmt::format("{} tensors of {} are ignored", counts[i], model_.skipped[i].what));
  }
  if (auto note = judge.note(plan_.design)) plan_.design.notes.push_back(*std::move(note));
  if (optimizer > 0) {
    plan_.design.notes.push_back(
        fmt::format("{} tensors of the optimizer's state are ignored", optimizer));
  }
}

/// A note where transformers computes with other numbers than are stored: it rounds them to the
/// half type that `config` names. Nothing if they have it already.
std::optional<std::string> rounding_note(const store::ModelConfig& config, const LoadPlan& plan) {
  const char* key = config.has("dtype") ? "dtype" : "torch_dtype";
  const std::string name = config.string(key).value_or("");
  if (name != "bfloat16" && name != "float16") return std::nullopt;
  const DType half = name == "bfloat16" ? DType::kBF16 : DType::kF16;
  const auto others = std::ranges::count_if(
      plan.tensors, [&](const TensorPlan& tensor) { return tensor.info->dtype != half; });
  if (others == 0) return std::nullopt;
  return fmt::format(
      "config.json: {} is {}, but {} of {} tensors have another type: transformers rounds them to "
      "it, here they count as they are stored",
      key, name, others, plan.tensors.size());
}

}  // namespace

std::string place_text(const Shape& shape, std::uint64_t flat) {
  Shape place(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    place[d] = flat % shape[d];
    flat /= shape[d];
  }
  return shape_text(place);
}

std::string old_norm_name(const std::string& name) {
  for (const auto& [now, old] :
       {std::pair<std::string_view, std::string_view>("LayerNorm.weight", "LayerNorm.gamma"),
        {"LayerNorm.bias", "LayerNorm.beta"}}) {
    if (name.ends_with(now)) return name.substr(0, name.size() - now.size()).append(old);
  }
  return {};
}

LoadPlan find_tensors(const ModelPlan& model, const store::Checkpoint& checkpoint,
                      const store::NamedTensors& names) {
  store::refuse_adapter_beside(checkpoint);
  LoadPlan plan = Finder(model, checkpoint, names).run();
  if (checkpoint.is_decoded()) plan.design.notes.push_back(checkpoint.decoded_note());
  return plan;
}

const store::TensorInfo& word_table_of(const LoadPlan& plan) {
  const auto found = std::ranges::find_if(plan.tensors, [](const TensorPlan& tensor) {
    return tensor.placed.parts[0].role == Role::kWordTable;
  });
  return *found->info;
}

void check_bundle_sums(const store::Checkpoint& checkpoint) {
  if (!checkpoint.bundle()) return;
  for (const store::WeightsFile& file : checkpoint.files()) {
    if (const auto broken = check_sums(file.file, file.content)) throw_violation(*broken);
  }
}

namespace {

/// The config of `checkpoint`, with the model_type of the family `wanted`, or of its classes, where
/// it has none and these have several.
store::ModelConfig config_of(const store::Checkpoint& checkpoint, const std::string& path,
                             std::string_view wanted) {
  auto config = store::has_gguf_names(checkpoint) ? store::gguf_config(checkpoint)
                                                  : store::find_config(checkpoint);
  if (config) return with_family_type(*config, wanted);
  std::string missing = store::missing_config(checkpoint);
  if (missing.starts_with("no"))
    missing += ", nor bert_config.json, albert_config.json or electra_config.json";
  throw InputError(path, missing);
}

store::NamedTensors names_of(const store::Checkpoint& checkpoint,
                             const store::ModelConfig& config) {
  return store::has_gguf_names(checkpoint) ? store::NamedTensors::of_llama_cpp(checkpoint)
                                           : store::NamedTensors(checkpoint, config);
}

template <class T>
LoadedModel<T> loaded_of(const LoadPlan& plan, ModelWeights<T> weights, const std::string& path) {
  LoadedModel<T> loaded;
  loaded.weights = std::move(weights);
  loaded.design = plan.design;
  loaded.path = path;
  loaded.unused = plan.unused;
  return loaded;
}

/// Whether the checkpoint has tensors of a decoder, other than a word table, of a model whose base
/// has the `prefix`.
bool has_decoder(const store::Checkpoint& checkpoint, const Family& family,
                 const FamilyConfig& config) {
  if (family.decoder == nullptr) return false;
  const std::string prefix = family.plan(config).prefix;
  const bool llama_cpp = store::has_gguf_names(checkpoint);
  const auto is_of_decoder = [&](const store::TensorInfo& info) {
    if (llama_cpp) return info.name.starts_with("dec.");
    const bool begins =
        info.name.starts_with("decoder.") || info.name.starts_with(prefix + "decoder.");
    return begins && !info.name.ends_with("embed_tokens.weight");
  };
  return std::ranges::any_of(checkpoint.tensors(), is_of_decoder);
}

}  // namespace

template <class T>
LoadedModel<T> load_model(const std::string& path, const LoadOptions& options) {
  const auto shared = std::make_shared<const store::Checkpoint>(store::open_decoded(path));
  const store::Checkpoint& checkpoint = *shared;
  const store::ModelConfig config = config_of(checkpoint, path, options.family);
  const Family& family = choose_family(config, options.family);
  ModelPlan tensors = read_plan(family, FamilyConfig(config));
  const store::NamedTensors names = names_of(checkpoint, config);
  choose_text_head(FamilyConfig(config), names, tensors);
  LoadPlan plan = find_tensors(tensors, checkpoint, names);
  if (auto note = rounding_note(config, plan)) plan.design.notes.push_back(*std::move(note));
  // Comparing them costs little next to reading.
  check_bundle_sums(checkpoint);
  ModelWeights<T> weights = read_tensors<T>(plan, checkpoint, options.later ? shared : nullptr);
  return loaded_of<T>(plan, std::move(weights), path);
}

template <class T>
std::optional<LoadedPair<T>> load_pair(const std::string& path, const LoadOptions& options) {
  const auto shared = std::make_shared<const store::Checkpoint>(store::open_decoded(path));
  const store::Checkpoint& checkpoint = *shared;
  const auto later = options.later ? shared : nullptr;
  const store::ModelConfig config = config_of(checkpoint, path, options.family);
  const Family& family = choose_family(config, options.family);
  const FamilyConfig keys(config);
  if (!has_decoder(checkpoint, family, keys)) return std::nullopt;
  ModelPlan decoder = family.decoder(keys);
  const store::NamedTensors names = names_of(checkpoint, config);
  ModelPlan encoder = read_plan(family, keys);
  // Each part skips the tensors of the other one, which are not ignored.
  for (ModelPlan* plan : {&encoder, &decoder}) {
    for (Skipped& skipped : plan->skipped) skipped.what.clear();
  }
  LoadPlan read = find_tensors(encoder, checkpoint, names);
  LoadPlan written = find_tensors(decoder, checkpoint, names);
  // What both leave over nobody uses; and every note is of the whole checkpoint.
  std::erase_if(written.unused, [&](const std::string& name) {
    return std::ranges::find(read.unused, name) == read.unused.end();
  });
  std::vector<std::string> notes = std::move(read.design.notes);
  LoadPlan all = read;
  all.tensors.insert(all.tensors.end(), written.tensors.begin(), written.tensors.end());
  for (std::string& note : written.design.notes) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  }
  if (auto note = rounding_note(config, all)) notes.push_back(*std::move(note));
  written.design.notes = std::move(notes);
  check_bundle_sums(checkpoint);
  LoadedPair<T> pair;
  const bool shares = &word_table_of(read) == &word_table_of(written);
  pair.encoder = loaded_of<T>(read, read_tensors<T>(read, checkpoint, later), path);
  if (shares) {
    // Read once: it may be a tensor of another type, which is converted.
    std::erase_if(written.tensors, [&](const TensorPlan& tensor) {
      return tensor.placed.parts[0].role == Role::kWordTable;
    });
  }
  ModelWeights<T> weights = read_tensors<T>(written, checkpoint, later);
  if (shares) {
    weights.word_table = pair.encoder.weights.word_table;
    const HeadDesign& head = written.design.head;
    if (head.kind != HeadKind::kNone && head.tied) weights.decoder.weight = weights.word_table;
  }
  pair.decoder = loaded_of<T>(written, std::move(weights), path);
  return pair;
}

bool is_encoder_decoder(const std::string& path, const LoadOptions& options) {
  const store::Checkpoint checkpoint = store::open_decoded(path);
  const store::ModelConfig config = config_of(checkpoint, path, options.family);
  return has_decoder(checkpoint, choose_family(config, options.family), FamilyConfig(config));
}

template LoadedModel<float> load_model(const std::string&, const LoadOptions&);
template LoadedModel<double> load_model(const std::string&, const LoadOptions&);
template std::optional<LoadedPair<float>> load_pair(const std::string&, const LoadOptions&);
template std::optional<LoadedPair<double>> load_pair(const std::string&, const LoadOptions&);

}  // namespace masque::model
