#include "surgery/positions/resize_positions.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "surgery/edit/vocab_size.hpp"
#include "surgery/rows/new_rows.hpp"
#include "tensor/convert.hpp"

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
    const std::string second = model::with_prefix(family.decoder_positions, table.prefix);
    if (!second.empty() && table.names.find(second) != nullptr) {
      throw InputError(checkpoint.path(),
                       fmt::format("'{}': the model has a second table of positions, which is not "
                                   "supported",
                                   escape(second)));
    }
    found.table = &table.names.get(model::with_prefix(family.position_table, table.prefix));
  }
  check_table(checkpoint, *found.table);
  return found;
}

std::uint64_t offset_of(const Positions& positions, const std::optional<store::ModelConfig>& config,
                        const std::optional<std::uint64_t>& given) {
  if (given) return *given;
  if (positions.family == nullptr) return 0;
  if (!positions.family->positions_after_padding)
    return static_cast<std::uint64_t>(positions.family->position_offset);
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

/// The sizes in config.json, which are rows of the table, or in some families (OPT) positions:
/// rows but the first `offset`. Without any of its names the family's default would count: it gets
/// the first one then.
void set_sizes(EditedCheckpoint& edited, const model::FamilyNames* family, std::uint64_t offset,
               std::uint64_t before, std::uint64_t after, std::vector<std::string>& notes) {
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
    if (offset > 0 && *value + offset == before) {
      edited.edit.set_config(name, fmt::format("{}", after - offset));
      continue;
    }
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
  store::check_one_gguf(edited.checkpoint);
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
  set_sizes(edited, positions.family, report.offset, rows, after, report.notes);
  resize_text_limits(edited.edit, report.positions_before, request.positions, report.notes);
  match_vocab_size(edited.edit, edited.config, report.notes);
  finish_edit(edited, out, request, report);
  return report;
}

namespace {

using Content = model::BufferTensor::Content;

constexpr std::uint64_t kBufferElements = 1 << 17;

Shape shape_of(Content content, std::uint64_t rows) {
  return content == Content::kCausal ? Shape{1, 1, rows, rows} : Shape{1, rows};
}

std::uint64_t element_of(Content content, std::uint64_t rows, std::uint64_t i) {
  switch (content) {
    case Content::kCount: return i;
    case Content::kZero: return 0;
    case Content::kCausal: return i % rows <= i / rows ? 1 : 0;
    case Content::kOther: break;
  }
  return 0;
}

/// Whether numbers up to `most` are written exactly as this type by put_number.
bool holds(DType dtype, std::uint64_t most) {
  switch (dtype) {
    case DType::kI64:
    case DType::kI32: return most <= 0x7fffffff;
    case DType::kBool:
    case DType::kU8: return most <= 1;
    default: return can_encode(dtype) && most <= 1;
  }
}

void put_number(DType dtype, std::uint64_t number, MutableBytes out) {
  if (can_encode(dtype)) {
    const auto value = static_cast<double>(number);
    from_double(dtype, std::span(&value, 1), out);
    return;
  }
  for (std::size_t k = 0; k < out.size(); ++k)
    out[k] = k < sizeof number ? static_cast<std::byte>(number >> (8 * k)) : std::byte{0};
}

/// out ← the bytes of the buffer for `rows` rows from byte `offset` on.
void fill(Content content, DType dtype, std::uint64_t rows, std::uint64_t offset,
          MutableBytes out) {
  const std::uint64_t size = dtype_bits(dtype) / 8;
  for (std::uint64_t i = 0; i < out.size() / size; ++i) {
    put_number(dtype, element_of(content, rows, offset / size + i), out.subspan(i * size, size));
  }
}

void check_content(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor,
                   Content content, std::uint64_t rows) {
  const std::uint64_t chunk = kBufferElements * (dtype_bits(tensor.dtype) / 8);
  std::vector<std::byte> stored;
  std::vector<std::byte> expected;
  for (std::uint64_t offset = 0; offset < tensor.bytes(); offset += chunk) {
    stored.resize(std::min(chunk, tensor.bytes() - offset));
    expected.resize(stored.size());
    checkpoint.read(tensor, offset, stored);
    fill(content, tensor.dtype, rows, offset, expected);
    if (stored == expected) continue;
    const char* what = content == Content::kCount  ? "the numbers from 0 on"
                       : content == Content::kZero ? "zeros"
                                                   : "ones on and below the diagonal";
    throw InputError(
        checkpoint.path(),
        fmt::format("tensor '{}': expected {}, because it is written again for the new length",
                    escape(tensor.name), what));
  }
}

void resize_buffer(CheckpointEdit& edit, const store::TensorInfo& tensor, Content content,
                   std::uint64_t before, std::uint64_t after, std::vector<std::string>& notes) {
  const std::uint64_t most = content == Content::kCount ? after : 1;
  if (tensor.shape != shape_of(content, before) || !holds(tensor.dtype, most)) {
    notes.push_back(
        fmt::format("'{}' is {} {}, which does not match the number of positions: left unchanged",
                    escape(tensor.name), dtype_name(tensor.dtype), shape_text(tensor.shape)));
    return;
  }
  check_content(edit.checkpoint(), tensor, content, before);
  const DType dtype = tensor.dtype;
  edit.replace(tensor.name, shape_of(content, after),
               store::Computed{[content, dtype, after](std::uint64_t offset, MutableBytes out) {
                                 fill(content, dtype, after, offset, out);
                               },
                               kBufferElements * (dtype_bits(dtype) / 8)});
}

}  // namespace

void resize_position_buffers(CheckpointEdit& edit, const model::FamilyNames& family,
                             std::uint64_t before, std::uint64_t after,
                             std::vector<std::string>& notes) {
  for (const store::TensorInfo& tensor : edit.checkpoint().tensors()) {
    const auto ends = [&](const model::BufferTensor& b) { return tensor.name.ends_with(b.ending); };
    const auto buffer = std::ranges::find_if(family.buffers, ends);
    if (buffer == family.buffers.end() || buffer->content == Content::kOther) continue;
    resize_buffer(edit, tensor, buffer->content, before, after, notes);
  }
}

void move_slots(CheckpointEdit& edit, const store::TensorInfo& table,
                std::vector<std::uint64_t> from) {
  const auto rows = std::make_shared<const std::vector<std::uint64_t>>(std::move(from));
  for (const store::TensorInfo* slot : optimizer_slots(edit.checkpoint(), table)) {
    Shape shape = slot->shape;
    shape[0] = rows->size();
    edit.replace(slot->name, std::move(shape),
                 new_rows_source(edit.checkpoint(), *slot,
                                 [rows](std::uint64_t row, std::span<double> values) {
                                   std::ranges::fill(values, 0.0);
                                   return (*rows)[row];
                                 }));
  }
}

void resize_slots(CheckpointEdit& edit, const store::TensorInfo& table, std::uint64_t after) {
  std::vector<std::uint64_t> from(after, kComputedRow);
  const std::uint64_t kept = std::min(after, table.shape[0]);
  std::iota(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(kept), std::uint64_t{0});
  move_slots(edit, table, std::move(from));
}

namespace {

struct TextLimit {
  const char* file;
  std::vector<std::string> path;
};

const JsonValue* value_at(const JsonValue& root, const std::vector<std::string>& path) {
  const JsonValue* value = &root;
  for (const std::string& name : path) {
    value = value->find(name);
    if (value == nullptr) return nullptr;
  }
  return value;
}

}  // namespace

void resize_text_limits(CheckpointEdit& edit, std::uint64_t before, std::uint64_t after,
                        std::vector<std::string>& notes) {
  const std::array<TextLimit, 3> limits{{
      {"tokenizer_config.json", {"model_max_length"}},
      {"tokenizer.json", {"truncation", "max_length"}},
      {"sentence_bert_config.json", {"max_seq_length"}},
  }};
  if (!edit.checkpoint().is_folder()) return;
  for (const auto& [file, path] : limits) {
    const auto text = edit.file_text(file);
    if (!text) continue;
    const JsonValue root = parse_json_file(*text, join(edit.checkpoint().folder(), file));
    const JsonValue* value = value_at(root, path);
    // Without a limit, or with transformers' huge one, no text is cut that was not cut before.
    const auto limit = value == nullptr ? std::nullopt : value->integer();
    if (!limit || *limit == after) continue;
    if (*limit == before || (*limit > after && after < before)) {
      edit.set_file(file, set_json_member(*text, path, fmt::format("{}", after)));
    } else if (*limit < after) {
      notes.push_back(fmt::format("{}: {} stays {}: longer texts are still truncated", file,
                                  path.back(), *limit));
    }
  }
}

namespace {

/// truncate: the first positions, no more.
class Truncate final : public PositionExtension {
 public:
  std::string_view about() const override { return "the first positions, for a shorter table"; }
  Index fewest(Index /*rows*/) const override { return 1; }
  Index most(Index rows) const override { return rows; }
  TableRows row(Index position, Index /*rows*/, Index /*length*/) const override {
    return {{{{position, 1.0}}}, 1};
  }
};

/// repeat: the table once more after itself, as Longformer was begun.
class Repeat final : public PositionExtension {
 public:
  std::string_view about() const override {
    return "the table, repeated: Beltagy et al. 2020, arXiv:2004.05150";
  }
  TableRows row(Index position, Index rows, Index /*length*/) const override {
    return {{{{position % rows, 1.0}}}, 1};
  }
};

/// last: every position beyond the table has its last row.
class Last final : public PositionExtension {
 public:
  std::string_view about() const override {
    return "the last row at every position beyond the table";
  }
  TableRows row(Index position, Index rows, Index /*length*/) const override {
    return table_rows(position, rows, 0);
  }
};

/// interpolate: the table stretched; its first and last rows stay the first and the last.
class Interpolate final : public PositionExtension {
 public:
  std::string_view about() const override {
    return "linear interpolation between neighbouring rows; the first and last rows stay";
  }
  Index fewest(Index /*rows*/) const override { return 1; }
  TableRows row(Index position, Index rows, Index length) const override {
    if (length == 1) return {{{{0, 1.0}}}, 1};
    const auto at = static_cast<double>(position) * static_cast<double>(rows - 1);
    return table_rows_between(at / static_cast<double>(length - 1), rows);
  }
};

/// hierarchical: position q N + r is made of rows q and r of a table of N.
class Hierarchical final : public PositionExtension {
 public:
  explicit Hierarchical(double alpha) : alpha_(alpha) {}
  std::string_view about() const override {
    return "alpha u_q + (1 - alpha) u_r at position q N + r: Su 2020, kexue.fm/archives/7947";
  }
  Index most(Index rows) const override { return table_positions(rows, alpha_); }
  TableRows row(Index position, Index rows, Index /*length*/) const override {
    return table_rows(position, rows, alpha_);
  }

 private:
  double alpha_;
};

template <class T>
std::unique_ptr<const PositionExtension> make_plain(std::optional<double> /*argument*/) {
  return std::make_unique<T>();
}

constexpr PositionExtensionInfo kExtensions[] = {
    {"hierarchical", "ALPHA",
     [](std::optional<double> argument) -> std::unique_ptr<const PositionExtension> {
       const double alpha = argument.value_or(0.4);
       if (!(alpha > 0 && alpha < 1))
         throw UsageError(
             fmt::format("{} hierarchical: expected ALPHA between 0 and 1", field("how")));
       return std::make_unique<Hierarchical>(alpha);
     }},
    {"interpolate", "", make_plain<Interpolate>},
    {"last", "", make_plain<Last>},
    {"repeat", "", make_plain<Repeat>},
    {"truncate", "", make_plain<Truncate>},
};

}  // namespace

std::span<const PositionExtensionInfo> position_extensions() { return kExtensions; }

std::string position_extension_spellings() {
  return comma_list(kExtensions, [](const PositionExtensionInfo& info) {
    return fmt::format("{}{}", info.name,
                       info.argument.empty() ? "" : fmt::format("[:{}]", info.argument));
  });
}

std::unique_ptr<const PositionExtension> parse_position_extension(std::string_view text) {
  const auto [name, value] = split_at_first(text, ':');
  const auto found = std::ranges::find(kExtensions, name, &PositionExtensionInfo::name);
  if (found == std::end(kExtensions)) {
    throw UsageError(fmt::format("{}: found '{}', expected one of {}", field("how"), escape(text),
                                 position_extension_spellings()));
  }
  std::optional<double> argument;
  if (value) {
    argument = parse_number<double>(*value);
    if (found->argument.empty() || !argument) {
      throw UsageError(fmt::format("{}: found '{}', expected {}", field("how"), escape(text),
                                   found->argument.empty()
                                       ? std::string(found->name)
                                       : fmt::format("a number after '{}:'", found->name)));
    }
  }
  return found->make(argument);
}

}  // namespace masque::surgery
