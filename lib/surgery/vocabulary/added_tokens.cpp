// "added_tokens" of tokenizer.json.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "surgery/vocabulary/json_elements.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"

namespace masque::surgery {

namespace {

struct Entry {
  std::uint64_t id = 0;
  std::string text;
};

const JsonValue& get(const JsonValue& item, std::string_view name, JsonKind kind,
                     const std::string& path) {
  const JsonValue* value = item.find(name);
  if (value == nullptr || !value->is(kind))
    throw InputError(path, fmt::format("byte {}: expected an added token", item.begin));
  return *value;
}

using ModelTokens = std::unordered_map<std::string_view, std::uint64_t>;

/// Ids in the model's vocabulary of the contents that it has; its size goes to `count`.
ModelTokens ids_in_model(const JsonText& file, const JsonValue& list, std::uint64_t& count) {
  ModelTokens wanted;
  for (const JsonValue& item : list.items)
    wanted.emplace(get(item, "content", JsonKind::kString, file.path).text, ~std::uint64_t{0});
  const JsonValue* model = file.root.find("model");
  const JsonValue* vocab = model == nullptr ? nullptr : model->find("vocab");
  count = vocab == nullptr ? 0 : vocab->members.size() + vocab->items.size();
  if (vocab == nullptr) return {};
  const auto set = [&](const std::string& token, std::uint64_t id) {
    const auto found = wanted.find(token);
    if (found != wanted.end()) found->second = id;
  };
  for (const JsonMember& member : vocab->members)
    set(member.name, json_id(member.value, file.path));
  for (std::size_t i = 0; i < vocab->items.size(); ++i)
    if (!vocab->items[i].items.empty()) set(vocab->items[i].items[0].text, i);
  std::erase_if(wanted, [](const auto& pair) { return pair.second == ~std::uint64_t{0}; });
  return wanted;
}

/// The reader gives ids itself: those of the model, else the next free one. A file that says
/// something else has rows for other tokens than its author thought.
void check_numbers(const JsonText& file, const JsonValue& list, const ModelTokens& in_model,
                   std::uint64_t next) {
  for (const JsonValue& item : list.items) {
    const std::string& content = get(item, "content", JsonKind::kString, file.path).text;
    const std::uint64_t declared =
        json_id(get(item, "id", JsonKind::kNumber, file.path), file.path);
    const auto found = in_model.find(content);
    const std::uint64_t given = found == in_model.end() ? next : found->second;
    next = std::max(next, given + 1);
    if (given == declared || content.empty()) continue;
    throw InputError(file.path,
                     fmt::format("added token '{}' has id {} in the file, but tokenizers assign it "
                                 "id {}: correct the id in the file",
                                 escape(content), declared, given));
  }
}

Entry changed(const JsonText& file, const JsonValue& item, const TokenMoves::Token& now) {
  const JsonValue& content = get(item, "content", JsonKind::kString, file.path);
  const JsonValue& id = get(item, "id", JsonKind::kNumber, file.path);
  TextSplice splice;
  if (content.text != now.text) splice.replace(content.begin, content.end, quote_json(now.text));
  if (json_id(id, file.path) != now.id) splice.replace(id.begin, id.end, fmt::format("{}", now.id));
  return {now.id, splice.apply(file.text, item.begin, item.end)};
}

}  // namespace

std::string added_token_text(const std::string& text, const JsonValue* like,
                             const TokenMoves::Token& token, bool with_id) {
  if (like != nullptr && like->members.size() == (with_id ? 7U : 6U)) {
    TextSplice splice;
    for (const JsonMember& member : like->members) {
      const JsonValue& value = member.value;
      const std::string now = member.name == "id"           ? fmt::format("{}", token.id)
                              : member.name == "content"    ? quote_json(token.text)
                              : member.name == "normalized" ? "true"
                                                            : "false";
      splice.replace(value.begin, value.end, now);
    }
    return splice.apply(text, like->begin, like->end);
  }
  return json_text(
      [&](JsonWriter& json) {
        json.begin_object();
        if (with_id) json.member("id", token.id);
        json.member("content", token.text).member("single_word", false).member("lstrip", false);
        json.member("rstrip", false).member("normalized", true).member("special", false);
        json.end_object();
      },
      JsonLayout::kSpaced);
}

void change_added_tokens(VocabularyJob& job, const JsonText& file, TextSplice& splice) {
  const JsonValue* list = file.root.find("added_tokens");
  if (list == nullptr || !list->is(JsonKind::kArray)) {
    if (job.listed.empty()) return;
    throw InputError(file.path, "no list \"added_tokens\", expected one");
  }
  std::uint64_t count = 0;
  const ModelTokens in_model = ids_in_model(file, *list, count);
  check_numbers(file, *list, in_model, count);
  std::vector<Entry> entries;
  entries.reserve(list->items.size() + job.listed.size());
  std::unordered_set<std::string_view> contents;
  // Added tokens that the model lacks are numbered in the order of the list.
  std::uint64_t last = 0;
  bool in_order = true;
  const auto add = [&](Entry entry, const TokenMoves::Token& now, bool numbered) {
    if (numbered) {
      in_order = in_order && last <= entry.id;
      last = entry.id;
    }
    contents.insert(now.text);
    entries.push_back(std::move(entry));
  };
  for (const JsonValue& item : list->items) {
    const std::string& content = get(item, "content", JsonKind::kString, file.path).text;
    const std::uint64_t old = json_id(get(item, "id", JsonKind::kNumber, file.path), file.path);
    if (const auto now = job.moves.follow(old, content, file.path)) {
      add(changed(file, item, *now), *now, !in_model.contains(content));
    } else if (is_true(item.find("special"))) {
      refuse_special(file.path, content);
    }
  }
  const JsonValue* like = list->items.empty() ? nullptr : &list->items.back();
  for (const TokenMoves::Token& token : job.listed) {
    if (contents.contains(token.text)) continue;
    const bool numbered = !job.new_in_model() && job.moves.is_new(token.id);
    add({token.id, added_token_text(file.text, like, token, true)}, token, numbered);
  }
  if (!in_order) std::ranges::stable_sort(entries, {}, &Entry::id);
  std::vector<std::string> wanted;
  wanted.reserve(entries.size());
  for (Entry& entry : entries) wanted.push_back(std::move(entry.text));
  set_elements(file.text, *list, wanted, splice);
}

}  // namespace masque::surgery
