#include "surgery/correction/correct_checkpoint.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "base/thread/parallel.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/convert/aliases.hpp"
#include "surgery/correction/correction_settings.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/edit/edit_in_place.hpp"
#include "surgery/edit/head.hpp"
#include "surgery/edit/vocab_size.hpp"
#include "text/open/google_folder.hpp"

namespace masque::surgery {

namespace {

/// The map and where the moves of each block of rows go; shared by the threads that write.
struct TableJob {
  const store::Checkpoint* checkpoint;
  const store::TensorInfo* table;
  AffineRows map;
  std::vector<RowMoves> moves;

  void fill(std::uint64_t offset, MutableBytes out) {
    const std::uint64_t row_bytes = table->bytes() / table->shape[0];
    const std::uint64_t first_row = offset / row_bytes;
    checkpoint->read(*table, offset, out);
    moves[first_row / rows_per_block(*table)] =
        map_rows(map, table->dtype, table->shape[1], first_row, out, out);
  }

  std::uint64_t chunk_bytes() const {
    return rows_per_block(*table) * (table->bytes() / table->shape[0]);
  }

  RowMoves total() const {
    RowMoves sum;
    for (const RowMoves& part : moves) sum.add(part);
    return sum;
  }
};

std::shared_ptr<TableJob> make_job(const store::Checkpoint& checkpoint,
                                   const store::TensorInfo& table, AffineRows map) {
  const std::uint64_t step = rows_per_block(table);
  return std::make_shared<TableJob>(TableJob{
      &checkpoint, &table, std::move(map), std::vector<RowMoves>(divide_up(table.shape[0], step))});
}

store::Source source_of(const std::shared_ptr<TableJob>& job) {
  return store::Computed{[job](std::uint64_t offset, MutableBytes out) { job->fill(offset, out); },
                         job->chunk_bytes(), job.get()};
}

/// Without a head to write, the moves alone.
void run_without_writing(TableJob& job, int threads) {
  const std::uint64_t chunk = job.chunk_bytes();
  parallel_for(static_cast<Index>(job.moves.size()), threads, [&](Index i) {
    thread_local std::vector<std::byte> buffer;
    const std::uint64_t offset = static_cast<std::uint64_t>(i) * chunk;
    buffer.resize(std::min(chunk, job.table->bytes() - offset));
    job.fill(offset, buffer);
  });
}

class Correction {
 public:
  Correction(const std::string& in, const std::string& out, const CorrectionRequest& request)
      : request_(request),
        out_(out),
        locked_(lock_if(in, request)),
        checkpoint_(store::open_checkpoint(in)),
        config_(store::find_config(checkpoint_)),
        names_(TokenNames::of(checkpoint_)),
        table_(find_embedding_table(checkpoint_, config_, request.tensor)),
        settings_(correction_settings(request, checkpoint_, config_, names_, table_)),
        edit_(checkpoint_) {}

  CorrectionReport run() {
    check_one_table(checkpoint_, table_);
    start_report();
    decide_head();
    const bool nothing = settings_.correction.rates.rate == 0;
    if (nothing) {
      note(fmt::format("{} 0 changes nothing{}", field("rate"),
                       request_.in_place ? "" : ": the output is a copy"));
    }
    const AffineRows map = make_map(nothing);
    job_ = make_job(checkpoint_, *table_.input, map);
    if (!nothing) describe_edit();
    if (request_.dry_run || (nothing && request_.in_place)) {
      run_without_writing(*job_, request_.write.threads);
    } else if (request_.in_place) {
      write_into_input();
    } else {
      write();
    }
    report_.moves = job_->total();
    if (report_.moves.rows > 0)
      report_.min_cosine_token = names_.token(report_.moves.min_cosine_row);
    check_overflow();
    return std::move(report_);
  }

 private:
  void note(std::string text) { report_.notes.push_back(std::move(text)); }

  static std::optional<LockedFiles> lock_if(const std::string& in,
                                            const CorrectionRequest& request) {
    if (!request.in_place || request.dry_run) return std::nullopt;
    return store::lock_checkpoint(in, request.wait_seconds);
  }

