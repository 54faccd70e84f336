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

TokenizerParts open_json(const std::string& folder, const std::string& path) {
  return with_roles(read_tokenizer_json(read(path), path), read_folder_config(folder));
}

TokenizerParts open_vocab_txt(const std::string& folder, const std::string& path, Flavor flavor) {
  const FolderConfig config = read_folder_config(folder);
  return with_roles(read_wordpiece(read(path), path, config, flavor), config);
}

TokenizerParts open_vocab_json(const std::string& folder) {
  const FolderConfig config = read_folder_config(folder);
  return with_roles(read_byte_level(join(folder, "vocab.json"), join(folder, "merges.txt"), config),
                    config);
}

TokenizerParts open_spiece(const std::string& folder, const std::string& path, Flavor flavor) {
  const FolderConfig config = read_folder_config(folder);
  return with_roles(read_spiece(read(path), path, config, flavor), config);
}

TokenizerParts open_folder_parts(const std::string& folder, Flavor flavor) {
  const auto has = [&](const char* name) { return exists(join(folder, name)); };
  const bool original = flavor == Flavor::kGoogle || flavor == Flavor::kBert4Keras;
  if (has("tokenizer.json") && !original && flavor != Flavor::kSentencePiece)
    return open_json(folder, join(folder, "tokenizer.json"));
  if (has("vocab.txt") && flavor != Flavor::kSentencePiece)
    return open_vocab_txt(folder, join(folder, "vocab.txt"), flavor);
  if (has("vocab.json") && has("merges.txt") && !original && flavor != Flavor::kSentencePiece)
    return open_vocab_json(folder);
  for (const char* name :
       {"spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model"})
    if (has(name) && !original) return open_spiece(folder, join(folder, name), flavor);
  throw InputError(folder, original ? "no vocab.txt, expected one"
                           : flavor == Flavor::kSentencePiece
                               ? "no spiece.model, expected one"
                               : "no tokenizer, expected tokenizer.json, vocab.txt, vocab.json "
                                 "and merges.txt, or spiece.model");
}

TokenizerParts open_file_parts(const std::string& path, Flavor flavor) {
  const std::string folder = folder_of(path);
  const std::string name = base_name(path);
  const bool original = flavor == Flavor::kGoogle || flavor == Flavor::kBert4Keras;
  if ((original && !name.ends_with(".txt")) ||
      (flavor == Flavor::kSentencePiece && !name.ends_with(".model"))) {
    throw InputError(path, original ? "not a vocabulary that this flavor reads, expected vocab.txt"
                                    : "not a model that this flavor reads, expected spiece.model");
  }
  if (name == "vocab.json" || name == "merges.txt") return open_vocab_json(folder);
  if (name.ends_with(".json")) return open_json(folder, path);
  if (name.ends_with(".txt")) return open_vocab_txt(folder, path, flavor);
  if (name.ends_with(".model")) return open_spiece(folder, path, flavor);
  if (!exists(path)) throw InputError(path, "no such file or folder, expected a tokenizer");
  throw InputError(path, "unknown kind of tokenizer, expected .json, .txt or .model");
}

}  // namespace

Tokenizer Tokenizer::open(const std::string& path, const OpenOptions& options) {
  if (auto builtin = make_builtin(path)) return Tokenizer(std::move(*builtin));
  return Tokenizer(is_folder(path) ? open_folder_parts(path, options.flavor)
                                   : open_file_parts(path, options.flavor));
}

}  // namespace masque::text
