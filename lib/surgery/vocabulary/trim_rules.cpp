#include "surgery/vocabulary/trim_rules.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "surgery/rows/token_form.hpp"

namespace masque::surgery {

namespace {

constexpr std::uint64_t kMostTokenizerFile = 256 << 20;
/// Far above every token; the path takes the square of it.
constexpr std::size_t kMostCharacters = 4096;

/// Whether a step or one inside it has this type.
bool has_type(const JsonValue* step, std::string_view type) {
  if (step == nullptr) return false;
  if (step->text_of("type") == type) return true;
  const JsonValue* inner = step->find("pretokenizers");
  return inner != nullptr && std::ranges::any_of(inner->items, [&](const JsonValue& item) {
           return has_type(&item, type);
         });
}

std::uint64_t key_of(std::uint64_t left, std::uint64_t right) { return left << 32U | right; }

/// The characters whose UTF-8 has the byte; empty if there are none.
std::string characters_with(unsigned byte) {
  const auto range = [](unsigned first, unsigned last) {
    return fmt::format("U+{:04X} to U+{:04X}", first, last);
  };
  if (byte < 0x80) return fmt::format("U+{:04X}", byte);
  if (byte < 0xC0) return "one in 64 from U+0080 on, and others";
  if (byte < 0xC2 || byte > 0xF4) return "";
  if (byte < 0xE0) return range((byte & 0x1FU) << 6U, ((byte & 0x1FU) << 6U) + 0x3F);
  if (byte < 0xF0) {
    const unsigned first = (byte & 0xFU) << 12U;
    return range(std::max(first, 0x800U), first + 0xFFF);
  }
  const unsigned first = (byte & 0x7U) << 18U;
  return range(std::max(first, 0x10000U), std::min(first + 0x3FFFF, 0x10FFFFU));
}

}  // namespace

std::optional<std::pair<std::string_view, std::string_view>> merge_parts(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (line.starts_with("#version") || space == std::string_view::npos) return std::nullopt;
  return std::pair(line.substr(0, space), line.substr(space + 1));
}

std::optional<std::pair<std::string_view, std::string_view>> merge_parts(const JsonValue& merge) {
  if (merge.is(JsonKind::kString)) return merge_parts(std::string_view(merge.text));
  if (merge.items.size() != 2) return std::nullopt;
  return std::pair(std::string_view(merge.items[0].text), std::string_view(merge.items[1].text));
}

std::string merged(std::string_view left, std::string_view right, std::string_view continuing) {
  std::string made(left);
  made += right.starts_with(continuing) ? right.substr(continuing.size()) : right;
  return made;
}

TrimRules::TrimRules(const VocabularyState& state) : names_(state.names), rows_(state.rows) {
  if (names_.empty()) return;
  if (names_.source() == store::kGgufTokens) {
    read_gguf(state.checkpoint);
    return;
  }
  const std::string folder = state.checkpoint.folder();
  const std::string json = join(folder, "tokenizer.json");
  const std::string lines = join(folder, "merges.txt");
  if (exists(json)) {
    read_tokenizer_json(json);
  } else if (exists(lines) && exists(join(folder, "vocab.json"))) {
    read_merges_txt(lines);
  } else {
    find_bytes(false);
  }
}

void TrimRules::read_tokenizer_json(const std::string& path) {
  const JsonValue root = parse_json_file(InputFile::open(path).read_all(kMostTokenizerFile), path);
  find_bytes(has_type(root.find("pre_tokenizer"), "ByteLevel"));
  const JsonValue* model = root.find("model");
  if (model == nullptr) return;
  prefix_ = model->text_of("continuing_subword_prefix");
  suffix_ = model->text_of("end_of_word_suffix");
  if (const JsonValue* merges = model->find("merges")) {
    for (const JsonValue& merge : merges->items)
      if (const auto parts = merge_parts(merge)) add_merge(parts->first, parts->second);
  }
  const JsonValue* vocab = model->find("vocab");
  if (vocab == nullptr || !vocab->is(JsonKind::kArray)) return;
  double least = 0;
  for (std::uint64_t id = 0; id < std::min<std::uint64_t>(vocab->items.size(), rows_); ++id) {
    const auto& piece = vocab->items[id].items;
    const auto score = piece.size() == 2 ? piece[1].number() : std::nullopt;
    if (!score || (lowest_ && *score >= least)) continue;
    least = *score;
    lowest_ = id;
  }
}

void TrimRules::read_merges_txt(const std::string& path) {
  find_bytes(true);
  const std::string text = InputFile::open(path).read_all(kMostTokenizerFile);
  for_each_line(text, [&](std::string_view line) {
    if (const auto parts = merge_parts(without_return(line)))
      add_merge(parts->first, parts->second);
  });
}

void TrimRules::read_gguf(const store::Checkpoint& checkpoint) {
  const store::TypedValue* model = store::find_gguf_value(checkpoint, "tokenizer.ggml.model");
  find_bytes(model != nullptr && model->text == "gpt2");
  const store::TypedValue* merges = store::find_gguf_value(checkpoint, store::kGgufMerges);
  const auto texts = merges == nullptr ? std::nullopt : store::gguf_texts(*merges);
  if (!texts) return;
  for (const std::string& merge : *texts)
    if (const auto parts = merge_parts(std::string_view(merge)))
      add_merge(parts->first, parts->second);
}

void TrimRules::add_merge(std::string_view left, std::string_view right) {
  const auto a = names_.id(std::string(left));
  const auto b = names_.id(std::string(right));
  const auto made = names_.id(merged(left, right, prefix_));
  const std::uint64_t rank = rank_++;
  if (a && b && made) merges_.insert_or_assign(key_of(*a, *b), Merge{rank, *made});
}

void TrimRules::find_bytes(bool byte_level) {
  for (std::uint64_t row = 0; row < std::min<std::uint64_t>(names_.size(), rows_); ++row) {
    const std::string& token = names_.token(row);
    if (token.empty()) continue;
    std::optional<unsigned char> byte;
    if (!byte_level) {
      byte = fallback_byte(token);
    } else if (token.size() <= 2) {  // a character of the alphabet
      const auto bytes = byte_level_bytes(token);
      if (bytes && bytes->size() == 1) byte = static_cast<unsigned char>((*bytes)[0]);
    }
    if (!byte || bytes_[*byte]) continue;
    bytes_[*byte] = row;
    fallback_ = !byte_level;
  }
}

std::vector<std::uint64_t> TrimRules::path_of(std::uint64_t row) const {
  throw_if_interrupted();
  std::string_view token = names_.token(row);
  const bool continues = !prefix_.empty() && token.starts_with(prefix_);
  if (continues) token.remove_prefix(prefix_.size());
  const bool ends = !suffix_.empty() && token.ends_with(suffix_);
  if (ends) token.remove_suffix(suffix_.size());
  std::vector<std::uint64_t> symbols;
  for (bool first = true; !token.empty(); first = false) {
    char32_t c = 0;
    const auto size = static_cast<std::size_t>(std::max(1, decode_utf8(token, c)));
    std::string character = !first || continues ? prefix_ : "";
    character += token.substr(0, size);
    token.remove_prefix(size);
    if (token.empty() && ends) character += suffix_;
    const auto id = names_.id(character);
    if (!id) return {};
    symbols.push_back(*id);
  }
  if (symbols.size() > kMostCharacters) {
    throw InputError(names_.source(),
                     fmt::format("token {} has {} characters, expected at most {} with merges", row,
                                 symbols.size(), kMostCharacters));
  }
  std::vector<std::uint64_t> path = symbols;
  while (symbols.size() > 1) {
    std::size_t best = symbols.size();
    const Merge* merge = nullptr;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = merges_.find(key_of(symbols[i], symbols[i + 1]));
      if (found == merges_.end() || (merge != nullptr && found->second.rank >= merge->rank))
        continue;
      best = i;
      merge = &found->second;
    }
    if (merge == nullptr) return {};  // no merges make the token
    symbols[best] = merge->made;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    path.push_back(merge->made);
  }
  if (symbols.empty() || symbols[0] != row) return {};
  std::erase_if(path, [&](std::uint64_t passed) { return passed == row || passed >= rows_; });
  return path;
}

std::string lost_bytes_note(const TrimRules& rules, const std::vector<bool>& chosen) {
  std::vector<std::string> lost;
  std::vector<std::string> characters;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto row = rules.byte_row(static_cast<unsigned char>(byte));
    if (!row || chosen[*row]) continue;
    lost.push_back(fmt::format("0x{:02X}", byte));
    if (std::string with = characters_with(byte); !with.empty())
      characters.push_back(std::move(with));
  }
  if (lost.empty()) return "";
  return fmt::format(
      "byte{} {} can no longer be encoded: {}", lost.size() == 1 ? "" : "s", fmt::join(lost, " "),
      characters.empty() ? "no text has it"
                         : fmt::format("text with these characters{} is damaged: {}",
                                       rules.has_byte_fallback() ? ", unless they are tokens," : "",
                                       fmt::join(characters, ", ")));
}

}  // namespace masque::surgery
