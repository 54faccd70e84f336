#include "model/family_names.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/string/split.hpp"
#include "base/thread/parallel.hpp"
#include "model/family.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/name_plan.hpp"

namespace masque::model {
namespace {

/// The spelling that is written.
std::string written(std::string_view names) {
  return std::string(names.substr(names.rfind('|') + 1));
}

std::vector<std::string> spellings(std::string_view names) {
  std::vector<std::string> all;
  if (!names.empty()) for_spellings(names, [&](std::string_view name) { all.emplace_back(name); });
  return all;
}

/// "a.0.b.{n}" for "a.0.b.1" becomes "a.{n}.b.{n}": parts that are numbers stand for any.
std::string with_any_number(std::string_view name) {
  std::string result;
  for (const std::string_view part : split(name, '.')) {
    const bool number = part.find_first_not_of("0123456789") == std::string_view::npos;
    result += fmt::format("{}{}", result.empty() ? "" : ".", number ? "{n}" : part);
  }
  return result;
}

const char* ending_of(Parts parts) {
  switch (parts) {
    case Parts::kBoth: return ".*";
    case Parts::kWeight: return ".weight";
    case Parts::kTensor:
    case Parts::kBiasTensor: break;
  }
  return "";
}

bool is_vocabulary_head(HeadKind kind) {
  return kind == HeadKind::kMasked || kind == HeadKind::kCausal;
}

/// A family's names, collected from its plans: that of a config, that of the class's defaults, and
/// wider ones.
class Collector {
 public:
  Collector(const Family& family, std::optional<ModelPlan> own)
      : family_(family), is_own_(own.has_value()) {
    if (own) plans_.push_back(*std::move(own));
    add_plans(family);
    for (const Family* other : families()) {
      if (is_own_ || other->like != family.name) continue;
      add_plans(*other);
      like_.push_back(other);
    }
  }

  FamilyNames take() {
    const FamilyFiles& files = family_.files;
    const ModelPlan& plan = plans_.front();
    names_.name = is_own_ ? plan.design.family : std::string(family_.name);
    names_.prefix = plan.prefix;
    names_.model_types.assign(family_.model_types.begin(), family_.model_types.end());
    for (const Family* other : like_) {
      names_.model_types.insert(names_.model_types.end(), other->model_types.begin(),
                                other->model_types.end());
    }
    names_.input_table = table(Role::kWordTable);
    names_.position_table = table(Role::kPositionTable);
    names_.segment_table = table(Role::kSegmentTable);
    for (const ModelPlan& decoder : decoders_) {
      for (const TensorRow& row : decoder.rows) {
        if (row.roles.front() == Role::kPositionTable)
          names_.decoder_positions = written(row.name) + ending_of(row.parts);
      }
    }
    names_.computed_positions = names_.position_table.empty() && !plan.computed.empty();
    if (names_.computed_positions) names_.position_table = plan.computed.front().name;
    if (!names_.position_table.empty()) names_.position_field = files.position_field;
    const bool after_padding = plan.design.position_offset > 0 && plan.design.pad_token_id;
    names_.positions_after_padding = after_padding;
    if (!after_padding) names_.position_offset = plan.design.position_offset;
    names_.vocab_fields.assign(files.vocab_fields.begin(), files.vocab_fields.end());
    names_.vocabulary.assign(files.vocabulary.begin(), files.vocabulary.end());
    names_.tied_head_differs = files.tied_head_differs;
    names_.tie_field = files.tie_field;
    names_.buffers = plan.buffers;
    add_input_spellings();
    add_classes(family_);
    for (const Family* other : like_) add_classes(*other);
    add_head();
    add_tensors();
    add_in_out();
    return std::move(names_);
  }

 private:
  /// Plans of the defaults of each class of `family`, and of its wide configs.
  void add_plans(const Family& family) {
    for (const std::string_view type : family.model_types) {
      const auto add_plan = [&](const std::string& members) {
        const std::string least =
            family.files.least_config.empty() ? "" : fmt::format(", {}", family.files.least_config);
        const std::string text = fmt::format(R"({{"model_type": "{}"{}{}}})", type, least, members);
        const FamilyConfig config(store::ModelConfig::parse(text, std::string(type)));
        plans_.push_back(family.plan(config));
        if (family.decoder != nullptr) decoders_.push_back(family.decoder(config));
      };
      add_plan("");
      for (const std::string_view members : family.files.wide_configs)
        add_plan(fmt::format(", {}", members));
    }
  }

