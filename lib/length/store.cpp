#include "length/store.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/os.hpp"
#include "base/output_file.hpp"
#include "base/output_folder.hpp"
#include "base/parse_number.hpp"
#include "base/split.hpp"

namespace masque::length {

bool has_finetuning(const LengthSubject::Settings& settings) {
  return std::ranges::any_of(settings, [](const auto& s) { return s.first == "finetune_lengths"; });
}

namespace {

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
    if (!value) throw InputError(path_, "expected the lines that length-gen wrote");
    return *value;
  }

 private:
  std::vector<std::string_view> fields_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

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

std::optional<std::vector<LengthRow>> LengthStore::find(const LengthSubject::Settings& settings,
                                                        std::size_t arm, std::uint64_t seed) const {
  const std::string path = join(join(folder_, "cells"), settings_digest(settings) + ".tsv");
  if (!exists(path)) return std::nullopt;
  const std::string text = read_text(path, kMostBytes);
  const std::string head = text_of(settings) + columns_of(settings);
  if (!text.starts_with(head) || !text.ends_with('\n'))
    throw InputError(path, "expected the lines that length-gen wrote");
  std::vector<LengthRow> rows;
  for_each_line(std::string_view(text).substr(head.size()), [&](std::string_view line) {
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
  replace_text(join(join(folder_, "cells"), settings_digest(settings) + ".tsv"), text);
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
  const std::string text = read_text(path, kMostBytes);
  if (!text.ends_with('\n')) throw InputError(path, "expected a number of steps");
  return Fields(std::string_view(text).substr(0, text.size() - 1), path).next<std::int64_t>();
}

void LengthStore::keep_steps(const std::string& request, std::int64_t steps) const {
  replace_text(join(join(folder_, "cells"), request + ".steps"), fmt::format("{}\n", steps));
}

}  // namespace masque::length
