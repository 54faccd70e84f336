#include "surgery/correction/correction_settings.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/edit/checkpoint_edit.hpp"

namespace masque::surgery {

namespace {

constexpr std::uint64_t kMaxCounts = 1 << 30;

/// Roles whose rows are never replaced in pre-training. [UNK] stands for words and is.
constexpr std::array<std::string_view, 6> kSpecialRoles{"mask_token", "cls_token", "sep_token",
                                                        "pad_token",  "bos_token", "eos_token"};
constexpr std::array<std::string_view, 5> kConfigIds{"pad_token_id", "bos_token_id", "eos_token_id",
                                                     "cls_token_id", "sep_token_id"};

class Settler {
 public:
  Settler(const CorrectionRequest& request, const store::Checkpoint& checkpoint,
          const std::optional<store::ModelConfig>& config, const TokenNames& names,
          const EmbeddingTable& table)
      : request_(request), checkpoint_(checkpoint), config_(config), names_(names), table_(table) {}

  CorrectionSettings settle() {
    read_marks();
    const bool marked = !marks_.empty();
    if (marked && !request_.inverse && !request_.again) {
      throw InputError(
          checkpoint_.path(),
          fmt::format("is already corrected ({}): {} corrects it again, {} undoes the correction",
                      escape(marks_.back()), field("again"), field("inverse")));
    }
    if (request_.inverse && !marked && !request_.again) {
      throw InputError(
          checkpoint_.path(),
          fmt::format("has no mark of a correction: {} inverts anyway, with the given options",
                      field("again")));
    }
    std::optional<MlmCorrection> last;
    if (request_.inverse && marked) {
      last = parse_mark(marks_.back());
      take_from_mark(*last);
      marks_.pop_back();
    } else {
      take_from_request();
    }
    check_rates(out_.correction.rates);
    choose_mean(last);
    if (!request_.inverse) marks_.push_back(out_.correction.marker());
    out_.marks = fmt::format("{}", fmt::join(marks_, "; "));
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw InputError(checkpoint_.path(), message);
  }

  /// The marks of all corrections so far, the last one last.
  void read_marks() {
    for (const MlmCorrection& mark : correction_marks(checkpoint_, *table_.input))
      marks_.push_back(mark.marker());
  }

  MlmCorrection parse_mark(const std::string& text) const {
    return MlmCorrection::parse(text).value();
  }

  void take_from_mark(const MlmCorrection& marker) {
    out_.correction = marker;
    const MlmRates& rates = marker.rates;
    for (const auto& [given, stored, name] : {std::tuple{request_.rate, rates.rate, "rate"},
                                              {request_.mask, rates.mask, "mask"},
                                              {request_.keep, rates.keep, "keep"},
                                              {request_.random, rates.random, "random"}}) {
      if (given && *given != stored) {
        throw UsageError(fmt::format("{}: found {}, the correction to invert used {}", field(name),
                                     *given, stored));
      }
    }
    if (request_.mask_token || !request_.special_tokens.empty() ||
        request_.special == SpecialPolicy::kCorrect) {
      throw UsageError(fmt::format(
          "{}, {} and {} cannot be combined with {}, which takes them from the mark",
          field("mask_token"), field("special"), field("special_token"), field("inverse")));
    }
    if (marker.mask_row >= table_.rows()) {
      refuse(fmt::format("the mark names row {}, expected a row below {}", marker.mask_row,
                         table_.rows()));
    }
  }

  /// Rates of the model's own training, unless the request names others; false without a record.
  bool take_from_record() {
    const auto record = TrainingRecord::of(checkpoint_);
    if (!record) return false;
    using Inputs = TrainingRecord::Inputs;
    if (record->rates) out_.correction.rates = *record->rates;
    if (record->inputs == Inputs::kWithoutMask) {
      out_.learned_without_mask = true;
      out_.notes.push_back(fmt::format(
          "the model did not learn with [MASK] in its input, as the correction supposes ({}): no "
          "correction is due",
          record->replaces_by_similar ? "selected tokens became similar ones"
                                      : "objective " + escape(record->objective)));
      return true;
    }
    const MlmRates& known = out_.correction.rates;
    if (record->inputs == Inputs::kMasked) {
      out_.notes.push_back(
          fmt::format("the model was trained with rate={} mask={} keep={} random={}{}", known.rate,
                      known.mask, known.keep, known.random,
                      differs(known) ? ", but the correction is for other shares" : ""));
      return true;
    }
    if (request_.rate) return true;
    refuse(
        fmt::format("was trained with the objective {}, of which no rate is known: give the "
                    "share of masked tokens with {}",
                    escape(record->objective), field("rate")));
  }

