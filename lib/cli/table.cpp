#include "cli/table.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "base/json_writer.hpp"

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

}  // namespace

Cell::Cell(std::string_view text) : text_(text) {}
Cell::Cell(const char* text) : text_(text) {}
Cell::Cell(const std::string& text) : text_(text) {}
Cell::Cell(double value) : Cell(Kind::kNumber, fmt::format("{}", value)) {}
Cell::Cell(std::uint64_t value) : Cell(Kind::kNumber, fmt::format("{}", value)) {}
Cell::Cell(std::int64_t value) : Cell(Kind::kNumber, fmt::format("{}", value)) {}
Cell::Cell(int value) : Cell(Kind::kNumber, fmt::format("{}", value)) {}
Cell::Cell(bool value) : Cell(Kind::kNumber, value ? "true" : "false") {}

Cell Cell::raw(std::string text, std::string json) {
  Cell cell(Kind::kRaw, std::move(text));
  cell.json_ = std::move(json);
  return cell;
}

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

Cell list_cell(const std::vector<Cell>& items) {
  std::string text;
  std::string json;
  JsonWriter list(json);
  list.begin_array();
  for (const Cell& item : items) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", item.text());
    list.raw(item.json());
  }
  list.end_array();
  return Cell::raw(text, json);
}

Cell list_cell(const std::vector<std::string>& items) {
  return list_cell(std::vector<Cell>(items.begin(), items.end()));
}

Table::Table(Session& session, const CommonOptions& options, std::vector<std::string> columns)
    : session_(session),
      json_(options.json),
      aligned_(session.stdout_is_terminal()),
      columns_(std::move(columns)) {
  if (json_ || options.no_header) return;
  std::vector<std::string> shown;
  for (const std::string& column : columns_) shown.push_back(escape(column));
  if (aligned_) {
    held_.push_back(std::move(shown));
    tones_.push_back(Tone::kDim);
  } else {
    const std::string header = fmt::format("{}", fmt::join(shown, "\t"));
    session_.print(session_.toned(Tone::kDim, header) + "\n");
  }
}

void Table::row(const std::vector<Cell>& cells, Tone tone) {
  MASQUE_CHECK(cells.size() == columns_.size());
  std::string line;
  if (json_) {
    JsonWriter json(line);
    json.begin_object();
    for (std::size_t i = 0; i < cells.size(); ++i) json.raw_member(columns_[i], cells[i].json());
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
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += '\t';
    line += cells[i].text();
  }
  session_.print(session_.toned(tone, line) + "\n");
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

void Report::print(Session& session, bool json) const {
  std::string out;
  if (json) {
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

}  // namespace masque::cli
