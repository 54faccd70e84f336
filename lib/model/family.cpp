#include "model/family.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/registry/registry.hpp"
#include "base/string/split.hpp"

namespace masque::model {

namespace {

using Families = Registry<Family>;

std::string known_types() {
  std::string list;
  for (const Family* family : families()) {
    for (const std::string_view type : family->model_types) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", type);
    }
  }
  return list;
}

/// A type of transformers that is not supported, the known one whose layers are nearest to its own,
/// and what differs.
struct NearType {
  std::string_view type, nearest, differs;
};

constexpr std::array kNearTypes{
    NearType{"umt5", "t5", "each of its layers has position biases of its own"},
    NearType{"longt5", "t5", "its encoder reads windows, or windows and summaries of blocks"},
    NearType{"switch_transformers", "t5", "some of its layers are mixtures of experts"},
    NearType{"marian", "bart", "its positions are sinusoids, and its embeddings have no norm"},
    NearType{"led", "bart",
             "its encoder reads windows and has global attention, and its parts have position "
             "tables of different lengths"},
    NearType{"plbart", "bart", "its targets begin with their last token"},
    NearType{"blenderbot-small", "bart",
             "its positions begin at the first row of their table, in the decoder after the norm "
             "of the embeddings"},
    NearType{"pegasus", "mbart", "its positions are sinusoids, and its embeddings have no norm"},
    NearType{"m2m_100", "mbart",
             "its positions are sinusoids that padding does not count, and its embeddings have no "
             "norm"},
    NearType{"blenderbot", "mbart",
             "its positions begin at the first row of their table, and its embeddings have no "
             "norm"},
    NearType{"t5gemma", "gemma2", "it is an encoder and a decoder that reads it"},
    NearType{"t5gemma2", "gemma3_text", "it is an encoder and a decoder that reads it"},
};

/// The known model_type that begins with the same letters, up to the first other character, and
/// has most characters in common with `type` from the begin; empty if there is none.
std::string_view same_stem(std::string_view type) {
  const auto stem = [](std::string_view name) {
    return name.substr(0, name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  };
  std::string_view found;
  std::ptrdiff_t most = -1;
  for (const Family* family : families()) {
    for (const std::string_view known : family->model_types) {
      if (stem(type).empty() || stem(known) != stem(type)) continue;
      const auto common = std::ranges::mismatch(known, type).in1 - known.begin();
      if (common < most) continue;
      most = common;
      found = known;
    }
  }
  return found;
}

/// What a config of an unknown type has in common with a known family; empty if nothing tells.
std::string near_family(const store::ModelConfig& config) {
  const std::string type = config.model_type();
  const auto* const known = std::ranges::find(kNearTypes, type, &NearType::type);
  if (known != kNearTypes.end())
    return fmt::format("; nearest is {}, but {}", known->nearest, known->differs);
  if (const std::string_view near = same_stem(type); !near.empty()) {
    return fmt::format(
        "; nearest by its name is {}, but models of this type are not supported: "
        "they compute something else",
        near);
  }
  const bool llama = config.has("rms_norm_eps") && config.has("num_key_value_heads") &&
                     config.string("hidden_act") == "silu";
  if (!llama) return {};
  return "; rms_norm_eps, num_key_value_heads and hidden_act are those of a layout close to llama, "
         "but models of this type are not supported: they compute something else";
}

/// Whether `name` is a class whose name begins with `stem`: "BertForMaskedLM", "BertModel",
/// "GPT2LMHeadModel".
bool is_class_of(std::string_view stem, std::string_view name) {
  if (!name.starts_with(stem)) return false;
  const std::string_view rest = name.substr(stem.size());
  return rest == "Model" || rest == "LMHeadModel" || rest == "EncoderModel" || rest == "ModelLM" ||
         rest.starts_with("For") || rest == "PreTrainedModel";
}

/// Whether `name` is a class of the family.
bool has_class(const Family& family, std::string_view name) {
  return std::ranges::any_of(family.classes,
                             [&](std::string_view stem) { return is_class_of(stem, name); });
}

/// Models of another type have the same names, perhaps, but compute something else with them.
void check_type(const store::ModelConfig& config, const Family& family, std::string_view wanted) {
  const std::string type = config.model_type();
  std::vector<std::string_view> types = family.model_types;
  if (!family.also_reads.empty()) {
    for (const std::string_view also : split(family.also_reads, ' ')) types.push_back(also);
  }
  if (type.empty() || std::ranges::find(types, type) != types.end()) return;
  std::string list;
  for (const std::string_view one : types)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", one);
  throw InputError(config.path(),
                   fmt::format("model_type is \"{}\", expected {} or none with {} {}: models of "
                               "another type compute something else",
                               escape(type), list, field("family"), escape(wanted)));
}

}  // namespace

FamilyRegistration::FamilyRegistration(const Family& family) { Families::of_process().add(family); }

std::span<const Family* const> families() { return Families::of_process().all(); }

const Family* find_family(std::string_view name) {
  for (const Family* family : families()) {
    const auto& types = family->model_types;
    if (family->name == name || std::ranges::find(types, name) != types.end()) return family;
  }
  return nullptr;
}

double start_range(const FamilyConfig& config) {
  const double range = config.number("initializer_range", 0.02);
  if (!(range >= 0)) config.refuse("initializer_range", "a number from 0");
  return range;
}

std::vector<StartRule> unpadded_starts(const FamilyConfig& /*config*/, const Design& /*design*/) {
  return {};
}

std::vector<StartRule> padded_starts(const FamilyConfig& config, const Design& design) {
  StartValue words = StartValue::normal(start_range(config));
  // null is none even where the class has a default.
  if (!config.is_null("pad_token_id")) words.zero_row = design.pad_token_id;
  return {{Role::kWordTable, std::move(words)}};
}

std::string class_name(const Family& family, std::string_view model_type, HeadKind head) {
  if (family.classes.empty()) return {};
  std::string_view ending = head == HeadKind::kNone ? "Model" : "";
  for (const HeadClass& known : family.heads) {
    if (known.kind == head) ending = known.ending;
  }
  if (ending.empty()) return {};
  const auto& types = family.model_types;
  const auto found = std::ranges::find(types, model_type);
  const auto at = found == types.end() ? 0 : found - types.begin();
  if (head == HeadKind::kNone && !family.base_classes.empty())
    return std::string(split(family.base_classes, ' ')[static_cast<std::size_t>(at)]);
  return fmt::format("{}{}", family.classes[static_cast<std::size_t>(at)], ending);
}

bool has_class_of_plan(const Family& family) {
  const auto alone = [](const HeadClass& known) { return known.kind == HeadKind::kNone; };
  return family.decoder == nullptr || std::ranges::any_of(family.heads, alone);
}

bool makes_decoder(const Family& family, const store::ModelConfig& config) {
  if (family.decoder == nullptr) return false;
  const std::vector<std::string> classes = config.architectures();
  const std::string both = class_name(family, config.model_type(), HeadKind::kCausal);
  return !has_class_of_plan(family) || std::ranges::find(classes, both) != classes.end();
}

bool in_transformers(const Family& family) {
  constexpr std::array<std::string_view, 6> kOwn{"dream",  "gau_alpha", "llada",
                                                 "masque", "neobert",   "tta"};
  return std::ranges::find(kOwn, family.name) == kOwn.end();
}

const Family& choose_family(const store::ModelConfig& config, std::string_view wanted) {
  if (!wanted.empty()) {
    if (const Family* family = find_family(wanted)) {
      check_type(config, *family, wanted);
      return *family;
    }
    throw UsageError(
        fmt::format("no family '{}', expected {}", escape(wanted), Families::of_process().names()));
  }
  const std::string type = config.model_type();
  if (!type.empty()) {
    if (const Family* family = find_family(type)) return *family;
    throw InputError(config.path(), fmt::format("model_type is \"{}\", expected {}{}", escape(type),
                                                known_types(), near_family(config)));
  }
  const auto names = config.architectures();
  for (const std::string& name : names) {
    for (const Family* family : families()) {
      if (has_class(*family, name)) return *family;
    }
  }
  throw InputError(
      config.path(),
      fmt::format("no model_type{}, expected one of {}",
                  names.empty() ? std::string()
                                : fmt::format(" and unknown architecture {}", escape(names[0])),
                  known_types()));
}

store::ModelConfig typed_config(const store::ModelConfig& config, const Family& family,
                                std::string_view wanted) {
  if (!config.model_type().empty()) return config;
  const std::vector<std::string_view> types = family.model_types;
  std::string_view type = types.front();
  for (const std::string& name : config.architectures()) {
    for (std::size_t i = 0; i < family.classes.size(); ++i) {
      if (is_class_of(family.classes[i], name)) type = types[i];
    }
  }
  if (std::ranges::find(types, wanted) != types.end()) type = wanted;
  return store::ModelConfig::parse(set_json_member(config.text(), {"model_type"}, quote_json(type)),
                                   config.path());
}

store::ModelConfig with_family_type(const store::ModelConfig& config, std::string_view wanted) {
  const Family& family = choose_family(config, wanted);
  return family.model_types.size() > 1 ? typed_config(config, family, wanted) : config;
}

}  // namespace masque::model
