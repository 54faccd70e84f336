#include "surgery/positions/resize_positions.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "surgery/edit/vocab_size.hpp"
#include "surgery/positions/position_buffers.hpp"
#include "surgery/positions/position_extension.hpp"
#include "surgery/rows/new_rows.hpp"

namespace masque::surgery {

namespace {

constexpr std::array<std::string_view, 3> kUsualFields{"max_position_embeddings", "n_positions",
                                                       "n_ctx"};

/// The table of positions, and what is known of it.
struct Positions {
  const model::FamilyNames* family = nullptr;
  std::shared_ptr<const model::FamilyNames> of_config;  ///< owns `family`, see EmbeddingTable
  const store::TensorInfo* table = nullptr;
};

Positions find_positions(const store::Checkpoint& checkpoint,
                         const std::optional<store::ModelConfig>& config,
                         const std::optional<std::string>& tensor) {
  Positions found;
  if (config && config->size("late_positions").value_or(0) > 0) {
    throw InputError(
        checkpoint.path(),
        "late_positions: the model has a second table of positions, which is not supported");
  }
  if (tensor) {
    found.table = &checkpoint.get(*tensor);
  } else {
    const EmbeddingTable table = find_embedding_table(checkpoint, config, std::nullopt);
    found.family = table.family;
    found.of_config = table.of_config;
    if (table.family == nullptr) {
      throw InputError(
          checkpoint.path(),
          fmt::format("belongs to no known family: name the table of positions with {}",
                      field("tensor")));
    }
    const model::FamilyNames& family = *table.family;
    if (family.position_table.empty()) {
      throw InputError(checkpoint.path(), fmt::format("{} has no table of positions: it reads "
                                                      "texts of any length",
                                                      family.name));
    }
    found.table = &table.names.get(model::with_prefix(family.position_table, table.prefix));
  }
  check_table(checkpoint, *found.table);
  return found;
}

std::uint64_t offset_of(const Positions& positions, const std::optional<store::ModelConfig>& config,
                        const std::optional<std::uint64_t>& given) {
  if (given) return *given;
  if (positions.family == nullptr || !positions.family->positions_after_padding) return 0;
  return (config ? config->size("pad_token_id").value_or(1) : 1) + 1;
}

/// Throws UsageError if the way cannot make so many positions of so many.
void check_number(const PositionExtension& way, const PositionsRequest& request,
                  std::uint64_t before) {
  const auto rows = static_cast<Index>(before);
  const auto fewest = static_cast<std::uint64_t>(way.fewest(rows));
  const auto most = static_cast<std::uint64_t>(way.most(rows));
  if (request.positions >= fewest && request.positions <= most) return;
  const std::string hint = request.positions < fewest
                               ? fmt::format("; {} truncate keeps the first ones", field("how"))
                               : std::string();
  throw UsageError(fmt::format(
      "N: found {}, expected {} to {} for '{}' and a table of {} positions{}", request.positions,
      fewest, most > std::uint64_t{1} << 62 ? std::string("any number") : fmt::format("{}", most),
      escape(request.how), before, hint));
}

/// The sizes in config.json. Without any of its names the family's default would count: it gets the
/// first one then.
void set_sizes(EditedCheckpoint& edited, const model::FamilyNames* family, std::uint64_t before,
               std::uint64_t after, std::vector<std::string>& notes) {
  std::vector<std::string_view> names(kUsualFields.begin(), kUsualFields.end());
  std::string_view first;
  if (family != nullptr) first = family->position_field;
  if (const store::TypedValue* size = store::find_gguf_size(edited.checkpoint, "context_length")) {
    edited.edit.set_typed(store::make_gguf_integer(*size, after, edited.checkpoint.path()));
    notes.push_back(fmt::format("metadata '{}' becomes {}", size->key, after));
    return;
  }
  if (!edited.config || !edited.checkpoint.is_folder()) {
    notes.push_back(fmt::format("set \"{}\": {} in the config.json of the output",
                                first.empty() ? names.front() : first, after));
    return;
  }
  bool found = false;
  for (const std::string_view name : names) {
    const auto value = edited.config->size(name);
    if (!value) continue;
    found = true;
    if (*value != before) {
      notes.push_back(
          fmt::format("config.json: {} was {}, but the table had {} rows", name, *value, before));
    }
    edited.edit.set_config(name, fmt::format("{}", after));
  }
  if (!found && !first.empty()) edited.edit.set_config(first, fmt::format("{}", after));
}

/// Which stored row each new row's slots are: where a stored row goes as it is, its slots go along,
/// to the first such place. A row that is a sum, or a second copy, is new.
std::vector<std::uint64_t> slot_rows(const PositionExtension& way, std::uint64_t offset,
                                     Index before, Index length) {
  std::vector<std::uint64_t> from(offset + static_cast<std::uint64_t>(length), kComputedRow);
  std::iota(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(offset), std::uint64_t{0});
  std::vector<bool> gone(static_cast<std::size_t>(before));
  for (Index position = 0; position < length; ++position) {
    const TableRows sum = way.row(position, before, length);
    const auto [row, weight] = sum.parts[0];
    const auto stored = static_cast<std::size_t>(row);
    if (sum.count != 1 || weight != 1 || gone[stored]) continue;
    gone[stored] = true;
    from[offset + static_cast<std::uint64_t>(position)] = offset + stored;
  }
  return from;
}

}  // namespace

PositionsReport resize_positions(const std::string& in, const std::string& out,
                                 const PositionsRequest& request) {
  const std::shared_ptr<const PositionExtension> way = parse_position_extension(request.how);
  EditedCheckpoint edited(in, request);
  store::check_whole_gguf(edited.checkpoint);
  const Positions positions = find_positions(edited.checkpoint, edited.config, request.tensor);
  const store::TensorInfo& table = *positions.table;
  const std::uint64_t rows = table.shape[0];
  PositionsReport report;
  report.family = positions.family == nullptr ? "" : std::string(positions.family->name);
  report.tensor = table.name;
  report.dtype = table.dtype;
  report.before = table.shape;
  report.offset = offset_of(positions, edited.config, request.offset);
  if (report.offset >= rows) {
    throw InputError(
        in,
        fmt::format(
            "tensor '{}': {} rows, of which {} are before the first position: expected more rows",
            escape(table.name), rows, report.offset));
  }
  report.positions_before = rows - report.offset;
  check_number(*way, request, report.positions_before);
  if (positions.family != nullptr && positions.family->computed_positions &&
      request.positions > report.positions_before) {
    throw InputError(in, fmt::format("tensor '{}': fixed sines and cosines, which are not learned: "
                                     "only {} truncate is supported",
                                     escape(table.name), field("how")));
  }
  const std::uint64_t after = report.offset + request.positions;
  report.after = {after, table.shape[1]};
  const auto before = static_cast<Index>(report.positions_before);
  const auto length = static_cast<Index>(request.positions);
  edited.edit.replace(table.name, report.after,
                      new_rows_source(edited.checkpoint, table,
                                      summed_rows(edited.checkpoint, table, report.offset,
                                                  [way, before, length](Index place) {
                                                    return way->row(place, before, length);
                                                  })));
  move_slots(edited.edit, table, slot_rows(*way, report.offset, before, length));
  if (positions.family != nullptr) {
    resize_position_buffers(edited.edit, *positions.family, rows, after, report.notes);
  }
  set_sizes(edited, positions.family, rows, after, report.notes);
  resize_text_limits(edited.edit, report.positions_before, request.positions, report.notes);
  match_vocab_size(edited.edit, edited.config, report.notes);
  finish_edit(edited, out, request, report);
  return report;
}

}  // namespace masque::surgery
