// tekken.json and tiktoken's files: the bytes of tokens, in the order in which BPE makes them.
#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"
#include "text/model/vocabulary_file.hpp"
#include "text/open/convert.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/step/base64.hpp"
#include "text/step/byte_level.hpp"
#include "text/step/json_fields.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

/// The bytes of a token, and its id.
struct RankedToken {
  std::string bytes;
  TokenId id = 0;
};
/// Tokens by ascending ids.
using Ranks = std::vector<RankedToken>;

/// An encoding that tiktoken publishes.
struct PublishedEncoding {
  std::string_view file;
  std::string_view pattern;
  std::vector<std::pair<std::string_view, TokenId>> special;
};

// In the syntax of Oniguruma: \z is the end of the text, and {1,3}+ would repeat.
constexpr std::string_view kTiktokenGpt2 =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++\z|\s+(?!\S)|\s)";
constexpr std::string_view kTiktokenLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTiktokenO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTiktokenCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|\s*[\r\n]|\s+(?!\S)|\s)";

/// The encoding that `name`, that of a file, stands for; nothing if none.
std::optional<PublishedEncoding> published_encoding(std::string_view name) {
  if (name == "r50k_base.tiktoken" || name == "p50k_base.tiktoken")
    return PublishedEncoding{name, kTiktokenGpt2, {{"<|endoftext|>", 50256}}};
  if (name == "cl100k_base.tiktoken") {
    return PublishedEncoding{name,
                             kTiktokenCl100k,
                             {{"<|endoftext|>", 100257},
                              {"<|fim_prefix|>", 100258},
                              {"<|fim_middle|>", 100259},
                              {"<|fim_suffix|>", 100260},
                              {"<|endofprompt|>", 100276}}};
  }
  if (name == "o200k_base.tiktoken")
    return PublishedEncoding{
        name, kTiktokenO200k, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}};
  return std::nullopt;
}

/// The characters that byte-level BPE writes for `bytes`.
std::string spelled(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_utf8(out, byte_level_char(static_cast<unsigned char>(c)));
  return out;
}

/// All pairs of tokens that make a token: by its rank, then by those of the parts.
std::vector<std::pair<std::string, std::string>> merges_of_ranks(const Ranks& ranks,
                                                                 const std::string& path) {
  constexpr double kMostSteps = 1e10;  // that hostile tokens cannot exceed
  std::unordered_map<std::string_view, std::size_t> rank_of;
  for (std::size_t i = 0; i < ranks.size(); ++i) rank_of[ranks[i].bytes] = i;
  std::vector<std::pair<std::string, std::string>> out;
  std::vector<std::tuple<std::size_t, std::size_t, std::size_t>> cuts;
  double steps = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i % 1024 == 0) throw_if_interrupted();
    const std::string_view token = ranks[i].bytes;
    steps += static_cast<double>(token.size()) * static_cast<double>(token.size());
    if (steps > kMostSteps) throw InputError(path, "the tokens are too long for BPE");
    cuts.clear();
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = rank_of.find(token.substr(0, cut));
      const auto right = rank_of.find(token.substr(cut));
      if (left != rank_of.end() && right != rank_of.end())
        cuts.emplace_back(left->second, right->second, cut);
    }
    std::ranges::sort(cuts);
    for (const auto& cut : cuts) {
      const std::size_t at = std::get<2>(cut);
      out.emplace_back(spelled(token.substr(0, at)), spelled(token.substr(at)));
    }
  }
  return out;
}

/// Fails if a byte or a token is missing or twice.
void check_ranks(const Ranks& ranks, const std::string& path) {
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto& [bytes, id] = ranks[i];
    if (bytes.empty()) throw InputError(path, fmt::format("token {} is empty", id));
    if (!seen.emplace(bytes, i).second)
      throw InputError(path, fmt::format("token {} ('{}') occurs twice", id, escape(bytes)));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (!seen.contains(std::string_view(&c, 1)))
      throw InputError(path, fmt::format("no token for byte 0x{:02X}, expected all 256", byte));
  }
}

