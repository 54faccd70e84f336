#include "timing.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json_writer.hpp"

namespace masque::lm_train {

namespace {

/// Whether a file would stand in a folder, or in its place, there or not.
bool is_inside(const std::string& file, const std::string& folder) {
  const auto whole = [](const std::string& name) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(name));
  };
  const std::filesystem::path path = whole(file), outer = whole(folder);
  const auto [left, right] = std::ranges::mismatch(outer, path);
  return left == outer.end();
}

}  // namespace

void add_timing(cli::Command& command, std::optional<std::string>& file) {
  command.option(
      "--timing", "FILE", file,
      "write a JSON line per step with seconds and tokens per second; FILE must be outside DIR");
  command.writes({"timing"});
}

void check_timing(const std::optional<std::string>& file,
                  const std::optional<std::string>& output) {
  if (!file || !output || !is_inside(*file, *output)) return;
  throw UsageError(fmt::format("{} {}: inside the folder of the model; choose a file outside",
                               field("timing"), *file));
}

Timing::Timing(const std::optional<std::string>& file, bool goes_on) {
  if (file) file_.emplace(*file, goes_on);
}

void Timing::add(const train::StepReport& r) {
  if (!file_) return;
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("step", r.step).member("seconds", r.seconds);
  json.member("waited", r.waited);
  json.member("tokens_per_second", static_cast<double>(r.tokens) / std::max(r.seconds, 1e-9));
  json.end_object();
  file_->append(text + '\n');
}

}  // namespace masque::lm_train
