#include "surgery/vocabulary/change_vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parallel.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/edit/edit_proof.hpp"
#include "surgery/edit/stale_copies.hpp"
#include "surgery/rows/row_map.hpp"
#include "surgery/vocabulary/config_ids.hpp"
#include "surgery/vocabulary/gguf_tokens.hpp"
#include "surgery/vocabulary/id_map.hpp"
#include "surgery/vocabulary/vocabulary_tensors.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

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
    store::check_whole_gguf(checkpoint_);
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
