#include "length/table.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/output_folder.hpp"
#include "base/input/digest_line.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/thread/parallel.hpp"
#include "length/store.hpp"

namespace masque::length {

namespace {

constexpr std::size_t kMostNamed = 8;  // missing parts in a message
constexpr const char* kNone = "none";
constexpr const char* kTrained = "train_length";  // a setting, too: once is enough

/// A header and the fields of one line after the other.
class Lines {
 public:
  Lines(const std::string& path, std::string_view text) : path_(path) {
    if (!text.ends_with('\n')) refuse();
    text.remove_suffix(1);
    lines_ = split(text, '\n');
    names_ = split(lines_.front(), '\t');
    if (lines_.size() < 2) refuse();
  }

  bool has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }
  const std::vector<std::string_view>& names() const { return names_; }
  std::size_t count() const { return lines_.size() - 1; }
  void go_to(std::size_t line) {
    fields_ = split(lines_[line + 1], '\t');
    if (fields_.size() != names_.size()) refuse();
  }
  std::string_view text(std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) refuse();
    return fields_[static_cast<std::size_t>(found - names_.begin())];
  }
  template <class T>
  T number(std::string_view name) const {
    const auto value = parse_number<T>(text(name));
    if (!value) refuse();
    return *value;
  }
  [[noreturn]] void refuse() const {
    throw InputError(path_, "expected the lines that length-gen wrote");
  }

 private:
  const std::string& path_;
  std::vector<std::string_view> lines_, names_, fields_;
};

/// "64", or "none".
std::string or_none(Index number) {
  return number > 0 ? fmt::format("{}", number) : std::string(kNone);
}

/// A part of a run: cell and number of cells, from 1; nothing for another name.
std::optional<std::pair<std::size_t, std::size_t>> place_of(const std::string& name) {
  const auto words = split(std::string_view(name).substr(0, name.rfind('.')), '-');
  if (words.size() != 3) return std::nullopt;
  const std::size_t cell = parse_number<std::size_t>(words[0]).value_or(0);
  const std::size_t cells = parse_number<std::size_t>(words[2]).value_or(0);
  if (cell < 1 || cell > cells || part_name(cell, cells) != name) return std::nullopt;
  return std::pair{cell, cells};
}

struct Part {
  std::string path, text;
};

void check_complete(const std::string& folder, const std::map<std::size_t, Part>& parts,
                    std::size_t cells) {
  std::vector<std::string> missing;
  for (std::size_t cell = 1; cell <= cells; ++cell) {
    if (!parts.contains(cell)) missing.push_back(part_name(cell, cells));
  }
  if (missing.empty()) return;
  const std::size_t count = missing.size();
  if (count > kMostNamed) {
    missing.resize(kMostNamed);
    missing.emplace_back("…");
  }
  throw InputError(folder, fmt::format("{} of {} cells are missing: {}", count, cells,
                                       fmt::join(missing, ", ")));
}

// What may differ between the cells of a run.
constexpr std::string_view kVaries[] = {"layer_kind", "norm_placement", "num_attention_heads",
                                        "mixer",      "talking_heads",  "previous_scores",
                                        "mask",       "position",       "normalizer",
                                        "seed"};

bool varies(std::string_view setting) {
  return std::ranges::find(kVaries, setting) != std::end(kVaries);
}

/// The column of the first setting: they stand after the measures.
std::size_t setting_columns(const std::vector<std::string_view>& names) {
  const auto last_measure = std::ranges::find(names, "chance");
  return static_cast<std::size_t>(last_measure - names.begin()) + 1;
}

/// What a part says about its cell.
LengthSubject::Settings settings_of(const Lines& lines) {
  LengthSubject::Settings settings;
  const auto& names = lines.names();
  settings.emplace_back(kTrained, lines.text(kTrained));
  for (std::size_t i = setting_columns(names); i < names.size(); ++i)
    settings.emplace_back(names[i], lines.text(names[i]));
  return settings;
}

