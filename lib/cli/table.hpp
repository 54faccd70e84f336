// Tables and reports on stdout: TSV or JSON, aligned columns on a terminal.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/session.hpp"

namespace masque::cli {

/// One value of a table or report.
class Cell {
 public:
  Cell(std::string_view text);    // NOLINT(google-explicit-constructor)
  Cell(const char* text);         // NOLINT(google-explicit-constructor)
  Cell(const std::string& text);  // NOLINT(google-explicit-constructor)
  Cell(double value);             // NOLINT(google-explicit-constructor)
  Cell(std::uint64_t value);      // NOLINT(google-explicit-constructor)
  Cell(std::int64_t value);       // NOLINT(google-explicit-constructor)
  Cell(int value);                // NOLINT(google-explicit-constructor)
  Cell(bool value);               // NOLINT(google-explicit-constructor)
  /// A JSON value and its text: arrays, null.
  static Cell raw(std::string text, std::string json);

  /// Escaped so that it is one field of a line.
  std::string text() const;
  std::string json() const;

 private:
  enum class Kind { kText, kNumber, kRaw };
  Cell(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  Kind kind_ = Kind::kText;
  std::string text_;
  std::string json_;  ///< of kRaw
};

/// Several values as one: separated by spaces, an array in JSON.
Cell list_cell(const std::vector<Cell>& items);
Cell list_cell(const std::vector<std::string>& items);

/// Prints rows as they come: TSV with a header line, or with --json one object a line. NaN and
/// infinity are nan, inf and -inf in TSV, null in JSON. On a terminal the columns are aligned.
class Table {
 public:
  Table(Session& session, const CommonOptions& options, std::vector<std::string> columns);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void row(const std::vector<Cell>& cells, Tone tone = Tone::kPlain);
  /// Prints what is held back. Must be called last.
  void finish();

 private:
  Session& session_;
  bool json_;
  bool aligned_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> held_;
  std::vector<Tone> tones_;
};

/// A list of named values: "name<TAB>value" lines, or one JSON object.
class Report {
 public:
  void add(std::string name, Cell value);
  void print(Session& session, bool json) const;

 private:
  std::vector<std::pair<std::string, Cell>> entries_;
};

}  // namespace masque::cli
