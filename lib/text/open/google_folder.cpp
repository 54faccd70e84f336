#include "text/open/google_folder.hpp"

#include <algorithm>
#include <filesystem>

#include "base/file/file.hpp"

namespace masque::text {

std::optional<std::string> tokenizer_config_by_name(const std::string& folder) {
  const auto has = [&](const char* name) { return exists(join(folder, name)); };
  if (!has("bert_config.json") || has("config.json") || has("tokenizer_config.json"))
    return std::nullopt;
  std::error_code error;  // if it cannot be resolved, the path as it is
  const std::filesystem::path real = std::filesystem::canonical(folder, error);
  std::string name = base_name(error ? folder : real.string());
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const bool cased =
      name.find("cased") != std::string::npos && name.find("uncased") == std::string::npos;
  return cased ? std::optional<std::string>("{\"do_lower_case\": false}\n") : std::nullopt;
}

}  // namespace masque::text
