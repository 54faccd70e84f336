#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/file.hpp"
#include "text/google_folder.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

namespace {

constexpr std::uint64_t kMaxConfig = 64 << 20;

/// The document in a file of a folder; null if there is none.
JsonValue read_optional(const std::string& folder, const char* name) {
  const std::string path = join(folder, name);
  if (!exists(path)) return {};
  return parse_json_file(InputFile::open(path).read_all(kMaxConfig), path);
}

// Classes first: tokenizer_class_of() names them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kClasses{
    {{"BertTokenizer", "bert"},
     {"DistilBertTokenizer", "bert"},
     {"ElectraTokenizer", "bert"},
     {"MPNetTokenizer", "mpnet"},
     {"RobertaTokenizer", "roberta"},
     {"GPT2Tokenizer", "gpt2"},
     {"AlbertTokenizer", "albert"},
     {"XLNetTokenizer", "xlnet"},
     {"T5Tokenizer", "t5"},
     {"DebertaTokenizer", "deberta"},
     {"DebertaV2Tokenizer", "deberta-v2"},
     {"distilbert", "bert"},
     {"electra", "bert"},
     {"mt5", "t5"},
     {"distilroberta", "roberta"},
     {"roformer", "bert"},
     {"macbert", "bert"}}};

/// "BertTokenizerFast" or "bert" → "bert".
std::string architecture_of(const JsonValue& settings, const JsonValue& config) {
  std::string name;
  if (const JsonValue* type = config.find("model_type")) name = type->text;
  // A family with changes: what it was is what its tokenizer is for.
  if (const JsonValue* base = config.find("base_model_type")) name = base->text;
  if (const JsonValue* type = settings.find("tokenizer_class")) name = type->text;
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  const auto known = std::find_if(kClasses.begin(), kClasses.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return known == kClasses.end() ? name : std::string(known->second);
}

}  // namespace

FolderConfig read_folder_config(const std::string& folder) {
  FolderConfig out;
  out.path = join(folder, "tokenizer_config.json");
  out.settings = read_optional(folder, "tokenizer_config.json");
  if (const auto text = tokenizer_config_by_name(folder))
    out.settings = parse_json_file(*text, out.path);
  out.architecture = architecture_of(out.settings, read_optional(folder, "config.json"));
  out.added_ids = read_optional(folder, "added_tokens.json");
  read_role_names(out.settings, out.roles);
  read_role_names(read_optional(folder, "special_tokens_map.json"), out.roles);
  return out;
}

std::string model_architecture(const std::string& model) {
  return architecture_of({},
                         read_optional(is_folder(model) ? model : folder_of(model), "config.json"));
}

std::string config_architecture(const std::string& text) {
  return architecture_of({}, parse_json_file(text, "config.json"));
}

std::string tokenizer_class_of(std::string_view architecture) {
  const auto* found = std::find_if(kClasses.begin(), kClasses.end(),
                                   [&](const auto& entry) { return entry.second == architecture; });
  MASQUE_CHECK(found != kClasses.end());
  return std::string(found->first);
}

bool setting(const FolderConfig& config, std::string_view name, bool missing) {
  const JsonValue* value = config.settings.find(name);
  return value != nullptr && value->is(JsonKind::kBool) ? value->text == "true" : missing;
}

}  // namespace masque::text
