#include "surgery/rows/embedding_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "model/checkpoint/prefix_hint.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/names/scaled_weights.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/tf_names.hpp"
#include "store/tensorflow/tf_plan.hpp"

namespace masque::surgery {

namespace {

bool holds(const store::NamedTensors& names, std::string_view name) {
  return names.find(std::string(name)) != nullptr;
}

bool holds_any(const store::NamedTensors& names, const std::vector<std::string>& any) {
  return std::ranges::any_of(any, [&](const std::string& name) { return holds(names, name); });
}

/// A tensor of the head that can be untied.
bool has_first_head(const store::NamedTensors& names, const model::FamilyNames& family) {
  return holds(names, family.decoder_weight) || holds_any(names, family.decoder_spellings) ||
         holds_any(names, family.head_evidence);
}

bool has_head_tensor(const store::NamedTensors& names, const model::FamilyNames& family) {
  return has_first_head(names, family) || holds_any(names, family.tied_head_evidence);
}

/// The family's table under its prefix, or without it (headless exports).
const store::TensorInfo* table_of(const store::NamedTensors& names,
                                  const model::FamilyNames& family) {
  std::vector<std::string> spellings = family.input_spellings;
  spellings.push_back(family.input_table);
  for (const std::string& prefix : {family.prefix, std::string()}) {
    for (const std::string& name : spellings) {
      const store::TensorInfo* table = names.find(model::with_prefix(name, prefix));
      if (table != nullptr) return table;
    }
  }
  return nullptr;
}

/// How many tensors of a checkpoint with the first layer of `family` are there.
std::size_t known_tensors(const store::NamedTensors& names, const model::FamilyNames& family) {
  return static_cast<std::size_t>(
      std::ranges::count_if(family.tensors, [&](const std::string& tensor) {
        std::string name = model::with_prefix(tensor, family.prefix);
        if (const std::size_t layer = name.find('{'); layer != std::string::npos)
          name.replace(layer, name.find('}') + 1 - layer, "0");
        if (name.ends_with('*')) name.replace(name.size() - 1, 1, "weight");
        return holds(names, name);
      }));
}

/// Without a config: the family whose table is there, with its prefix or with its head. A table
/// without both fits several families, which then do not matter: nothing hangs on it. Of families
/// with one name of the table the one counts that has most of the tensors. Families without a
/// prefix have names that others have, too: they need a config.
const model::FamilyNames* family_by_names(const store::NamedTensors& names) {
  const model::FamilyNames* best = nullptr;
  std::size_t most = 0;
  for (const model::FamilyNames& family : model::family_names()) {
    if (family.prefix.empty()) continue;
    const bool prefixed = holds(names, model::with_prefix(family.input_table, family.prefix));
    if (!prefixed && !(table_of(names, family) && has_head_tensor(names, family))) continue;
    if (best != nullptr &&
        (best->prefix != family.prefix || best->input_table != family.input_table))
      continue;
    const std::size_t known = known_tensors(names, family);
    if (best == nullptr || known > most) {
      best = &family;
      most = known;
    }
  }
  return best;
}

const store::TensorInfo* bare_table(const store::NamedTensors& names) {
  for (const model::FamilyNames& family : model::family_names()) {
    if (const store::TensorInfo* table = table_of(names, family)) return table;
  }
  return nullptr;
}

/// Throws InputError if a table that a family names has no DType.
void refuse_opaque_table(const store::Checkpoint& checkpoint) {
  const auto refuse = [&](const model::FamilyNames& family) {
    for (const std::string& prefix : {family.prefix, std::string()}) {
      const std::string name = model::with_prefix(family.input_table, prefix);
      if (checkpoint.find_opaque(name) != nullptr)
        static_cast<void>(checkpoint.get(name));  // throws, naming its type
    }
  };
  refuse(model::gguf_family());
  for (const model::FamilyNames& family : model::family_names()) refuse(family);
}

void find_head(const store::Checkpoint& checkpoint, const std::optional<store::ModelConfig>& config,
               EmbeddingTable& table) {
  const model::FamilyNames& family = *table.family;
  const store::NamedTensors& names = table.names;
  const bool by_default = table.of_config == nullptr || family.tied_by_default;
  table.config_tied = !config || config->flag(family.tie_field).value_or(by_default);
  table.can_untie = !family.tied_head_differs;
  const auto classes = config ? config->architectures() : std::vector<std::string>();
  const bool named = std::any_of(classes.begin(), classes.end(), [&](const std::string& name) {
    return std::find(family.lm_classes.begin(), family.lm_classes.end(), name) !=
           family.lm_classes.end();
  });
  const bool has_head = family.head_by_config.value_or(has_head_tensor(names, family) || named);
  if (!has_head) {
    // GPT-2's tied head leaves no trace in the weights: a class name alone could show it.
    if (!family.head_by_config && family.head_evidence.empty() && classes.empty()) {
      table.head = HeadState::kUnknown;
      table.decoder_weight = family.decoder_weight;
    }
    return;
  }
  const bool first_head = !family.tied_head_first && has_first_head(names, family);
  if (!first_head && holds_any(names, family.tied_head_evidence)) {
    table.head = HeadState::kTied;
    table.config_tied = true;
    table.can_untie = false;
    return;
  }
  table.decoder_weight = family.decoder_weight;
  const auto spelled = std::ranges::find_if(
      family.decoder_spellings, [&](const std::string& name) { return holds(names, name); });
  if (spelled != family.decoder_spellings.end()) table.decoder_weight = *spelled;
  for (const model::HeadCopy& copy : family.head_copies) {
    if (!holds(names, copy.name) && holds(names, copy.source)) {
      table.missing_copies.emplace_back(copy.name, copy.source);
    }
  }
  const store::TensorInfo* decoder = names.find(table.decoder_weight);
  if (decoder == nullptr) {
    table.head = table.config_tied ? HeadState::kTied : HeadState::kMissing;
  } else {
    table.head = table.config_tied && store::same_values(checkpoint, *decoder, *table.input)
                     ? HeadState::kCopy
                     : HeadState::kOwn;
  }
}

/// Throws InputError if the table of `family` is there under the name of its head alone, as
/// safetensors' save_model may write a tied one.
void refuse_head_name(const store::Checkpoint& checkpoint, const store::NamedTensors& names,
                      const model::FamilyNames& family) {
  std::vector<std::string> heads = family.decoder_spellings;
  heads.push_back(family.decoder_weight);
  const auto found =
      std::ranges::find_if(heads, [&](const std::string& name) { return holds(names, name); });
  if (found == heads.end()) return;
  throw InputError(
      checkpoint.path(),
      fmt::format("the word table is stored under the name of its head: 'ckpt rename {} {} OUTPUT "
                  "{}={}' gives it its own",
                  escape(checkpoint.path()), field("output"), escape(*found),
                  model::with_prefix(family.input_table, family.prefix)));
}

/// Throws the InputError where no table was found: an adapter, names behind a prefix, or others.
[[noreturn]] void refuse_missing_table(const store::Checkpoint& checkpoint,
                                       const std::optional<store::ModelConfig>& config) {
  if (!config && exists(join(checkpoint.folder(), store::kAdapterConfig)))
    throw InputError(checkpoint.path(), store::missing_config(checkpoint));
  std::string hint;
  for (const model::FamilyNames& family : model::family_names()) {
    if (hint.empty()) hint = model::prefix_hint(checkpoint, family.prefix, family.input_table);
  }
  throw InputError(checkpoint.path(),
                   fmt::format("no embedding table of a known family found: name it with {}{}",
                               field("tensor"), hint));
}

/// llama.cpp takes output.weight where it is there, whatever a config says.
void find_gguf_head(const store::Checkpoint& checkpoint, EmbeddingTable& table) {
  const std::string name(table.family->decoder_weight);
  const bool own = checkpoint.find(name) != nullptr || checkpoint.find_opaque(name) != nullptr;
  const store::GgufHead without = store::gguf_head(checkpoint);
  table.config_tied = !own;
  table.can_untie = false;
  table.head = own                                 ? HeadState::kOwn
               : without == store::GgufHead::kNone ? HeadState::kNone
               : without == store::GgufHead::kTied ? HeadState::kTied
                                                   : HeadState::kUnknown;
  if (table.head != HeadState::kNone) table.decoder_weight = name;
}

}  // namespace

void check_can_untie(const store::Checkpoint& checkpoint, const EmbeddingTable& table) {
  store::check_one_gguf(checkpoint);
  if (table.names.tf() != nullptr) {
    throw InputError(
        checkpoint.path(),
        fmt::format(
            "the output head is tied to the input table, and TensorFlow has no name for an untied "
            "head: {} keep changes both, 'ckpt convert {} hf' converts to names that have one",
            field("tied"), field("names")));
  }
  if (table.can_untie) return;
  if (table.family != &model::gguf_family()) {
    throw InputError(checkpoint.path(),
                     fmt::format("the output head is tied to the input table and cannot be untied "
                                 "in this layout: {} keep changes both",
                                 field("tied")));
  }
  throw InputError(
      checkpoint.path(),
      fmt::format(
          "the output head is tied to the input table and cannot be untied in this layout: {} keep "
          "changes both; in the Hugging Face layout (ckpt convert {} hf) it can be untied",
          field("tied"), field("names")));
}

void check_one_table(const store::Checkpoint& checkpoint, const EmbeddingTable& table) {
  if (table.family == nullptr) return;
  for (const std::string& name : table.family->vocabulary) {
    const store::TensorInfo* other = table.names.find(model::with_prefix(name, table.prefix));
    if (other == nullptr || other == table.input || other->shape != table.input->shape) continue;
    throw InputError(
        checkpoint.path(),
        fmt::format(
            "'{}' and '{}' store the same embedding, and only one would change: expected one table",
            escape(table.input->name), escape(other->name)));
  }
}

void check_table(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor) {
  if (tensor.shape.size() == 2 && tensor.elements() == 0) {
    throw InputError(checkpoint.path(),
                     fmt::format("tensor '{}' has shape {}, expected at least one row and column",
                                 escape(tensor.name), shape_text(tensor.shape)));
  }
  if (tensor.shape.size() != 2) {
    throw InputError(checkpoint.path(),
                     fmt::format("tensor '{}' has shape {}, expected a table of two dimensions",
                                 escape(tensor.name), shape_text(tensor.shape)));
  }
  switch (tensor.dtype) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64: return;
    default:
      throw InputError(checkpoint.path(),
                       fmt::format("tensor '{}' is {}, expected F16, BF16, F32 or F64",
                                   escape(tensor.name), dtype_name(tensor.dtype)));
  }
}

