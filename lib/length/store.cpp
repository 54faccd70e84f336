#include "length/store.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/os.hpp"
#include "base/file/output_file.hpp"
#include "base/file/output_folder.hpp"
#include "base/input/digest_line.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"

namespace masque::length {

bool has_finetuning(const LengthSubject::Settings& settings) {
  return std::ranges::any_of(settings, [](const auto& s) { return s.first == "finetune_lengths"; });
}

namespace {

/// The value of the setting `name`; empty if there is none.
std::string value_of(const LengthSubject::Settings& settings, std::string_view name) {
  const auto at = std::ranges::find(settings, name, [](const auto& s) { return s.first; });
  return at == settings.end() ? "" : at->second;
}

/// The numbers of the setting `name`: "64,128".
std::vector<Index> numbers_of(const LengthSubject::Settings& settings, std::string_view name) {
  std::vector<Index> numbers;
  const std::string text = value_of(settings, name);
  if (text.empty()) return numbers;
  for (const std::string_view part : split(text, ','))
    numbers.push_back(parse_number<Index>(part).value_or(-1));
  return numbers;
}

/// Whether the design of a cell has a last position.
bool has_last_position(const LengthSubject::Settings& settings) {
  train::DesignRecipe design;
  design.position = value_of(settings, "position");
  design.mixer = value_of(settings, "mixer");
  const std::string late = value_of(settings, "late_positions");
  design.late_positions = late.empty() || late == "0" ? 0 : 1;
  return position_count(design, 1) > 0;
}

bool is_share(double value) { return value >= 0 && value <= 1; }

// The file is a result that the run makes again.
constexpr const char* kDamaged =
    "not the lines that length-gen wrote; remove the file to train its cell again";
constexpr std::uint64_t kMostBytes = 1 << 24;
constexpr std::size_t kDigits = 8;  // of a digest in a name
constexpr const char* kColumns = "window\tlength\tloss\taccuracy\twhole\ttargets";

std::string columns_of(const LengthSubject::Settings& settings) {
  return fmt::format("{}{}\n", kColumns, has_finetuning(settings) ? "\tfinetuned" : "");
}

std::string text_of(const LengthSubject::Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += fmt::format("{}={}\t", name, escape(value));
  if (!text.empty()) text.back() = '\n';
  return text;
}

/// The fields of a line, one after the other.
class Fields {
 public:
  Fields(std::string_view line, const std::string& path)
      : fields_(split(line, '\t')), path_(path) {}

  template <class T>
  T next() {
    const auto value = at_ < fields_.size() ? parse_number<T>(fields_[at_++]) : std::nullopt;
    if (!value) throw InputError(path_, kDamaged);
    return *value;
  }

