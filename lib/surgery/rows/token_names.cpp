#include "surgery/rows/token_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "text/open/spiece_model.hpp"

namespace masque::surgery {

namespace {

constexpr std::uint64_t kMaxFile = 256 << 20;
constexpr std::uint64_t kMaxId = 2 << 20;

struct RoleNames {
  std::string_view role;
  std::array<std::string_view, 3> usual;  // by convention, where no file names the token
};

constexpr std::array kRoleNames{
    RoleNames{"mask_token", {"[MASK]", "<mask>", "<MASK>"}},
    RoleNames{"cls_token", {"[CLS]", "<s>", "<cls>"}},
    RoleNames{"sep_token", {"[SEP]", "</s>", "<sep>"}},
    RoleNames{"pad_token", {"[PAD]", "<pad>", "<PAD>"}},
    RoleNames{"unk_token", {"[UNK]", "<unk>", "<UNK>"}},
};

constexpr std::array<std::string_view, 2> kSpecialTokenFiles{"special_tokens_map.json",
                                                             "tokenizer_config.json"};

}  // namespace

TokenNames TokenNames::load(const std::string& folder) {
  TokenNames names;
  const auto try_file = [&](const char* name, void (TokenNames::*read)(const std::string&)) {
    const std::string path = join(folder, name);
    if (!names.empty() || !exists(path)) return;
    (names.*read)(path);
    names.source_ = name;
  };
  try_file("tokenizer.json", &TokenNames::read_tokenizer_json);
  try_file("vocab.txt", &TokenNames::read_vocab_txt);
  try_file("vocab.json", &TokenNames::read_vocab_json);
  if (names.empty()) {
    for (const char* name : text::kSpieceFiles) {
      if (names.spiece_.empty() && exists(join(folder, name))) names.spiece_ = name;
    }
    return names;
  }
  if (names.source_ != "tokenizer.json") names.read_added(folder);
  for (const std::string_view name : kSpecialTokenFiles) {
    const std::string path = join(folder, name);
    if (!exists(path)) continue;
    names.read_roles(path);
    names.read_added_special(path);
  }
  names.guess_roles();
  return names;
}

TokenNames TokenNames::read(const std::string& path) {
  TokenNames names;
  names.source_ = base_name(path);
  if (names.source_ == "vocab.json") {
    names.read_vocab_json(path);
  } else if (names.source_.ends_with(".json")) {
    names.read_tokenizer_json(path);
  } else if (names.source_.ends_with(".txt")) {
    names.read_vocab_txt(path);
  } else {
    throw InputError(path, "unknown kind of vocabulary, expected .json or .txt");
  }
  names.guess_roles();
  return names;
}

std::string TokenNames::why_empty() const {
  if (spiece_.empty()) return "no tokenizer file";
  return fmt::format("tokens are not read from {}", spiece_);
}

void TokenNames::set(const std::string& token, std::uint64_t id, const std::string& path) {
  if (id >= kMaxId) throw InputError(path, fmt::format("id {}, expected below {}", id, kMaxId));
  if (id >= tokens_.size()) {
    tokens_.resize(id + 1);
    assigned_.resize(id + 1);
  }
  tokens_[id] = token;
  assigned_[id] = true;
  ids_[token] = id;
}

namespace {

/// Scans a file leaf by leaf. Throws InputError if it is no JSON.
void scan_file(const std::string& path, const JsonLeafFunction& leaf) {
  const std::string text = InputFile::open(path).read_all(kMaxFile);
  if (const auto error = scan_json_leaves(text, leaf)) {
    throw InputError(path, fmt::format("byte {}: {}", error->offset, error->message));
  }
}

std::uint64_t id_of(const std::string& path, const std::string& text, std::size_t begin) {
  const auto id = parse_unsigned(text);
  if (!id) throw InputError(path, fmt::format("byte {}: expected an id", begin));
  return *id;
}

}  // namespace

void TokenNames::read_tokenizer_json(const std::string& path) {
  struct Added {
    std::optional<std::string> content;
    std::optional<std::uint64_t> id;
    bool special = false;
  };
  std::vector<Added> added;
  bool has_vocab = false;
  scan_file(path, [&](const std::vector<JsonStep>& at, JsonKind kind, const std::string& text,
                      std::size_t begin) {
    if (at.size() >= 3 && at[0].key == "model" && at[1].key == "vocab") {
      has_vocab = true;
      if (at.size() == 3 && at[2].in_object) {
        set(at[2].key, id_of(path, kind == JsonKind::kNumber ? text : "", begin), path);
      } else if (at.size() == 4 && at[3].index == 0 && kind == JsonKind::kString) {
        set(text, at[2].index, path);  // unigram: [[piece, score], …]
      }
    } else if (at.size() == 3 && at[0].key == "added_tokens") {
      if (at[1].index >= kMaxId) throw InputError(path, "too many added tokens");
      added.resize(std::max(added.size(), at[1].index + 1));
      if (at[2].key == "content") added[at[1].index].content = text;
      if (at[2].key == "id") added[at[1].index].id = id_of(path, text, begin);
      if (at[2].key == "special")
        added[at[1].index].special = kind == JsonKind::kBool && text == "true";
    }
    return true;
  });
  if (!has_vocab && added.empty()) throw InputError(path, "no model.vocab, expected one");
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (!added[i].content || !added[i].id) {
      throw InputError(path, fmt::format("added token {}: expected content and id", i));
    }
    set(*added[i].content, *added[i].id, path);
    if (added[i].special) special_.insert(*added[i].content);
  }
}