/// The parts of `ranks` and of `special` tokens with their ids.
TokenizerParts ranked_parts(const Ranks& ranks, std::string_view pattern,
                            const std::vector<std::pair<std::string, TokenId>>& special,
                            const std::string& path, const FolderConfig& config) {
  check_ranks(ranks, path);
  std::unordered_map<std::string, TokenId> ids;  // a special token goes before one of text
  for (const auto& [bytes, id] : ranks) ids.emplace(spelled(bytes), id);
  std::vector<AddedToken> tokens;
  std::unordered_set<std::string> names;
  for (const auto& [name, id] : special) {
    const bool taken = std::ranges::binary_search(ranks, id, {}, &RankedToken::id);
    const bool known = !names.insert(name).second;
    if (taken || known) {
      throw InputError(path, fmt::format("the special token '{}' has the {} of another",
                                         escape(name), taken ? "id" : "name"));
    }
    ids.insert_or_assign(name, id);
    AddedToken& token = tokens.emplace_back();
    token.content = name;
    token.special = true;
  }
  std::vector<VocabEntry> vocab(ids.begin(), ids.end());
  std::ranges::sort(vocab, {}, &VocabEntry::second);
  const auto model =
      make_bpe(std::move(vocab), merges_of_ranks(ranks, path), {.ignore_merges = true}, path);
  add_folder_tokens(config, tokens);
  const bool ends =
      setting(config, "add_bos_token", false) || setting(config, "add_eos_token", false);
  const std::string json = tokenizer_json(
      {.pre_tokenizer =
           cut_bytes_json(pattern, "Isolated", false, byte_level_json(false, true, false)),
       .post_processor = ends ? bos_eos_json(finder_with(model, tokens), config, false, false)
                              : byte_level_json(true, false),
       .decoder = byte_level_json(true, true)});
  TokenizerParts parts = assemble(parse_json_file(json, path), model, "BPE", path);
  parts.added = std::move(tokens);
  return parts;
}

std::size_t count_field(const JsonValue& json, std::string_view name, std::size_t missing,
                        const std::string& path) {
  const JsonValue* value = find_field(json, name, JsonKind::kNumber, path);
  if (value == nullptr) return missing;
  const auto number = value->integer();
  if (!number || *number > kMostTokenIds)
    refuse_json(*value, path, fmt::format("'{}' is no number up to {}", name, kMostTokenIds));
  return static_cast<std::size_t>(*number);
}

/// The special tokens of tekken.json: those that it lists, and names for the rest.
std::vector<std::pair<std::string, TokenId>> tekken_special(const JsonValue& json,
                                                            const JsonValue& config,
                                                            const std::string& path) {
  const JsonValue* list = find_field(json, "special_tokens", JsonKind::kArray, path);
  if (list == nullptr) {
    throw InputError(path, "no 'special_tokens' (an old tekken.json), expected a list of them");
  }
  std::vector<std::pair<std::string, TokenId>> out;
  for (const JsonValue& item : list->items)
    out.emplace_back(text_field(item, "token_str", "", path), id_field(item, "rank", path));
  std::ranges::sort(out, {}, &std::pair<std::string, TokenId>::second);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (static_cast<std::size_t>(out[i].second) != i)
      throw InputError(path, fmt::format("no special token of rank {}", i));
  }
  const std::size_t count = count_field(config, "default_num_special_tokens", out.size(), path);
  for (std::size_t i = out.size(); i < count; ++i)
    out.emplace_back(fmt::format("<SPECIAL_{}>", i), static_cast<TokenId>(i));
  return out;
}

