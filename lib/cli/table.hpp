// Tables and reports on stdout: TSV, CSV or JSON, aligned columns on a terminal.
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
  /// `value` with as many digits as read back the same; NaN and infinity are null in JSON, and NaN,
  /// Inf and -Inf in CSV.
  Cell(double value);  // NOLINT(google-explicit-constructor)
  /// All digits of `value`.
  Cell(std::uint64_t value);  // NOLINT(google-explicit-constructor)
  /// All digits of `value`.
  Cell(std::int64_t value);  // NOLINT(google-explicit-constructor)
  /// All digits of `value`.
  Cell(int value);  // NOLINT(google-explicit-constructor)
  /// "true" or "false", as `value` is.
  Cell(bool value);  // NOLINT(google-explicit-constructor)
  /// The JSON value `json` and its `text`: numbers, arrays. Neither is checked or escaped. `plain`
  /// is the text before it was escaped; empty: `text`.
  static Cell raw(std::string text, std::string json, std::string plain = {});
  /// No value: "-" in TSV, null in JSON, an empty field in CSV.
  static Cell none();
  /// `value`, a result, with four decimals; in JSON with all digits, null for NaN and infinity.
  static Cell rounded(double value);

  /// Escaped so that it is one field of a line; the text of raw() as it is.
  std::string text() const;
  /// The JSON value; text that is not UTF-8 is a string of its escaped form.
  std::string json() const;
  /// A field of CSV: numbers, true and false as they are, text as csv_text() with `terminal`. NaN
  /// and infinity are NaN, Inf and -Inf; other values that are null in JSON, or "-", are empty.
  std::string csv(bool terminal) const;
  /// The text without escapes: what a column of CSV holds.
  const std::string& plain() const { return plain_.empty() ? text_ : plain_; }

 private:
  enum class Kind { kText, kNumber, kRaw };
  Cell(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  Kind kind_ = Kind::kText;
  std::string text_;
  std::string json_;   ///< of kRaw
  std::string plain_;  ///< of kRaw: see raw()
};

/// The `items` as one value: separated by spaces, an array in JSON.
Cell list_cell(const std::vector<Cell>& items);
/// The same for `items` that are texts.
Cell list_cell(const std::vector<std::string>& items);

/// Returns the line of a table with the names of `columns`: TSV, or CSV if `options` say so. Asks
/// `session` whether stdout is a terminal.
std::string header_line(const Session& session, const CommonOptions& options,
                        const std::vector<std::string>& columns);
/// Returns the line of a table with the values of `cells`: TSV, or CSV if `options` say so. Asks
/// `session` whether stdout is a terminal. For tables that are printed as they come; others are a
/// Table.
std::string row_line(const Session& session, const CommonOptions& options,
                     const std::vector<Cell>& cells);

/// Prints rows as they come: TSV or CSV with a header line, or with --json one object a line. NaN
/// and infinity are nan, inf and -inf in TSV, NaN, Inf and -Inf in CSV, null in JSON. On a terminal
/// the columns of TSV are aligned, and finish() prints all rows.
class Table {
 public:
  /// Prints to `session`, which must outlive the table. Reads json, csv and no_header of `options`;
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
  void print_line(std::string line, Tone tone);

  Session& session_;
  CommonOptions options_;
  bool aligned_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> held_;
  std::vector<Tone> tones_;
};

/// A list of named values: "name<TAB>value" lines, or one JSON object, or CSV: names and one row.
class Report {
 public:
  /// Appends `value` under `name`, which is a key in JSON and is not escaped in text.
  void add(std::string name, Cell value);
  /// Prints all values to `session`, as json, csv and no_header of `options` say.
  void print(Session& session, const CommonOptions& options) const;

 private:
  std::vector<std::pair<std::string, Cell>> entries_;
};

// Fields of comma-separated values, RFC 4180.

/// Returns `text` as a field in double quotes; a double quote in it becomes two. Control characters
/// (C0 but tab and line feed, DEL, C1), bidirectional overrides, embeddings and isolates (U+202A to
/// U+202E, U+2066 to U+2069) and bytes that are not UTF-8 become `\xNN` or `\u{…}` as escape()
/// spells them, because files are shown on terminals, too. Everything else stays, a backslash as
/// well. For a `terminal` the other bidirectional controls, U+2028, U+2029 and U+FEFF are spelled,
/// too. Cost O(n).
std::string csv_text(std::string_view text, bool terminal);

/// Returns `name`, that of a column, as a field: as it is, or as csv_text() with `terminal` if it
/// holds anything that needs quotes or is spelled there.
std::string csv_name(std::string_view name, bool terminal);

}  // namespace masque::cli