/// What the cell of `part` was.
LengthSubject::Settings cell_of(const Part& part) {
  Lines lines(part.path, part.text);
  lines.go_to(0);
  return settings_of(lines);
}

/// Throws InputError unless `part` has the rows of one cell, all of them.
void check_part(const Part& part) {
  const LengthSubject::Settings settings = cell_of(part);
  Lines lines(part.path, part.text);
  for (std::size_t i = 0; i < lines.count(); ++i) {
    lines.go_to(i);
    if (settings_of(lines) != settings) lines.refuse();
  }
  const std::vector<LengthRow> rows = read_results(part.path, part.text).rows;
  std::optional<std::string> problem;
  const auto no_position = usage_error_message(
      [&] { problem = row_problem(settings, lengths_before_finetuning(settings, rows), rows); });
  if (no_position) problem = no_position;
  if (problem) throw InputError(part.path, *problem);
}

/// Throws InputError unless the settings of both parts are those of one run.
void check_same_run(const Part& first, const Part& part) {
  Lines one(first.path, first.text), other(part.path, part.text);
  one.go_to(0);
  other.go_to(0);
  if (one.names() != other.names())
    throw InputError(part.path, fmt::format("columns differ from those of {}", escape(first.path)));
  const auto& names = one.names();
  for (std::size_t i = setting_columns(names); i < names.size(); ++i) {
    if (varies(names[i]) || one.text(names[i]) == other.text(names[i])) continue;
    throw InputError(part.path, fmt::format("{} is {}, expected {} as in {}", escape(names[i]),
                                            escape(other.text(names[i])),
                                            escape(one.text(names[i])), escape(first.path)));
  }
}

}  // namespace

std::string results_text(const LengthResult& result, const LengthNames& names) {
  const auto& rows = result.rows;
  const bool finetuned = has_finetuning(result.settings.front());
  std::vector<std::string> header{"design", kTrained};
  if (finetuned) header.emplace_back("finetune_length");
  header.insert(header.end(), {"window", "eval_length", "targets", "loss", "accuracy"});
  if (names.whole) header.emplace_back("whole");
  header.emplace_back("chance");
  for (const auto& [name, value] : result.settings.front()) {
    if (name != kTrained) header.push_back(name);
  }
  std::string text = fmt::format("{}\n", fmt::join(header, "\t"));
  std::size_t cell = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const LengthRow& row = rows[i];
    // Designs may have different numbers of rows.
    if (i > 0 && (row.arm != rows[i - 1].arm || row.seed != rows[i - 1].seed)) ++cell;
    std::vector<std::string> fields{escape(names.designs[row.arm]), names.trained};
    if (finetuned) fields.push_back(or_none(row.finetuned ? row.length : 0));
    fields.push_back(or_none(row.window));
    fields.push_back(fmt::format("{}", row.length));
    fields.push_back(fmt::format("{}", row.targets));
    fields.push_back(fmt::format("{}", row.loss));
    fields.push_back(fmt::format("{}", row.accuracy));
    if (names.whole) fields.push_back(fmt::format("{}", row.whole));
    fields.push_back(fmt::format("{}", names.chance.at(row.length)));
    for (const auto& [name, value] : result.settings.at(cell)) {
      if (name != kTrained) fields.push_back(escape(value));
    }
    text += fmt::format("{}\n", fmt::join(fields, "\t"));
  }
  return text;
}