  void start_report() {
    report_.notes = checkpoint_.notes();
    if (locked_) {
      for (const std::string& name : locked_->recovered())
        note(fmt::format("'{}': an interrupted change was rolled back", escape(name)));
    }
    for (const std::string& text : settings_.notes) note(text);
    report_.family = table_.family == nullptr ? "" : std::string(table_.family->name);
    report_.tensor = table_.input->name;
    report_.dtype = table_.input->dtype;
    report_.shape = table_.input->shape;
    report_.correction = settings_.correction;
    report_.inverse = request_.inverse;
    report_.learned_without_mask = settings_.learned_without_mask;
    report_.head = table_.head;
    report_.changed_tensors = {table_.input->name};
  }

  AffineRows make_map(bool nothing) const {
    if (nothing) {
      return {1, std::vector<double>(table_.width(), 0.0), std::vector<bool>(table_.rows(), true)};
    }
    const auto make = request_.inverse ? inverse_mlm_map : mlm_map;
    return make(checkpoint_, *table_.input, settings_.correction, settings_.weights,
                request_.write.threads);
  }

  void decide_head() {
    // Taking a correction back from a shared table must reach the head too.
    const TiedPolicy policy =
        request_.tied.value_or(request_.inverse ? TiedPolicy::kKeep : TiedPolicy::kUntie);
    if (table_.head == HeadState::kUnknown && table_.family != nullptr && request_.tied) {
      table_.head = report_.head = HeadState::kTied;  // the user knows that there is one
    }
    switch (table_.head) {
      case HeadState::kNone: note("no output head in the checkpoint: nothing to untie"); return;
      case HeadState::kMissing:
        note(
            fmt::format("the config says that the output head is untied, but '{}' is not stored: "
                        "nothing to untie",
                        table_.decoder_weight));
        return;
      case HeadState::kUnknown:
        if (request_.tied == TiedPolicy::kKeep) return;
        throw InputError(
            checkpoint_.path(),
            table_.family == nullptr
                ? fmt::format("'{}' belongs to no known family, so a tied output head cannot be "
                              "detected: {} keep corrects only this tensor",
                              escape(table_.input->name), field("tied"))
                : std::string(fmt::format(
                      "tensor names and config.json do not show whether there is an output head: "
                      "{} untie writes one, {} keep corrects only the table",
                      field("tied"), field("tied"))));
      case HeadState::kOwn:
        note(
            fmt::format("the output head has its own '{}': left unchanged", table_.decoder_weight));
        if (!table_.config_tied || settings_.correction.rates.rate == 0) return;
        if (policy == TiedPolicy::kUntie) untie();
        return;
      case HeadState::kTied:
      case HeadState::kCopy: break;
    }
    if (settings_.correction.rates.rate == 0) return;
    if (policy == TiedPolicy::kRefuse) {
      throw InputError(checkpoint_.path(),
                       fmt::format("the output head is tied to the input table: {} untie gives it "
                                   "a copy, {} keep changes both",
                                   field("tied"), field("tied")));
    }
    if (policy == TiedPolicy::kKeep) {
      note(kTiedHeadNote);
      if (table_.head == HeadState::kCopy) report_.changed_tensors.push_back(table_.decoder_weight);
      return;
    }
    untie();
  }

  void untie() {
    check_can_untie(checkpoint_, table_);
    if (request_.in_place) {
      throw InputError(
          checkpoint_.path(),
          fmt::format(
              "the output head is tied to the input table, and untying adds tensors, which is not "
              "supported in place: {} keep changes both, {} OUTPUT writes a new checkpoint",
              field("tied"), field("output")));
    }
    unties_ = true;
    added_ = head_tensors(checkpoint_, table_);
    const std::string names = comma_list(added_, [](const store::OutputTensor& tensor) {
      return fmt::format("'{}'", tensor.info.name);
    });
    for (const store::OutputTensor& tensor : added_)
      report_.added_tensors.push_back(tensor.info.name);
    if (table_.head != HeadState::kOwn) {
      note(fmt::format("the output head is untied{}", names.empty() ? "" : ": it gets " + names));
    } else if (!names.empty()) {
      note("the output head gets " + names);
    }
    if (config_ && checkpoint_.is_folder()) {
      note(fmt::format("config.json: {} becomes false", table_.tie_field()));
    } else {
      note(fmt::format("set \"{}\": false in the config.json of the output", table_.tie_field()));
    }
  }

