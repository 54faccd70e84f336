#include "sweep_list.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "base/file/output_folder.hpp"
#include "base/input/digest_line.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::lm_train {

namespace {

constexpr std::uint64_t kMostListBytes = std::uint64_t{1} << 28;
// The temporaries next to it have a few bytes more; file names have 255 at most.
constexpr std::size_t kMostName = 200;

bool is_file_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == text.npos;
}

[[noreturn]] void refuse_list(const std::string& path) {
  throw InputError(path, "expected the list that lm-train sweep wrote");
}

}  // namespace

std::string cell_name(const std::vector<std::string>& keys, const std::vector<std::string>& values,
                      std::uint64_t seed) {
  std::string name;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::string value = values[i];
    for (char& c : value) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
    }
    name += fmt::format("{}={}_", keys[i], value);
  }
  name += fmt::format("seed={}", seed);
  if (name.size() > kMostName) {
    throw UsageError(
        fmt::format("{}: the folder of a run would be called {}, expected at most {} "
                    "bytes",
                    field("vary"), name, kMostName));
  }
  return name;
}

std::string list_text(const SweepList& list) {
  std::string text = "cell\t";
  for (const std::string& key : list.keys) text += key + '\t';
  text += "seed\n";
  for (const SweepCell& cell : list.cells) {
    throw_if_interrupted();
    text += cell.name + '\t';
    for (const std::string& value : cell.values) text += value + '\t';
    text += fmt::format("{}\n", cell.seed);
  }
  return text;
}

SweepList parse_list(std::string_view text, const std::string& path) {
  const std::string_view written = text;
  text = without_digest_line(text, path);
  if (!text.ends_with('\n')) refuse_list(path);
  text.remove_suffix(1);
  const std::vector<std::string_view> lines = split(text, '\n');
  const std::vector<std::string_view> header = split(lines.front(), '\t');
  if (header.size() < 2 || header.front() != "cell" || header.back() != "seed" || lines.size() < 2)
    refuse_list(path);
  SweepList list;
  list.keys.assign(header.begin() + 1, header.end() - 1);
  std::set<std::string_view> names;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string_view> fields = split(lines[i], '\t');
    if (fields.size() != header.size() || !is_file_name(fields.front()) ||
        !names.insert(fields.front()).second)
      refuse_list(path);
    const auto seed = parse_number<std::uint64_t>(fields.back());
    if (!seed) refuse_list(path);
    list.cells.push_back(
        {std::string(fields.front()), {fields.begin() + 1, fields.end() - 1}, *seed});
  }
  need_digest_line(written, path);
  return list;
}

void write_list(const std::string& folder, const SweepList& list) {
  const std::string path = join(folder, kSweepList);
  if (exists(folder) && !exists(path) && !list_files(folder).empty()) {
    throw InputError(
        folder, fmt::format("folder exists, but has no {} of a sweep: choose another", kSweepList));
  }
  const std::string text = list_text(list);
  // Afterwards, since an interrupt leaves no empty folder.
  make_folder(folder);
  if (exists(path)) {
    const std::string written = read_text(path, kMostListBytes);
    const std::string_view before = without_digest_line(written, path);
    if (before == text) return;
    const auto old_lines = split(before, '\n'), lines = split(text, '\n');
    if (old_lines.front() != lines.front()) {
      std::vector<std::string_view> keys = split(old_lines.front(), '\t');
      keys = keys.size() > 2 ? std::vector(keys.begin() + 1, keys.end() - 1)
                             : std::vector<std::string_view>{"only the seed"};
      throw InputError(path,
                       fmt::format("the list of a sweep that varies {}: choose another folder",
                                   escape(fmt::format("{}", fmt::join(keys, ", ")))));
    }
    const std::set<std::string_view> now(lines.begin(), lines.end());
    const auto lost =
        std::ranges::find_if_not(old_lines, [&](auto line) { return now.contains(line); });
    if (lost != old_lines.end()) {
      throw InputError(path,
                       fmt::format("the list of a sweep with the run {}, which this sweep does "
                                   "not have: choose another folder",
                                   escape(split_at_first(*lost, '\t').first)));
    }
  }
  replace_text(path, with_digest_line(text));
}

SweepList read_list(const std::string& folder) {
  const std::string path = join(folder, kSweepList);
  if (!exists(path))
    throw InputError(folder,
                     fmt::format("no {}, expected the folder of lm-train sweep", kSweepList));
  return parse_list(read_text(path, kMostListBytes), path);
}

}  // namespace masque::lm_train
