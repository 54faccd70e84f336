// tokenizer.json: the model's part and what hangs on ids elsewhere.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"

namespace masque::surgery {

namespace {

void check_merges(const VocabularyJob& job, const JsonText& file, const JsonValue& model) {
  const JsonValue* merges = model.find("merges");
  if (merges == nullptr) return;
  const std::string continuing = model.text_of("continuing_subword_prefix");
  for (const JsonValue& merge : merges->items) {
    if (merge.is(JsonKind::kString)) {
      const std::string_view text = merge.text;
      const std::size_t space = text.find(' ');
      if (text.starts_with("#version") || space == std::string_view::npos) continue;
      check_merge(job, file.path, text.substr(0, space), text.substr(space + 1), continuing);
    } else if (merge.items.size() == 2) {
      check_merge(job, file.path, merge.items[0].text, merge.items[1].text, continuing);
    }
  }
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
  check_merges(job, file, model);
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
  // The classes of transformers know the number and do not look here.
  const std::uint64_t id = json_id(*unknown_id, file.path);
  if (job.moves.id_after(id) == id && !job.moves.change().tokens[id].empty()) return;
  throw InputError(file.path, fmt::format("row {} belongs to the unknown piece, which transformers "
                                          "finds by its id: it must keep its id",
                                          id));
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
