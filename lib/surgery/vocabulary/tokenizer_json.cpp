// tokenizer.json: the model's part and what hangs on ids elsewhere.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "surgery/vocabulary/json_elements.hpp"
#include "surgery/vocabulary/trim_rules.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"
#include "text/open/tokenizer_files.hpp"

namespace masque::surgery {

namespace {

void change_merges(VocabularyJob& job, const JsonText& file, const JsonValue& model,
                   TextSplice& splice) {
  const JsonValue* merges = model.find("merges");
  if (merges == nullptr) return;
  const std::string continuing = model.text_of("continuing_subword_prefix");
  std::vector<std::string> wanted;
  wanted.reserve(merges->items.size());
  for (const JsonValue& merge : merges->items) {
    const auto parts = merge_parts(merge);
    if (!parts || keeps_merge(job, file.path, parts->first, parts->second, continuing))
      wanted.push_back(text_of(file.text, merge));
  }
  note_merges(job, file.name, wanted.size(), merges->items.size());
  set_elements(file.text, *merges, wanted, splice);
}

/// Classes of transformers that know the id of the unknown piece as a number, without "Tokenizer".
constexpr std::array<std::string_view, 11> kFixedUnknown{
    "T5",      "Albert",  "XLMRoberta", "MBart",     "MBart50", "XGLM",
    "Barthez", "RemBert", "XLNet",      "LayoutXLM", "Udop"};

/// Whether transformers reads the tokenizer of `job` with a class of kFixedUnknown.
bool has_fixed_unknown(const VocabularyJob& job) {
  std::string name;
  if (const auto config = read_json_text(job, "tokenizer_config.json"))
    name = config->root.text_of("tokenizer_class");
  if (const auto model = read_json_text(job, "config.json"); model && name.empty()) {
    name = model->root.text_of("tokenizer_class");
    if (name.empty()) name = text::tokenizer_class_of_model(model->root.text_of("model_type"));
  }
  for (const std::string_view end : {"Fast", "Tokenizer"})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  return std::ranges::find(kFixedUnknown, name) != kFixedUnknown.end();
}

void change_model(VocabularyJob& job, const JsonText& file, const JsonValue& model,
                  TextSplice& splice) {
  const JsonValue* vocab = model.find("vocab");
  if (vocab == nullptr) return;
  if (vocab->is(JsonKind::kArray)) {
    change_pieces(job, file, *vocab, splice);
  } else {
    change_vocabulary_object(job, file.path, file.text, *vocab, splice);
  }
  change_merges(job, file, model, splice);
  const JsonValue* unknown = model.find("unk_token");
  if (unknown != nullptr) {
    if (unknown->is(JsonKind::kString) && job.moves.text_after(unknown->text).empty()) {
      throw InputError(file.path,
                       fmt::format("token '{}' is the unknown token and cannot be removed",
                                   escape(unknown->text)));
    }
    change_name(job, *unknown, splice);
  }
  const JsonValue* unknown_id = model.find("unk_id");
  if (unknown_id == nullptr || unknown_id->is(JsonKind::kNull)) return;
  const std::uint64_t id = json_id(*unknown_id, file.path);
  if (job.moves.id_after(id) != id && has_fixed_unknown(job)) {
    throw InputError(file.path,
                     fmt::format("row {} belongs to the unknown piece, which this class of "
                                 "transformers finds by its id: it must keep its id",
                                 id));
  }
  change_id(job, *unknown_id, file.path, splice);
}

}  // namespace

void change_post_processor(VocabularyJob& job, const JsonText& file, const JsonValue& processor,
                           TextSplice& splice) {
  if (const JsonValue* parts = processor.find("processors")) {
    for (const JsonValue& part : parts->items) change_post_processor(job, file, part, splice);
  }
  for (const char* name : {"sep", "cls"}) {  // BertProcessing, RobertaProcessing
    const JsonValue* pair = processor.find(name);
    if (pair == nullptr || pair->items.size() != 2) continue;
    change_name(job, pair->items[0], splice);
    change_id(job, pair->items[1], file.path, splice);
  }
  const JsonValue* special = processor.find("special_tokens");  // TemplateProcessing
  if (special == nullptr) return;
  for (const JsonMember& member : special->members) {
    // The key and "id" are the names that the template itself uses.
    if (const JsonValue* ids = member.value.find("ids")) {
      for (const JsonValue& id : ids->items) change_id(job, id, file.path, splice);
    }
    if (const JsonValue* tokens = member.value.find("tokens")) {
      for (const JsonValue& token : tokens->items) change_name(job, token, splice);
    }
  }
}

void change_tokenizer_json(VocabularyJob& job, const JsonText& file) {
  TextSplice splice;
  if (const JsonValue* model = file.root.find("model")) change_model(job, file, *model, splice);
  change_added_tokens(job, file, splice);
  if (const JsonValue* processor = file.root.find("post_processor"))
    change_post_processor(job, file, *processor, splice);
  if (const JsonValue* padding = file.root.find("padding")) {
    if (const JsonValue* id = padding->find("pad_id")) change_id(job, *id, file.path, splice);
    if (const JsonValue* token = padding->find("pad_token")) change_name(job, *token, splice);
  }
  write_splice(job, file, splice);
}

}  // namespace masque::surgery
