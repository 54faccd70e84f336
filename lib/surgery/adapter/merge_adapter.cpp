#include "surgery/adapter/merge_adapter.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/string/name_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/regex.hpp"
#include "base/string/split.hpp"
#include "base/thread/parallel.hpp"
#include "model/family_names.hpp"
#include "store/config.hpp"
#include "store/names/scaled_weights.hpp"
#include "surgery/edit/edit_report.hpp"
#include "surgery/edit/head.hpp"
#include "surgery/rows/new_rows.hpp"
#include "surgery/rows/row_map.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

// adapter_config.json of PEFT.

/// What adapter_config.json says of a LoRA adapter. Every key is used, changes nothing, is refused,
/// or unknown.
class AdapterConfig {
 public:
  /// Reads the adapter_config.json of `folder`. Throws InputError if there is none, if it is of
  /// another kind than LoRA, and for keys with values that change what the adapter computes.
  explicit AdapterConfig(const std::string& folder);

  /// What the product of the pair of `module` ("model.layers.0.self_attn.q_proj"), whose rank is
  /// `rank`, is multiplied by. Throws InputError if the config says another rank.
  double scale(const std::string& module, std::uint64_t rank) const;
  /// Throws InputError if PEFT leaves the tensors of `module` out, as exclude_modules,
  /// modules_to_save, target_modules or layers_to_transform say.
  void check_target(const std::string& module) const;
  /// Whether modules_to_save gives `module` values of its own, next to those of the base.
  bool saves(const std::string& module) const;
  /// ensure_weight_tying: what is tied to a module of modules_to_save gets its values, too.
  bool keeps_ties() const { return config_.flag("ensure_weight_tying").value_or(false); }
  /// fan_in_fan_out: weights are (in, out), where their shape does not say.
  bool fan_in_fan_out() const { return fan_in_fan_out_; }
  /// Keys that are not known.
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  struct Pattern {
    std::unique_ptr<Regex> modules;
    double value = 0;
  };
  std::vector<Pattern> patterns(const std::string& name) const;
  static double value_of(const std::vector<Pattern>& patterns, const std::string& module,
                         double fallback);
  bool matches(const std::string& key, const std::string& pattern, const std::string& name) const;
  bool names_module(const std::string& key, const std::string& module) const;
  bool has_layer(const std::string& module) const;

  store::ModelConfig config_;
  JsonValue root_;
  double rank_ = 8, alpha_ = 8;
  bool use_rslora_ = false, fan_in_fan_out_ = false;
  std::vector<Pattern> ranks_, alphas_;
  std::vector<std::string> unknown_;
};

using store::kAdapterConfig;

/// Keys whose values change nothing for the sum of weight and product: what training needed, names.
constexpr std::string_view kHarmless =
    "auto_mapping base_model_name_or_path corda_config eva_config inference_mode lora_dropout "
    "lora_ga_config megatron_core peft_version qalora_group_size revision runtime_config task_type "
    "bias";
/// Keys that stand for another computation if they have a value other than null, false, [] or {}.
constexpr std::string_view kOtherwise =
    "alora_invocation_tokens arrow_config kasa_config layer_replication loftq_config lora_bias "
    "megatron_config monteclora_config target_parameters trainable_token_indices use_bdlora "
    "use_dora use_qalora velora_config";
/// Initial values that leave the base as it is. Others (pissa, olora, …) change it first.
constexpr std::string_view kInits = "true false gaussian eva orthogonal";
constexpr std::string_view kUsed =
    "r lora_alpha rank_pattern alpha_pattern use_rslora fan_in_fan_out peft_type "
    "init_lora_weights ensure_weight_tying exclude_modules layers_pattern layers_to_transform "
    "modules_to_save target_modules";

bool is_off(const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::kNull: return true;
    case JsonKind::kArray: return value.items.empty();
    case JsonKind::kObject: return value.members.empty();
    default: return value.text == "false";
  }
}

store::ModelConfig read_config(const std::string& folder) {
  const std::string path = join(folder, std::string(kAdapterConfig));
  if (!exists(path))
    throw InputError(folder, fmt::format("no {}, expected a PEFT adapter", kAdapterConfig));
  return store::ModelConfig::read(path);
}

