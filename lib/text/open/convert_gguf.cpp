// The tokenizers of GGUF files as Hugging Face's.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "text/open/convert.hpp"
#include "text/open/gguf_vocabulary.hpp"
#include "text/open/spiece_model.hpp"
#include "text/open/tokenizer_files.hpp"

namespace masque::text {

namespace {

/// How a byte-level BPE cuts text before it joins bytes.
struct PreTokenizer {
  std::string_view name;        ///< of tokenizer.ggml.pre
  std::string_view pattern;     ///< what a piece matches; empty: GPT-2's
  bool single_digits = false;   ///< each digit is a piece, before GPT-2's pattern
  bool composes = false;        ///< text is brought to NFC first
  bool ignores_merges = false;  ///< a piece that is a token is that token
  bool begins = false;          ///< the first token is bos, where the file does not say
};

constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr PreTokenizer kPreTokenizers[] = {
    {"codeshell", "", true},
    {"command-r", "", true},
    {"dbrx", kLlama3Pattern},
    {"gpt-2", ""},
    {"llama-bpe", kLlama3Pattern, false, false, true, true},
    {"llama-v3", kLlama3Pattern, false, false, true, true},
    {"llama3", kLlama3Pattern, false, false, true, true},
    {"mpt", ""},
    {"olmo", ""},
    {"phi-2", ""},
    {"qwen2", kQwen2Pattern, false, true},
    {"refact", "", true},
    {"smaug-bpe", kLlama3Pattern},
    {"smollm", "", true},
    {"stablelm2", kQwen2Pattern},
    {"starcoder", "", true},
};

PieceType type_of(const GgufVocabulary& vocabulary, std::size_t id) {
  return vocabulary.types.empty() ? PieceType::kNormal
                                  : static_cast<PieceType>(vocabulary.types[id]);
}

void check_lists(const GgufVocabulary& v, const std::string& path) {
  const auto check = [&](std::string_view what, std::size_t size) {
    if (size != 0 && size != v.tokens.size())
      throw InputError(path, fmt::format("{} {}, expected one for each of {} tokens", size, what,
                                         v.tokens.size()));
  };
  if (v.tokens.empty()) throw InputError(path, "no tokenizer.ggml.tokens, expected some");
  check("scores", v.scores.size());
  check("types of tokens", v.types.size());
  for (const int type : v.types) {
    if (type < 1 || type > 6)
      throw InputError(path, fmt::format("token type {}, expected 1 to 6", type));
  }
  for (const auto& [role, id] : v.roles) {
    if (id < 0 || static_cast<std::size_t>(id) >= v.tokens.size())
      throw InputError(
          path, fmt::format("token {} for {}, expected one of {}", id, role, v.tokens.size()));
  }
}

std::string token_of(const GgufVocabulary& vocabulary, std::string_view role) {
  for (const auto& [name, id] : vocabulary.roles)
    if (name == role) return vocabulary.tokens[static_cast<std::size_t>(id)];
  return {};
}

/// Whether the pieces are read as Gemma's class reads them: without a space in front.
bool is_gemma(const GgufVocabulary& vocabulary) {
  return !vocabulary.add_space_prefix.value_or(true);
}

/// A tokenizer_config.json for the class `name`.
std::string config_text(const GgufVocabulary& vocabulary, std::string_view name) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("tokenizer_class", name);
  json.member("add_bos_token", vocabulary.add_bos.value_or(true));
  json.member("add_eos_token", vocabulary.add_eos.value_or(false));
  json.member("add_prefix_space", vocabulary.add_space_prefix.value_or(true));
  for (const auto& [role, id] : vocabulary.roles)
    json.member(role + "_token", vocabulary.tokens[static_cast<std::size_t>(id)]);
  json.end_object();
  return text;
}

/// The settings of the class, as a tokenizer_config.json has them.
FolderConfig settings_of(const GgufVocabulary& vocabulary, const std::string& path,
                         std::string architecture) {
  const std::string text = config_text(vocabulary, "");
  FolderConfig config;
  config.architecture = std::move(architecture);
  config.path = path;
  config.settings = parse_json_file(text, path);
  config.tokenizer.named = "tokenizer.ggml.model";
  for (const auto& [role, id] : vocabulary.roles)
    config.roles.emplace_back(role, vocabulary.tokens[static_cast<std::size_t>(id)]);
  return config;
}

SpieceModel pieces_of(const GgufVocabulary& vocabulary, const std::string& path) {
  SpieceModel spiece;
  spiece.type = SpieceModel::Type::kBpe;
  spiece.byte_fallback = true;
  std::size_t unknown = 0;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const double score = vocabulary.scores.empty() ? 0 : static_cast<double>(vocabulary.scores[i]);
    spiece.pieces.push_back({vocabulary.tokens[i], score, type_of(vocabulary, i)});
    if (spiece.pieces.back().type != PieceType::kUnknown) continue;
    spiece.unk_id = static_cast<TokenId>(i);
    ++unknown;
  }
  if (unknown != 1)
    throw InputError(path, fmt::format("{} tokens of the type unknown, expected one", unknown));
  spiece.add_dummy_prefix = !is_gemma(vocabulary);
  spiece.remove_extra_whitespaces = false;
  for (const auto& [role, id] : vocabulary.roles) {
    if (role == "bos") spiece.bos_id = id;
    if (role == "eos") spiece.eos_id = id;
    if (role == "pad") spiece.pad_id = id;
  }
  return spiece;
}