LengthTable read_results(const std::string& path, const std::string& text) {
  LengthTable table;
  Lines lines(path, text);
  table.names.whole = lines.has("whole");
  table.finetuned = lines.has("finetune_length");
  std::vector<std::string>& designs = table.names.designs;
  for (std::size_t i = 0; i < lines.count(); ++i) {
    lines.go_to(i);
    const std::string_view design = lines.text("design");
    const auto known = std::ranges::find(designs, design);
    LengthRow& row = table.rows.emplace_back();
    row.arm = static_cast<std::size_t>(known - designs.begin());
    if (known == designs.end()) designs.emplace_back(design);
    row.seed = lines.number<std::uint64_t>("seed");
    row.finetuned = table.finetuned && lines.text("finetune_length") != kNone;
    if (lines.text("window") != kNone) row.window = lines.number<Index>("window");
    row.length = lines.number<Index>("eval_length");
    row.targets = lines.number<Index>("targets");
    row.loss = lines.number<double>("loss");
    row.accuracy = lines.number<double>("accuracy");
    row.whole = table.names.whole ? lines.number<double>("whole")
                                  : std::numeric_limits<double>::quiet_NaN();
    table.names.chance[row.length] = lines.number<double>("chance");
    table.names.trained = lines.text(kTrained);
    table.title = lines.text(lines.has("task") ? "task" : "objective");
    table.steps = lines.number<std::int64_t>("steps");
  }
  return table;
}

std::optional<std::string> lost_rows(const std::string& before, const std::string& now) {
  const auto old_lines = split(before, '\n'), new_lines = split(now, '\n');
  const std::set<std::string_view> kept(new_lines.begin(), new_lines.end());
  const auto lost = std::count_if(old_lines.begin() + 1, old_lines.end(),
                                  [&](std::string_view line) { return !kept.contains(line); });
  if (lost == 0) return std::nullopt;
  std::string text = counted(lost, "row") + " of another run";
  if (old_lines.front() != new_lines.front()) return text;
  const auto names = split(old_lines.front(), '\t');
  const auto was = split(old_lines[1], '\t'), is = split(new_lines[1], '\t');
  std::string changes;
  for (std::size_t i = setting_columns(names); i < std::min(was.size(), is.size()); ++i) {
    if (was[i] == is[i] || varies(names[i])) continue;
    changes +=
        fmt::format("{}{} {} (now {})", changes.empty() ? ": " : ", ", names[i], was[i], is[i]);
  }
  return text + changes;
}

std::string part_name(std::size_t cell, std::size_t cells) {
  return fmt::format("{}-of-{}.tsv", cell, cells);
}

std::string collect_parts(const std::vector<std::string>& folders) {
  std::map<std::size_t, Part> parts;
  std::size_t cells = 0;
  for (const std::string& folder : folders) {
    if (!exists(folder)) continue;  // nothing of it is done yet
    for (const std::string& name : list_files(folder)) {
      const auto place = place_of(name);
      if (!place) continue;
      const std::string path = join(folder, name);
      const std::string written = read_text(path, kMostTableBytes);
      Part part{path, std::string(without_digest_line(written, path))};
      need_digest_line(written, path);
      if (cells == 0) cells = place->second;
      if (cells != place->second) {
        throw InputError(part.path,
                         fmt::format("from a run of {} cells, expected {} as in {}", place->second,
                                     cells, escape(parts.begin()->second.path)));
      }
      const auto [at, is_new] = parts.emplace(place->first, part);
      if (!is_new && at->second.text != part.text)
        throw InputError(part.path, fmt::format("same cell as {}, but with different results",
                                                escape(at->second.path)));
    }
  }
  if (parts.empty())
    throw InputError(
        folders.front(),
        fmt::format("no results of cells, expected results of length-gen run {}", field("cell")));
  check_complete(folders.front(), parts, cells);
  const Part& first = parts.begin()->second;
  const std::string header = first.text.substr(0, first.text.find('\n') + 1);
  std::string text = header;
  std::map<LengthSubject::Settings, std::string> cells_seen;  // paths, by what was trained
  for (const auto& [cell, part] : parts) {
    check_same_run(first, part);
    check_part(part);
    const auto [at, is_new] = cells_seen.emplace(cell_of(part), part.path);
    if (!is_new)
      throw InputError(part.path,
                       fmt::format("same design and seed as {}, expected another cell of the run",
                                   escape(at->second)));
    text += part.text.substr(header.size());
  }
  return text;
}

}  // namespace masque::length
