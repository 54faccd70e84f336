// spiece.model: SentencePiece's ModelProto, read by hand.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/model/model.hpp"

namespace masque::text {

/// Under which names a folder has such a file; the first that is there counts.
inline constexpr std::array<const char*, 4> kSpieceFiles{"spiece.model", "sentencepiece.bpe.model",
                                                         "tokenizer.model", "spm.model"};

/// What a tokenizer needs of a ModelProto. Defaults are SentencePiece's.
struct SpieceModel {
  /// Kinds of models, as SentencePiece numbers them.
  enum class Type { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };

  std::vector<ScoredPiece> pieces;          ///< id = index
  Type type = Type::kUnigram;               ///< make_spiece() knows the first two
  bool treat_whitespace_as_suffix = false;  ///< the mark of a space ends a word
  bool byte_fallback = false;               ///< unknown characters become the pieces of their bytes
  TokenId unk_id = 0;   ///< of the one piece of type kUnknown; the trainer's id is not obeyed
  TokenId bos_id = 1;   ///< -1: none; the trainer's ids, as the file says
  TokenId eos_id = 2;   ///< as bos_id
  TokenId pad_id = -1;  ///< as bos_id
  std::string unk_surface = " \xE2\x81\x87 ";  ///< what the unknown piece is decoded to
  std::string normalizer;                      ///< its name, as "nmt_nfkc"
  std::string precompiled_charsmap;            ///< bytes of a Charsmap; empty: none
  bool add_dummy_prefix = true;          ///< a space in front of a text (behind it as a suffix)
  bool remove_extra_whitespaces = true;  ///< no spaces at the ends, one between words
  bool escape_whitespaces = true;        ///< spaces become U+2581
};

/// Reads the `bytes` of a file of which `path` is the name. Every length is checked; unknown fields
/// are skipped. Throws InputError "path: byte N: …" or naming the piece: not a protobuf message, no
/// pieces, not exactly one unknown piece, an empty or repeated piece, text that is not UTF-8, a
/// score that is not finite, byte_fallback without all 256 byte pieces.
SpieceModel read_spiece_model(std::string_view bytes, const std::string& path);

/// The bytes of a file that read_spiece_model() reads as `spiece`: pieces, type, byte fallback, ids
/// and flags, without `unk_surface`.
std::string write_spiece_model(const SpieceModel& spiece);

/// The model of `spiece`: Unigram with `rules` (both know byte fallback), BPE always by
/// SentencePiece's rules. Throws InputError naming `path` for other types.
std::shared_ptr<const TokenModel> make_spiece(const SpieceModel& spiece, PieceRules rules,
                                              const std::string& path);

}  // namespace masque::text
