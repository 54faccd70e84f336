#include "store/inspect/print_tensor.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"
#include "tensor/convert.hpp"

namespace masque::store {

namespace {

std::uint64_t rows_of(const TensorInfo& tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape[0];
}

bool is_finite_text(const std::string& text) {
  return text.find_first_of("ni") == std::string::npos;  // nan, inf
}

}  // namespace

RowRange parse_row_range(std::string_view text, const TensorInfo& tensor) {
  const std::uint64_t rows = rows_of(tensor);
  if (text.empty()) return {0, rows};
  const auto [first, last] = split_at_first(text, ':');
  const auto begin = first.empty() && last ? 0 : parse_unsigned(first);
  std::optional<std::uint64_t> end;
  if (!last) {
    if (begin) end = *begin + 1;
  } else if (last->empty()) {
    end = rows;
  } else {
    end = parse_unsigned(*last);
  }
  if (!begin || !end) {
    throw UsageError(
        fmt::format("{}: found '{}', expected A:B, A: or A", field("rows"), escape(text)));
  }
  if (*begin > *end || *end > rows) {
    throw InputError(fmt::format("tensor '{}': rows {}, the tensor has {} rows",
                                 escape(tensor.name), escape(text), rows));
  }
  return {*begin, *end};
}

void print_tensor(const Checkpoint& checkpoint, const TensorInfo& tensor, RowRange rows,
                  PrintForm form, const std::function<void(std::string_view)>& sink) {
  if (tensor.elements() == 0) return;
  if (is_packed(tensor.dtype) && form != PrintForm::kRaw) {
    throw InputError(
        checkpoint.path(),
        fmt::format("tensor '{}' is {}: values of this type cannot be printed (use {} raw)",
                    escape(tensor.name), dtype_name(tensor.dtype), field("format")));
  }
  const std::uint64_t row_bits = tensor.row_elements() * dtype_bits(tensor.dtype);
  if (rows.begin * row_bits % 8 != 0 || rows.end * row_bits % 8 != 0) {
    throw InputError(checkpoint.path(),
                     fmt::format("tensor '{}': rows {} to {} begin or end inside a byte",
                                 escape(tensor.name), rows.begin, rows.end));
  }
  const std::uint64_t row_bytes = row_bits / 8;  // exact where rows are distinguished
  const std::uint64_t each = std::max<std::uint64_t>(1, dtype_bits(tensor.dtype) / 8);
  std::vector<std::byte> buffer(std::uint64_t{1} << 16);
  const std::uint64_t end = rows.end * row_bits / 8;
  for (std::uint64_t at = rows.begin * row_bits / 8; at < end;) {
    throw_if_interrupted();
    const std::uint64_t size = std::min<std::uint64_t>(buffer.size(), end - at);
    checkpoint.read(tensor, at, MutableBytes(buffer).first(size));
    if (form == PrintForm::kRaw) {
      sink({reinterpret_cast<const char*>(buffer.data()), size});
      at += size;
      continue;
    }
    std::string text;
    for (std::uint64_t i = 0; i < size; i += each) {
      const bool first = (at + i) % row_bytes == 0;
      const bool last = (at + i + each) % row_bytes == 0;
      std::string value = element_text(tensor.dtype, &buffer[i]);
      if (form == PrintForm::kJson) {
        text += first ? '[' : ',';
        if (tensor.dtype == DType::kC64) value = fmt::format("[{}]", value);
        text += is_finite_text(value) ? value : "null";
        text += last ? "]\n" : "";
      } else {
        text += first ? "" : "\t";
        text += value;
        text += last ? "\n" : "";
      }
    }
    sink(text);
    at += size;
  }
}

}  // namespace masque::store
