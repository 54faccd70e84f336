// The tokenizers of GGUF files as Hugging Face's.
#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/name_list.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/parallel.hpp"
#include "text/model/vocabulary_file.hpp"
#include "text/open/convert.hpp"
#include "text/open/convert_spiece.hpp"
#include "text/open/gguf_vocabulary.hpp"
#include "text/open/spiece_model.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/unicode/space_marks.hpp"

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

/// tokenizer.ggml.model of T5's.
constexpr std::string_view kUnigram = "t5";
constexpr std::string_view kPieceRoles = "bos eos unk pad";

/// tokenizer.ggml.model of BERT's WordPiece.
constexpr std::string_view kWords = "bert";

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

/// The spelling of a token of BERT's vocab.txt or of another model.
std::string plain_token(const GgufVocabulary& vocabulary, std::size_t id) {
  return plain_gguf_token(vocabulary.model, vocabulary.tokens[id], type_of(vocabulary, id));
}

/// A tokenizer_config.json for the class `name`.
std::string config_text(const GgufVocabulary& vocabulary, std::string_view name) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("tokenizer_class", name);
  // The file has all tokens that there are.
  if (vocabulary.model == kUnigram) json.member("extra_ids", 0);
  if (vocabulary.model == kWords) {
    json.member("do_lower_case", true);
    for (const auto& [role, id] : vocabulary.roles)
      json.member(role + "_token", plain_token(vocabulary, static_cast<std::size_t>(id)));
    json.end_object();
    return text;
  }
  json.member("add_bos_token", vocabulary.add_bos.value_or(true));
  json.member("add_eos_token", vocabulary.add_eos.value_or(false));
  // Byte-level BPE has none unless the file says so.
  json.member("add_prefix_space", vocabulary.add_space_prefix.value_or(vocabulary.model != "gpt2"));
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
    config.roles.emplace_back(role, plain_token(vocabulary, static_cast<std::size_t>(id)));
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

/// The pieces of T5's Unigram model.
SpieceModel unigram_of(const GgufVocabulary& vocabulary, const std::string& path) {
  if (vocabulary.add_bos.value_or(false) || !vocabulary.add_eos.value_or(true))
    throw InputError(path,
                     "add_bos_token true or add_eos_token false, expected the end of a text "
                     "after each alone, as T5 has it");
  if (vocabulary.scores.empty())
    throw InputError(path, "no tokenizer.ggml.scores, expected one for each token");
  SpieceModel spiece = pieces_of(vocabulary, path);
  spiece.type = SpieceModel::Type::kUnigram;
  spiece.byte_fallback = false;
  spiece.add_dummy_prefix = vocabulary.add_space_prefix.value_or(true);
  spiece.remove_extra_whitespaces = vocabulary.remove_extra_whitespaces.value_or(false);
  spiece.precompiled_charsmap = vocabulary.charsmap;
  return spiece;
}

TokenizerParts read_unigram(const GgufVocabulary& vocabulary, const std::string& path) {
  return read_spiece_class(unigram_of(vocabulary, path), path, settings_of(vocabulary, path, "t5"));
}

TokenizerParts read_pieces(const GgufVocabulary& vocabulary, const std::string& path) {
  return read_spiece_class(pieces_of(vocabulary, path), path,
                           settings_of(vocabulary, path, is_gemma(vocabulary) ? "gemma" : "llama"));
}

/// The lines of BERT's vocab.txt.
std::string word_lines(const GgufVocabulary& vocabulary, const std::string& path) {
  std::string lines;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string token = plain_token(vocabulary, id);
    if (token.empty() || token.find_first_of("\r\n") != std::string::npos)
      throw InputError(path,
                       fmt::format("token {} is '{}', expected a line of text", id, escape(token)));
    lines += token + '\n';
  }
  return lines;
}

