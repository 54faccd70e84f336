#include "surgery/positions/position_buffers.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "surgery/rows/new_rows.hpp"
#include "tensor/convert.hpp"

namespace masque::surgery {

namespace {

using Content = model::BufferTensor::Content;

constexpr std::uint64_t kChunkElements = 1 << 17;

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
  const std::uint64_t chunk = kChunkElements * (dtype_bits(tensor.dtype) / 8);
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
                               kChunkElements * (dtype_bits(dtype) / 8)});
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

}  // namespace masque::surgery
