// Folders of sentence-transformers: modules.json names the steps, each with a folder of its own.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "probe/states/sentence_vectors.hpp"

namespace masque::probe {

namespace {

constexpr std::uint64_t kLargest = 16 << 20;

JsonValue read(const std::string& path) {
  return parse_json_file(InputFile::open(path).read_all(kLargest), path);
}

bool is_true(const JsonValue& root, std::string_view name) {
  const JsonValue* value = root.find(name);
  return value != nullptr && value->is(JsonKind::kBool) && value->text == "true";
}

/// Old files have a switch for each pooling, new ones a name.
SentencePooling read_pooling(const std::string& path) {
  const JsonValue root = read(path);
  std::vector<std::string> modes;
  for (const JsonMember& member : root.members) {
    if (member.name == "pooling_mode" && member.value.is(JsonKind::kString)) {
      modes.push_back(member.value.text);
    } else if (member.name.starts_with("pooling_mode_") && is_true(root, member.name)) {
      modes.push_back(member.name.substr(std::string_view("pooling_mode_").size()));
    }
  }
  if (modes.size() == 1 && (modes[0] == "mean_tokens" || modes[0] == "mean"))
    return SentencePooling::kMean;
  if (modes.size() == 1 && (modes[0] == "cls_token" || modes[0] == "cls"))
    return SentencePooling::kCls;
  throw InputError(path, fmt::format("pooling '{}' is not supported, expected mean or cls",
                                     modes.empty() ? "" : escape(modes.back())));
}

void read_settings(SentenceFolder& folder) {
  const std::string path = join(folder.model, "sentence_bert_config.json");
  if (!exists(path)) return;
  const JsonValue root = read(path);
  if (const JsonValue* longest = root.find("max_seq_length")) {
    const std::uint64_t length = longest->integer().value_or(0);
    if (length > INT32_MAX)
      throw InputError(path,
                       fmt::format("max_seq_length is {}, expected at most {}", length, INT32_MAX));
    folder.max_length = static_cast<Index>(length);
  }
  if (is_true(root, "do_lower_case")) {
    folder.notes.push_back(path + ": do_lower_case is ignored; the tokenizer decides");
  }
}

}  // namespace

SentenceFolder read_sentence_folder(const std::string& path) {
  SentenceFolder folder{.model = path};
  const std::string modules = join(path, "modules.json");
  if (!exists(modules)) return folder;
  const JsonValue root = read(modules);
  for (const JsonValue& item : root.items) {
    const std::string type = item.text_of("type");
    const std::string name = type.substr(type.rfind('.') + 1);
    const std::string place = item.text_of("path");
    if (name == "Transformer") {
      if (!place.empty()) folder.model = join(path, place);
    } else if (name == "Pooling") {
      folder.pooling = read_pooling(join(join(path, place), "config.json"));
    } else if (name == "Normalize") {
      folder.normalize = true;
    } else {
      throw InputError(modules,
                       fmt::format("module '{}' is not supported, expected Transformer, Pooling or "
                                   "Normalize",
                                   escape(type)));
    }
  }
  read_settings(folder);
  return folder;
}

}  // namespace masque::probe
