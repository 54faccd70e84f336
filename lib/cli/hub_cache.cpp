#include "cli/hub_cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/edit_distance.hpp"
#include "base/string/split.hpp"

namespace masque::cli {

namespace {

constexpr std::string_view kHub = "hf:";
constexpr std::string_view kModels = "models--";
constexpr std::string_view kSeparator = "--";

/// The value of a variable of the environment; nothing if it is not set, or empty.
std::optional<std::string> path_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string path = value;
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  return (home == nullptr ? "" : home) + path.substr(1);
}

/// The names in a folder, sorted; none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    names.push_back(at->path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// Whether `part` may be the owner or the name of a model: it is one component of a path.
bool is_hub_part(std::string_view part) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !part.empty() && part.front() != '.' && std::ranges::all_of(part, allowed) &&
         part.find(kSeparator) == std::string_view::npos;
}

bool is_commit(std::string_view text) {
  constexpr std::size_t kDigits = 40;
  return text.size() == kDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// Revisions are paths below refs/, as refs/pr/1.
bool is_revision(std::string_view text) {
  const std::vector<std::string_view> parts = split_terminated(text, '/');
  return !text.empty() && !text.ends_with('/') &&
         std::ranges::all_of(parts, [](std::string_view part) {
           return !part.empty() && part != "." && part != ".." && part.find('\0') == part.npos;
         });
}

std::u32string bytes_of(std::string_view text) {
  std::u32string out;
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  return out;
}

/// What a message says of `names`: the nearest to `word` first, and how many others there are.
std::string nearest_of(std::string_view word, std::vector<std::string> names) {
  constexpr std::size_t kShown = 5;
  const std::u32string wanted = bytes_of(word);
  std::ranges::stable_sort(
      names, {}, [&](const std::string& name) { return edit_distance(wanted, bytes_of(name)); });
  const std::size_t all = names.size();
  names.resize(std::min(kShown, all));
  for (std::string& name : names) name = escape(name);
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  return all > kShown ? fmt::format("{} and {} more", list, all - kShown) : list;
}

/// The names of the revisions of a model's folder: of refs/ without folders, and commits.
std::string revisions_of(const std::string& wanted, const std::string& folder) {
  std::vector<std::string> all = names_in(join(folder, "refs"));
  for (const std::string& commit : names_in(join(folder, "snapshots"))) all.push_back(commit);
  return all.empty() ? "has no revision" : "has " + nearest_of(wanted, std::move(all));
}

}  // namespace

bool is_hub_name(std::string_view value) { return value.starts_with(kHub); }

std::string hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (auto folder = path_variable(name)) return *folder;
  }
  if (const auto home = path_variable("HF_HOME")) return join(*home, "hub");
  const std::string caches =
      path_variable("XDG_CACHE_HOME").value_or(join(path_variable("HOME").value_or(""), ".cache"));
  return join(caches, "huggingface/hub");
}

std::vector<std::string> hub_names(const std::string& cache) {
  std::vector<std::string> names;
  for (const std::string& folder : names_in(cache)) {
    if (!folder.starts_with(kModels)) continue;
    std::string name = folder.substr(kModels.size());
    if (const auto at = name.find(kSeparator); at != std::string::npos)
      name.replace(at, kSeparator.size(), "/");
    names.push_back(std::string(kHub) + name);
  }
  return names;
}

std::string hub_snapshot(std::string_view name, const std::string& cache) {
  const auto [model, revision] = split_at_first(name.substr(kHub.size()), '@');
  const std::vector<std::string_view> parts = split(model, '/');
  const bool is_model = parts.size() <= 2 && std::ranges::all_of(parts, is_hub_part);
  if (!is_model || (revision && !is_revision(*revision))) {
    throw UsageError(
        fmt::format("'{}' is no model of the Hugging Face cache, expected "
                    "hf:OWNER/NAME or hf:OWNER/NAME@REVISION",
                    escape(name)));
  }
  const std::string shown = escape(name);
  const std::string folder =
      join(cache, fmt::format("{}{}", kModels, fmt::join(parts, kSeparator)));
  if (!is_folder(folder)) {
    const std::vector<std::string> names = hub_names(cache);
    throw InputError(fmt::format(
        "{}: not in the Hugging Face cache {}, which has {} (nothing is downloaded)", shown,
        escape(cache),
        names.empty() ? "no model" : nearest_of(fmt::format("{}{}", kHub, model), names)));
  }
  std::string wanted(revision.value_or("main"));
  std::string commit = wanted;
  const std::string reference = join(join(folder, "refs"), wanted);
  if (exists(reference) && !is_folder(reference)) {
    constexpr std::uint64_t kMost = 4096;
    commit = read_text(reference, kMost);
    while (commit.ends_with('\n') || commit.ends_with('\r')) commit.pop_back();
    if (!is_commit(commit)) {
      throw InputError(reference,
                       fmt::format("found '{}', expected a commit of 40 digits", escape(commit)));
    }
  }
  const std::string snapshot = join(join(folder, "snapshots"), commit);
  if (!is_commit(commit) || !is_folder(snapshot)) {
    throw InputError(fmt::format("{}: no revision {} in {}, which {} (nothing is downloaded)",
                                 shown, escape(wanted), escape(folder),
                                 revisions_of(wanted, folder)));
  }
  return snapshot;
}

}  // namespace masque::cli