AdapterConfig::AdapterConfig(const std::string& folder) : config_(read_config(folder)) {
  const std::string type = config_.string("peft_type").value_or("");
  if (type != "LORA") {
    throw InputError(config_.path(), fmt::format("peft_type is {}, expected \"LORA\"",
                                                 type.empty() ? "absent" : quote_json(type)));
  }
  root_ = parse_json_file(config_.text(), config_.path());
  for (const JsonMember& member : root_.members) {
    const std::string& name = member.name;
    const JsonValue& value = member.value;
    if (has_word("r lora_alpha", name) && value.is(JsonKind::kNull))
      throw InputError(config_.path(), fmt::format("{} is null, expected a number", name));
    const bool other_start =
        name == "init_lora_weights" && !value.is(JsonKind::kNull) && !has_word(kInits, value.text);
    if (other_start || (has_word(kOtherwise, name) && !is_off(value))) {
      throw InputError(
          config_.path(),
          fmt::format("{} is {}, expected {}: such adapters cannot be merged", name,
                      escape(config_.spelling(name).substr(0, 60)),
                      other_start ? "true, false, gaussian, eva or orthogonal" : "no value"));
    }
    if (!has_word(kUsed, name) && !has_word(kHarmless, name) && !has_word(kOtherwise, name))
      unknown_.push_back(name);
  }
  rank_ = config_.number("r").value_or(8);
  alpha_ = config_.number("lora_alpha").value_or(8);
  if (!std::isfinite(alpha_))
    throw InputError(config_.path(), "lora_alpha is not finite, expected a number");
  use_rslora_ = config_.flag("use_rslora").value_or(false);
  fan_in_fan_out_ = config_.flag("fan_in_fan_out").value_or(false);
  ranks_ = patterns("rank_pattern");
  alphas_ = patterns("alpha_pattern");
}

std::vector<AdapterConfig::Pattern> AdapterConfig::patterns(const std::string& name) const {
  std::vector<Pattern> found;
  if (!config_.has(name)) return found;
  for (const JsonMember& member : root_.find(name)->members) {
    const auto value = member.value.number();
    if (!value || !std::isfinite(*value)) {
      throw InputError(config_.path(), fmt::format("{}: '{}' has no number, expected one", name,
                                                   escape(member.name)));
    }
    const auto refuse = [path = config_.path(), name, key = member.name](const std::string& why) {
      throw InputError(path, fmt::format("{}: '{}': {}", name, escape(key), why));
    };
    // As PEFT matches them: the whole name of a module, or its end after a dot.
    found.push_back({std::make_unique<Regex>(fmt::format("\\A(?:.*\\.)?(?:{})\\z", member.name),
                                             RegexDialect::kOniguruma, refuse),
                     *value});
  }
  return found;
}

double AdapterConfig::value_of(const std::vector<Pattern>& patterns, const std::string& module,
                               double fallback) {
  for (const Pattern& pattern : patterns) {
    if (RegexSearch(*pattern.modules, module).find(0)) return pattern.value;
  }
  return fallback;
}

double AdapterConfig::scale(const std::string& module, std::uint64_t rank) const {
  const double expected = value_of(ranks_, module, rank_);
  if (expected != static_cast<double>(rank)) {
    throw InputError(config_.path(), fmt::format("rank of '{}' is {}, expected {}, that of its "
                                                 "tensors (r, rank_pattern)",
                                                 escape(module), expected, rank));
  }
  const double alpha = value_of(alphas_, module, alpha_);
  return alpha / (use_rslora_ ? std::sqrt(expected) : expected);
}

/// Whether `name` as a whole fits the expression `pattern` of the key `key`, as Python's fullmatch.
bool AdapterConfig::matches(const std::string& key, const std::string& pattern,
                            const std::string& name) const {
  const auto refuse = [&](const std::string& why) {
    throw InputError(config_.path(), fmt::format("{}: '{}': {}", key, escape(pattern), why));
  };
  const Regex whole(fmt::format("\\A(?:{})\\z", pattern), RegexDialect::kOniguruma, refuse);
  return RegexSearch(whole, name).find(0);
}

