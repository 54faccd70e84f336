// Outputs that would replace what the same command reads.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/command.hpp"

namespace masque::cli {

namespace {

/// Whether both are one file that is there.
bool is_same(const std::string& a, const std::string& b) {
  std::error_code ignored;  // of what is not there: not the same
  return std::filesystem::equivalent(a, b, ignored);
}

bool is_picture(const std::string& path) {
  return path.ends_with(".svg") || path.ends_with(".png") || path.ends_with(".html");
}

}  // namespace

Command& Command::writes(std::vector<std::string> options) {
  writes_.insert(writes_.end(), options.begin(), options.end());
  return *this;
}

void Command::refuse_overwriting(const std::vector<GivenValue>& given) const {
  for (const auto& [entry, path] : given) {
    std::error_code ignored;
    if (std::ranges::find(writes_, key_of(*entry)) == writes_.end() ||
        !std::filesystem::is_regular_file(path, ignored))
      continue;
    const std::string name = entry->spellings().front();
    if (is_same(path, "/dev/stdin"))
      throw UsageError(
          fmt::format("{} names the file that standard input reads, expected another one", name));
    for (const auto& [other, value] : given) {
      if (other == entry) continue;
      const std::string read = other->spellings().front();
      if (is_same(path, value))
        throw UsageError(fmt::format("{} and {} name the same file, expected two", name, read));
      // A picture replaces nothing that a model or a tokenizer has.
      if (!is_picture(path) && is_same(path, join(value, base_name(path))))
        throw UsageError(fmt::format("{} names a file of {}, expected another one", name, read));
    }
  }
}

}  // namespace masque::cli
