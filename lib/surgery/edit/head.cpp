#include "surgery/edit/head.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"
#include "model/family.hpp"
#include "model/family_config.hpp"
#include "model/known_keys.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/tensor_stats.hpp"
#include "surgery/convert/aliases.hpp"
#include "surgery/edit/vocab_size.hpp"
#include "surgery/rows/row_map.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

/// Sets `field`, a family's name of the tie.
void set_tie(CheckpointEdit& edit, const std::string& field, bool tied,
             std::vector<std::string>& notes) {
  const std::string value = tied ? "true" : "false";
  if (edit.set_config(field, value)) {
    notes.push_back(fmt::format("config.json: {} becomes {}", field, value));
  } else {
    notes.push_back(fmt::format("set \"{}\": {} in the config.json of the output", field, value));
  }
}

/// Throws InputError where a head cannot be spoken of.
void check_head(const store::Checkpoint& checkpoint, const EmbeddingTable& table) {
  if (table.family == nullptr) {
    throw InputError(
        checkpoint.path(),
        fmt::format("'{}' belongs to no known family, so its output head cannot be found",
                    escape(table.input->name)));
  }
  if (table.head == HeadState::kNone)
    throw InputError(checkpoint.path(), "no output head in the checkpoint");
  if (table.head == HeadState::kMissing) {
    throw InputError(
        checkpoint.path(),
        fmt::format("the config says that the output head is untied, but '{}' is not stored",
                    table.decoder_weight));
  }
}

/// Throws InputError where a model of this `config` has an output matrix of its own whatever the
/// config says of ties, or other options that do not go with a tied one.
void check_can_tie(const store::ModelConfig& config, const EmbeddingTable& table) {
  if (config.model_type().empty()) return;
  const store::ModelConfig tied = store::ModelConfig::parse(
      set_json_member(config.text(), {table.tie_field()}, "true"), config.path());
  const model::ModelPlan plan =
      model::read_plan(model::choose_family(tied, ""), model::FamilyConfig(tied));
  const auto is_tied = [](const model::HeadPlan& head) {
    return !model::has_one_number(head.design.kind) && head.design.tied;
  };
  if (std::ranges::any_of(plan.heads, is_tied)) return;
  throw InputError(config.path(),
                   fmt::format("the output head of {} always has a matrix of its own: it cannot "
                               "be tied",
                               table.family->name));
}

/// |a − b|, infinite instead of NaN.
double distance(double a, double b) {
  const double difference = std::abs(a - b);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

/// Largest |a − b|, and in how many rows there is any; NaN equals NaN.
void compare_rows(const store::Checkpoint& checkpoint, const store::TensorInfo& a,
                  const store::TensorInfo& b, int threads, TieReport& report) {
  const std::uint64_t width = a.shape[1];
  const std::uint64_t step = rows_per_block(a);
  std::vector<std::uint64_t> rows(divide_up(a.shape[0], step));
  std::vector<double> largest(rows.size());
  for_each_row_block(checkpoint, a, threads,
                     [&](std::uint64_t first, std::span<const double> left) {
                       std::vector<std::byte> bytes(left.size() * (dtype_bits(b.dtype) / 8));
                       std::vector<double> right(left.size());
                       checkpoint.read(b, first * width * (dtype_bits(b.dtype) / 8), bytes);
                       to_double(b.dtype, bytes, right);
                       const std::uint64_t block = first / step;
                       for (std::uint64_t i = 0; i < left.size(); i += width) {
                         bool differs = false;
                         for (std::uint64_t d = i; d < i + width; ++d) {
                           if (left[d] == right[d] || (std::isnan(left[d]) && std::isnan(right[d])))
                             continue;
                           differs = true;
                           largest[block] = std::max(largest[block], distance(left[d], right[d]));
                         }
                         rows[block] += differs ? 1 : 0;
                       }
                     });
  for (std::size_t block = 0; block < rows.size(); ++block) {
    report.rows_different += rows[block];
    report.largest_difference = std::max(report.largest_difference, largest[block]);
  }
}

/// Second names of a bias, which only an untied head reads: what they say becomes the bias.
void remove_copies(EditedCheckpoint& edited, const model::FamilyNames& family, TieReport& report) {
  const store::Checkpoint& checkpoint = edited.checkpoint;
  for (const model::HeadCopy& copy : family.head_copies) {
    const store::TensorInfo* stored = checkpoint.find(copy.name);
    const store::TensorInfo* source = checkpoint.find(copy.source);
    if (stored == nullptr || source == nullptr) continue;
    if (stored->dtype != source->dtype || stored->shape != source->shape) {
      throw InputError(
          checkpoint.path(),
          fmt::format("'{}' is {} {}, '{}' is {} {}: expected the same dtype and shape", copy.name,
                      dtype_name(stored->dtype), shape_text(stored->shape), copy.source,
                      dtype_name(source->dtype), shape_text(source->shape)));
    }
    if (store::tensor_hash(checkpoint, *stored, store::HashKind::kXxh3) !=
        store::tensor_hash(checkpoint, *source, store::HashKind::kXxh3)) {
      edited.edit.replace(source->name, source->shape,
                          store::source_of(checkpoint.files()[stored->file].file, *stored));
      report.notes.push_back(fmt::format("'{}' gets the values of '{}', which the untied head used",
                                         copy.source, copy.name));
    }
    edited.edit.remove(stored->name);
    report.removed.push_back(stored->name);
  }
}

}  // namespace