/// Whether the key `key`, an expression or a list of names and their ends, names `module`.
bool AdapterConfig::names_module(const std::string& key, const std::string& module) const {
  const JsonValue& value = *root_.find(key);
  if (value.is(JsonKind::kString))
    return value.text == "all-linear" || matches(key, value.text, module);
  return std::ranges::any_of(value.items, [&](const JsonValue& item) {
    return module == item.text || module.ends_with("." + item.text);
  });
}

bool AdapterConfig::saves(const std::string& module) const {
  if (!config_.has("modules_to_save")) return false;
  return std::ranges::any_of(root_.find("modules_to_save")->items,
                             [&](const JsonValue& item) { return module.ends_with(item.text); });
}

/// Whether layers_to_transform has the layer of `module`. As in PEFT, its number is the first one
/// after two names, or after one that layers_pattern names.
bool AdapterConfig::has_layer(const std::string& module) const {
  const JsonValue& layers = *root_.find("layers_to_transform");
  const JsonValue* patterns =
      config_.has("layers_pattern") ? root_.find("layers_pattern") : nullptr;
  const bool any = patterns == nullptr || is_off(*patterns) ||
                   (patterns->is(JsonKind::kString) && patterns->text.empty());
  const std::vector<std::string_view> parts = split(module, '.');
  std::optional<std::uint64_t> layer;
  for (std::size_t i = 1; i + 1 < parts.size() && !layer; ++i) {
    const auto number = parse_unsigned(std::string(parts[i]));
    if (!number) continue;
    const std::string before(parts[i - 1]);
    const auto fits = [&](const JsonValue& item) {
      return matches("layers_pattern", item.text, before);
    };
    const bool named = any ? i > 1
                       : patterns->is(JsonKind::kString)
                           ? fits(*patterns)
                           : std::ranges::any_of(patterns->items, fits);
    if (named) layer = number;
  }
  const auto is_layer = [&](const JsonValue& item) { return layer && item.integer() == layer; };
  return layers.is(JsonKind::kArray) ? std::ranges::any_of(layers.items, is_layer)
                                     : is_layer(layers);
}

void AdapterConfig::check_target(const std::string& module) const {
  const auto given = [&](const char* key) {
    const JsonValue* value = root_.find(key);
    return value != nullptr && !is_off(*value) &&
           !(value->is(JsonKind::kString) && value->text.empty());
  };
  const char* key = nullptr;
  if (given("exclude_modules") && names_module("exclude_modules", module)) {
    key = "exclude_modules";
  } else if (given("modules_to_save") &&
             std::ranges::any_of(root_.find("modules_to_save")->items, [&](const JsonValue& item) {
               return matches("modules_to_save", fmt::format("(?:.*\\.)?{}(?:\\..*)?", item.text),
                              module);
             })) {
    key = "modules_to_save";
  } else if (given("target_modules") && !names_module("target_modules", module)) {
    key = "target_modules";
  } else if (given("layers_to_transform") && !has_layer(module)) {
    key = "layers_to_transform";
  }
  if (key == nullptr) return;
  throw InputError(config_.path(),
                   fmt::format("{} leaves out '{}', of which the adapter has tensors, expected "
                               "tensors of other modules alone",
                               key, escape(module)));
}

// The tensors of an adapter.

constexpr std::string_view kWrapper = "base_model.model.";

/// A matrix of an adapter.
struct LowRank {
  std::uint64_t rows = 0, columns = 0;
  std::vector<double> values;  ///< row by row
};

/// The two matrices of a module, and how its weight is changed.
struct Pair {
  const store::TensorInfo* a = nullptr;
  const store::TensorInfo* b = nullptr;
  bool embedding = false;  ///< a table, whose A has a column for each row of it
};

store::Checkpoint open_adapter(const std::string& folder) {
  for (const char* name : {"adapter_model.safetensors", "adapter_model.bin"}) {
    const std::string path = join(folder, name);
    if (exists(path)) return store::open_checkpoint(path);
  }
  throw InputError(folder, "no adapter_model.safetensors, expected a PEFT adapter");
}

