#include "surgery/vocabulary/vocabulary_tensors.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/convert/aliases.hpp"
#include "store/tensor_stats.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/vocabulary/id_map.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

/// Adds a tensor if it is stored and not there yet.
class Collector {
 public:
  Collector(const store::Checkpoint& checkpoint, const EmbeddingTable& table)
      : checkpoint_(checkpoint), table_(table) {}

  void add(const std::string& name, const store::TensorInfo* twin = nullptr) {
    const store::TensorInfo* tensor = table_.names.find(name);
    if (tensor == nullptr && table_.names.is_opaque(name))
      tensor = &checkpoint_.get(table_.names.own_name(name));  // throws, naming its type
    if (tensor == nullptr) return;
    add(*tensor, twin);
  }

  void add(const store::TensorInfo& found, const store::TensorInfo* twin) {
    const store::TensorInfo* tensor = &found;
    const std::string& name = tensor->name;
    const auto known = [&](const VocabularyTensor& other) { return other.tensor == tensor; };
    if (std::ranges::any_of(out_, known)) return;
    if (tensor->shape.empty() || tensor->shape[0] != table_.rows()) {
      throw InputError(
          checkpoint_.path(),
          fmt::format("tensor '{}' has shape {}, expected {} rows as '{}'", escape(name),
                      shape_text(tensor->shape), table_.rows(), escape(table_.input->name)));
    }
    if (!can_encode(tensor->dtype) || tensor->shape.size() > 2 || tensor->elements() == 0) {
      throw InputError(
          checkpoint_.path(),
          fmt::format("tensor '{}' is {} {}, expected rows of F16, BF16, F32 or F64", escape(name),
                      dtype_name(tensor->dtype), shape_text(tensor->shape)));
    }
    const bool follows = twin != nullptr && tensor->shape == twin->shape &&
                         store::same_values(checkpoint_, *tensor, *twin);
    out_.push_back({tensor, follows ? twin : tensor});
  }

  std::vector<VocabularyTensor> take() {
    const std::size_t count = out_.size();
    for (std::size_t i = 0; i < count; ++i) {
      for (const store::TensorInfo* slot : optimizer_slots(checkpoint_, *out_[i].tensor)) {
        add(*slot, nullptr);
        out_.back().is_slot = true;
      }
    }
    return std::move(out_);
  }

 private:
  const store::Checkpoint& checkpoint_;
  const EmbeddingTable& table_;
  std::vector<VocabularyTensor> out_;
};

}  // namespace

std::vector<VocabularyTensor> vocabulary_tensors(const store::Checkpoint& checkpoint,
                                                 const EmbeddingTable& table) {
  Collector collector(checkpoint, table);
  collector.add(*table.input, nullptr);
  if (table.family == nullptr) return collector.take();
  const store::FamilyNames& family = *table.family;
  collector.add(table.decoder_weight, table.head == HeadState::kCopy ? table.input : nullptr);
  collector.add(store::with_prefix(family.output_bias, table.prefix));
  for (const std::string_view name : family.vocabulary)
    collector.add(store::with_prefix(name, table.prefix), table.input);
  for (const store::HeadCopy& copy : family.head_copies)
    collector.add(copy.name, table.names.find(copy.source));
  return collector.take();
}

std::vector<std::string> vocabulary_notes(const store::Checkpoint& checkpoint,
                                          const EmbeddingTable& table,
                                          const std::vector<VocabularyTensor>& tensors) {
  std::vector<std::string> notes;
  if (table.family == nullptr) {
    notes.push_back(fmt::format("'{}' belongs to no known family: only this tensor changes",
                                escape(table.input->name)));
  }
  if (table.head == HeadState::kTied) notes.emplace_back(kTiedHeadNote);
  if (table.head == HeadState::kCopy) {
    notes.push_back(fmt::format("the output head '{}' is tied and stays equal to the input table",
                                table.decoder_weight));
  }
  if (table.head == HeadState::kOwn) {
    notes.push_back(
        fmt::format("the output head has its own '{}': its new rows are computed from its old rows",
                    table.decoder_weight));
  }
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    const auto same = [&](const VocabularyTensor& other) { return other.tensor == &tensor; };
    if (tensor.shape.empty() || tensor.shape[0] != table.rows()) continue;
    // Of a known family a few rows are more likely chance than a table of tokens.
    if (table.rows() < 1000 && table.family != nullptr) continue;
    if (std::ranges::any_of(tensors, same)) continue;
    notes.push_back(fmt::format("'{}' also has {} rows and stays unchanged", escape(tensor.name),
                                table.rows()));
  }
  return notes;
}

bool keeps_rows(const VocabularyChange& change, std::uint64_t rows) {
  if (change.from.size() != rows) return false;
  for (std::uint64_t id = 0; id < rows; ++id) {
    if (change.from[id] != id) return false;
  }
  return true;
}