EmbeddingTable find_embedding_table(const store::Checkpoint& checkpoint,
                                    const std::optional<store::ModelConfig>& config,
                                    const std::optional<std::string>& tensor) {
  EmbeddingTable table;
  const bool gguf = store::has_gguf_names(checkpoint);
  table.names = store::NamedTensors(checkpoint, config);
  if (config) table.of_config = model::family_names_of(*config);
  const auto of_config = table.of_config;
  if (table.of_config != nullptr && table_of(table.names, *table.of_config) == nullptr)
    table.of_config = nullptr;
  table.family = table.of_config.get();
  if (table.family == nullptr) table.family = family_by_names(table.names);
  if (gguf) table.family = &model::gguf_family();
  table.input = table.family ? table_of(table.names, *table.family) : bare_table(table.names);
  if (table.family != nullptr &&
      holds(table.names, model::with_prefix(table.family->input_table, table.family->prefix)))
    table.prefix = table.family->prefix;
  if (tensor) {
    const store::TensorInfo& named = checkpoint.get(*tensor);
    if (&named != table.input) {
      table.family = nullptr;
      table.head = HeadState::kUnknown;
    }
    table.input = &named;
  }
  if (table.input == nullptr) refuse_opaque_table(checkpoint);
  if (table.input == nullptr && of_config != nullptr)
    refuse_head_name(checkpoint, table.names, *of_config);
  if (table.input == nullptr) refuse_missing_table(checkpoint, config);
  check_table(checkpoint, *table.input);
  store::check_has_no_scale(checkpoint, config, *table.input);
  if (table.family == &model::gguf_family()) {
    find_gguf_head(checkpoint, table);
  } else if (table.family != nullptr) {
    find_head(checkpoint, config, table);
  }
  return table;
}

