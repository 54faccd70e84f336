// ESM's vocab.txt: amino acids, one token a line, found wherever they stand.
#include <array>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/split.hpp"
#include "text/model/vocabulary_file.hpp"
#include "text/open/convert.hpp"
#include "text/open/tokenizer_files.hpp"

namespace masque::text {

namespace {

constexpr std::array kEsmRoles{ClassRole{"eos", "<eos>"}, ClassRole{"unk", "<unk>"},
                               ClassRole{"pad", "<pad>"}, ClassRole{"cls", "<cls>"},
                               ClassRole{"mask", "<mask>"}};

/// ESM's class is written in Python: it finds only the tokens of its vocabulary in a text, and
/// gives others the ids that the folder names.
void refuse_new_tokens(const std::vector<AddedToken>& tokens, const std::vector<std::string>& lines,
                       const FolderConfig& config) {
  if (setting(config, "split_special_tokens", false))
    throw InputError(config.path, "split_special_tokens: not supported for ESM, expected false");
  for (const AddedToken& token : tokens) {
    const bool fits = token.id < 0 || (static_cast<std::size_t>(token.id) < lines.size() &&
                                       lines[static_cast<std::size_t>(token.id)] == token.content);
    if (!fits) {
      throw InputError(config.path,
                       fmt::format("token '{}' with id {} is not that line of vocab.txt, expected "
                                   "one that is",
                                   escape(token.content), token.id));
    }
  }
}

}  // namespace

TokenizerParts read_esm(std::string_view text, const std::string& path,
                        const FolderConfig& folder) {
  const FolderConfig config = with_class_roles(folder, kEsmRoles);
  VocabLines lines = read_vocab_txt(text, path);
  std::vector<AddedToken> tokens;
  add_folder_tokens(config, tokens);
  refuse_new_tokens(tokens, lines.tokens, config);
  std::unordered_set<std::string> known;
  for (const AddedToken& token : tokens) known.insert(token.content);
  for (std::string& line : lines.tokens) {
    line = std::string(trim(line, " \t\r\v\f"));
    if (known.insert(line).second) tokens.emplace_back().content = line;
  }
  const auto model =
      make_word_level(numbered(std::move(lines.tokens)), role_of(config, "unk").value_or("<unk>"));
  const TokenFinder find = finder_with(model, tokens);
  const std::string cls = role_of(config, "cls").value_or("<cls>") + ":0";
  const std::string eos = role_of(config, "eos").value_or("<eos>") + ":0";
  const std::string json = tokenizer_json(
      {.pre_tokenizer = R"({"type":"WhitespaceSplit"})",
       .post_processor = template_json(find, {cls, "$A:0", eos}, {cls, "$A:0", eos, "$B:0", eos})});
  TokenizerParts parts = assemble(parse_json_file(json, path), model, "WordLevel", path);
  parts.added = std::move(tokens);
  parts.kind = "esm";
  parts.format = "vocab.txt";
  parts.summary.emplace_back("read_as", "esm");
  return parts;
}

}  // namespace masque::text