void change_vocabulary_tensors(CheckpointEdit& edit, const std::vector<VocabularyTensor>& tensors,
                               const RowInitContext& context, const NewRows& rows) {
  if (keeps_rows(context.change, context.rows)) return;
  const auto from = std::make_shared<const std::vector<std::uint64_t>>(context.change.from);
  const bool computes = std::ranges::find(*from, VocabularyChange::kNew) != from->end();
  const RowValues zero = [](std::uint64_t, std::span<double> out) { std::ranges::fill(out, 0.0); };
  for (auto at = tensors.begin(); at != tensors.end(); ++at) {
    const store::TensorInfo& tensor = *at->tensor;
    Shape shape = tensor.shape;
    shape[0] = from->size();
    // What was stored once goes on being one.
    const auto twin = std::find_if(tensors.begin(), at, [&](const VocabularyTensor& other) {
      return store::share_bytes(*other.tensor, tensor) && other.is_slot == at->is_slot &&
             (!computes || other.source == at->source);
    });
    store::Source source = twin != at ? edit.replacement(twin->tensor->name)->source
                                      : edited_rows(edit.checkpoint(), tensor, from,
                                                    at->is_slot ? zero : rows.of(*at->source));
    edit.replace(tensor.name, std::move(shape), std::move(source));
  }
}

namespace {

/// Whether the rows that count for the mean `used` are those of before. Sets the digest of their
/// weights, which goes by their order.
bool follow_used_rows(MlmCorrection& mark, const TokenNames& before,
                      const VocabularyChange& change) {
  const std::uint64_t rows = change.from.size();
  bool any = false;
  for (std::uint64_t row = 0; row < rows && !any; ++row)
    any = before.assigned(row) && !is_unused_token(before.token(row));
  if (!any) return false;
  const std::vector<double> old = used_weights(rows, before);
  if (weights_digest(old) != mark.weights_digest) return false;
  std::vector<double> now(rows);
  for (std::uint64_t row = 0; row < rows; ++row) {
    now[row] = old[change.from[row]];
    const std::string& token = change.tokens[row];
    if ((now[row] > 0) != (!token.empty() && !is_unused_token(token))) return false;
  }
  mark.weights_digest = weights_digest(now);
  return true;
}

bool keeps_names(const VocabularyChange& change, const TokenNames& before) {
  for (std::uint64_t id = 0; id < change.tokens.size(); ++id) {
    if (change.tokens[id] != before.token(id)) return false;
  }
  return true;
}

/// Lets the mark's mean follow a change that keeps every row. Returns a note, or nothing.
std::string follow_mean(MlmCorrection& mark, const TokenNames& before,
                        const VocabularyChange& change, bool is_folder) {
  const bool keeps = keeps_rows(change, change.from.size());
  if (mark.mean == MeanKind::kUsed) {
    // The names next to a lone file do not move with its rows.
    const bool known = !before.empty() && (is_folder || keeps);
    if (known && follow_used_rows(mark, before, change)) return "";
    return fmt::format(
        "the table is corrected with {} used, and the used rows have changed: mlm-correct {} will "
        "refuse it",
        field("mean"), field("inverse"));
  }
  if (mark.mean != MeanKind::kFrequency) return "";
  if (!keeps) {
    return fmt::format(
        "the table is corrected with {} freq:FILE, and the rows have moved: mlm-correct {} will "
        "refuse it",
        field("mean"), field("inverse"));
  }
  if (keeps_names(change, before)) return "";
  return fmt::format(
      "the table is corrected with {} freq:FILE: mlm-correct {} needs the counts under the new "
      "names",
      field("mean"), field("inverse"));
}

/// The rows that a mark names, renumbered.
void renumber(MlmCorrection& mark, const IdMap& ids, const std::string& path) {
  const auto mask = ids.after(mark.mask_row);
  if (!mask) {
    throw InputError(
        path, fmt::format("row {} is the mask in the mark of a correction and cannot be removed",
                          mark.mask_row));
  }
  mark.mask_row = *mask;
  std::vector<std::uint64_t> kept;
  for (const std::uint64_t row : mark.kept_rows) {
    if (const auto id = ids.after(row)) kept.push_back(*id);
  }
  std::ranges::sort(kept);
  // Rows beyond the table keep their numbers.
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  mark.kept_rows = std::move(kept);
}

}  // namespace

std::vector<std::string> renumber_correction_mark(CheckpointEdit& edit,
                                                  const store::TensorInfo& table,
                                                  const TokenNames& before,
                                                  const VocabularyChange& change) {
  const store::Checkpoint& checkpoint = edit.checkpoint();
  const auto text = store::find_marker(checkpoint, table.name, kMlmMarkerKey);
  if (!text) return {};
  const IdMap ids(change, table.shape[0]);
  std::vector<std::string> marks;
  std::vector<std::string> notes;
  for (std::size_t at = 0; at <= text->size();) {
    const std::size_t end = std::min(text->find("; ", at), text->size());
    auto mark = MlmCorrection::parse(text->substr(at, end - at));
    at = end + 2;
    if (!mark) {
      throw InputError(
          checkpoint.path(),
          fmt::format("metadata '{}' holds '{}', which is not the mark of a correction",
                      kMlmMarkerKey, escape(*text)));
    }
    renumber(*mark, ids, checkpoint.path());
    std::string note;
    if (ids.is_permutation()) note = follow_mean(*mark, before, change, checkpoint.is_folder());
    if (!note.empty() && std::ranges::find(notes, note) == notes.end())
      notes.push_back(std::move(note));
    marks.push_back(mark->marker());
  }
  const std::string now = fmt::format("{}", fmt::join(marks, "; "));
  if (now != *text) edit.set_marker(table.name, kMlmMarkerKey, now);
  if (!ids.is_permutation()) {
    notes.emplace_back(
        fmt::format("the table is corrected, and its rows have changed: mlm-correct {} would not "
                    "restore the original rows",
                    field("inverse")));
  }
  return notes;
}

}  // namespace masque::surgery