  /// What becomes of the checkpoint.
  void describe_edit() {
    const std::string& table = table_.input->name;
    for (const std::string& name : report_.changed_tensors) {
      // A stored copy of the table is computed on its own: threads do not share the sums of moves.
      // What is stored as one with the table is computed once.
      const store::TensorInfo& tensor = checkpoint_.get(name);
      const bool once = name == table || share_bytes(tensor, *table_.input);
      edit_.replace(name, tensor.shape,
                    source_of(once ? job_ : make_job(checkpoint_, *table_.input, job_->map)));
    }
    edit_.set_marker(table, kMlmMarkerKey,
                     settings_.marks.empty() ? std::nullopt : std::optional(settings_.marks));
    for (store::OutputTensor& tensor : added_) edit_.add(std::move(tensor), table);
    if (unties_ && config_) edit_.set_config(table_.tie_field(), "false");
    if (!request_.in_place && !request_.tensor)
      match_vocab_size(edit_, table_.family, table_.rows(), &report_.notes);
  }

  void write() {
    note_stale_copies();
    store::WriteOptions options = request_.write;
    options.verify = [&](const std::string& staged) {
      check_overflow();
      if (request_.verify) report_.verified = verify(staged);
    };
    for (std::string& text : write_edit(edit_, out_, options)) note(std::move(text));
  }

  void write_into_input() {
    note_stale_copies();
    const InPlaceOptions options{.threads = request_.write.threads,
                                 .progress = request_.write.progress,
                                 .computed = [&] { check_overflow(); },
                                 .verify = request_.verify};
    report_.verified = write_in_place(edit_, *locked_, options).verified;
  }

  void note_stale_copies() {
    for (const std::string& name : stale_copies(checkpoint_)) {
      note(stale_copy_note(name, request_.in_place ? "is left" : "is copied"));
    }
  }

  VerifyResult verify(const std::string& staged) {
    VerifyRequest check;
    check.before = &checkpoint_;
    check.staged = staged;
    check.changed = report_.changed_tensors;
    check.edited_files = edit_.edited_files();
    if (text::tokenizer_config_by_name(checkpoint_.folder()))
      check.edited_files.emplace_back("tokenizer_config.json");
    if (table_.head == HeadState::kTied && !report_.added_tensors.empty()) {
      check.copies.emplace_back(table_.decoder_weight, table_.input->name);
    }
    for (const auto& [name, source] : table_.missing_copies) {
      if (!report_.added_tensors.empty()) check.copies.emplace_back(name, source);
    }
    check.expected = [this](std::uint64_t offset, MutableBytes bytes) {
      job_->fill(offset, bytes);
    };
    check.chunk_bytes = job_->chunk_bytes();
    check.threads = request_.write.threads;
    return verify_checkpoint(check);
  }

  void check_overflow() const {
    const RowMoves moves = job_->total();
    if (moves.overflow_row == RowMoves::kNone) return;
    throw InputError(checkpoint_.path(), fmt::format("tensor '{}': row {} would overflow {}",
                                                     escape(table_.input->name), moves.overflow_row,
                                                     dtype_name(table_.input->dtype)));
  }

  const CorrectionRequest& request_;
  std::string out_;
  std::optional<LockedFiles> locked_;
  store::Checkpoint checkpoint_;
  std::optional<store::ModelConfig> config_;
  TokenNames names_;
  EmbeddingTable table_;
  CorrectionSettings settings_;
  CheckpointEdit edit_;
  CorrectionReport report_;
  std::shared_ptr<TableJob> job_;
  std::vector<store::OutputTensor> added_;
  bool unties_ = false;
};

}  // namespace

CorrectionReport correct_checkpoint(const std::string& in, const std::string& out,
                                    const CorrectionRequest& request) {
  return Correction(in, out, request).run();
}

}  // namespace masque::surgery