LowRank read_matrix(const store::Checkpoint& adapter, const store::TensorInfo& tensor) {
  if (tensor.shape.size() != 2 || !is_float(tensor.dtype)) {
    throw InputError(
        adapter.path(),
        fmt::format("'{}' is {} {}, expected a matrix of floating-point numbers",
                    escape(tensor.name), dtype_name(tensor.dtype), shape_text(tensor.shape)));
  }
  LowRank matrix{tensor.shape[0], tensor.shape[1], {}};
  std::vector<std::byte> bytes(tensor.bytes());
  adapter.read(tensor, 0, bytes);
  matrix.values.resize(tensor.elements());
  to_double(tensor.dtype, bytes, matrix.values);
  return matrix;
}

/// The tensors of a checkpoint by names without the base prefix of their family.
class BaseTensors {
 public:
  explicit BaseTensors(const store::Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    for (const store::TensorInfo& tensor : checkpoint.tensors())
      by_name_.emplace(model::canonical_name(tensor.name), &tensor);
  }

  /// The tensor that an adapter calls `name`. Throws InputError if there is none.
  const store::TensorInfo& get(const std::string& name, const std::string& of) const {
    if (const store::TensorInfo* tensor = checkpoint_.find(name)) return *tensor;
    const auto found = by_name_.find(model::canonical_name(name));
    if (found != by_name_.end()) return *found->second;
    throw InputError(checkpoint_.path(), fmt::format("no tensor '{}', expected one for '{}' of the "
                                                     "adapter",
                                                     escape(name), escape(of)));
  }

 private:
  const store::Checkpoint& checkpoint_;
  std::map<std::string, const store::TensorInfo*> by_name_;
};

/// Whether a family keeps a square matrix as (in, out).
bool is_in_out(const std::optional<store::ModelConfig>& config, const std::string& name,
               bool fallback) {
  const auto family = config ? model::family_names_of(*config) : nullptr;
  if (family == nullptr) return fallback;
  return std::ranges::any_of(family->in_out.tensors, [&](const std::string& pattern) {
    // "~h.{x}.attn.c_attn.weight": what is after the number says which it is.
    const std::size_t number = pattern.rfind('}');
    const std::size_t begin = pattern.starts_with('~') ? 1 : 0;
    return name.ends_with(
        std::string_view(pattern).substr(number == std::string::npos ? begin : number + 1));
  });
}

class Merger {
 public:
  Merger(EditedCheckpoint& base, const std::string& folder)
      : base_(base), tensors_(base.checkpoint), config_(folder), adapter_(open_adapter(folder)) {}

  MergeReport merge() {
    for (const store::TensorInfo& tensor : adapter_.tensors()) sort(tensor);
    for (const store::OpaqueTensor& tensor : adapter_.opaque())
      static_cast<void>(adapter_.get(tensor.name));  // throws, naming its type
    check_copies();
    for (const auto& [module, pair] : pairs_) add(module, pair);
    for (const std::string& key : config_.unknown())
      report_.notes.push_back(
          fmt::format("unknown key of adapter_config.json is not used: {}", escape(key)));
    if (pairs_.empty() && report_.replaced == 0)
      throw InputError(adapter_.path(), "no tensors of an adapter, expected pairs lora_A, lora_B");
    return std::move(report_);
  }

 private:
  /// Finds out what a tensor of the adapter is for.
  void sort(const store::TensorInfo& tensor) {
    std::string_view name = tensor.name;
    if (name.starts_with(kWrapper)) name.remove_prefix(kWrapper.size());
    for (const auto& [ending, b, embedding] :
         {std::tuple<std::string_view, bool, bool>{".lora_A.weight", false, false},
          {".lora_B.weight", true, false},
          {".lora_embedding_A", false, true},
          {".lora_embedding_B", true, true}}) {
      if (!name.ends_with(ending)) continue;
      const std::string module(name.substr(0, name.size() - ending.size()));
      config_.check_target(module);
      Pair& pair = pairs_[module];
      (b ? pair.b : pair.a) = &tensor;
      pair.embedding = embedding;
      return;
    }
    if (name.find("lora_") != std::string_view::npos ||
        name.find("trainable_tokens") != std::string_view::npos) {
      throw InputError(adapter_.path(),
                       fmt::format("'{}': expected lora_A.weight and lora_B.weight alone: such "
                                   "adapters cannot be merged",
                                   escape(tensor.name)));
    }
    replace(tensor, std::string(name));
  }

