#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "model/checkpoint/load.hpp"
#include "model/checkpoint/unused_tensors.hpp"
#include "store/names/scaled_weights.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/tf_names.hpp"

namespace masque::model {

namespace {

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
  const store::TensorInfo* tied_table() const;

  std::string full_name(std::string_view name) const;
  const store::TensorInfo* find(std::string_view names);
  const store::TensorInfo* find_one(std::string_view name) const;

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

/// The first spelling that is there; the others count as used too.
const store::TensorInfo* Finder::find(std::string_view names) {
  const store::TensorInfo* found = nullptr;
  for_spellings(names, [&](std::string_view name) {
    const store::TensorInfo* info = find_one(name);
    if (info == nullptr) return;
    used_.insert(info->name);
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

/// The matrix of a head to which the word table is tied, where the table is missing.
const store::TensorInfo* Finder::tied_table() const {
  const store::TensorInfo* found = nullptr;
  const auto look = [&](std::string_view names) {
    for_spellings(names, [&](std::string_view name) {
      if (found == nullptr && !name.empty()) found = find_one(name);
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
    if (info != nullptr) used_.insert(info->name);
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
  const auto is_words = [](const TensorPlan& t) {
    return t.placed.parts[0].role == Role::kWordTable;
  };
  const store::TensorInfo& words = *std::ranges::find_if(plan_.tensors, is_words)->info;
  if (head.design.tied) {
    if (info == nullptr || store::same_values(checkpoint_, *info, words)) return;
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

void Finder::list_unused() {
  check_scales();
  UnusedTensors judge(model_, prefix_, plan_.layers, used_);
  std::vector<std::size_t> counts(model_.skipped.size());
  std::size_t optimizer = 0;
  for (const store::TensorInfo& info : checkpoint_.tensors()) {
    const std::string& name = info.name;
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
    if (counts[i] == 0) continue;
    plan_.design.notes.push_back(
        fmt::format("{} tensors of {} are ignored", counts[i], model_.skipped[i].what));
  }
  if (auto note = judge.note(plan_.design)) plan_.design.notes.push_back(*std::move(note));
  if (optimizer > 0) {
    plan_.design.notes.push_back(
        fmt::format("{} tensors of the optimizer's state are ignored", optimizer));
  }
}

}  // namespace

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
  return Finder(model, checkpoint, names).run();
}

}  // namespace masque::model