 private:
  std::vector<std::string_view> fields_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::string> row_problem(const LengthSubject::Settings& settings,
                                       const std::vector<Index>& lengths,
                                       const std::vector<LengthRow>& rows) {
  std::vector<LengthRow> expected;
  const auto expect = [&](const std::vector<Index>& some, bool finetuned) {
    for (const Index window : numbers_of(settings, "windows")) {
      for (const Index length : some)
        expected.push_back({.window = window, .length = length, .finetuned = finetuned});
    }
  };
  expect(lengths, false);
  for (const Index length : numbers_of(settings, "finetune_lengths")) expect({length}, true);
  for (std::size_t i = 0; i < std::max(rows.size(), expected.size()); ++i) {
    if (i == expected.size()) return "more rows than lengths";
    const LengthRow& row = expected[i];
    if (i < rows.size() && rows[i].window == row.window && rows[i].length == row.length &&
        rows[i].finetuned == row.finetuned)
      continue;
    return fmt::format("no row for {}length {}{}", row.finetuned ? "fine-tuning at " : "",
                       row.length, row.window > 0 ? fmt::format(", window {}", row.window) : "");
  }
  for (const LengthRow& row : rows) {
    const bool right = is_share(row.accuracy) && (std::isnan(row.whole) || is_share(row.whole));
    if (!right || row.targets < 1)
      return fmt::format("{} targets with accuracy {} at length {}", row.targets, row.accuracy,
                         row.length);
  }
  return std::nullopt;
}

std::vector<Index> lengths_before_finetuning(const LengthSubject::Settings& settings,
                                             const std::vector<LengthRow>& rows) {
  std::vector<Index> lengths = numbers_of(settings, "eval_lengths");
  if (!has_last_position(settings)) return lengths;
  Index longest = 0;
  for (const LengthRow& row : rows) {
    if (!row.finetuned) longest = std::max(longest, row.length);
  }
  std::erase_if(lengths, [&](Index length) { return length > longest; });
  return lengths;
}

std::string settings_digest(const LengthSubject::Settings& settings) {
  return xxh3_of(as_bytes(text_of(settings)));
}

LengthStore::LengthStore(std::string folder) : folder_(std::move(folder)) {
  // Empty: new, or just made by another process.
  if (exists(folder_) && !exists(join(folder_, "cells")) && !list_files(folder_).empty())
    throw InputError(folder_, "folder exists without cells of a run: choose another folder");
  make_folder(folder_);
  make_folder(join(folder_, "cells"));
}

namespace {

/// What is `written` in the file `path` of a cell, without its digest. Throws InputError without
/// one.
std::string_view digested_text(std::string_view written, const std::string& path) {
  const std::string_view text = without_digest_line(written, path);
  if (text.size() < written.size()) return text;
  throw InputError(path,
                   "no digest xxh3 in its last line: cut off, or written by an earlier version; "
                   "remove the file to make it again");
}

}  // namespace

std::optional<std::vector<LengthRow>> LengthStore::find(const LengthSubject::Settings& settings,
                                                        const std::vector<Index>& lengths,
                                                        std::size_t arm, std::uint64_t seed) const {
  const std::string path = join(join(folder_, "cells"), settings_digest(settings) + ".tsv");
  if (!exists(path)) return std::nullopt;
  const std::string written = read_text(path, kMostBytes);
  const std::string_view text = digested_text(written, path);
  const std::string head = text_of(settings) + columns_of(settings);
  if (!text.starts_with(head) || !text.ends_with('\n')) throw InputError(path, kDamaged);
  std::vector<LengthRow> rows;
  for_each_line(text.substr(head.size()), [&](std::string_view line) {
    Fields fields(line, path);
    LengthRow row;
    row.arm = arm;
    row.seed = seed;
    row.window = fields.next<Index>();
    row.length = fields.next<Index>();
    row.loss = fields.next<double>();
    row.accuracy = fields.next<double>();
    row.whole = fields.next<double>();
    row.targets = fields.next<Index>();
    if (has_finetuning(settings)) row.finetuned = fields.next<int>() != 0;
    rows.push_back(row);
  });
  if (const auto problem = row_problem(settings, lengths, rows))
    throw InputError(path, fmt::format("{}; remove the file to train its cell again", *problem));
  return rows;
}

void LengthStore::keep(const LengthSubject::Settings& settings,
                       const std::vector<LengthRow>& rows) const {
  std::string text = text_of(settings) + columns_of(settings);
  for (const LengthRow& row : rows) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}", row.window, row.length, row.loss, row.accuracy,
                        row.whole, row.targets);
    text += has_finetuning(settings) ? fmt::format("\t{:d}\n", row.finetuned) : "\n";
  }
  replace_text(join(join(folder_, "cells"), settings_digest(settings) + ".tsv"),
               with_digest_line(text));
}

std::string LengthStore::checkpoint(const LengthSubject::Settings& settings) const {
  return join(join(folder_, "cells"), settings_digest(settings) + ".state.safetensors");
}

void LengthStore::drop_checkpoint(const LengthSubject::Settings& settings) const {
  const std::string path = checkpoint(settings);
  if (!exists(path)) return;
  // Another process that has found the rows may drop it, too.
  if (os::unlink_at(AT_FDCWD, path.c_str()) != 0 && errno != ENOENT)
    throw system_error(path, "cannot be removed", errno);
  if (os::sync(open_folder(folder_of(path)).get()) != 0)
    throw system_error(path, "writing its folder to disk", errno);
}

std::string LengthStore::model(const LengthSubject::Settings& settings,
                               const train::DesignRecipe& design, std::uint64_t seed) const {
  const std::string models = join(folder_, "models");
  make_folder(models);
  std::string name = fmt::format("{}-{}", design.position, design.normalizer);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  }
  return join(models, fmt::format("{}-seed{}-{}", name, seed,
                                  settings_digest(settings).substr(0, kDigits)));
}

std::optional<std::int64_t> LengthStore::steps(const std::string& request) const {
  const std::string path = join(join(folder_, "cells"), request + ".steps");
  if (!exists(path)) return std::nullopt;
  const std::string written = read_text(path, kMostBytes);
  const std::string_view text = digested_text(written, path);
  const auto number = parse_number<std::int64_t>(text.substr(0, text.find('\n')));
  if (!number || !text.ends_with('\n')) {
    throw InputError(path,
                     "expected a number of steps; remove the file to measure it again, which "
                     "trains cells again if the number is another one");
  }
  return number;
}

void LengthStore::keep_steps(const std::string& request, std::int64_t steps) const {
  replace_text(join(join(folder_, "cells"), request + ".steps"),
               with_digest_line(fmt::format("{}\n", steps)));
}

}  // namespace masque::length