  /// A tensor that the adapter has whole.
  void replace(const store::TensorInfo& tensor, std::string name) {
    bool base_layer = false;
    for (const std::string_view part : {".base_layer.", ".modules_to_save."}) {
      const std::size_t at = name.find(part);
      if (at == std::string::npos) continue;
      if (part == ".base_layer.") {
        base_layer = true;
        config_.check_target(name.substr(0, at));
      }
      name.replace(at, part.size(), ".");
    }
    const store::TensorInfo& own = tensors_.get(name, tensor.name);
    if (own.shape != tensor.shape) {
      throw InputError(
          adapter_.path(),
          fmt::format("'{}': shape {}, expected {} of the base's '{}'", escape(tensor.name),
                      shape_text(tensor.shape), shape_text(own.shape), escape(own.name)));
    }
    base_.edit.replace(own.name, own.shape, whole_source(tensor, own.dtype));
    ++report_.replaced;
    const bool is_copy = !base_layer && config_.saves(name.substr(0, name.rfind('.')));
    if (is_copy && !config_.keeps_ties() && is_tied_table(own)) untie(tensor);
  }

  /// Whether `tensor` of the base is the word table, and its head is one with it.
  bool is_tied_table(const store::TensorInfo& tensor) {
    if (!table_) {
      table_ = std::make_unique<EmbeddingTable>();
      // A base of an unknown family has no table that is known to be tied.
      static_cast<void>(input_error_message(
          [&] { *table_ = find_embedding_table(base_.checkpoint, base_.config, std::nullopt); }));
    }
    const bool tied = table_->head == HeadState::kTied || table_->head == HeadState::kCopy ||
                      (table_->head == HeadState::kUnknown && table_->family != nullptr);
    return tied && table_->input == &tensor;
  }

  /// PEFT gives only the table other values, and the head, which is tied to it, keeps the old ones.
  void untie(const store::TensorInfo& tensor) {
    const auto problem = input_error_message([&] {
      check_one_table(base_.checkpoint, *table_);
      check_can_untie(base_.checkpoint, *table_);
    });
    if (problem) {
      throw InputError(
          adapter_.path(),
          fmt::format("'{}' (modules_to_save) replaces the word table, and PEFT keeps the old one "
                      "for the head that is tied to it: the base {} has no place for both",
                      escape(tensor.name), escape(base_.checkpoint.path())));
    }
    untie_head(base_.edit, *table_, report_.notes);
    untied_ = true;
  }

  /// Second names that an untied head needs have the base's values.
  void check_copies() const {
    if (!untied_) return;
    for (const auto& [name, source] : table_->missing_copies) {
      if (base_.edit.replacement(source) == nullptr) continue;
      throw InputError(adapter_.path(),
                       fmt::format("has '{}' and the word table to which the head is tied, "
                                   "expected one of them",
                                   escape(source)));
    }
  }

  /// The values of `tensor` of the adapter in the base's type.
  store::Source whole_source(const store::TensorInfo& tensor, DType to) const {
    if (!is_float(tensor.dtype) || !can_encode(to)) {
      throw InputError(adapter_.path(), fmt::format("'{}' is {}, expected a floating-point type",
                                                    escape(tensor.name), dtype_name(tensor.dtype)));
    }
    store::Computed source;
    source.fill = [this, &tensor, to](std::uint64_t offset, MutableBytes out) {
      const std::size_t width = dtype_bits(to) / 8;
      const std::size_t from = dtype_bits(tensor.dtype) / 8;
      std::vector<double> values(out.size() / width);
      std::vector<std::byte> bytes(values.size() * from);
      adapter_.read(tensor, offset / width * from, bytes);
      to_double(tensor.dtype, bytes, values);
      from_double(to, values, out);
      to_double(to, out, values);
      if (std::ranges::all_of(values, [](double x) { return std::isfinite(x); })) return;
      throw InputError(adapter_.path(), fmt::format("'{}': a value is not finite in {}, expected "
                                                    "finite numbers",
                                                    escape(tensor.name), dtype_name(to)));
    };
    return source;
  }

