#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/split.hpp"
#include "base/string/text_encoding.hpp"
#include "text/open/convert.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/step/json_fields.hpp"
#include "text/unicode/space_marks.hpp"

namespace masque::text {

namespace {

constexpr std::uint64_t kMaxFile = 1U << 30;

std::string read(const std::string& path) { return InputFile::open(path).read_all(kMaxFile); }

bool is_original(Flavor flavor) {
  return flavor == Flavor::kGoogle || flavor == Flavor::kBert4Keras;
}

/// Adds to `roles` those of `more` that it lacks.
void add_missing(const RoleNames& more, RoleNames& roles) {
  for (const auto& entry : more) {
    const bool named =
        std::ranges::any_of(roles, [&](const auto& role) { return role.first == entry.first; });
    if (!named) roles.push_back(entry);
  }
}

/// Whether decoding cleans up: transformers does it, for other models than byte-pair encodings.
bool cleans_up(const FolderConfig& config, const TokenizerParts& parts) {
  const auto is = [&](const char* name, const char* value) {
    return std::ranges::find(parts.summary, std::pair<std::string, std::string>(name, value)) !=
           parts.summary.end();
  };
  return setting(config, "clean_up_tokenization_spaces", false) &&
         !is("read_as", "SentencePiece") &&
         (!is("model", "BPE") ||
          setting(config, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
                  false));
}

/// Adds what the folder says about roles, that special tokens are text, and how text is decoded.
TokenizerParts with_roles(TokenizerParts parts, const FolderConfig& config) {
  parts.role_names = config.roles;
  add_missing(config.old_roles, parts.role_names);
  if (config.mask && *config.mask >= 0) parts.mask_of_model = config.mask;
  if (setting(config, "split_special_tokens", false)) {
    for (AddedToken& token : parts.added) token.found = token.found && !token.special;
  }
  parts.cleans_up = cleans_up(config, parts);
  return parts;
}

/// As with_roles(), for a vocabulary whose rules the files next to it state.
TokenizerParts with_settings(TokenizerParts parts, const FolderConfig& config) {
  note_unknown_settings(config, parts);
  return with_roles(std::move(parts), config);
}

/// What the folder says, and of the other roles what the caller says.
FolderConfig read_config(const std::string& folder, const TokenizerOptions& options) {
  FolderConfig config = read_folder_config(folder);
  if (!options.config.empty()) {
    config.tokenizer = config_tokenizer(options.config, config.settings);
  } else if (config.tokenizer.named.empty() && !options.model.empty()) {
    config.tokenizer = model_tokenizer(options.model, config.settings);
  }
  add_missing(options.roles, config.roles);
  config.mask = options.model.empty() ? config_mask(config.model) : model_mask(options.model);
  return config;
}

TokenizerParts open_json(const std::string& folder, const std::string& path,
                         const TokenizerOptions& options) {
  const FolderConfig config = read_config(folder, options);
  const JsonValue json = parse_json_file(read(path), path);
  TokenizerParts parts = read_tokenizer_json(json, path);
  if (base_name(path) == "tokenizer.json") {
    note_tokenizer_json(json, config, parts);
    apply_class(json, config, parts);
    note_unknown_settings(config, parts);
  }
  return with_roles(std::move(parts), config);
}

TokenizerParts open_vocab_txt(const std::string& folder, const std::string& path,
                              const TokenizerOptions& options) {
  FolderConfig config = read_config(folder, options);
  if (!is_original(options.flavor)) choose_rules(config, VocabularyFile::kVocabTxt, path);
  const std::string text = read(path);
  TokenizerParts parts = read_wordpiece(text, path, config, options.flavor);
  if (text.starts_with(kUtf8Mark)) {
    const std::string_view first = std::string_view(text).substr(kUtf8Mark.size());
    parts.warnings.push_back(
        fmt::format("begins with a byte-order mark, which is a part of the first token, as in "
                    "transformers: '{}' is not in the vocabulary",
                    escape(without_return(first.substr(0, first.find('\n'))))));
  }
  return with_settings(std::move(parts), config);
}

TokenizerParts open_vocab_json(const std::string& folder, const TokenizerOptions& options) {
  FolderConfig config = read_config(folder, options);
  const std::string path = join(folder, "vocab.json");
  choose_rules(config, VocabularyFile::kVocabJson, path);
  return with_settings(read_byte_level(path, join(folder, "merges.txt"), config), config);
}

TokenizerParts open_tekken(const std::string& folder, const std::string& path,
                           const TokenizerOptions& options) {
  const FolderConfig config = read_config(folder, options);
  return with_roles(read_tekken(read(path), path, config), config);
}

TokenizerParts open_tiktoken(const std::string& folder, const std::string& path,
                             const TokenizerOptions& options) {
  const FolderConfig config = read_config(folder, options);
  return with_roles(read_tiktoken(read(path), path, config), config);
}

TokenizerParts open_spiece(const std::string& folder, const std::string& path,
                           const TokenizerOptions& options) {
  FolderConfig config = read_config(folder, options);
  const std::string bytes = read(path);
  if (is_tiktoken(bytes)) return with_roles(read_tiktoken(bytes, path, config), config);
  if (options.flavor != Flavor::kSentencePiece) choose_rules(config, VocabularyFile::kSpiece, path);
  return with_settings(read_spiece(bytes, path, config, options.flavor), config);
}

constexpr std::array<const char*, 5> kTiktokenFiles{"tiktoken.model", "cl100k_base.tiktoken",
                                                    "o200k_base.tiktoken", "p50k_base.tiktoken",
                                                    "r50k_base.tiktoken"};

TokenizerParts open_folder_parts(const std::string& folder, const TokenizerOptions& options) {
  const Flavor flavor = options.flavor;
  const auto has = [&](const char* name) { return exists(join(folder, name)); };
  const bool original = is_original(flavor);
  if (has("tokenizer.json") && !original && flavor != Flavor::kSentencePiece)
    return open_json(folder, join(folder, "tokenizer.json"), options);
  const bool spm = flavor == Flavor::kSentencePiece;
  const auto* spiece = std::ranges::find_if(kSpieceFiles, has);
  // By VocabularyFile.
  const std::array<bool, 3> found{has("vocab.txt") && !spm,
                                  has("vocab.json") && has("merges.txt") && !original && !spm,
                                  spiece != kSpieceFiles.end() && !original};
  std::size_t file = static_cast<std::size_t>(std::ranges::find(found, true) - found.begin());
  if (std::ranges::count(found, true) > 1) {  // that of the class which the folder names
    const TokenizerName name = read_config(folder, options).tokenizer;
    const auto wanted = static_cast<std::size_t>(name.file);
    if (!name.architecture.empty() && found.at(wanted)) file = wanted;
  }
  if (file == 0) return open_vocab_txt(folder, join(folder, "vocab.txt"), options);
  if (file == 1) return open_vocab_json(folder, options);
  if (has("tekken.json") && !original && !spm)
    return open_tekken(folder, join(folder, "tekken.json"), options);
  if (file == 2) return open_spiece(folder, join(folder, *spiece), options);
  for (const char* name : kTiktokenFiles)
    if (has(name) && !original && !spm) return open_tiktoken(folder, join(folder, name), options);
  throw InputError(folder, original ? "no vocab.txt, expected one"
                           : spm    ? "no spiece.model, expected one"
                                 : "no tokenizer, expected tokenizer.json, vocab.txt, vocab.json "
                                   "and merges.txt, or spiece.model");
}

/// Whether a model is meant: a file of weights, or TensorFlow's name of several.
bool is_weights(const std::string& path) {
  if (!exists(path)) return exists(path + ".index");
  return std::ranges::any_of(
      std::array{".safetensors", ".bin", ".pt", ".pth", ".npz", ".gguf", ".index", ".index.json"},
      [&](const char* end) { return path.ends_with(end); });
}

TokenizerParts open_file_parts(const std::string& path, const TokenizerOptions& options) {
  const Flavor flavor = options.flavor;
  const std::string folder = folder_of(path);
  if (is_weights(path)) return open_folder_parts(folder, options);
  const std::string name = base_name(path);
  const bool original = is_original(flavor);
  if ((original && !name.ends_with(".txt")) ||
      (flavor == Flavor::kSentencePiece && !name.ends_with(".model"))) {
    throw InputError(path, original ? "not a vocabulary that this flavor reads, expected vocab.txt"
                                    : "not a model that this flavor reads, expected spiece.model");
  }
  if (name == "vocab.json" || name == "merges.txt") return open_vocab_json(folder, options);
  if (name == "tekken.json") return open_tekken(folder, path, options);
  if (name.ends_with(".json")) return open_json(folder, path, options);
  if (name.ends_with(".tiktoken")) return open_tiktoken(folder, path, options);
  if (name.ends_with(".txt")) return open_vocab_txt(folder, path, options);
  if (name.ends_with(".model")) return open_spiece(folder, path, options);
  if (!exists(path)) {
    throw InputError(path,
                     fmt::format("no such file or folder, expected {}",
                                 path == options.model ? "a checkpoint folder" : "a tokenizer"));
  }
  throw InputError(path, "unknown kind of tokenizer, expected .json, .txt, .model or .tiktoken");
}

/// The class that must be named where files `name` another, so that the vocabulary of `parts` is
/// read as it was: by no class.
std::optional<std::string> class_of_none(const TokenizerParts& parts, const TokenizerName& names) {
  if (parts.format == "spiece.model")
    return names.named.empty() ? std::nullopt : std::optional(tokenizer_class_of("sentencepiece"));
  // A file of another name becomes a tokenizer.json, to which a class applies.
  const bool is_new = names.is_type || base_name(parts.path) != "tokenizer.json";
  if (names.architecture.empty() || names.is_general || !is_new) return std::nullopt;
  return "PreTrainedTokenizerFast";
}

/// The same where a class has read it.
std::optional<std::string> class_of_one(const Tokenizer& tokenizer, const TokenizerName& names,
                                        const std::string& config) {
  const TokenizerParts& parts = tokenizer.parts();
  const std::string own = tokenizer_class_of(parts.kind);
  const bool is_class = !names.architecture.empty() && !names.is_general;
  if (parts.format == "tokenizer.json")
    return is_class && names.architecture == parts.kind ? std::nullopt : std::optional(own);
  if (parts.format == "vocab.txt" && has_chinese_words(*parts.steps.model) &&
      names.architecture == "roformer")
    return own;
  const bool reads_other_file =
      names.is_type && is_class && names.file != first_tokenizer_class(parts.kind).file;
  if (reads_other_file) return own;
  const Tokenizer again = Tokenizer::open(parts.path, {.config = config});
  if (again.parts().kind == parts.kind && read_alike(again, tokenizer)) return std::nullopt;
  return own;
}

}  // namespace

TokenizerSettings needed_settings(const Tokenizer& tokenizer, const std::string& config) {
  TokenizerSettings out;
  const TokenizerParts& parts = tokenizer.parts();
  const bool has_class = !parts.kind.empty();
  if (!has_class && parts.format != "tokenizer.json" && parts.format != "spiece.model") return out;
  const FolderConfig folder = read_folder_config(folder_of(parts.path));
  const TokenizerName names = config_tokenizer(config, folder.settings);
  const auto named =
      has_class ? class_of_one(tokenizer, names, config) : class_of_none(parts, names);
  if (!named) return out;
  out.emplace_back("tokenizer_class", quote_json(*named));
  // A class that is named adds its special tokens to a vocabulary that lacks them; what was read
  // without one has only those of its vocabulary.
  for (const auto& [role, token] : roles_of_class(parts.kind)) {
    if (!role_of(folder, role) && !tokenizer.find(token))
      out.emplace_back(fmt::format("{}_token", role), "null");
  }
  return out;
}

bool has_tokenizer(const std::string& folder) {
  const std::string own = is_folder(folder) ? folder : folder_of(folder);
  const auto has = [&](const char* name) { return exists(join(own, name)); };
  return has("tokenizer.json") || has("vocab.txt") || has("vocab.json") || has("tekken.json") ||
         std::ranges::any_of(kSpieceFiles, has) || std::ranges::any_of(kTiktokenFiles, has);
}

Tokenizer Tokenizer::open(const std::string& path, const TokenizerOptions& options) {
  if (auto builtin = make_builtin(path)) return Tokenizer(std::move(*builtin));
  return Tokenizer(is_folder(path) ? open_folder_parts(path, options)
                                   : open_file_parts(path, options));
}

namespace {

/// Members that hold the steps of a Sequence.
constexpr std::array kStepLists{"normalizers", "pretokenizers", "processors", "decoders"};

/// "Sequence(NFKD, Lowercase)".
std::string describe(const JsonValue& json) {
  const JsonValue* type = json.find("type");
  if (type == nullptr) return "none";
  std::string out = escape(type->text);
  for (const char* list : kStepLists) {
    const JsonValue* steps = json.find(list);
    if (steps == nullptr) continue;
    out += fmt::format("({})", comma_list(steps->items, describe));
  }
  return out;
}

/// Whether a step or one in its Sequence has this type.
bool contains(const JsonValue* json, std::string_view type) {
  if (json == nullptr) return false;
  const JsonValue* own = json->find("type");
  if (own != nullptr && own->text == type) return true;
  return std::any_of(kStepLists.begin(), kStepLists.end(), [&](const char* list) {
    const JsonValue* steps = json->find(list);
    return steps != nullptr && std::any_of(steps->items.begin(), steps->items.end(),
                                           [&](const JsonValue& s) { return contains(&s, type); });
  });
}

std::vector<AddedToken> read_added(const JsonValue& json, const std::string& path) {
  std::vector<AddedToken> out;
  const JsonValue* list = find_field(json, "added_tokens", JsonKind::kArray, path);
  if (list == nullptr) return out;
  for (const JsonValue& item : list->items) {
    AddedToken token = read_added_token(item, path);
    token.id = id_field(item, "id", path);
    out.push_back(std::move(token));
  }
  return out;
}

/// What stands for a space by the step Metaspace that is `json` or in its Sequence; ▁ without one.
std::string metaspace_mark(const JsonValue* json, const std::string& path) {
  if (json == nullptr) return std::string(kSpaceMark);
  if (json->text_of("type") == "Metaspace")
    return text_field(*json, "replacement", kSpaceMark, path);
  for (const char* list : kStepLists) {
    const JsonValue* steps = json->find(list);
    if (steps == nullptr) continue;
    for (const JsonValue& step : steps->items)
      if (contains(&step, "Metaspace")) return metaspace_mark(&step, path);
  }
  return std::string(kSpaceMark);
}

void set_word_mark(const JsonValue& json, std::string_view model_type, TokenizerParts& parts) {
  const JsonValue* words = json.find("pre_tokenizer");
  if (const JsonValue* model = json.find("model"))
    parts.word_suffix = model->text_of("end_of_word_suffix");
  // Ends of words are marked, not their beginnings.
  if (!parts.word_suffix.empty()) return;
  if (contains(words, "ByteLevel")) {
    parts.word_mark = WordMark::kSpace;
    parts.word_prefix = kByteSpaceMark;
  } else if (model_type == "WordPiece") {
    parts.word_mark = WordMark::kContinuation;
    parts.word_prefix = "##";
    if (const JsonValue* model = json.find("model"))
      parts.word_prefix =
          text_field(*model, "continuing_subword_prefix", parts.word_prefix, parts.path);
  } else if (contains(words, "Metaspace") || model_type == "Unigram" ||
             (model_type == "BPE" && contains(json.find("normalizer"), "Replace"))) {
    parts.word_mark = WordMark::kSpace;
    parts.word_prefix = metaspace_mark(words, parts.path);
  }
}

}  // namespace

TokenizerParts assemble(const JsonValue& json, std::shared_ptr<const TokenModel> model,
                        std::string_view model_type, const std::string& path) {
  TokenizerParts parts;
  parts.path = path;
  parts.steps.model = std::move(model);
  parts.summary.emplace_back("model", model_type);
  const auto find = [&](const char* name) {
    const JsonValue* part = find_field(json, name, JsonKind::kObject, path);
    parts.summary.emplace_back(name, part == nullptr ? "none" : describe(*part));
    return part;
  };
  if (const JsonValue* part = find("normalizer"))
    parts.steps.normalizer = make_normalizer(*part, path);
  if (const JsonValue* part = find("pre_tokenizer"))
    parts.steps.pre_tokenizer = make_pre_tokenizer(*part, path);
  if (const JsonValue* part = find("post_processor"))
    parts.post_processor = make_post_processor(*part, path);
  if (const JsonValue* part = find("decoder")) parts.decoder = make_decoder(*part, path);
  parts.added = read_added(json, path);
  set_word_mark(json, model_type, parts);
  choose_fast_path(json, parts);
  return parts;
}

TokenizerParts read_tokenizer_json(std::string_view text, const std::string& path) {
  return read_tokenizer_json(parse_json_file(text, path), path);
}

TokenizerParts read_tokenizer_json(const JsonValue& json, const std::string& path) {
  if (!json.is(JsonKind::kObject)) refuse_json(json, path, "no object, expected a tokenizer.json");
  const std::string version = text_field(json, "version", "1.0", path);
  if (version != "1.0")
    throw InputError(path, fmt::format("version '{}', expected '1.0'", escape(version)));
  const JsonValue& model = get_field(json, "model", JsonKind::kObject, path);
  std::string type = text_field(model, "type", "", path);
  if (type.empty()) {
    const JsonValue* vocab = model.find("vocab");
    type = model.find("merges") != nullptr                      ? "BPE"
           : vocab != nullptr && vocab->is(JsonKind::kArray)    ? "Unigram"
           : model.find("continuing_subword_prefix") != nullptr ? "WordPiece"
                                                                : "WordLevel";
  }
  TokenizerParts parts = assemble(json, make_model(model, path), type, path);
  parts.format = "tokenizer.json";
  if (type == "Unigram" && find_field(model, "unk_id", JsonKind::kNumber, path) != nullptr)
    parts.unknown_as_text = id_field(model, "unk_id", path);
  for (const char* name : {"truncation", "padding"}) {
    if (find_field(json, name, JsonKind::kObject, path) != nullptr)
      parts.summary.emplace_back(name, "in the file, not applied");
  }
  return parts;
}

namespace {

bool has_type(const JsonValue* json, std::string_view type) {
  const JsonValue* own = json == nullptr ? nullptr : json->find("type");
  return own != nullptr && own->text == type;
}

BertFields bert_fields(const JsonValue& json, const std::string& path) {
  BertFields fields;
  fields.clean_text = bool_field(json, "clean_text", true, path);
  fields.handle_chinese_chars = bool_field(json, "handle_chinese_chars", true, path);
  fields.lowercase = bool_field(json, "lowercase", true, path);
  fields.strip_accents = bool_field(json, "strip_accents", fields.lowercase, path);
  return fields;
}

}  // namespace

void choose_fast_path(const JsonValue& json, TokenizerParts& parts) {
  const JsonValue* normalizer = find_field(json, "normalizer", JsonKind::kObject, parts.path);
  const JsonValue* words = find_field(json, "pre_tokenizer", JsonKind::kObject, parts.path);
  if (has_type(normalizer, "BertNormalizer") && has_type(words, "BertPreTokenizer")) {
    parts.make_fast = [fields = bert_fields(*normalizer, parts.path)](const Steps& steps, bool) {
      return make_bert_encoder(steps, fields);
    };
  } else if (normalizer == nullptr && has_type(words, "ByteLevel") &&
             bool_field(*words, "use_regex", true, parts.path)) {
    const bool prefix = bool_field(*words, "add_prefix_space", true, parts.path);
    parts.make_fast = [prefix](const Steps& steps, bool) {
      return make_byte_level_encoder(steps, prefix);
    };
  } else if (has_type(words, "Metaspace") && bool_field(*words, "split", true, parts.path) &&
             text_field(*words, "replacement", kSpaceMark, parts.path) == kSpaceMark) {
    const bool prefix = bool_field(*words, "add_prefix_space", true, parts.path);
    const std::string scheme =
        text_field(*words, "prepend_scheme", prefix ? "always" : "never", parts.path);
    parts.make_fast = [scheme](const Steps& steps, bool first) {
      const PrependMark prepend = scheme == "always"           ? PrependMark::kAlways
                                  : scheme == "first" && first ? PrependMark::kFirst
                                                               : PrependMark::kNever;
      return make_metaspace_encoder(steps, prepend);
    };
  }
}

}  // namespace masque::text