/// The tokens from `first` to the last of added_tokens_decoder, with names for those between.
std::vector<std::pair<std::string, TokenId>> decoder_special(TokenId first,
                                                             const FolderConfig& folder) {
  std::vector<std::pair<std::string, TokenId>> out;
  const JsonValue* decoder = folder.settings.find("added_tokens_decoder");
  if (decoder == nullptr) return out;
  std::unordered_map<TokenId, std::string> names;
  TokenId end = first;
  for (const JsonMember& member : decoder->members) {
    const auto id = parse_number<TokenId>(member.name);
    if (!id || *id > TokenId{kMostTokenIds}) continue;  // refused with the other added tokens
    names[*id] = member.value.text_of("content");
    end = std::max(end, *id + 1);
  }
  for (TokenId id = first; id < end; ++id) {
    const auto name = names.find(id);
    out.emplace_back(name == names.end() ? fmt::format("<|reserved_token_{}|>", id) : name->second,
                     id);
  }
  return out;
}

}  // namespace

bool is_tiktoken(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto parts = split_in_two(line, ' ');
  return parts && !parts->first.empty() && decode_base64(parts->first) &&
         parse_number<TokenId>(without_return(parts->second));
}

TokenizerParts read_tekken(std::string_view text, const std::string& path,
                           const FolderConfig& folder) {
  const JsonValue json = parse_json_file(text, path);
  const JsonValue& config = get_field(json, "config", JsonKind::kObject, path);
  const std::string& pattern = get_field(config, "pattern", JsonKind::kString, path).text;
  const auto special = tekken_special(json, config, path);
  const JsonValue& list = get_field(json, "vocab", JsonKind::kArray, path);
  const std::size_t all =
      count_field(config, "default_vocab_size", list.items.size() + special.size(), path);
  if (all < special.size())
    throw InputError(path, "'default_vocab_size' is less than the number of special tokens");
  Ranks ranks;
  for (const JsonValue& item : list.items) {
    if (ranks.size() == all - special.size()) break;  // the rest is padding
    const JsonValue& value = get_field(item, "token_bytes", JsonKind::kString, path);
    auto bytes = decode_base64(value.text);
    if (!bytes) refuse_json(value, path, "'token_bytes' is not base64");
    ranks.push_back({std::move(*bytes), static_cast<TokenId>(ranks.size() + special.size())});
  }
  TokenizerParts parts = ranked_parts(ranks, pattern, special, path, folder);
  parts.format = "tekken.json";
  return parts;
}

TokenizerParts read_tiktoken(std::string_view text, const std::string& path,
                             const FolderConfig& folder) {
  Ranks ranks;
  std::size_t number = 0;
  for (std::string_view line : split_terminated(text, '\n')) {
    ++number;
    line = without_return(line);
    if (line.empty()) continue;
    const auto parts = split_in_two(line, ' ');
    auto bytes = parts ? decode_base64(parts->first) : std::nullopt;
    const auto rank = parts ? parse_number<TokenId>(parts->second) : std::nullopt;
    const TokenId least = ranks.empty() ? 0 : ranks.back().id + 1;
    if (!bytes || !rank || *rank < least || *rank > TokenId{kMostTokenIds}) {
      throw InputError(
          path, fmt::format("line {}: expected base64, a space and a rank from {}", number, least));
    }
    ranks.push_back({std::move(*bytes), *rank});
  }
  const auto known = published_encoding(base_name(path));
  if (!known && path.ends_with(".tiktoken")) {
    throw InputError(path,
                     "not a known encoding, whose pattern and special tokens the file lacks: "
                     "expected r50k_base, p50k_base, cl100k_base or o200k_base.tiktoken");
  }
  std::vector<std::pair<std::string, TokenId>> special;
  if (known) {
    for (const auto& [name, id] : known->special) special.emplace_back(name, id);
  } else {
    special = decoder_special(ranks.empty() ? 0 : ranks.back().id + 1, folder);
  }
  TokenizerParts parts = ranked_parts(ranks, known ? known->pattern : kTiktokenLlama3, special,
                                      path, known ? FolderConfig{} : folder);
  parts.format = "tiktoken";
  return parts;
}

}  // namespace masque::text
