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

/// A family of models, by what transformers calls it.
struct TokenizerFamily {
  std::string_view model_type;       ///< of config.json
  std::string_view tokenizer_class;  ///< what reads its tokenizer; empty: not known
  std::string_view architecture;     ///< whose rules its vocabulary follows
};

// The first of an architecture has the class that tokenizer_class_of() says.
constexpr std::array<TokenizerFamily, 17> kTokenizerFamilies{
    {{"albert", "AlbertTokenizer", "albert"},
     {"bert", "BertTokenizer", "bert"},
     {"camembert", "CamembertTokenizer", "camembert"},
     {"deberta", "DebertaTokenizer", "deberta"},
     {"deberta-v2", "DebertaV2Tokenizer", "deberta-v2"},
     {"distilbert", "DistilBertTokenizer", "bert"},
     {"electra", "ElectraTokenizer", "bert"},
     {"gpt2", "GPT2Tokenizer", "gpt2"},
     {"mpnet", "MPNetTokenizer", "mpnet"},
     {"roberta", "RobertaTokenizer", "roberta"},
     {"roformer", "RoFormerTokenizer", "bert"},
     {"t5", "T5Tokenizer", "t5"},
     {"xlm-roberta", "XLMRobertaTokenizer", "xlm-roberta"},
     {"xlnet", "XLNetTokenizer", "xlnet"},
     {"distilroberta", "", "roberta"},
     {"macbert", "", "bert"},
     {"mt5", "", "t5"}}};

/// "BertTokenizerFast" or "bert" → "bert".
std::string architecture_of(const JsonValue& settings, const JsonValue& config) {
  std::string name;
  if (const JsonValue* type = config.find("model_type")) name = type->text;
  // A family with changes: what it was is what its tokenizer is for.
  if (const JsonValue* base = config.find("base_model_type")) name = base->text;
  if (const JsonValue* type = settings.find("tokenizer_class")) name = type->text;
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  if (name.empty()) return name;
  const auto* known = std::ranges::find_if(kTokenizerFamilies, [&](const TokenizerFamily& family) {
    return family.model_type == name || family.tokenizer_class == name;
  });
  return known == kTokenizerFamilies.end() ? name : std::string(known->architecture);
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
  const auto* found =
      std::ranges::find(kTokenizerFamilies, architecture, &TokenizerFamily::architecture);
  MASQUE_CHECK(found != kTokenizerFamilies.end());
  return std::string(found->tokenizer_class);
}

std::string tokenizer_class_of_model(std::string_view model_type) {
  const auto* found =
      std::ranges::find(kTokenizerFamilies, model_type, &TokenizerFamily::model_type);
  return found == kTokenizerFamilies.end() ? "" : std::string(found->tokenizer_class);
}

bool setting(const FolderConfig& config, std::string_view name, bool missing) {
  const JsonValue* value = config.settings.find(name);
  return value != nullptr && value->is(JsonKind::kBool) ? value->text == "true" : missing;
}

}  // namespace masque::text