std::vector<TableRole> table_roles(const EmbeddingTable& table) {
  std::vector<TableRole> roles = {{"input", table.input->name, table.input, "stored"}};
  if (table.family == nullptr) return roles;
  const model::FamilyNames& family = *table.family;
  const auto add = [&](const char* role, std::string_view pattern, const char* absent) {
    if (pattern.empty()) return;
    const std::string name = model::with_prefix(pattern, table.prefix);
    const store::TensorInfo* tensor = table.names.find(name);
    const bool opaque = tensor == nullptr && table.names.is_opaque(name);
    roles.push_back({role, table.names.own_name(name), tensor,
                     opaque              ? "opaque"
                     : tensor == nullptr ? absent
                                         : "stored"});
  };
  add("position", family.position_table, "missing");
  add("segment", family.segment_table, "missing");
  for (const std::string& name : family.vocabulary) {
    const store::TensorInfo* tensor = table.names.find(model::with_prefix(name, table.prefix));
    if (tensor != nullptr)
      add(tensor->shape.size() == 1 ? "output_bias" : "input", name, "missing");
  }
  if (table.head == HeadState::kNone || table.head == HeadState::kUnknown) return roles;
  if (table.decoder_weight.empty()) return roles;
  add("decoder", table.decoder_weight, table.config_tied ? "tied" : "missing");
  if (table.head == HeadState::kCopy) roles.back().state = "tied";
  add("output_bias", family.output_bias, "missing");
  if (table.names.tf() != nullptr) return roles;  // there is no second name
  for (const model::HeadCopy& copy : family.head_copies) {
    add("output_bias", copy.name, table.config_tied ? "tied" : "missing");
  }
  return roles;
}

std::vector<const store::TensorInfo*> optimizer_slots(const store::Checkpoint& checkpoint,
                                                      const store::TensorInfo& tensor) {
  std::vector<const store::TensorInfo*> slots;
  for (const store::TensorInfo& other : checkpoint.tensors()) {
    if (store::is_slot_of(other, tensor)) slots.push_back(&other);
  }
  return slots;
}

}  // namespace masque::surgery
