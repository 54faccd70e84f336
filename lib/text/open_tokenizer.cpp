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

bool is_original(Flavor flavor) {
  return flavor == Flavor::kGoogle || flavor == Flavor::kBert4Keras;
}

/// Adds to `roles` those of `more` that it lacks.
void add_missing(const RoleNames& more, RoleNames& roles) {
  for (const auto& entry : more) {
    const bool named =
        std::ranges::any_of(roles, [&](const auto& role) { return role.first == entry.first; });
    if (!named) roles.push_back(entry);
  }
}

/// Whether decoding cleans up: transformers does it, for other models than byte-pair encodings.
bool cleans_up(const FolderConfig& config, const TokenizerParts& parts) {
  const auto is = [&](const char* name, const char* value) {
    return std::ranges::find(parts.summary, std::pair<std::string, std::string>(name, value)) !=
           parts.summary.end();
  };
  return setting(config, "clean_up_tokenization_spaces", false) &&
         !is("read_as", "SentencePiece") &&
         (!is("model", "BPE") ||
          setting(config, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
                  false));
}

/// Adds what the folder says about roles, that special tokens are text, and how text is decoded.
TokenizerParts with_roles(TokenizerParts parts, const FolderConfig& config) {
  parts.role_names = config.roles;
  add_missing(config.old_roles, parts.role_names);
  if (setting(config, "split_special_tokens", false)) {
    for (AddedToken& token : parts.added) token.found = token.found && !token.special;
  }
  parts.cleans_up = cleans_up(config, parts);
  return parts;
}

/// As with_roles(), for a vocabulary whose rules the files next to it state.
TokenizerParts with_settings(TokenizerParts parts, const FolderConfig& config) {
  note_unknown_settings(config, parts);
  return with_roles(std::move(parts), config);
}

/// What the folder says, and of the other roles what the caller says.
FolderConfig read_config(const std::string& folder, const TokenizerOptions& options) {
  FolderConfig config = read_folder_config(folder);
  if (!options.config.empty()) {
    config.tokenizer = config_tokenizer(options.config, config.settings);
  } else if (config.tokenizer.named.empty() && !options.model.empty()) {
    config.tokenizer = model_tokenizer(options.model, config.settings);
  }
  add_missing(options.roles, config.roles);
  return config;
}

TokenizerParts open_json(const std::string& folder, const std::string& path,
                         const TokenizerOptions& options) {
  const FolderConfig config = read_config(folder, options);
  const JsonValue json = parse_json_file(read(path), path);
  TokenizerParts parts = read_tokenizer_json(json, path);
  if (base_name(path) == "tokenizer.json") {
    note_tokenizer_json(json, config, parts);
    apply_class(json, config, parts);
  }
  return with_roles(std::move(parts), config);
}

TokenizerParts open_vocab_txt(const std::string& folder, const std::string& path,
                              const TokenizerOptions& options) {
  FolderConfig config = read_config(folder, options);
  if (!is_original(options.flavor)) choose_rules(config, VocabularyFile::kVocabTxt, path);
  return with_settings(read_wordpiece(read(path), path, config, options.flavor), config);
}

TokenizerParts open_vocab_json(const std::string& folder, const TokenizerOptions& options) {
  FolderConfig config = read_config(folder, options);
  const std::string path = join(folder, "vocab.json");
  choose_rules(config, VocabularyFile::kVocabJson, path);
  return with_settings(read_byte_level(path, join(folder, "merges.txt"), config), config);
}

TokenizerParts open_tekken(const std::string& folder, const std::string& path,
                           const TokenizerOptions& options) {
  const FolderConfig config = read_config(folder, options);
  return with_roles(read_tekken(read(path), path, config), config);
}

TokenizerParts open_tiktoken(const std::string& folder, const std::string& path,
                             const TokenizerOptions& options) {
  const FolderConfig config = read_config(folder, options);
  return with_roles(read_tiktoken(read(path), path, config), config);
}

