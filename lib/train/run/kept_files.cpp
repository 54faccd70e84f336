#include "train/run/kept_files.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/output_folder.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"
#include "model/checkpoint/training_state.hpp"
#include "text/open/spiece_model.hpp"
#include "train/run/folder_parts.hpp"

namespace masque::train {

namespace {

constexpr const char* kModules = "modules.json";

/// Whether the new folder has the file `name` of its own: the model, its tokenizer, its training.
bool is_written(std::string_view name) {
  constexpr std::array<std::string_view, 14> kNames{"config.json",
                                                    "vocab.txt",
                                                    "vocab.json",
                                                    "merges.txt",
                                                    "tokenizer.json",
                                                    "tokenizer_config.json",
                                                    "special_tokens_map.json",
                                                    "added_tokens.json",
                                                    kChatTemplate,
                                                    kMetricsName,
                                                    kLossPicture,
                                                    "predictions.tsv",
                                                    "result.json",
                                                    "results.tsv"};
  return std::ranges::find(kNames, name) != kNames.end() || name == model::kTrainingStateName ||
         std::ranges::find(text::kSpieceFiles, name) != text::kSpieceFiles.end();
}

/// The folders of the modules that follow the model, with "/" at their ends.
std::vector<std::string> module_folders(const std::string& folder) {
  const std::string path = join(folder, kModules);
  std::vector<std::string> out;
  if (!exists(path)) return out;
  const JsonValue list =
      parse_json_file(InputFile::open(path).read_all(std::uint64_t{16} << 20), path);
  for (const JsonValue& item : list.items) {
    const std::string place = item.text_of("path");
    const bool is_model = item.text_of("type").ends_with("Transformer");
    if (!place.empty() && !is_model) out.push_back(place + "/");
  }
  return out;
}

bool is_sentence_setting(std::string_view name) {
  return name == kModules || name == "config_sentence_transformers.json" ||
         (name.starts_with("sentence_") && name.ends_with("_config.json"));
}

}  // namespace

BesideModel beside_model(const store::Checkpoint& checkpoint) {
  BesideModel out;
  // Only a folder is the model with all that is in it; a GGUF is one without its folder.
  if (checkpoint.path().ends_with(".gguf")) return out;
  const std::vector<std::string> weights = store::weight_files(checkpoint);
  const std::vector<std::string> modules = module_folders(checkpoint.folder());
  for (std::string& name : list_files(checkpoint.folder())) {
    const bool hidden = name.starts_with('.') || name.find("/.") != std::string::npos;
    const bool own = std::ranges::find(weights, name) != weights.end() ||
                     name == checkpoint.index_name() || is_written(name);
    if (hidden || own) continue;
    const bool of_module = std::ranges::any_of(
        modules, [&](const std::string& module) { return name.starts_with(module); });
    const bool kept = of_module || is_sentence_setting(name) || name == "generation_config.json";
    if (kept || checkpoint.is_folder()) (kept ? out.kept : out.left_out).push_back(std::move(name));
  }
  return out;
}

std::vector<store::OutputExtra> kept_files(const store::Checkpoint& checkpoint,
                                           std::deque<InputFile>& opened) {
  const std::vector<std::string> kept = beside_model(checkpoint).kept;
  if (kept.empty()) return {};
  std::vector<std::string> except{"tokenizer_config.json"}, notes;
  std::vector<std::string> others;
  for (std::string& name : list_files(checkpoint.folder(), &others)) {
    if (std::ranges::find(kept, name) == kept.end()) except.push_back(std::move(name));
  }
  except.insert(except.end(), others.begin(), others.end());
  return store::other_files(checkpoint.folder(), except, opened, true, notes);
}

std::vector<std::string> left_out_notes(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    const std::string one = escape(name.substr(0, name.find('/') + 1));
    const std::string entry = one.empty() ? escape(name) : one;
    if (shown.empty() || shown.back() != entry) shown.push_back(entry);
  }
  if (shown.empty()) return {};
  return {"left out: " + comma_list(shown)};
}

}  // namespace masque::train