  void add(const std::string& module, const Pair& pair) {
    if (pair.a == nullptr || pair.b == nullptr) {
      throw InputError(adapter_.path(), fmt::format("'{}' has one of lora_A and lora_B, expected "
                                                    "both",
                                                    escape(module)));
    }
    const auto a = std::make_shared<LowRank>(read_matrix(adapter_, *pair.a));
    const auto b = std::make_shared<LowRank>(read_matrix(adapter_, *pair.b));
    const store::TensorInfo& weight = tensors_.get(module + ".weight", pair.a->name);
    store::check_has_no_scale(base_.checkpoint, base_.config, weight);
    const Shape out_in{b->rows, a->columns};
    const Shape in_out{a->columns, b->rows};
    bool transposed = pair.embedding;
    if (!pair.embedding && weight.shape == in_out)
      transposed =
          in_out != out_in || is_in_out(base_.config, weight.name, config_.fan_in_fan_out());
    if (a->rows != b->columns || weight.shape != (transposed ? in_out : out_in)) {
      throw InputError(
          adapter_.path(),
          fmt::format("'{}' {} and '{}' {} do not fit the base's '{}' {}", escape(pair.a->name),
                      shape_text(pair.a->shape), escape(pair.b->name), shape_text(pair.b->shape),
                      escape(weight.name), shape_text(weight.shape)));
    }
    const double scale = config_.scale(module, a->rows);
    if (is_tied_table(weight) && table_->head != HeadState::kCopy) {
      report_.notes.push_back(
          fmt::format("'{}' changes, and with it the output head, which is tied to it: as "
                      "merge_and_unload, but while the adapter was trained the head kept the old "
                      "table",
                      escape(weight.name)));
    }
    base_.edit.replace(
        weight.name, weight.shape,
        new_rows_source(
            base_.checkpoint, weight,
            [this, a, b, scale, transposed, &weight](std::uint64_t row, std::span<double> values) {
              add_product(*a, *b, transposed, row, values);
              const std::vector<double> own = read_row(base_.checkpoint, weight, row);
              for (std::size_t i = 0; i < values.size(); ++i)
                values[i] = own[i] + scale * values[i];
              return kComputedRow;
            }));
    ++report_.merged;
  }

  /// `values` ← row `row` of B · A, or of its transpose.
  static void add_product(const LowRank& a, const LowRank& b, bool transposed, std::uint64_t row,
                          std::span<double> values) {
    std::ranges::fill(values, 0);
    for (std::uint64_t k = 0; k < a.rows; ++k) {
      const double factor =
          transposed ? a.values[k * a.columns + row] : b.values[row * b.columns + k];
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] +=
            factor * (transposed ? b.values[i * b.columns + k] : a.values[k * a.columns + i]);
      }
    }
  }

  EditedCheckpoint& base_;
  BaseTensors tensors_;
  AdapterConfig config_;
  store::Checkpoint adapter_;
  std::unique_ptr<EmbeddingTable> table_;  ///< of the base, once it was asked for
  bool untied_ = false;
  std::map<std::string, Pair> pairs_;  ///< by module
  MergeReport report_;
};

/// The base may lie in the folder of its adapter, which is no part of the result then. Throws
/// InputError for another adapter there.
void leave_out_adapter(EditedCheckpoint& base, const std::string& adapter) {
  if (!base.checkpoint.has_adapter()) return;
  std::error_code ignored;
  if (!std::filesystem::equivalent(base.checkpoint.folder(), adapter, ignored))
    store::refuse_adapter_beside(base.checkpoint);
  if (!base.checkpoint.is_folder()) return;
  for (const char* name : {kAdapterConfig, "adapter_model.safetensors", "adapter_model.bin"})
    base.edit.drop_file(name);
}

}  // namespace

MergeReport merge_adapter(const std::string& base, const std::string& adapter,
                          const std::string& out, const store::WriteOptions& options) {
  EditRequest request;
  request.write = options;
  EditedCheckpoint edited(base, request);
  leave_out_adapter(edited, adapter);
  Merger merger(edited, adapter);
  MergeReport report = merger.merge();
  EditReport written;
  finish_edit(edited, out, request, written);
  std::erase(written.notes, store::kAdapterNote);
  report.notes.insert(report.notes.end(), written.notes.begin(), written.notes.end());
  return report;
}

}  // namespace masque::surgery
