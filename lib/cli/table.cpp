#include "cli/table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"

namespace masque::cli {

namespace {

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return width;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    char32_t c = 0;
    const int length = decode_utf8(text, c);
    if (length == 0) return false;
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return true;
}

bool is_finite_number(const std::string& text) {
  return text.find("nan") == std::string::npos && text.find("inf") == std::string::npos;
}

/// Whether a reader of CSV takes it for what it is without quotes.
bool is_bare(const std::string& text) {
  return text == "true" || text == "false" ||
         (text.find_first_of("0123456789") != std::string::npos &&
          text.find_first_not_of("+-.0123456789eE") == std::string::npos);
}

/// NaN and infinity in the spelling that pandas and R read as numbers; empty for other text.
std::string_view spelled_for_csv(const std::string& text) {
  if (text == "nan" || text == "-nan") return "NaN";
  return text == "inf" ? "Inf" : text == "-inf" ? "-Inf" : "";
}

}  // namespace

Cell::Cell(std::string_view text) : text_(text) {}
Cell::Cell(const char* text) : text_(text) {}
Cell::Cell(const std::string& text) : text_(text) {}
Cell::Cell(double value) : Cell(Kind::kNumber, fmt::format("{}", value)) {}
Cell::Cell(std::uint64_t value) : Cell(Kind::kNumber, fmt::format("{}", value)) {}
Cell::Cell(std::int64_t value) : Cell(Kind::kNumber, fmt::format("{}", value)) {}
Cell::Cell(int value) : Cell(Kind::kNumber, fmt::format("{}", value)) {}
Cell::Cell(bool value) : Cell(Kind::kNumber, value ? "true" : "false") {}

Cell Cell::raw(std::string text, std::string json, std::string plain) {
  Cell cell(Kind::kRaw, std::move(text));
  cell.json_ = std::move(json);
  cell.plain_ = std::move(plain);
  return cell;
}

Cell Cell::none() { return raw("-", "null"); }

Cell Cell::rounded(double value) { return raw(fmt::format("{:.4f}", value), Cell(value).json()); }

std::string Cell::text() const { return kind_ == Kind::kText ? escape(text_) : text_; }

std::string Cell::json() const {
  switch (kind_) {
    case Kind::kRaw: return json_;
    case Kind::kNumber: return is_finite_number(text_) ? text_ : "null";
    // JSON must be UTF-8: text that is not is given in its escaped form.
    default: return quote_json(is_utf8(text_) ? text_ : escape(text_));
  }
}

std::string Cell::csv(bool terminal) const {
  if (kind_ == Kind::kText) return csv_text(text_, terminal);
  const std::string& value = plain();
  if (const std::string_view number = spelled_for_csv(value); !number.empty())
    return std::string(number);
  if (kind_ == Kind::kRaw && (json_ == "null" || text_ == "-")) return "";
  return is_bare(value) ? value : csv_text(value, terminal);
}

Cell list_cell(const std::vector<Cell>& items) {
  std::string text;
  std::string plain;
  std::string json;
  JsonWriter list(json);
  list.begin_array();
  for (const Cell& item : items) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", item.text());
    plain += fmt::format("{}{}", plain.empty() ? "" : " ", item.plain());
    list.raw(item.json());
  }
  list.end_array();
  return Cell::raw(text, json, plain);
}

Cell list_cell(const std::vector<std::string>& items) {
  return list_cell(std::vector<Cell>(items.begin(), items.end()));
}

namespace {

/// The line of `values`: with `spell` each as its field.
template <class Value, class Spell>
std::string line_of_fields(const std::vector<Value>& values, char separator, const Spell& spell) {
  std::string line;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) line += separator;
    line += spell(values[i]);
  }
  return line + "\n";
}

}  // namespace

std::string header_line(const Session& session, const CommonOptions& options,
                        const std::vector<std::string>& columns) {
  const bool terminal = session.stdout_is_terminal();
  return line_of_fields(columns, options.csv ? ',' : '\t', [&](const std::string& name) {
    return options.csv ? csv_name(name, terminal) : escape(name);
  });
}