/// llama.cpp reads all texts without case and accents, as BERT's class does where nothing says
/// otherwise.
TokenizerParts read_words(const GgufVocabulary& vocabulary, const std::string& path) {
  const FolderConfig config = settings_of(vocabulary, path, "bert");
  TokenizerParts parts =
      read_wordpiece(word_lines(vocabulary, path), path, config, Flavor::kHuggingFace);
  parts.role_names = config.roles;
  return parts;
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

/// How text is cut, as the pre-tokenizer of a tokenizer.json.
std::string pre_tokenizer_json(const PreTokenizer& cut) {
  std::string plain = byte_level_json(false, true);
  if (!cut.pattern.empty())
    return cut_bytes_json(cut.pattern, "Isolated", false, byte_level_json(false, true, false));
  if (!cut.single_digits) return plain;
  return sequence_json("pretokenizers", {R"({"type":"Digits","individual_digits":true})", plain});
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
  json.key("pre_tokenizer").raw(pre_tokenizer_json(*cut));
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

// The other direction.

constexpr std::uint64_t kMostTokenizerBytes = 256 << 20;

/// Whether a pre-tokenizer of a tokenizer.json cuts as another one: members that change offsets
/// alone do not count, and absent ones are what the class takes.
bool cuts_alike(const JsonValue& a, const JsonValue& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size() || a.text != b.text) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!cuts_alike(a.items[i], b.items[i])) return false;
  const auto covers = [](const JsonValue& from, const JsonValue& in) {
    return std::ranges::all_of(from.members, [&](const JsonMember& member) {
      if (member.name == "trim_offsets") return true;
      const JsonValue* other = in.find(member.name);
      if (other == nullptr) return member.name == "use_regex" && member.value.text == "true";
      return cuts_alike(member.value, *other);
    });
  };
  return covers(a, b) && covers(b, a);
}

/// What a tokenizer.json has under `name`; a null if nothing.
const JsonValue& part_of(const JsonValue& json, std::string_view name) {
  static const JsonValue kNothing;
  const JsonValue* found = json.find(name);
  return found == nullptr ? kNothing : *found;
}

/// llama.cpp's name of the way in which the tokenizer.json `json` cuts text.
std::optional<std::string> pre_of(const JsonValue& json) {
  const JsonValue& normalizer = part_of(json, "normalizer");
  const bool composes = normalizer.text_of("type") == "NFC";
  if (!composes && !normalizer.is(JsonKind::kNull)) return std::nullopt;
  const bool ignores = part_of(part_of(json, "model"), "ignore_merges").text == "true";
  for (const PreTokenizer& cut : kPreTokenizers) {
    if (cut.composes == composes && cut.ignores_merges == ignores &&
        cuts_alike(part_of(json, "pre_tokenizer"), parse_json_file(pre_tokenizer_json(cut), "")))
      return std::string(cut.name);
  }
  return std::nullopt;
}

/// The merges of a tokenizer.json, in either spelling.
std::vector<std::string> merges_of(const JsonValue& model) {
  std::vector<std::string> merges;
  for (const JsonValue& merge : part_of(model, "merges").items) {
    merges.push_back(merge.items.size() == 2 ? merge.items[0].text + " " + merge.items[1].text
                                             : merge.text);
  }
  return merges;
}

/// The id that has `role`.
std::optional<TokenId> id_of(const GgufVocabulary& vocabulary, std::string_view role) {
  for (const auto& [name, id] : vocabulary.roles)
    if (name == role) return id;
  return std::nullopt;
}

/// Tokens, types and roles, which every kind has.
GgufVocabulary plain_vocabulary(const Tokenizer& tokenizer) {
  GgufVocabulary vocabulary;
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    std::string token(tokenizer.token(id));
    const AddedToken* added = tokenizer.added().find(id);
    PieceType type = PieceType::kNormal;
    if (added != nullptr) {
      token = added->content;
      type = added->special ? PieceType::kControl : PieceType::kUserDefined;
    } else if (token.empty()) {
      token = unused_gguf_token(i);
      type = PieceType::kUnused;
    }
    vocabulary.tokens.push_back(std::move(token));
    vocabulary.types.push_back(static_cast<int>(type));
  }
  for (const auto& [role, token] : tokenizer.parts().role_names) {
    if (const auto id = tokenizer.find(token)) vocabulary.roles.emplace_back(role, *id);
  }
  return vocabulary;
}

