#include "surgery/vocabulary/change_vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/parallel.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/tensor_stats.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/convert/aliases.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/edit/verify_checkpoint.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/rows/row_init.hpp"
#include "surgery/rows/row_map.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/vocabulary/config_ids.hpp"
#include "surgery/vocabulary/gguf_tokens.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

// Which tensors of a checkpoint have a row for every id, and their change when the ids change.

/// A stored tensor with one row (or number) per id.
struct VocabularyTensor {
  const store::TensorInfo* tensor = nullptr;  ///< into the checkpoint
  /// Whose new rows it gets: itself, or the tensor that it is a tied copy of.
  const store::TensorInfo* source = nullptr;
  bool is_slot = false;  ///< an optimizer's, of another one: its new rows are zero
};

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

/// The input table of `table` first, then what the family's names tell of `checkpoint`: an output
/// head's matrix, stored as its own or as a copy, and its biases under all names; then the slots of
/// an optimizer next to any of these. The table alone if the family is unknown. Reads weights only
/// to compare a bias with its second name. Throws InputError if one of them has other rows than the
/// table, or a type that cannot be computed with.
std::vector<VocabularyTensor> vocabulary_tensors(const store::Checkpoint& checkpoint,
                                                 const EmbeddingTable& table) {
  Collector collector(checkpoint, table);
  collector.add(*table.input, nullptr);
  if (table.family == nullptr) return collector.take();
  const model::FamilyNames& family = *table.family;
  collector.add(table.decoder_weight, table.head == HeadState::kCopy ? table.input : nullptr);
  collector.add(model::with_prefix(family.output_bias, table.prefix));
  for (const std::string_view name : family.vocabulary)
    collector.add(model::with_prefix(name, table.prefix), table.input);
  for (const model::HeadCopy& copy : family.head_copies)
    collector.add(copy.name, table.names.find(copy.source));
  return collector.take();
}

/// Notes for people about `tensors`, those of vocabulary_tensors() for `table` of `checkpoint`:
/// what stays tied, what has rows of its own, which other tensors have as many rows and stay as
/// they are.
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

/// Whether with `change` each of `rows` rows stays where it is, and none is added.
bool keeps_rows(const VocabularyChange& change, std::uint64_t rows) {
  if (change.from.size() != rows) return false;
  for (std::uint64_t id = 0; id < rows; ++id) {
    if (change.from[id] != id) return false;
  }
  return true;
}

/// Gives `tensors` the rows of `context.change`, of which the new ones are `rows`. Whatever
/// `context` refers to must outlive `edit`. Does nothing for a change that keeps all rows in place.
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
      return share_bytes(*other.tensor, tensor) && other.is_slot == at->is_slot &&
             (!computes || other.source == at->source);
    });
    store::Source source = twin != at ? edit.replacement(twin->tensor->name)->source
                                      : edited_rows(edit.checkpoint(), tensor, from,
                                                    at->is_slot ? zero : rows.of(*at->source));
    edit.replace(tensor.name, std::move(shape), std::move(source));
  }
}

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

/// The mark of a correction (surgery/correction/mlm_correction.hpp) with the rows that it names
/// renumbered; for the mean of used rows, also with the digest of these rows in their new order.
/// `table` is the input table of the checkpoint of `edit`, `before` are the names of its rows
/// before `change`. Does nothing without a mark. Returns notes: which marks the inverse of a
/// correction cannot follow any more. Throws InputError if a row that it needs is gone.
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

void append(std::vector<std::string>& notes, std::vector<std::string> more) {
  std::ranges::move(more, std::back_inserter(notes));
}

std::uint64_t count_tokens(const VocabularyChange& change) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      change.tokens, [](const std::string& token) { return !token.empty(); }));
}

/// One run of the job.
class Change {
 public:
  Change(const std::string& in, const VocabularyRequest& request)
      : request_(request),
        checkpoint_(store::open_checkpoint(in)),
        config_(store::find_config(checkpoint_)),
        names_(TokenNames::of(checkpoint_)),
        table_(find_embedding_table(checkpoint_, config_, request.tensor)),
        edit_(checkpoint_) {}

  VocabularyReport run(const std::string& out, const VocabularyPlan& plan) {
    store::check_one_gguf(checkpoint_);
    start_report();
    check_names();
    change_ = plan({checkpoint_, names_, table_.rows(), report_.notes});
    MASQUE_CHECK(change_.from.size() == change_.tokens.size() && !change_.from.empty());
    const RowInitContext context{checkpoint_,
                                 names_,
                                 change_,
                                 table_.rows(),
                                 range(),
                                 request_.seed,
                                 request_.write.threads,
                                 &report_.notes};
    const auto tensors = vocabulary_tensors(checkpoint_, table_);
    const NewRows rows = request_.means ? NewRows(context, request_.means(context))
                                        : NewRows(context, request_.init);
    change_vocabulary_tensors(edit_, tensors, context, rows);
    change_files();
    if (!edit_.replaced().empty())
      append(report_.notes, vocabulary_notes(checkpoint_, table_, tensors));
    describe(rows);
    if (!request_.dry_run) write(out);
    return std::move(report_);
  }

