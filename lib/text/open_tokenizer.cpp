#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

namespace {

constexpr std::uint64_t kMaxFile = 1U << 30;

std::string read(const std::string& path) { return InputFile::open(path).read_all(kMaxFile); }

/// Adds what the folder says about roles.
TokenizerParts with_roles(TokenizerParts parts, const FolderConfig& config) {
  parts.role_names = config.roles;
  return parts;
}

/// What the folder says, and of the other roles what the caller says.
FolderConfig read_config(const std::string& folder, const TokenizerOptions& options) {
  FolderConfig config = read_folder_config(folder);
  if (!options.config.empty() && config.settings.find("tokenizer_class") == nullptr)
    config.architecture = config_architecture(options.config);
  if (config.architecture.empty() && !options.model.empty())
    config.architecture = model_architecture(options.model);
  for (const auto& entry : options.roles) {
    const bool named = std::any_of(config.roles.begin(), config.roles.end(),
                                   [&](const auto& other) { return other.first == entry.first; });
    if (!named) config.roles.push_back(entry);
  }
  return config;
}

TokenizerParts open_json(const std::string& folder, const std::string& path,
                         const TokenizerOptions& options) {
  return with_roles(read_tokenizer_json(read(path), path), read_config(folder, options));
}

TokenizerParts open_vocab_txt(const std::string& folder, const std::string& path,
                              const TokenizerOptions& options) {
  const FolderConfig config = read_config(folder, options);
  return with_roles(read_wordpiece(read(path), path, config, options.flavor), config);
}

TokenizerParts open_vocab_json(const std::string& folder, const TokenizerOptions& options) {
  const FolderConfig config = read_config(folder, options);
  return with_roles(read_byte_level(join(folder, "vocab.json"), join(folder, "merges.txt"), config),
                    config);
}

TokenizerParts open_spiece(const std::string& folder, const std::string& path,
                           const TokenizerOptions& options) {
  const FolderConfig config = read_config(folder, options);
  return with_roles(read_spiece(read(path), path, config, options.flavor), config);
}

TokenizerParts open_folder_parts(const std::string& folder, const TokenizerOptions& options) {
  const Flavor flavor = options.flavor;
  const auto has = [&](const char* name) { return exists(join(folder, name)); };
  const bool original = flavor == Flavor::kGoogle || flavor == Flavor::kBert4Keras;
  if (has("tokenizer.json") && !original && flavor != Flavor::kSentencePiece)
    return open_json(folder, join(folder, "tokenizer.json"), options);
  if (has("vocab.txt") && flavor != Flavor::kSentencePiece)
    return open_vocab_txt(folder, join(folder, "vocab.txt"), options);
  if (has("vocab.json") && has("merges.txt") && !original && flavor != Flavor::kSentencePiece)
    return open_vocab_json(folder, options);
  for (const char* name : kSpieceFiles)
    if (has(name) && !original) return open_spiece(folder, join(folder, name), options);
  throw InputError(folder, original ? "no vocab.txt, expected one"
                           : flavor == Flavor::kSentencePiece
                               ? "no spiece.model, expected one"
                               : "no tokenizer, expected tokenizer.json, vocab.txt, vocab.json "
                                 "and merges.txt, or spiece.model");
}

/// Whether a model is meant: a file of weights, or TensorFlow's name of several.
bool is_weights(const std::string& path) {
  if (!exists(path)) return exists(path + ".index");
  return std::ranges::any_of(
      std::array{".safetensors", ".bin", ".pt", ".pth", ".npz", ".gguf", ".index", ".index.json"},
      [&](const char* end) { return path.ends_with(end); });
}

TokenizerParts open_file_parts(const std::string& path, const TokenizerOptions& options) {
  const Flavor flavor = options.flavor;
  const std::string folder = folder_of(path);
  if (is_weights(path)) return open_folder_parts(folder, options);
  const std::string name = base_name(path);
  const bool original = flavor == Flavor::kGoogle || flavor == Flavor::kBert4Keras;
  if ((original && !name.ends_with(".txt")) ||
      (flavor == Flavor::kSentencePiece && !name.ends_with(".model"))) {
    throw InputError(path, original ? "not a vocabulary that this flavor reads, expected vocab.txt"
                                    : "not a model that this flavor reads, expected spiece.model");
  }
  if (name == "vocab.json" || name == "merges.txt") return open_vocab_json(folder, options);
  if (name.ends_with(".json")) return open_json(folder, path, options);
  if (name.ends_with(".txt")) return open_vocab_txt(folder, path, options);
  if (name.ends_with(".model")) return open_spiece(folder, path, options);
  if (!exists(path)) {
    throw InputError(path,
                     fmt::format("no such file or folder, expected {}",
                                 path == options.model ? "a checkpoint folder" : "a tokenizer"));
  }
  throw InputError(path, "unknown kind of tokenizer, expected .json, .txt or .model");
}

}  // namespace

std::optional<std::string> needed_tokenizer_class(const Tokenizer& tokenizer,
                                                  const std::string& config) {
  const TokenizerParts& parts = tokenizer.parts();
  if (parts.kind.empty()) return std::nullopt;
  const Tokenizer again = Tokenizer::open(parts.path, {.config = config});
  if (again.parts().kind == parts.kind) return std::nullopt;
  return tokenizer_class_of(parts.kind);
}

Tokenizer Tokenizer::open(const std::string& path, const TokenizerOptions& options) {
  if (auto builtin = make_builtin(path)) return Tokenizer(std::move(*builtin));
  return Tokenizer(is_folder(path) ? open_folder_parts(path, options)
                                   : open_file_parts(path, options));
}

}  // namespace masque::text
