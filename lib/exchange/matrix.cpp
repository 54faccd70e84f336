#include "exchange/matrix.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/file_kind.hpp"
#include "base/input/text_source.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"
#include "exchange/mask_text.hpp"
#include "store/checkpoint.hpp"

namespace masque::exchange {

namespace {

store::Array array_of(const mask::BitMatrix& bits) {
  store::Array array;
  array.dtype = DType::kBool;
  array.shape = {static_cast<std::uint64_t>(bits.rows()),
                 static_cast<std::uint64_t>(bits.columns())};
  array.data.resize(static_cast<std::size_t>(bits.rows() * bits.columns()));
  std::size_t at = 0;
  for (Index row = 0; row < bits.rows(); ++row) {
    for (Index column = 0; column < bits.columns(); ++column) {
      array.data[at++] = std::byte{bits.get(row, column)};
    }
  }
  return array;
}

/// Numbers between tabs or spaces, as many in every line.
class NumberReader {
 public:
  NumberReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  store::Array read() {
    std::optional<std::size_t> columns;
    std::uint64_t rows = 0;
    std::size_t line = 0;
    for_each_line(text_, [&](std::string_view row) {
      throw_if_interrupted();
      ++line;
      const auto end = static_cast<std::size_t>(row.data() - text_.data()) + row.size();
      const bool last = end + 1 >= text_.size();
      intervals_ = intervals_ || (line == 1 && row == "query\tbegin\tend");
      if (line == 1 && is_header(row) && (!last || intervals_)) return;
      const std::size_t before = values_.size();
      read_row(row, line);
      const std::size_t count = values_.size() - before;
      if (count == 0 && last) return;
      if (columns && *columns != count) {
        throw InputError(path_, fmt::format("line {}: {} numbers, expected {} as before", line,
                                            count, *columns));
      }
      columns = count;
      ++rows;
    });
    // An empty mask as intervals is its header alone.
    if (rows == 0 && intervals_) columns = 3;
    if (rows == 0 && !intervals_) throw InputError(path_, "holds no numbers, expected a matrix");
    store::Array array;
    array.dtype = DType::kF64;
    array.shape = {rows, columns.value_or(0)};
    array.data.resize(values_.size() * sizeof(double));
    std::ranges::copy(std::as_bytes(std::span(values_)), array.data.begin());
    return array;
  }

 private:
  /// Names in every column, as in "query begin end".
  static bool is_header(std::string_view row) {
    const std::vector<std::string_view> words = split_at_blanks(row, kBlanksOfLine);
    return !words.empty() && std::ranges::all_of(words, [](std::string_view word) {
      const bool name = std::all_of(word.begin(), word.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_';
      });
      return !parse_number<double>(word) && name &&
             std::isalpha(static_cast<unsigned char>(word.front())) != 0;
    });
  }

  void read_row(std::string_view row, std::size_t line) {
    for (const std::string_view word : split_at_blanks(row, kBlanksOfLine)) {
      const auto value = parse_number<double>(word);
      if (!value) {
        throw InputError(path_, fmt::format("line {}: found '{}', expected a number", line,
                                            escape(word.substr(0, 40))));
      }
      values_.push_back(*value);
    }
  }

  std::string_view text_;
  const std::string& path_;
  std::vector<double> values_;
  bool intervals_ = false;
};

store::Array parse_text(std::string_view text, const std::string& path) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.starts_with('{')) return array_of(parse_mask_json(text, path));
  if (text.starts_with("P1") || text.starts_with("P4")) return array_of(parse_mask_pbm(text, path));
  refuse_other_kind(text.substr(0, kKindBytes), path);
  refuse_other_encoding(text, path);
  if (text.starts_with('#') || text.starts_with('.')) return array_of(parse_mask_text(text, path));
  return NumberReader(text, path).read();
}

store::Array read_tensor(const std::string& path, const std::string& name,
                         const store::ShapeCheck& check) {
  const store::Checkpoint checkpoint = store::open_checkpoint(path);
  if (name.empty() && checkpoint.tensors().size() != 1) {
    throw InputError(
        path, fmt::format("{} tensors, expected one, or FILE:NAME", checkpoint.tensors().size()));
  }
  const store::TensorInfo& tensor =
      name.empty() ? checkpoint.tensors().front() : checkpoint.get(name);
  if (tensor.bytes() > kMaxMatrixBytes) {
    throw InputError(path, fmt::format("tensor of {} bytes, expected at most {}", tensor.bytes(),
                                       kMaxMatrixBytes));
  }
  if (check) check(tensor.dtype, tensor.shape);
  store::Array array;
  array.name = tensor.name;
  array.dtype = tensor.dtype;
  array.shape = tensor.shape;
  array.data.resize(tensor.bytes());
  checkpoint.read(tensor, 0, array.data);
  return array;
}

bool is_weights(const InputFile& file, Bytes first) {
  for (const store::FileFormat* format : store::file_formats()) {
    if (format->recognise(file, first)) return true;
  }
  return false;
}

}  // namespace

store::Array read_matrix(const std::string& path, const store::ShapeCheck& check) {
  if (path == "-") return parse_text(read_bytes(path, kMaxTextBytes), kStandardInput);
  std::string file_path = path;
  std::string name;
  const auto [before, after] = split_at_last(path, ':');
  if (after && !exists(path)) {
    file_path = before;
    name = *after;
  }
  if (name.empty() && is_stream(file_path)) {
    return parse_text(read_bytes(file_path, kMaxTextBytes), file_path);
  }
  const InputFile file = InputFile::open(file_path);
  std::array<std::byte, 64> bytes{};
  const MutableBytes first =
      MutableBytes(bytes).first(std::min<std::uint64_t>(bytes.size(), file.size()));
  file.read(0, first);
  const std::string_view head(reinterpret_cast<const char*>(first.data()), first.size());
  if (head.starts_with("\x93NUMPY") || head.starts_with("PK\x03\x04")) {
    return store::read_array(file_path, name, kMaxMatrixBytes, check);
  }
  if (is_weights(file, first)) return read_tensor(file_path, name, check);
  if (!name.empty())
    throw InputError(file_path, "has no named arrays, expected npz or safetensors");
  return parse_text(file.read_all(kMaxTextBytes), file_path);
}

}  // namespace masque::exchange