 private:
  std::optional<double> range() const {
    return config_ ? config_->number("initializer_range") : std::nullopt;
  }

  void start_report() {
    report_.notes = checkpoint_.notes();
    report_.family = table_.family == nullptr ? "" : std::string(table_.family->name);
    report_.tensor = table_.input->name;
    report_.dtype = table_.input->dtype;
    report_.width = table_.width();
    report_.rows_before = table_.rows();
  }

  void check_names() const {
    if (names_.size() <= table_.rows()) return;
    for (std::uint64_t id = table_.rows(); id < names_.size(); ++id) {
      if (!names_.assigned(id)) continue;
      throw InputError(checkpoint_.path(),
                       fmt::format("token '{}' of {} has id {}, but the table has {} rows",
                                   escape(names_.token(id)), names_.source(), id, table_.rows()));
    }
  }

  void change_files() {
    const bool inside = names_.source() == store::kGgufTokens;
    if (request_.other_tokenizer && inside) {
      throw InputError(checkpoint_.path(),
                       "stores its tokenizer in its metadata, which cannot be replaced: use the "
                       "Hugging Face folder");
    }
    if (!checkpoint_.is_folder() && ((!names_.empty() && !inside) || config_))
      report_.notes.emplace_back(
          "only this file changes: the config and tokenizer files next to it stay unchanged");
    append(report_.notes, renumber_correction_mark(edit_, *table_.input, names_, change_));
    const auto change_files =
        request_.change_files ? request_.change_files : change_vocabulary_files;
    if (checkpoint_.is_folder()) append(report_.notes, change_files(edit_, names_, change_));
    append(report_.notes, change_gguf_tokens(edit_, change_, table_.rows()));
    append(report_.notes,
           change_config_ids(edit_, table_.family, change_, table_.rows(), request_.roles));
    for (const std::string& name : stale_copies(checkpoint_))
      report_.notes.push_back(stale_copy_note(name, "is copied"));
  }

  void describe(const NewRows& rows) {
    report_.rows_after = change_.from.size();
    const IdMap ids(change_, table_.rows());
    const auto is_copied = [&](std::uint64_t id) {
      return change_.from[id] != VocabularyChange::kNew && ids.after(change_.from[id]) != id;
    };
    // Whether a row without token is made anew where it was.
    const auto is_filled = [&](std::uint64_t row) {
      return !names_.assigned(row) && row < change_.from.size() &&
             (change_.from[row] == VocabularyChange::kNew || is_copied(row));
    };
    for (std::uint64_t row = 0; row < table_.rows(); ++row)
      if (names_.assigned(row)) ++report_.tokens_before;
    report_.tokens_after = count_tokens(change_);
    for (std::uint64_t row = 0; row < table_.rows(); ++row)
      if (!ids.after(row) && !is_filled(row)) ++report_.rows_gone;
    report_.changed_tensors = edit_.replaced();
    report_.edited_files = edit_.edited_files();
    for (std::uint64_t id = 0; id < change_.from.size(); ++id) {
      if (change_.from[id] == VocabularyChange::kNew)
        report_.new_rows.push_back({id, change_.tokens[id], 0});
      if (is_copied(id)) ++report_.copied_rows;
    }
    const RowValues values = rows.of(*table_.input);
    parallel_for(static_cast<Index>(report_.new_rows.size()), request_.write.threads, [&](Index i) {
      NewRow& row = report_.new_rows[static_cast<std::size_t>(i)];
      std::vector<double> value(table_.width());
      std::vector<std::byte> bytes(table_.input->bytes() / table_.rows());
      values(row.id, value);
      from_double(table_.input->dtype, value, bytes);
      to_double(table_.input->dtype, bytes, value);
      row.norm = std::sqrt(dot(value, value));
    });
    if (report_.changed_tensors.empty() && report_.edited_files.empty() && edit_.typed().empty())
      report_.notes.emplace_back("nothing changes: the output is a copy");
  }

  void write(const std::string& out) {
    const EditProof proof(edit_);
    store::WriteOptions options = request_.write;
    if (request_.verify) {
      options.verify = [&](const std::string& staged) {
        report_.verified = proof.check(staged, options.threads);
      };
    }
    append(report_.notes, write_edit(edit_, out, options));
  }

  const VocabularyRequest& request_;
  store::Checkpoint checkpoint_;
  std::optional<store::ModelConfig> config_;
  TokenNames names_;
  EmbeddingTable table_;
  CheckpointEdit edit_;
  VocabularyChange change_;
  VocabularyReport report_;
};

}  // namespace

VocabularyReport change_vocabulary(const std::string& in, const std::string& out,
                                   const VocabularyPlan& plan, const VocabularyRequest& request) {
  return Change(in, request).run(out, plan);
}

}  // namespace masque::surgery