/// The roles among `usual`, in a list of words, that classes of SentencePiece or BERT have although
/// no file names them. A token of byte-level BPE that is spelled like one of theirs is a text.
void add_usual_roles(const Tokenizer& tokenizer, std::string_view usual,
                     GgufVocabulary& vocabulary) {
  for (const auto& [role, token] : spiece_bpe_roles(tokenizer.parts().kind)) {
    const auto id = tokenizer.find(token);
    if (id && has_word(usual, role) && !id_of(vocabulary, role))
      vocabulary.roles.emplace_back(std::string(role), *id);
  }
  for (const auto& [role, field] : kRoleFields) {
    const auto id = tokenizer.roles().*field;
    if (id && has_word(usual, role) && !id_of(vocabulary, role))
      vocabulary.roles.emplace_back(std::string(role), *id);
  }
}

/// Sets what stands around a text; false if that is more than bos and eos.
bool set_template(const Tokenizer& tokenizer, GgufVocabulary& vocabulary) {
  const TemplateTokens around = template_tokens(tokenizer, 1);
  const auto fits = [&](const std::vector<TokenId>& tokens, std::string_view role) {
    return tokens.empty() || (tokens.size() == 1 && id_of(vocabulary, role) == tokens[0]);
  };
  vocabulary.add_bos = !around.before.empty();
  vocabulary.add_eos = !around.after.empty();
  return fits(around.before, "bos") && fits(around.after, "eos");
}

/// Scores by the ranks of `merges`: pieces are joined in that order.
void set_scores(const std::vector<std::string>& merges, GgufVocabulary& vocabulary) {
  std::unordered_map<std::string, float> ranks;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    std::string joined = merges[i];
    if (const std::size_t space = joined.find(' ', 1); space != std::string::npos)
      joined.erase(space, 1);
    ranks.emplace(std::move(joined), -static_cast<float>(i));
  }
  const auto last = -static_cast<float>(merges.size());
  for (const std::string& token : vocabulary.tokens) {
    const auto found = ranks.find(token);
    vocabulary.scores.push_back(found == ranks.end() ? last : found->second);
  }
}

/// Types of SentencePiece's own pieces: bytes, and the unknown one.
void set_piece_types(const JsonValue& model, GgufVocabulary& vocabulary) {
  std::string unknown = model.text_of("unk_token");
  // Llama's class has one that its model does not need.
  if (const auto id = id_of(vocabulary, "unk"); unknown.empty() && id)
    unknown = vocabulary.tokens[static_cast<std::size_t>(*id)];
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& token = vocabulary.tokens[i];
    if (token == unknown) {
      vocabulary.types[i] = static_cast<int>(PieceType::kUnknown);
    } else if (token.size() == 6 && token.starts_with("<0x") && token.back() == '>') {
      vocabulary.types[i] = static_cast<int>(PieceType::kByte);
    }
  }
}

/// Whether `found` reads every token's text, and the lines of read_alike(), as `expected`.
bool reads_as(const GgufVocabulary& vocabulary, const Tokenizer& expected) {
  std::optional<Tokenizer> found;
  if (input_error_message([&] { found.emplace(read_gguf_vocabulary(vocabulary, "model.gguf")); }))
    return false;
  if (expected.size() == found->size() && !read_alike(*found, expected)) return false;
  IdEncoder own = found->id_encoder({}), other = expected.id_encoder({});
  std::vector<TokenId> a, b;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string text = expected.decode({static_cast<TokenId>(i)}, false);
    if (!valid_utf8(text)) continue;
    a.clear();
    b.clear();
    own.encode(text, a);
    other.encode(text, b);
    if (a != b) return false;
  }
  return true;
}

