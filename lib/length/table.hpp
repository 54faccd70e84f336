// results.tsv of a length run: written, put together from parts, and read again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "length/run.hpp"

namespace masque::length {

/// What a table says besides the result.
struct LengthNames {
  std::vector<std::string> designs;  ///< of arms
  std::string trained;               ///< train lengths, as given
  std::map<Index, double> chance;    ///< LengthSubject::chance of each scored length
  bool whole = false;                ///< sequences are right as a whole, too
};

/// Returns results.tsv for `result`, which has settings, and `names`: a header, then a line for
/// each row: design, lengths, window, measures, chance, and every setting of its cell by name.
std::string results_text(const LengthResult& result, const LengthNames& names);

/// Bytes of a results.tsv that is read, at most.
constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 30;

/// A results.tsv as it was read.
struct LengthTable {
  LengthNames names;            ///< designs in the order of their first rows
  std::string title;            ///< task or objective
  std::int64_t steps = 0;       ///< of training
  bool finetuned = false;       ///< whether the table tells of fine-tuning
  std::vector<LengthRow> rows;  ///< in the order of the lines
};

/// Returns what `text`, the content of the file `path`, says. Throws InputError, with `path`, for
/// anything but a text that results_text made.
LengthTable read_results(const std::string& path, const std::string& text);

/// Returns what is lost where `now` replaces `before`, the content of a results.tsv: "3 rows of
/// another run: steps 250 (now 300)", without settings if the columns differ. Nothing if every row
/// of `before` is in `now`.
std::optional<std::string> lost_rows(const std::string& before, const std::string& now);

/// Returns the file name of a part of a run: "3-of-12.tsv" for `cell` 3, from 1, of `cells` 12.
std::string part_name(std::size_t cell, std::size_t cells);

/// Returns the results.tsv of a whole run from `folders`, at least one: the folders `parts` of one
/// or several output folders, with files as part_name calls them, each the results of one cell. A
/// folder may be absent. Throws InputError for parts that are missing, that differ where they
/// should be equal, that lack a row, that have the design and seed of another part, or that belong
/// to different runs.
std::string collect_parts(const std::vector<std::string>& folders);

}  // namespace masque::length