std::vector<store::OutputTensor> head_tensors(const store::Checkpoint& checkpoint,
                                              const EmbeddingTable& table) {
  std::vector<store::OutputTensor> out;
  const auto copy = [&](const std::string& name, const store::TensorInfo& source) {
    store::TensorInfo info = source;
    info.name = name;
    info.reader = nullptr;
    info.alias_of.clear();
    out.push_back(
        {std::move(info), store::source_of(checkpoint.files()[source.file].file, source)});
  };
  const bool stored = checkpoint.find(table.decoder_weight) != nullptr;
  if (!stored) copy(table.decoder_weight, *table.input);
  for (const auto& [name, source] : table.missing_copies) copy(name, checkpoint.get(source));
  return out;
}

namespace {

/// Tensors of the head that PyTorch stores as one with those of the input get bytes of their own;
/// adds their names, for people.
void separate_twins(CheckpointEdit& edit, const EmbeddingTable& table,
                    std::vector<std::string>& names) {
  const store::Checkpoint& checkpoint = edit.checkpoint();
  const auto separate = [&](const std::string& own, const std::string& other) {
    const store::TensorInfo* a = checkpoint.find(own);
    const store::TensorInfo* b = checkpoint.find(other);
    if (a == nullptr || b == nullptr || edit.replacement(own) != nullptr) return;
    if (!share_bytes(*a, *b)) return;
    edit.replace(own, a->shape, store::source_of(checkpoint.files()[a->file].file, *a));
    names.push_back(fmt::format("'{}'", own));
  };
  separate(table.decoder_weight, table.input->name);
  if (table.family == nullptr) return;
  for (const model::HeadCopy& copy : table.family->head_copies) separate(copy.name, copy.source);
}

}  // namespace

void untie_head(CheckpointEdit& edit, const EmbeddingTable& table,
                std::vector<std::string>& notes) {
  check_can_untie(edit.checkpoint(), table);
  std::vector<std::string> names;
  for (store::OutputTensor& tensor : head_tensors(edit.checkpoint(), table)) {
    names.push_back(fmt::format("'{}'", tensor.info.name));
    edit.add(std::move(tensor), table.input->name);
  }
  separate_twins(edit, table, names);
  notes.push_back(fmt::format("the output head is untied{}",
                              names.empty() ? "" : ": it gets " + comma_list(names)));
  set_tie(edit, table.tie_field(), false, notes);
}

TieReport tie_checkpoint(const std::string& in, const std::string& out, const TieRequest& request) {
  EditedCheckpoint edited(in, request);
  const EmbeddingTable table =
      find_embedding_table(edited.checkpoint, edited.config, request.tensor);
  check_head(edited.checkpoint, table);
  store::check_one_gguf(edited.checkpoint);
  TieReport report;
  report.family = table.family->name;
  report.head = table.decoder_weight;
  const store::TensorInfo* decoder = edited.checkpoint.find(table.decoder_weight);
  if (decoder == nullptr && edited.checkpoint.find_opaque(table.decoder_weight) != nullptr)
    decoder = &edited.checkpoint.get(table.decoder_weight);  // throws, naming its type
  if (decoder == nullptr) {
    report.notes.emplace_back("the output head is already tied: the output is a copy");
  } else {
    check_table(edited.checkpoint, *decoder);
    if (decoder->shape != table.input->shape) {
      throw InputError(
          in,
          fmt::format("'{}' has shape {}, but the input table has shape {}: they cannot be tied",
                      decoder->name, shape_text(decoder->shape), shape_text(table.input->shape)));
    }
    compare_rows(edited.checkpoint, *table.input, *decoder, request.write.threads, report);
    if (report.rows_different > 0) {
      const std::string what = fmt::format(
          "'{}' differs from the input table in {} of {} rows, by at most {:.6g}", decoder->name,
          report.rows_different, table.rows(), report.largest_difference);
      if (!request.drop)
        throw InputError(in, what + fmt::format(": {} removes it anyway", field("drop")));
      report.notes.push_back(what + ": removed");
    }
    if (table.family->tied_head_differs) {
      throw InputError(in, fmt::format("a tied output head of {} computes another function than an "
                                       "untied one: it cannot be tied",
                                       table.family->name));
    }
    if (edited.config && table.can_untie) check_can_tie(*edited.config, table);
    edited.edit.remove(decoder->name);
    report.removed.push_back(decoder->name);
    remove_copies(edited, *table.family, report);
    if (table.can_untie) set_tie(edited.edit, table.tie_field(), true, report.notes);
  }
  if (!request.tensor) match_vocab_size(edited.edit, table.family, table.rows(), &report.notes);
  finish_edit(edited, out, request, report);
  return report;
}

UntieReport untie_checkpoint(const std::string& in, const std::string& out,
                             const EditRequest& request) {
  EditedCheckpoint edited(in, request);
  EmbeddingTable table = find_embedding_table(edited.checkpoint, edited.config, request.tensor);
  // A request to untie a head of which there is no trace: the user knows that there is one.
  if (table.head == HeadState::kUnknown && table.family != nullptr) table.head = HeadState::kTied;
  check_head(edited.checkpoint, table);
  UntieReport report;
  report.family = table.family->name;
  report.head = table.decoder_weight;
  if (table.head == HeadState::kOwn && !table.config_tied) {
    report.notes.emplace_back("the output head is already untied: the output is a copy");
  } else {
    untie_head(edited.edit, table, report.notes);
  }
  if (!request.tensor) match_vocab_size(edited.edit, table.family, table.rows(), &report.notes);
  finish_edit(edited, out, request, report);
  return report;
}

}  // namespace masque::surgery
