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
  /// Copies `text`, which may hold anything.
  Cell(std::string_view text);  // NOLINT(google-explicit-constructor)
  /// Copies `text`, which may hold anything.
  Cell(const char* text);  // NOLINT(google-explicit-constructor)
  /// Copies `text`, which may hold anything.
  Cell(const std::string& text);  // NOLINT(google-explicit-constructor)
  /// `value` with as many digits as read back the same; NaN and infinity are null in JSON.
  Cell(double value);  // NOLINT(google-explicit-constructor)
  /// All digits of `value`.
  Cell(std::uint64_t value);  // NOLINT(google-explicit-constructor)
  /// All digits of `value`.
  Cell(std::int64_t value);  // NOLINT(google-explicit-constructor)
  /// All digits of `value`.
  Cell(int value);  // NOLINT(google-explicit-constructor)
  /// "true" or "false", as `value` is.
  Cell(bool value);  // NOLINT(google-explicit-constructor)
  /// The JSON value `json` and its `text`: arrays, null. Neither is checked or escaped.
  static Cell raw(std::string text, std::string json);
  /// `value`, a result, with four decimals; in JSON with all digits, null for NaN and infinity.
  static Cell rounded(double value);

  /// Escaped so that it is one field of a line; the text of raw() as it is.
  std::string text() const;
  /// The JSON value; text that is not UTF-8 is a string of its escaped form.
  std::string json() const;

 private:
  enum class Kind { kText, kNumber, kRaw };
  Cell(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  Kind kind_ = Kind::kText;
  std::string text_;
  std::string json_;  ///< of kRaw
};

/// The `items` as one value: separated by spaces, an array in JSON.
Cell list_cell(const std::vector<Cell>& items);
/// The same for `items` that are texts.
Cell list_cell(const std::vector<std::string>& items);

/// Prints rows as they come: TSV with a header line, or with --json one object a line. NaN and
/// infinity are nan, inf and -inf in TSV, null in JSON. On a terminal the columns of TSV are
/// aligned, and finish() prints all rows.
class Table {
 public:
  /// Prints to `session`, which must outlive the table. Reads json and no_header of `options`;
  /// `columns` are the names in the header, and the keys in JSON.
  Table(Session& session, const CommonOptions& options, std::vector<std::string> columns);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  /// Prints or holds back a row of `cells`, as many as columns, in the colour of `tone` (TSV
  /// alone).
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
  /// Appends `value` under `name`, which is a key in JSON and is not escaped in text.
  void add(std::string name, Cell value);
  /// Prints all values to `session`: one object if `json`, otherwise a line each.
  void print(Session& session, bool json) const;

 private:
  std::vector<std::pair<std::string, Cell>> entries_;
};

}  // namespace masque::cli