/// The ways in which SentencePiece's pieces may be read.
std::optional<GgufVocabulary> reading_of_pieces(GgufVocabulary vocabulary,
                                                const Tokenizer& tokenizer) {
  vocabulary.model = "llama";
  vocabulary.pre = "default";
  for (const bool prefix : {true, false}) {
    vocabulary.add_space_prefix = prefix;
    if (reads_as(vocabulary, tokenizer)) return vocabulary;
  }
  return std::nullopt;
}

std::optional<GgufVocabulary> pieces_of_json(const Tokenizer& tokenizer, const JsonValue& json) {
  GgufVocabulary vocabulary = plain_vocabulary(tokenizer);
  add_usual_roles(tokenizer, kPieceRoles, vocabulary);
  const JsonValue& model = part_of(json, "model");
  set_piece_types(model, vocabulary);
  set_scores(merges_of(model), vocabulary);
  if (!set_template(tokenizer, vocabulary)) return std::nullopt;
  return reading_of_pieces(std::move(vocabulary), tokenizer);
}

std::optional<GgufVocabulary> pieces_of_model(const Tokenizer& tokenizer, const std::string& path) {
  const SpieceModel spiece =
      read_spiece_model(InputFile::open(path).read_all(kMostTokenizerBytes), path);
  if (spiece.type != SpieceModel::Type::kBpe) return std::nullopt;
  GgufVocabulary vocabulary = plain_vocabulary(tokenizer);
  add_usual_roles(tokenizer, kPieceRoles, vocabulary);
  vocabulary.scores.resize(vocabulary.tokens.size());
  for (std::size_t i = 0; i < std::min(spiece.pieces.size(), vocabulary.tokens.size()); ++i) {
    vocabulary.tokens[i] = spiece.pieces[i].text;
    vocabulary.scores[i] = static_cast<float>(spiece.pieces[i].score);
    vocabulary.types[i] = static_cast<int>(spiece.pieces[i].type);
  }
  if (!set_template(tokenizer, vocabulary)) return std::nullopt;
  return reading_of_pieces(std::move(vocabulary), tokenizer);
}

std::optional<GgufVocabulary> words_of(const Tokenizer& tokenizer) {
  GgufVocabulary vocabulary = plain_vocabulary(tokenizer);
  add_usual_roles(tokenizer, "unk sep pad cls mask", vocabulary);
  vocabulary.model = kWords;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id)
    vocabulary.tokens[id] = gguf_token(kWords, vocabulary.tokens[id], type_of(vocabulary, id));
  const TemplateTokens around = template_tokens(tokenizer, 1);
  const auto is = [&](const std::vector<TokenId>& tokens, std::string_view role) {
    return tokens.size() == 1 && id_of(vocabulary, role) == tokens[0];
  };
  const bool fits = is(around.before, "cls") && is(around.after, "sep");
  if (!fits || !reads_as(vocabulary, tokenizer)) return std::nullopt;
  return vocabulary;
}

std::optional<GgufVocabulary> byte_pairs_of(const Tokenizer& tokenizer, std::string pre,
                                            std::vector<std::string> merges) {
  GgufVocabulary vocabulary = plain_vocabulary(tokenizer);
  vocabulary.model = "gpt2";
  vocabulary.pre = std::move(pre);
  vocabulary.merges = std::move(merges);
  if (!set_template(tokenizer, vocabulary) || !reads_as(vocabulary, tokenizer)) return std::nullopt;
  return vocabulary;
}

