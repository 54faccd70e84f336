#include "surgery/positions/resize_types.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "surgery/edit/vocab_size.hpp"
#include "surgery/positions/resize_positions.hpp"
#include "surgery/rows/new_rows.hpp"
#include "surgery/rows/row_map.hpp"

namespace masque::surgery {

namespace {

constexpr std::string_view kSize = "type_vocab_size";

const store::TensorInfo& find_types(const store::Checkpoint& checkpoint,
                                    const std::optional<store::ModelConfig>& config,
                                    const std::optional<std::string>& tensor, EditReport& report) {
  if (tensor) return checkpoint.get(*tensor);
  const EmbeddingTable table = find_embedding_table(checkpoint, config, std::nullopt);
  if (table.family == nullptr) {
    throw InputError(
        checkpoint.path(),
        fmt::format("belongs to no known family: name the table of token types with {}",
                    field("tensor")));
  }
  const model::FamilyNames& family = *table.family;
  report.family = family.name;
  if (family.segment_table.empty())
    throw InputError(checkpoint.path(), fmt::format("{} has no token types", family.name));
  return table.names.get(model::with_prefix(family.segment_table, table.prefix));
}

/// What every new row is: numbers, or the number of a stored row.
struct NewType {
  std::vector<double> values;
  std::uint64_t copy = kComputedRow;
};

NewType new_type(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                 const TypesRequest& request) {
  const std::string init = request.init.value_or("mean");
  const std::uint64_t rows = table.shape[0];
  if (init == "zero") return {std::vector<double>(table.shape[1], 0.0)};
  if (init == "mean") {
    NewType type{weighted_row_sum(checkpoint, table, {}, request.write.threads)};
    for (double& value : type.values) value /= static_cast<double>(rows);
    return type;
  }
  const auto [name, argument] = split_at_first(init, ':');
  const auto row = name == "copy" && argument ? parse_unsigned(*argument) : std::nullopt;
  if (!row) {
    throw UsageError(
        fmt::format("{}: found '{}', expected mean, zero or copy:K with a token type K",
                    field("init"), escape(init)));
  }
  if (*row >= rows)
    throw UsageError(
        fmt::format("{} copy:{}: expected a token type below {}", field("init"), *row, rows));
  return {{}, *row};
}

}  // namespace

TypesReport resize_types(const std::string& in, const std::string& out,
                         const TypesRequest& request) {
  EditedCheckpoint edited(in, request);
  store::check_one_gguf(edited.checkpoint);
  TypesReport report;
  const store::TensorInfo& table =
      find_types(edited.checkpoint, edited.config, request.tensor, report);
  check_table(edited.checkpoint, table);
  report.tensor = table.name;
  report.dtype = table.dtype;
  report.before = table.shape;
  report.after = {request.types, table.shape[1]};
  const std::uint64_t rows = table.shape[0];
  if (request.init && request.types <= rows)
    throw UsageError(fmt::format("{} has no effect: {} token types out of {} need no new rows",
                                 field("init"), request.types, rows));
  const NewType type = new_type(edited.checkpoint, table, request);
  edited.edit.replace(
      table.name, report.after,
      new_rows_source(edited.checkpoint, table,
                      [rows, type](std::uint64_t row, std::span<double> values) -> std::uint64_t {
                        if (row < rows) return row;
                        std::ranges::copy(type.values, values.begin());
                        return type.copy;
                      }));
  resize_slots(edited.edit, table, request.types);
  const store::TypedValue* count =
      store::find_gguf_value(edited.checkpoint, "tokenizer.ggml.token_type_count");
  if (count != nullptr) edited.edit.set_typed(store::make_gguf_integer(*count, request.types, in));
  if (!edited.edit.set_config(kSize, fmt::format("{}", request.types)) && count == nullptr) {
    report.notes.push_back(
        fmt::format("set \"{}\": {} in the config.json of the output", kSize, request.types));
  }
  match_vocab_size(edited.edit, edited.config, report.notes);
  finish_edit(edited, out, request, report);
  return report;
}

}  // namespace masque::surgery