  /// The tensor with this role, in the config's plan or else the first that has it; empty if none
  /// has.
  std::string table(Role role) const {
    for (const ModelPlan& plan : plans_) {
      for (const TensorRow& row : plan.rows) {
        if (row.roles.front() == role) return written(row.name) + ending_of(row.parts);
      }
      if (is_own_) break;
    }
    return {};
  }

  /// Other names of the word table, which hold a row for each token, too.
  void add_input_spellings() {
    for (const TensorRow& row : plans_.front().rows) {
      if (row.roles.front() != Role::kWordTable) continue;
      for (const std::string& name : spellings(row.name)) {
        std::string full = name + ending_of(row.parts);
        if (full != names_.input_table) names_.input_spellings.push_back(std::move(full));
      }
    }
    if (!names_.input_spellings.empty()) names_.vocabulary.push_back(names_.input_table);
  }

  void add_classes(const Family& family) {
    std::vector<std::string_view> endings;
    for (const HeadClass& head : family.heads) {
      const bool listed = std::ranges::find(endings, head.ending) != endings.end();
      if (is_vocabulary_head(head.kind) && !listed) endings.push_back(head.ending);
    }
    const auto& further = family.files.lm_classes;
    endings.insert(endings.end(), further.begin(), further.end());
    for (const std::string_view stem : family.classes) {
      for (const std::string_view ending : endings)
        names_.lm_classes.push_back(fmt::format("{}{}", stem, ending));
    }
  }

  /// The first head for a vocabulary; further ones without a matrix of their own stay tied.
  void add_head() {
    names_.decoder_weight = family_.files.decoder_weight;
    const HeadPlan* first = nullptr;
    for (const HeadPlan& head : plans_.front().heads) {
      if (!is_vocabulary_head(head.design.kind)) continue;
      if (head.decoder.empty()) {
        names_.tied_head_first = first == nullptr;
        add_tied_head(head);
      } else if (first == nullptr) {
        first = &head;
      }
    }
    // Of our own family no class says it.
    if (is_own_ && family_.classes.empty()) {
      if (first == nullptr && names_.tied_head_evidence.empty()) names_.head_by_config = false;
      if (first != nullptr && first->evidence.empty()) names_.head_by_config = true;
    }
    if (first == nullptr) return;
    names_.tied_by_default = first->design.tied;
    const std::vector<std::string> decoders = spellings(first->decoder);
    names_.decoder_weight = decoders.back();
    names_.decoder_spellings.assign(decoders.begin(), decoders.end() - 1);
    for (const TensorRow& row : first->rows) {
      if (first->evidence.empty())
        names_.head_evidence.push_back(
            written(row.name) + (row.parts == Parts::kBoth ? ".weight" : ending_of(row.parts)));
      if (row.roles.front() != Role::kDecoder) continue;
      names_.output_bias = written(row.name);
      for (const std::string& name : spellings(row.name))
        if (name != names_.output_bias) names_.head_copies.push_back({name, names_.output_bias});
    }
    for (const std::string& name : spellings(first->evidence))
      if (std::ranges::find(decoders, name) == decoders.end()) names_.head_evidence.push_back(name);
  }

  void add_tied_head(const HeadPlan& head) {
    names_.tied_head_evidence = spellings(head.evidence);
    for (const TensorRow& row : head.rows) {
      if (row.roles.front() == Role::kDecoder) names_.vocabulary.push_back(written(row.name));
    }
  }

  void add_tensors() {
    std::vector<std::string> all;
    std::set<std::string> seen;
    const auto add = [&](const TensorRow& row) {
      const bool bias = row.parts == Parts::kBiasTensor;
      for (const std::string& name : spellings(bias ? written(row.name) : row.name)) {
        std::string pattern = with_any_number(name) + ending_of(row.parts);
        if (seen.insert(pattern).second) all.push_back(std::move(pattern));
      }
    };
    for (const ModelPlan& plan : decoders_) {
      std::ranges::for_each(plan.rows, add);
      for (const HeadPlan& head : plan.heads) std::ranges::for_each(head.rows, add);
    }
    for (const ModelPlan& plan : plans_) {
      std::ranges::for_each(plan.rows, add);
      for (const HeadPlan& head : plan.heads)
        if (is_vocabulary_head(head.design.kind)) std::ranges::for_each(head.rows, add);
      for (const ComputedTensor& tensor : plan.computed)
        if (seen.insert(tensor.name).second) all.push_back(tensor.name);
    }
    // A weight with a bias in one plan, without in another.
    std::erase_if(all, [&](const std::string& name) {
      const std::size_t dot = name.rfind('.');
      const std::string_view end = std::string_view(name).substr(dot + 1);
      return (end == "weight" || end == "bias") && seen.contains(name.substr(0, dot) + ".*");
    });
    names_.tensors = std::move(all);
  }