/// The vocabulary of the folder's tokenizer; nothing if no metadata describe it.
std::optional<GgufVocabulary> vocabulary_in(const Tokenizer& tokenizer, const std::string& folder) {
  const std::string json_path = join(folder, "tokenizer.json");
  if (exists(json_path)) {
    const JsonValue json =
        parse_json_file(InputFile::open(json_path).read_all(kMostTokenizerBytes), json_path);
    const JsonValue& model = part_of(json, "model");
    if (model.text_of("type") == "WordPiece") return words_of(tokenizer);
    if (model.text_of("type") != "BPE") return std::nullopt;
    if (part_of(model, "byte_fallback").text == "true") return pieces_of_json(tokenizer, json);
    auto pre = pre_of(json);
    return pre ? byte_pairs_of(tokenizer, *std::move(pre), merges_of(model)) : std::nullopt;
  }
  for (const char* name : kSpieceFiles) {
    if (exists(join(folder, name))) return pieces_of_model(tokenizer, join(folder, name));
  }
  if (exists(join(folder, "vocab.txt"))) return words_of(tokenizer);
  const std::string path = join(folder, "merges.txt");
  const std::string& kind = tokenizer.parts().kind;
  if (!exists(path) || (kind != "gpt2" && kind != "qwen2")) return std::nullopt;
  std::vector<std::string> merges;
  for (const auto& [left, right] :
       read_merges_txt(InputFile::open(path).read_all(kMostTokenizerBytes), path))
    merges.push_back(fmt::format("{} {}", left, right));
  return byte_pairs_of(tokenizer, kind == "gpt2" ? "gpt-2" : "qwen2", std::move(merges));
}

}  // namespace

std::string plain_gguf_token(std::string_view model, std::string_view token, PieceType type) {
  const bool bracketed = token.starts_with("[") && token.ends_with("]");
  if (model != kWords || type == PieceType::kControl || bracketed) return std::string(token);
  if (token.starts_with(kSpaceMark)) return std::string(token.substr(kSpaceMark.size()));
  return fmt::format("##{}", token);
}

std::string gguf_token(std::string_view model, std::string_view plain, PieceType type) {
  if (model != kWords || type == PieceType::kControl) return std::string(plain);
  if (plain.starts_with("##")) return std::string(plain.substr(2));
  return fmt::format("{}{}", kSpaceMark, plain);
}

std::string unused_gguf_token(std::size_t id) { return fmt::format("[PAD{}]", id); }

GgufVocabulary make_gguf_vocabulary(const Tokenizer& tokenizer, const std::string& folder) {
  if (auto vocabulary = vocabulary_in(tokenizer, folder)) return *std::move(vocabulary);
  throw InputError(folder,
                   "the metadata of GGUF files do not describe this tokenizer, expected "
                   "byte-level BPE with a known way to cut text, or SentencePiece's BPE, "
                   "and no more than bos and eos around a text, or BERT's WordPiece that "
                   "lowers the case");
}

std::vector<VocabularyText> files_of_gguf_vocabulary(const GgufVocabulary& vocabulary,
                                                     const std::string& path) {
  static_cast<void>(read_gguf_vocabulary(vocabulary, path));  // refuses what is wrong
  const bool pieces = vocabulary.model == "llama", words = vocabulary.model == kWords,
             unigram = vocabulary.model == kUnigram;
  const char* const name = words                  ? "BertTokenizer"
                           : unigram              ? "T5Tokenizer"
                           : !pieces              ? "PreTrainedTokenizerFast"
                           : is_gemma(vocabulary) ? "GemmaTokenizer"
                                                  : "LlamaTokenizer";
  std::vector<VocabularyText> files;
  if (words) {
    files.push_back({"vocab.txt", word_lines(vocabulary, path)});
  } else if (unigram) {
    files.push_back({"spiece.model", write_spiece_model(unigram_of(vocabulary, path))});
  } else if (pieces) {
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
  } else if (vocabulary.model == kWords) {
    parts = read_words(vocabulary, path);
  } else if (vocabulary.model == kUnigram) {
    parts = read_unigram(vocabulary, path);
    parts.role_names = settings_of(vocabulary, path, "").roles;
  } else {
    throw InputError(path,
                     fmt::format("tokenizer.ggml.model is \"{}\", expected llama, gpt2, bert or t5",
                                 escape(vocabulary.model)));
  }
  parts.format = "gguf";
  return parts;
}

}  // namespace masque::text