std::string row_line(const Session& session, const CommonOptions& options,
                     const std::vector<Cell>& cells) {
  const bool terminal = session.stdout_is_terminal();
  return line_of_fields(cells, options.csv ? ',' : '\t', [&](const Cell& cell) {
    return options.csv ? cell.csv(terminal) : cell.text();
  });
}

Table::Table(Session& session, const CommonOptions& options, std::vector<std::string> columns)
    : session_(session),
      options_(options),
      aligned_(session.stdout_is_terminal() && !options.csv),
      columns_(std::move(columns)) {
  if (options.json || options.no_header) return;
  if (aligned_) {
    std::vector<std::string>& shown = held_.emplace_back();
    for (const std::string& column : columns_) shown.push_back(escape(column));
    tones_.push_back(Tone::kDim);
  } else {
    print_line(header_line(session_, options_, columns_), Tone::kDim);
  }
}

void Table::print_line(std::string line, Tone tone) {
  if (options_.csv) return session_.print(line);  // colours would be part of the values
  line.pop_back();
  session_.print(session_.toned(tone, line) + "\n");
}

void Table::row(const std::vector<Cell>& cells, Tone tone) {
  MASQUE_CHECK(cells.size() == columns_.size());
  if (options_.json) {
    std::string line;
    JsonWriter json(line);
    json.begin_object();
    for (std::size_t i = 0; i < cells.size(); ++i)
      json.raw_key(Cell(columns_[i]).json()).raw(cells[i].json());
    json.end_object();
    session_.print(line + "\n");
    return;
  }
  if (aligned_) {
    auto& held = held_.emplace_back();
    for (const Cell& cell : cells) held.push_back(cell.text());
    tones_.push_back(tone);
    return;
  }
  print_line(row_line(session_, options_, cells), tone);
}

void Table::finish() {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : held_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  for (std::size_t r = 0; r < held_.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < held_[r].size(); ++i) {
      line += held_[r][i];
      if (i + 1 < held_[r].size()) line.append(widths[i] - display_width(held_[r][i]) + 2, ' ');
    }
    session_.print(session_.toned(tones_[r], line) + "\n");
  }
  held_.clear();
  tones_.clear();
}

void Report::add(std::string name, Cell value) {
  entries_.emplace_back(std::move(name), std::move(value));
}

void Report::print(Session& session, const CommonOptions& options) const {
  if (options.csv) {
    std::vector<std::string> names;
    std::vector<Cell> cells;
    for (const auto& [name, value] : entries_) {
      names.push_back(name);
      cells.push_back(value);
    }
    if (!options.no_header) session.print(header_line(session, options, names));
    return session.print(row_line(session, options, cells));
  }
  std::string out;
  if (options.json) {
    JsonWriter object(out);
    object.begin_object();
    for (const auto& [name, value] : entries_) object.raw_member(name, value.json());
    object.end_object();
    out += '\n';
  } else {
    for (const auto& [name, value] : entries_) out += fmt::format("{}\t{}\n", name, value.text());
  }
  session.print(out);
}

namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"'; }

/// Whether it only says which way its neighbours run, as texts from right to left do; what begins
/// or ends another order can hide what a file says.
bool is_direction_mark(char32_t c) { return c == 0x61C || c == 0x200E || c == 0x200F; }

}  // namespace

std::string csv_text(std::string_view text, bool terminal) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    out += text;
    text = {};
  }
  while (!text.empty()) {
    char32_t c = 0;
    const int length = decode_utf8(text, c);
    const std::string_view piece = text.substr(0, static_cast<std::size_t>(std::max(length, 1)));
    const bool reorders = is_bidirectional_control(c) && !is_direction_mark(c);
    const bool stays = c == '\t' || c == '\n' || c == '\\' || (c >= 0xA0 && !terminal && !reorders);
    if (c == '"') {
      out += "\"\"";
    } else {
      out += stays ? std::string(piece) : escape(piece);
    }
    text.remove_prefix(piece.size());
  }
  return out + "\"";
}

std::string csv_name(std::string_view name, bool terminal) {
  const auto is_simple = [](char c) { return is_plain(c) && c != ',' && c != ' '; };
  if (!name.empty() && std::all_of(name.begin(), name.end(), is_simple)) return std::string(name);
  return csv_text(name, terminal);
}

}  // namespace masque::cli