TokenizerParts open_spiece(const std::string& folder, const std::string& path,
                           const TokenizerOptions& options) {
  FolderConfig config = read_config(folder, options);
  const std::string bytes = read(path);
  if (is_tiktoken(bytes)) return with_roles(read_tiktoken(bytes, path, config), config);
  if (options.flavor != Flavor::kSentencePiece) choose_rules(config, VocabularyFile::kSpiece, path);
  return with_settings(read_spiece(bytes, path, config, options.flavor), config);
}

TokenizerParts open_folder_parts(const std::string& folder, const TokenizerOptions& options) {
  const Flavor flavor = options.flavor;
  const auto has = [&](const char* name) { return exists(join(folder, name)); };
  const bool original = is_original(flavor);
  if (has("tokenizer.json") && !original && flavor != Flavor::kSentencePiece)
    return open_json(folder, join(folder, "tokenizer.json"), options);
  const bool spm = flavor == Flavor::kSentencePiece;
  const auto* spiece = std::ranges::find_if(kSpieceFiles, has);
  // By VocabularyFile.
  const std::array<bool, 3> found{has("vocab.txt") && !spm,
                                  has("vocab.json") && has("merges.txt") && !original && !spm,
                                  spiece != kSpieceFiles.end() && !original};
  std::size_t file = static_cast<std::size_t>(std::ranges::find(found, true) - found.begin());
  if (std::ranges::count(found, true) > 1) {  // that of the class which the folder names
    const TokenizerName name = read_config(folder, options).tokenizer;
    const auto wanted = static_cast<std::size_t>(name.file);
    if (!name.architecture.empty() && found.at(wanted)) file = wanted;
  }
  if (file == 0) return open_vocab_txt(folder, join(folder, "vocab.txt"), options);
  if (file == 1) return open_vocab_json(folder, options);
  if (has("tekken.json") && !original && !spm)
    return open_tekken(folder, join(folder, "tekken.json"), options);
  if (file == 2) return open_spiece(folder, join(folder, *spiece), options);
  for (const char* name : {"tiktoken.model", "cl100k_base.tiktoken", "o200k_base.tiktoken",
                           "p50k_base.tiktoken", "r50k_base.tiktoken"})
    if (has(name) && !original && !spm) return open_tiktoken(folder, join(folder, name), options);
  throw InputError(folder, original ? "no vocab.txt, expected one"
                           : spm    ? "no spiece.model, expected one"
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
  const bool original = is_original(flavor);
  if ((original && !name.ends_with(".txt")) ||
      (flavor == Flavor::kSentencePiece && !name.ends_with(".model"))) {
    throw InputError(path, original ? "not a vocabulary that this flavor reads, expected vocab.txt"
                                    : "not a model that this flavor reads, expected spiece.model");
  }
  if (name == "vocab.json" || name == "merges.txt") return open_vocab_json(folder, options);
  if (name == "tekken.json") return open_tekken(folder, path, options);
  if (name.ends_with(".json")) return open_json(folder, path, options);
  if (name.ends_with(".tiktoken")) return open_tiktoken(folder, path, options);
  if (name.ends_with(".txt")) return open_vocab_txt(folder, path, options);
  if (name.ends_with(".model")) return open_spiece(folder, path, options);
  if (!exists(path)) {
    throw InputError(path,
                     fmt::format("no such file or folder, expected {}",
                                 path == options.model ? "a checkpoint folder" : "a tokenizer"));
  }
  throw InputError(path, "unknown kind of tokenizer, expected .json, .txt, .model or .tiktoken");
}

}  // namespace

std::optional<std::string> needed_tokenizer_class(const Tokenizer& tokenizer,
                                                  const std::string& config) {
  const TokenizerParts& parts = tokenizer.parts();
  if (parts.kind.empty()) return std::nullopt;
  const FolderConfig folder = read_folder_config(folder_of(parts.path));
  if (parts.format == "vocab.txt" && has_chinese_words(*parts.steps.model) &&
      config_tokenizer(config, folder.settings).architecture == "roformer")
    return tokenizer_class_of(parts.kind);
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
