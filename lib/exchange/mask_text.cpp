#include "exchange/mask_text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::exchange {

namespace {

constexpr std::size_t kPiece = 1 << 18;

/// Collects output and hands it on in pieces.
class Buffer {
 public:
  explicit Buffer(const TextSink& sink) : sink_(sink) {}
  std::string text;
  void end_row() {
    if (text.size() >= kPiece) flush();
  }
  void flush() {
    throw_if_interrupted();
    sink_(text);
    text.clear();
  }

 private:
  const TextSink& sink_;
};

/// Bits in reverse order within a byte: PBM has the first cell in the highest bit.
std::uint8_t reversed(std::uint8_t byte) {
  std::uint8_t out = 0;
  for (int i = 0; i < 8; ++i) out = static_cast<std::uint8_t>(out | ((byte >> i & 1) << (7 - i)));
  return out;
}

/// Cells become a byte each. Throws InputError before memory is allocated for too many of them.
void check_cells(Index queries, Index keys, const std::string& path) {
  check_has_cells(static_cast<std::uint64_t>(queries), static_cast<std::uint64_t>(keys), path);
  const auto cells =
      checked_multiply(static_cast<std::uint64_t>(queries), static_cast<std::uint64_t>(keys));
  if (cells && *cells <= kMaxMaskCells) return;
  throw InputError(path, fmt::format("a mask of {} × {} cells, expected at most {} cells", queries,
                                     keys, kMaxMaskCells));
}

/// The header of a PBM: numbers between white space and comments.
class PbmReader {
 public:
  PbmReader(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  [[noreturn]] void fail(const std::string& message) const { throw InputError(path_, message); }

  void skip_space() {
    while (at_ < bytes_.size()) {
      if (bytes_[at_] == '#') {
        at_ = std::min(bytes_.find('\n', at_), bytes_.size());
      } else if (std::isspace(static_cast<unsigned char>(bytes_[at_])) != 0) {
        ++at_;
      } else {
        return;
      }
    }
  }

  Index number(const char* what) {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < bytes_.size() && std::isdigit(static_cast<unsigned char>(bytes_[at_])) != 0) ++at_;
    const auto value = parse_unsigned(bytes_.substr(begin, at_ - begin));
    if (!value || *value > (std::uint64_t{1} << 32)) {
      fail(fmt::format("PBM: no {} at byte {}, expected a number up to 2^32", what, begin));
    }
    return static_cast<Index>(*value);
  }

  mask::BitMatrix read() {
    const bool packed = bytes_[1] == '4';
    at_ = 2;
    const Index columns = number("width");
    const Index rows = number("height");
    if (packed) ++at_;  // one white space, then bits
    // At least a bit (a character) for every cell must be there before memory is allocated.
    const auto row_size = static_cast<std::uint64_t>(packed ? divide_up(columns, 8) : columns);
    const auto needed = checked_multiply(row_size, static_cast<std::uint64_t>(rows));
    const std::uint64_t rest = at_ > bytes_.size() ? 0 : bytes_.size() - at_;
    if (!needed || *needed > rest) {
      fail(fmt::format("PBM of {} × {}: {} bytes of cells, expected {}", columns, rows, rest,
                       needed ? std::to_string(*needed) : "more than 2^64"));
    }
    check_cells(rows, columns, path_);
    mask::BitMatrix bits(rows, columns);
    for (Index row = 0; row < rows; ++row) {
      for (Index column = 0; column < columns; ++column) {
        if (packed ? packed_cell(row, column, row_size) : plain_cell()) bits.set(row, column);
      }
    }
    return bits;
  }

 private:
  bool packed_cell(Index row, Index column, std::uint64_t row_size) const {
    const std::size_t at =
        at_ + static_cast<std::size_t>(row) * row_size + static_cast<std::size_t>(column / 8);
    return (static_cast<unsigned char>(bytes_[at]) >> (7 - column % 8) & 1) != 0;
  }

  bool plain_cell() {
    skip_space();
    if (at_ >= bytes_.size() || (bytes_[at_] != '0' && bytes_[at_] != '1')) {
      fail(fmt::format("PBM: no cell at byte {}, expected 0 or 1", at_));
    }
    return bytes_[at_++] == '1';
  }

