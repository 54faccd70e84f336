// SentencePiece's files as the classes of transformers 5 read them: what their readers share.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/open/convert.hpp"
#include "text/open/spiece_model.hpp"

namespace masque::text {

/// What a class reads of a file, before the added tokens and the template.
struct ClassModel {
  std::shared_ptr<const TokenModel> model;  ///< the vocabulary with its algorithm
  std::string model_type = "Unigram";       ///< or "BPE"
  std::optional<TokenId> unknown;           ///< of Unigram
  TokenizerText text;                       ///< without template and added tokens
};

/// The special tokens of the class `kind` with a Unigram model, or of NLLB; empty for others.
std::span<const ClassRole> spiece_class_roles(std::string_view kind);
/// The special tokens of the class `kind` with a BPE model, "llama" or "gemma"; empty for others.
std::span<const ClassRole> spiece_bpe_roles(std::string_view kind);
/// The model and steps of the class `kind`, which reads a Unigram model, for the pieces of
/// `spiece`, which it renumbers, with the settings `config`. Throws InputError about `path`.
ClassModel read_unigram_class(SpieceModel& spiece, const std::string& path,
                              const FolderConfig& config, const std::string& kind);
/// The steps alone, with a Precompiled normalizer of the bytes `charsmap`, unless that is empty;
/// `config` and `kind` as there.
TokenizerText unigram_steps(const std::string& charsmap, const FolderConfig& config,
                            const std::string& kind);
/// As read_unigram_class() for `spiece`, `path` and `config`, of the class `kind` with a BPE model:
/// "nllb", "llama" or "gemma".
ClassModel read_bpe_class(SpieceModel& spiece, const std::string& path, const FolderConfig& config,
                          const std::string& kind);
/// As unigram_steps() for `charsmap`, `config` and such a `kind`.
TokenizerText spiece_bpe_steps(const std::string& charsmap, const FolderConfig& config,
                               const std::string& kind);
/// As read_unigram_class() for `spiece`, `path` and `config`, of either type of model, by the
/// settings in its file.
ClassModel read_any_model(const SpieceModel& spiece, const std::string& path,
                          const FolderConfig& config);
/// The post-processor of the class `kind` with the settings `config`; `find` knows all tokens.
/// "null" if one is missing. `target`: around targets, which differ by has_targets().
std::string spiece_processor(const TokenFinder& find, const FolderConfig& config,
                             const std::string& kind, bool target = false);
/// Whether the class `kind` with the settings `config` puts another language around targets than
/// around sources.
bool has_targets(const FolderConfig& config, std::string_view kind);
/// Special tokens of the class `kind` that have no role and that no file lists: the languages of
/// mBART and, where `spiece` is empty, of NLLB; T5's sentinels unless `spiece` has them. Throws
/// InputError about the settings of `config`.
std::vector<std::string> class_tokens(const SpieceModel& spiece, const FolderConfig& config,
                                      const std::string& kind);

}  // namespace masque::text