  /// Whether the request names another share than `known`.
  bool differs(const MlmRates& known) const {
    const auto other = [](const std::optional<double>& given, double share) {
      return given && *given != share;
    };
    return other(request_.rate, known.rate) || other(request_.mask, known.mask) ||
           other(request_.keep, known.keep) || other(request_.random, known.random);
  }

  void take_from_request() {
    const bool known = take_from_record();
    MlmRates& rates = out_.correction.rates;
    rates.rate = request_.rate.value_or(rates.rate);
    rates.mask = request_.mask.value_or(rates.mask);
    rates.keep = request_.keep.value_or(rates.keep);
    rates.random = request_.random.value_or(rates.random);
    out_.correction.mask_row = mask_row();
    keep_special_rows();
    if (known || request_.rate) return;
    out_.notes.push_back(fmt::format(
        "no record says at which rate the model was trained: {} {} is assumed, that of BERT",
        field("rate"), rates.rate));
  }

  /// A row from a token or an id. A number is an id unless it is a token in brackets or quotes:
  /// tokens that look like numbers are named by their ids.
  std::uint64_t row_of(const std::string& text, std::string_view name) const {
    const std::string option = field(name);
    std::optional<std::uint64_t> row = parse_unsigned(text);
    if (!row) {
      row = names_.id(text);
      if (!row) {
        refuse(
            names_.empty()
                ? fmt::format("{} '{}': no tokenizer file next to the checkpoint, expected an id",
                              option, escape(text))
                : fmt::format("{} '{}': no such token in {}", option, escape(text),
                              names_.source()));
      }
    }
    if (*row >= table_.rows()) {
      refuse(fmt::format("{} '{}': found row {}, expected a row below {}", option, escape(text),
                         *row, table_.rows()));
    }
    return *row;
  }

  std::uint64_t mask_row() const {
    if (request_.mask_token) return row_of(*request_.mask_token, "mask_token");
    const auto row = names_.role("mask_token");
    if (!row) {
      refuse(names_.empty()
                 ? fmt::format("no tokenizer file next to the checkpoint: name the mask with {}",
                               field("mask_token"))
                 : fmt::format("{} names no mask token: name it with {}", names_.source(),
                               field("mask_token")));
    }
    if (*row >= table_.rows()) {
      refuse(
          fmt::format("the mask token has id {}, but the table has {} rows", *row, table_.rows()));
    }
    return *row;
  }