  std::string_view bytes_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

void check_has_cells(std::uint64_t queries, std::uint64_t keys, const std::string& path) {
  if ((queries == 0) == (keys == 0)) return;
  throw InputError(path,
                   fmt::format("a mask of {} × {} has no cells, expected some", queries, keys));
}

void print_mask_text(const mask::Mask& mask, const TextSink& sink) {
  const auto [queries, keys] = mask.lengths();
  Buffer out(sink);
  for (Index q = 0; q < queries; ++q) {
    for (Index k = 0; k < keys; k += 64) {
      const int n = static_cast<int>(std::min<Index>(64, keys - k));
      const std::uint64_t word = mask.bits(q, k, n);
      for (int i = 0; i < n; ++i) out.text += (word >> i & 1) != 0 ? '#' : '.';
      out.end_row();
    }
    out.text += '\n';
  }
  out.flush();
}

mask::BitMatrix parse_mask_text(std::string_view text, const std::string& path) {
  std::vector<std::string_view> lines = split_terminated(text, '\n');
  std::ranges::transform(lines, lines.begin(), without_return);
  const std::size_t columns = lines.empty() ? 0 : lines.front().size();
  mask::BitMatrix bits(static_cast<Index>(lines.size()), static_cast<Index>(columns));
  for (std::size_t row = 0; row < lines.size(); ++row) {
    if (lines[row].size() != columns) {
      throw InputError(path, fmt::format("line {}: {} cells, expected {} as in the first", row + 1,
                                         lines[row].size(), columns));
    }
    for (std::size_t column = 0; column < columns; ++column) {
      const char cell = lines[row][column];
      if (cell != '#' && cell != '.') {
        throw InputError(path, fmt::format("line {}: found '{}', expected # or .", row + 1,
                                           escape(std::string_view(&cell, 1))));
      }
      if (cell == '#') bits.set(static_cast<Index>(row), static_cast<Index>(column));
    }
  }
  return bits;
}

void print_mask_pbm(const mask::Mask& mask, const TextSink& sink) {
  const auto [queries, keys] = mask.lengths();
  Buffer out(sink);
  out.text = fmt::format("P4\n{} {}\n", keys, queries);
  for (Index q = 0; q < queries; ++q) {
    for (Index k = 0; k < keys; k += 8) {
      const int n = static_cast<int>(std::min<Index>(8, keys - k));
      out.text += static_cast<char>(reversed(static_cast<std::uint8_t>(mask.bits(q, k, n))));
    }
    out.end_row();
  }
  out.flush();
}

mask::BitMatrix parse_mask_pbm(std::string_view bytes, const std::string& path) {
  if (!bytes.starts_with("P4") && !bytes.starts_with("P1")) {
    throw InputError(path, "not a PBM file, expected P1 or P4 at the start");
  }
  return PbmReader(bytes, path).read();
}

void for_each_run(const mask::Mask& mask, Index query,
                  const std::function<void(Index, Index)>& use) {
  const Index keys = mask.lengths().keys;
  Index begin = -1;
  for (Index k = 0; k < keys; k += 64) {
    const int n = static_cast<int>(std::min<Index>(64, keys - k));
    const std::uint64_t word = mask.bits(query, k, n);
    if (begin >= 0 && word == mask::low_bits(n)) continue;
    if (begin < 0 && word == 0) continue;
    for (int i = 0; i < n; ++i) {
      const bool visible = (word >> i & 1) != 0;
      if (visible && begin < 0) begin = k + i;
      if (visible || begin < 0) continue;
      use(begin, k + i);
      begin = -1;
    }
  }
  if (begin >= 0) use(begin, keys);
}

void print_mask_json(const mask::Mask& mask, const std::string& expression, const TextSink& sink) {
  const auto [queries, keys] = mask.lengths();
  Buffer out(sink);
  JsonWriter json(out.text);
  json.begin_object();
  if (!expression.empty()) json.member("mask", expression);
  json.member("queries", queries).member("keys", keys).key("rows").begin_array();
  for (Index q = 0; q < queries; ++q) {
    json.begin_array();
    for_each_run(mask, q, [&](Index begin, Index end) { json.array(std::array{begin, end}); });
    json.end_array();
    out.end_row();
  }
  json.end_array().end_object();
  out.text += '\n';
  out.flush();
}

mask::BitMatrix parse_mask_json(std::string_view text, const std::string& path) {
  const JsonValue root = parse_json_file(text, path);
  const auto count = [&](const char* name) {
    const JsonValue* value = root.find(name);
    const auto number = value == nullptr ? std::nullopt : value->integer();
    if (!number || *number > (std::uint64_t{1} << 32)) {
      throw InputError(path, fmt::format("no number '{}', expected queries, keys and rows", name));
    }
    return static_cast<Index>(*number);
  };
  const Index queries = count("queries");
  const Index keys = count("keys");
  const JsonValue* rows = root.find("rows");
  if (rows == nullptr || static_cast<Index>(rows->items.size()) != queries) {
    throw InputError(path, fmt::format("rows: expected a list of {} rows", queries));
  }
  check_cells(queries, keys, path);
  mask::BitMatrix bits(queries, keys);
  for (Index q = 0; q < queries; ++q) {
    for (const JsonValue& run : rows->items[static_cast<std::size_t>(q)].items) {
      const auto begin = run.items.size() == 2 ? run.items[0].integer() : std::nullopt;
      const auto end = run.items.size() == 2 ? run.items[1].integer() : std::nullopt;
      if (!begin || !end || *begin > *end || *end > static_cast<std::uint64_t>(keys)) {
        throw InputError(path, fmt::format("row {}: expected runs [begin,end] up to {}", q, keys));
      }
      for (std::uint64_t k = *begin; k < *end; ++k) bits.set(q, static_cast<Index>(k));
    }
  }
  return bits;
}

}  // namespace masque::exchange