  void add_in_out() {
    for (const TensorRow& row : plans_.front().rows) {
      if (row.layout != TensorLayout::kInOut || !row.shape.empty()) continue;
      const std::string name = row.name + ".weight";
      names_.in_out.tensors.push_back(name);
      if (row.roles.size() == 1 || !names_.in_out.witness.empty()) continue;
      names_.in_out.witness = name;
      names_.in_out.wide = row.roles.size();
    }
  }

  const Family& family_;
  bool is_own_;
  std::vector<ModelPlan> plans_;
  std::vector<ModelPlan> decoders_;  ///< of encoder–decoders
  std::vector<const Family*> like_;  ///< families whose names these are, too
  FamilyNames names_;
};

/// One for all families whose tensors have the same names: T-TA's files are BERT's.
std::vector<FamilyNames> all_names() {
  std::vector<FamilyNames> all;
  for (const Family* family : families()) {
    if (!family->like.empty()) continue;
    FamilyNames names = Collector(*family, std::nullopt).take();
    const auto same = std::ranges::find_if(all, [&](const FamilyNames& other) {
      return other.prefix == names.prefix && other.input_table == names.input_table &&
             other.decoder_weight == names.decoder_weight &&
             std::ranges::all_of(names.tensors, [&](const std::string& name) {
               return std::ranges::find(other.tensors, name) != other.tensors.end();
             });
    });
    if (same == all.end()) {
      all.push_back(std::move(names));
      continue;
    }
    std::ranges::move(names.model_types, std::back_inserter(same->model_types));
    std::ranges::move(names.lm_classes, std::back_inserter(same->lm_classes));
  }
  std::ranges::sort(all, {}, &FamilyNames::name);
  return all;
}

// The tables by llama.cpp's names.
const FamilyNames kGgufFamily{
    .name = "gguf",
    .model_types = {},
    .lm_classes = {},
    .prefix = "",
    .input_table = store::kGgufTokenTable,
    .position_table = "position_embd.weight",
    .segment_table = "token_types.weight",
    .decoder_weight = "output.weight",
    .output_bias = "",
    .head_copies = {},
    .head_evidence = {"output.weight"},
    .vocabulary = {"output.bias"},
};

}  // namespace

std::span<const FamilyNames> family_names() {
  static const std::vector<FamilyNames> kNames = all_names();
  return kNames;
}

const FamilyNames* find_family_names(std::string_view name) {
  for (const FamilyNames& family : family_names()) {
    if (family.name == name ||
        std::ranges::find(family.model_types, name) != family.model_types.end()) {
      return &family;
    }
  }
  return nullptr;
}

std::shared_ptr<const FamilyNames> family_names_of(const store::ModelConfig& config) {
  const Family* family = find_family(config.model_type());
  if (family == nullptr) return nullptr;
  std::optional<ModelPlan> own;
  const auto refused = input_error_message([&] { own = family->plan(FamilyConfig(config)); });
  if (refused) {
    // What cannot be run can be changed all the same.
    return {std::shared_ptr<void>(), find_family_names(config.model_type())};
  }
  return std::make_shared<const FamilyNames>(Collector(*family, std::move(own)).take());
}

const FamilyNames& gguf_family() { return kGgufFamily; }

std::string with_prefix(std::string_view name, std::string_view prefix) {
  if (!name.starts_with('~')) return std::string(name);
  return std::string(prefix) + std::string(name.substr(1));
}

std::string canonical_name(std::string_view name) {
  for (const FamilyNames& family : family_names()) {
    if (!family.prefix.empty() && name.starts_with(family.prefix)) {
      name.remove_prefix(family.prefix.size());
      break;
    }
  }
  return store::with_current_layer_norm(name);
}

}  // namespace masque::model