TokenizerParts read_pieces(const GgufVocabulary& vocabulary, const std::string& path) {
  return read_spiece_class(pieces_of(vocabulary, path), path,
                           settings_of(vocabulary, path, is_gemma(vocabulary) ? "gemma" : "llama"));
}

/// The items of added_tokens: those that are found in a text by their spelling.
void write_added(const GgufVocabulary& vocabulary, JsonWriter& json) {
  json.key("added_tokens").begin_array();
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const PieceType type = type_of(vocabulary, i);
    if (type != PieceType::kControl && type != PieceType::kUserDefined) continue;
    json.begin_object().member("id", i).member("content", vocabulary.tokens[i]);
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"})
      json.member(flag, false);
    json.member("special", type == PieceType::kControl).end_object();
  }
  json.end_array();
}

/// A tokenizer.json of byte-level BPE.
std::string byte_pair_json(const GgufVocabulary& vocabulary, const std::string& path) {
  const auto* const cut = std::ranges::find(kPreTokenizers, vocabulary.pre, &PreTokenizer::name);
  if (cut == std::end(kPreTokenizers)) {
    std::vector<std::string_view> names;
    for (const PreTokenizer& one : kPreTokenizers) names.push_back(one.name);
    throw InputError(path, fmt::format("tokenizer.ggml.pre is \"{}\", expected {}",
                                       escape(vocabulary.pre), or_list(names)));
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  write_added(vocabulary, json);
  json.key("normalizer").raw(cut->composes ? R"({"type":"NFC"})" : "null");
  const std::string plain = byte_level_json(false, true);
  json.key("pre_tokenizer");
  if (!cut->pattern.empty()) {
    json.raw(cut_bytes_json(cut->pattern, "Isolated", false, byte_level_json(false, true, false)));
  } else if (cut->single_digits) {
    json.raw(
        sequence_json("pretokenizers", {R"({"type":"Digits","individual_digits":true})", plain}));
  } else {
    json.raw(plain);
  }
  const std::string bos = token_of(vocabulary, "bos"), eos = token_of(vocabulary, "eos");
  const bool begins = vocabulary.add_bos.value_or(cut->begins) && !bos.empty();
  const bool ends = vocabulary.add_eos.value_or(false) && !eos.empty();
  std::vector<std::string> single, pair;
  if (begins) single.push_back(bos + ":0");
  single.emplace_back("$A:0");
  if (ends) single.push_back(eos + ":0");
  pair = single;
  if (begins) pair.push_back(bos + ":1");
  pair.emplace_back("$B:1");
  if (ends) pair.push_back(eos + ":1");
  const TokenFinder find = [&](std::string_view token) -> std::optional<TokenId> {
    const auto found = std::ranges::find(vocabulary.tokens, token);
    if (found == vocabulary.tokens.end()) return std::nullopt;
    return static_cast<TokenId>(found - vocabulary.tokens.begin());
  };
  json.key("post_processor").raw(begins || ends ? template_json(find, single, pair) : "null");
  json.key("decoder").raw(byte_level_json(true, true));
  json.key("model").begin_object().member("type", "BPE");
  json.member("ignore_merges", cut->ignores_merges);
  json.key("vocab").begin_object();
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) json.member(vocabulary.tokens[i], i);
  json.end_object().key("merges").begin_array();
  for (const std::string& merge : vocabulary.merges) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string::npos)
      throw InputError(path, fmt::format("merge '{}', expected two tokens", escape(merge)));
    json.begin_array().value(merge.substr(0, space)).value(merge.substr(space + 1)).end_array();
  }
  json.end_array().end_object().end_object();
  return text;
}

TokenizerParts read_byte_pairs(const GgufVocabulary& vocabulary, const std::string& path) {
  TokenizerParts parts = read_tokenizer_json(byte_pair_json(vocabulary, path), path);
  for (const auto& [role, id] : vocabulary.roles)
    parts.role_names.emplace_back(role, vocabulary.tokens[static_cast<std::size_t>(id)]);
  return parts;
}

}  // namespace

std::vector<VocabularyText> files_of_gguf_vocabulary(const GgufVocabulary& vocabulary,
                                                     const std::string& path) {
  static_cast<void>(read_gguf_vocabulary(vocabulary, path));  // refuses what is wrong
  const bool pieces = vocabulary.model == "llama";
  const char* const name = !pieces                ? "PreTrainedTokenizerFast"
                           : is_gemma(vocabulary) ? "GemmaTokenizer"
                                                  : "LlamaTokenizer";
  std::vector<VocabularyText> files;
  if (pieces) {
    files.push_back({"tokenizer.model", write_spiece_model(pieces_of(vocabulary, path))});
  } else {
    files.push_back({"tokenizer.json", byte_pair_json(vocabulary, path)});
  }
  files.push_back({"tokenizer_config.json", config_text(vocabulary, name)});
  return files;
}

TokenizerParts read_gguf_vocabulary(const GgufVocabulary& vocabulary, const std::string& path) {
  check_lists(vocabulary, path);
  TokenizerParts parts;
  if (vocabulary.model == "llama") {
    parts = read_pieces(vocabulary, path);
    parts.role_names = settings_of(vocabulary, path, "").roles;
  } else if (vocabulary.model == "gpt2") {
    parts = read_byte_pairs(vocabulary, path);
  } else {
    throw InputError(path, fmt::format("tokenizer.ggml.model is \"{}\", expected llama or gpt2",
                                       escape(vocabulary.model)));
  }
  parts.format = "gguf";
  return parts;
}

}  // namespace masque::text