  void keep_special_rows() {
    auto& kept = out_.correction.kept_rows;
    const bool keep = request_.special == SpecialPolicy::kKeep;
    if (keep) kept.push_back(out_.correction.mask_row);
    for (const std::string_view role : kSpecialRoles) {
      if (const auto row = names_.role(role); keep && row) kept.push_back(*row);
    }
    for (const std::string& token : request_.special_tokens) {
      kept.push_back(row_of(token, "special_token"));
    }
    if (keep && names_.empty() && config_) {
      for (const std::string_view field : kConfigIds) {
        if (const auto row = config_->size(field)) kept.push_back(*row);
      }
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    std::erase_if(kept, [&](std::uint64_t row) { return row >= table_.rows(); });
    const std::string shown = comma_list(kept, [&](std::uint64_t row) {
      return fmt::format("{}{}", row,
                         names_.assigned(row) ? fmt::format(" {}", escape(names_.token(row))) : "");
    });
    out_.notes.push_back(fmt::format("rows kept: {}", shown.empty() ? "none" : shown));
    if (keep && names_.empty() && request_.special_tokens.empty()) {
      out_.notes.emplace_back(fmt::format("no tokenizer file: name further special rows with {}",
                                          field("special_token")));
    }
  }

  void choose_mean(const std::optional<MlmCorrection>& marker) {
    std::string mean = request_.mean.value_or("vocab");
    if (marker && marker->mean == MeanKind::kUsed && !request_.mean) mean = "used";
    MlmCorrection& correction = out_.correction;
    correction.weights_digest.clear();
    if (mean == "vocab") {
      correction.mean = MeanKind::kVocab;
    } else if (mean == "used") {
      correction.mean = MeanKind::kUsed;
      if (names_.empty())
        refuse(fmt::format("{} used: no tokenizer file next to the checkpoint", field("mean")));
      out_.weights = used_weights(table_.rows(), names_);
      correction.weights_digest = weights_digest(out_.weights);
    } else if (mean.starts_with("freq:")) {
      correction.mean = MeanKind::kFrequency;
      const std::string path = mean.substr(5);
      if (path.empty())
        throw UsageError(fmt::format("{} freq: no file, expected freq:FILE", field("mean")));
      out_.weights =
          frequency_weights(read_text(path, kMaxCounts), input_name(path), table_.rows(), names_);
      correction.weights_digest = weights_digest(out_.weights);
    } else {
      throw UsageError(fmt::format("{}: found '{}', expected vocab, used or freq:FILE",
                                   field("mean"), escape(mean)));
    }
    if (marker &&
        (marker->mean != correction.mean || marker->weights_digest != correction.weights_digest)) {
      refuse(
          fmt::format("the correction to invert used another mean: give the same {}, with the same "
                      "tokens or counts",
                      field("mean")));
    }
  }

  const CorrectionRequest& request_;
  const store::Checkpoint& checkpoint_;
  const std::optional<store::ModelConfig>& config_;
  const TokenNames& names_;
  const EmbeddingTable& table_;
  std::vector<std::string> marks_;
  CorrectionSettings out_;
};

}  // namespace

std::vector<MlmCorrection> correction_marks(const store::Checkpoint& checkpoint,
                                            const store::TensorInfo& table) {
  std::vector<MlmCorrection> marks;
  const auto text = store::find_marker(checkpoint, table.name, kMlmMarkerKey);
  if (!text) return marks;
  for (std::size_t at = 0; at <= text->size();) {
    const std::size_t end = std::min(text->find("; ", at), text->size());
    const std::string one = text->substr(at, end - at);
    auto mark = MlmCorrection::parse(one);
    if (!mark) {
      throw InputError(
          checkpoint.path(),
          fmt::format("metadata '{}' holds '{}', which is not the mark of a correction",
                      kMlmMarkerKey, escape(one)));
    }
    marks.push_back(*std::move(mark));
    at = end + 2;
  }
  return marks;
}

std::vector<MlmCorrection> corrections_of(const std::string& path) {
  const store::Checkpoint checkpoint = store::open_checkpoint(path);
  const EmbeddingTable table =
      find_embedding_table(checkpoint, store::find_config(checkpoint), std::nullopt);
  return correction_marks(checkpoint, *table.input);
}

CorrectionSettings correction_settings(const CorrectionRequest& request,
                                       const store::Checkpoint& checkpoint,
                                       const std::optional<store::ModelConfig>& config,
                                       const TokenNames& names, const EmbeddingTable& table) {
  return Settler(request, checkpoint, config, names, table).settle();
}

namespace {

using Inputs = TrainingRecord::Inputs;

constexpr const char* kTrainingRecord = "training.safetensors";

/// What the networks of an objective read, by its name in the record.
struct RecordedObjective {
  std::string_view name;
  Inputs model = Inputs::kWithoutMask;
  std::optional<Inputs> generator = {};  ///< none: there is no generator
};

/// The record outlives the program that wrote it, so names stay here. Objectives that are not here
/// have inputs of several kinds, or are of a later program: Inputs::kOther.
constexpr std::array<RecordedObjective, 13> kRecordedObjectives{
    {{"all-tokens-mlm", Inputs::kWithoutMask, Inputs::kMasked},
     {"clm"},
     {"electra", Inputs::kWithoutMask, Inputs::kMasked},
     {"electra-15", Inputs::kWithoutMask, Inputs::kMasked},
     {"electric", Inputs::kWithoutMask, Inputs::kWithoutMask},
     {"mae"},
     {"mae-mask"},
     {"mlm", Inputs::kMasked},
     {"plm"},
     {"replace-mlm", Inputs::kWithoutMask, Inputs::kMasked},
     {"tta"},
     {"two-tower"},
     {"univae"}}};

RecordedObjective recorded_objective(std::string_view name) {
  const auto* found = std::ranges::find(kRecordedObjectives, name, &RecordedObjective::name);
  return found == kRecordedObjectives.end() ? RecordedObjective{name, Inputs::kOther} : *found;
}

/// Of the selected tokens: those that such a generator reads as [MASK], and as they are.
constexpr double kGeneratorMask = 0.85, kGeneratorKeep = 0.15;

/// Whether `folder` has the name that lm-train gives to a generator within its run's folder.
bool is_generator_folder(const std::string& folder) {
  std::error_code failed;
  const auto path = std::filesystem::canonical(folder.empty() ? "." : folder, failed);
  return !failed && path.filename() == "generator";
}

/// Numbers from 0 with colons between; empty if `text` is anything else.
std::vector<double> colon_numbers(std::string_view text) {
  std::vector<double> out;
  for (const std::string_view part : split(text, ':')) {
    const auto value = parse_number<double>(part);
    if (!value || !(*value >= 0)) return {};
    out.push_back(*value);
  }
  return out;
}

/// The rate that `text` of the record `path` states, of a range the mean: the correction is linear
/// in the rate.
double mean_rate(const std::string& text, const std::string& path) {
  const std::vector<double> rate = colon_numbers(text);
  if (rate.empty() || rate.size() > 2) {
    throw InputError(path, fmt::format("masque.rate '{}': expected a rate, or two with ':' between",
                                       escape(text)));
  }
  return (rate.front() + rate.back()) / 2;
}

}  // namespace

std::span<const std::string_view> TrainingRecord::facts() {
  static constexpr std::array<std::string_view, 4> kFacts{"objective", "rate", "replace", "split"};
  return kFacts;
}

std::optional<TrainingRecord> TrainingRecord::of(const store::Checkpoint& checkpoint) {
  std::string path = join(checkpoint.folder(), kTrainingRecord);
  const bool of_pair = !exists(path) && is_generator_folder(checkpoint.folder());
  if (of_pair) path = join(join(checkpoint.folder(), ".."), kTrainingRecord);
  if (!exists(path)) return std::nullopt;
  const store::Checkpoint state = store::open_checkpoint(path);
  const auto value = [&](std::string_view name) -> std::string {
    for (const store::WeightsFile& file : state.files()) {
      const std::string* found =
          store::find_metadata(file.content.metadata, fmt::format("masque.{}", name));
      if (found != nullptr) return *found;
    }
    return "";
  };
  TrainingRecord out;
  out.objective = value("objective");
  if (out.objective.empty()) return std::nullopt;
  const RecordedObjective objective = recorded_objective(out.objective);
  // Another folder may be called so by chance.
  if (of_pair && !objective.generator) return std::nullopt;
  out.inputs = of_pair ? *objective.generator : objective.model;
  if (out.inputs != Inputs::kMasked) return out;
  if (of_pair) {
    out.rates = {.rate = mean_rate(value("rate"), path),
                 .mask = kGeneratorMask,
                 .keep = kGeneratorKeep,
                 .random = 0};
    return out;
  }
  const std::string replace = value("replace");
  out.replaces_by_similar = !replace.empty() && replace != "mask";
  out.inputs = out.replaces_by_similar ? Inputs::kWithoutMask : Inputs::kMasked;
  const std::vector<double> split = colon_numbers(value("split"));
  const double sum = split.size() == 3 ? split[0] + split[1] + split[2] : 0;
  if (!(sum > 0)) {
    throw InputError(
        path,
        fmt::format("masque.split '{}': expected the shares of [MASK], kept and random tokens",
                    escape(value("split"))));
  }
  out.rates = {.rate = mean_rate(value("rate"), path),
               .mask = split[0] / sum,
               .keep = split[1] / sum,
               .random = split[2] / sum};
  return out;
}

}  // namespace masque::surgery