void TokenNames::read_vocab_txt(const std::string& path) {
  const std::string text = InputFile::open(path).read_all(kMaxFile);
  std::uint64_t line = 0;
  for_each_line(text, [&](std::string_view token) {
    // Of two equal lines the later one gives the id, as in transformers.
    set(std::string(without_return(token)), line++, path);
  });
}

void TokenNames::read_vocab_json(const std::string& path) {
  scan_file(path, [&](const std::vector<JsonStep>& at, JsonKind kind, const std::string& text,
                      std::size_t begin) {
    if (at.empty() && kind == JsonKind::kObject) return true;  // nothing is in it
    if (at.size() != 1 || !at[0].in_object || kind != JsonKind::kNumber) {
      throw InputError(path, fmt::format("byte {}: expected a token and its id", begin));
    }
    set(at[0].key, id_of(path, text, begin), path);
    return true;
  });
}

void TokenNames::read_added(const std::string& folder) {
  const std::string config = join(folder, "tokenizer_config.json");
  bool listed = false;
  if (exists(config)) {
    scan_file(config, [&](const std::vector<JsonStep>& at, JsonKind kind, const std::string& text,
                          std::size_t begin) {
      if (at.empty() || at[0].key != "added_tokens_decoder") return true;
      listed = true;
      if (at.size() == 3 && at[2].key == "content" && kind == JsonKind::kString)
        set(text, id_of(config, at[1].key, begin), config);
      return true;
    });
  }
  const std::string added = join(folder, "added_tokens.json");
  if (!listed && exists(added)) read_vocab_json(added);
}

void TokenNames::read_roles(const std::string& path) {
  scan_file(path, [&](const std::vector<JsonStep>& at, JsonKind kind, const std::string& text,
                      std::size_t /*begin*/) {
    const bool plain = at.size() == 1;
    const bool object = at.size() == 2 && at[1].key == "content";
    if (kind == JsonKind::kString && (plain || object) && at[0].key.ends_with("_token")) {
      roles_[at[0].key] = text;
    }
    return true;
  });
}

/// "additional_special_tokens": ["…", {"content": "…"}] and such, and what
/// "added_tokens_decoder" calls special.
void TokenNames::read_added_special(const std::string& path) {
  std::unordered_map<std::string, std::string> contents;
  std::vector<std::string> special;
  scan_file(path, [&](const std::vector<JsonStep>& at, JsonKind kind, const std::string& text,
                      std::size_t /*begin*/) {
    if (at.size() < 2) return true;
    const std::string& list = at[0].key;
    const bool tokens = list == "additional_special_tokens" || list == "extra_special_tokens" ||
                        list == "model_specific_special_tokens";
    const bool object = at.size() == 3 && at[2].key == "content";
    if (tokens && kind == JsonKind::kString && (at.size() == 2 || object)) special_.insert(text);
    if (list != "added_tokens_decoder" || at.size() != 3) return true;
    if (object) contents[at[1].key] = text;
    if (at[2].key == "special" && kind == JsonKind::kBool && text == "true")
      special.push_back(at[1].key);
    return true;
  });
  for (const std::string& id : special) special_.insert(contents[id]);
}

void TokenNames::guess_roles() {
  for (const RoleNames& known : kRoleNames) {
    const std::string role(known.role);
    if (roles_.contains(role)) continue;
    for (const std::string_view name : known.usual) {
      if (id(std::string(name)) && !roles_.contains(role)) roles_[role] = name;
    }
  }
}

std::optional<std::uint64_t> TokenNames::id(const std::string& token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string& TokenNames::token(std::uint64_t id) const {
  static const std::string kNone;
  return id < tokens_.size() ? tokens_[id] : kNone;
}

bool TokenNames::assigned(std::uint64_t id) const { return id < assigned_.size() && assigned_[id]; }

std::optional<std::uint64_t> TokenNames::role(std::string_view role) const {
  const auto found = roles_.find(std::string(role));
  return found == roles_.end() ? std::nullopt : id(found->second);
}

bool TokenNames::special(std::uint64_t id) const {
  return assigned(id) && special_.contains(token(id));
}

bool is_unused_token(std::string_view token) {
  for (const auto& [open, close] :
       {std::pair<std::string_view, char>{"[unused", ']'}, {"<unused", '>'}}) {
    if (!token.starts_with(open) || !token.ends_with(close)) continue;
    const std::string_view number = token.substr(open.size(), token.size() - open.size() - 1);
    if (std::all_of(number.begin(), number.end(),
                    [](unsigned char c) { return std::isdigit(c); })) {
      return true;
    }
  }
  return false;
}

}  // namespace masque::surgery
