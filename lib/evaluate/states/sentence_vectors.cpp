#include "evaluate/states/sentence_vectors.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json_settings.hpp"
#include "base/string/comma_list.hpp"

namespace masque::evaluate {

namespace {

constexpr std::array<std::pair<std::string_view, SentencePooling>, 8> kPoolingNames{
    {{"mean", SentencePooling::kMean},
     {"cls", SentencePooling::kCls},
     {"first-last", SentencePooling::kFirstLast},
     {"tta", SentencePooling::kTta},
     {"max", SentencePooling::kMax},
     {"mean_sqrt_len_tokens", SentencePooling::kMeanSqrt},
     {"weightedmean", SentencePooling::kWeightedMean},
     {"lasttoken", SentencePooling::kLastToken}}};

/// What becomes of the states of a sentence by one pooling.
class PooledStates {
 public:
  /// Tokens from `first` to `end` are pooled.
  PooledStates(SentencePooling pooling, Index first, Index end, Index size)
      : pooling_(pooling), first_(first), end_(end), numbers_(static_cast<std::size_t>(size)) {}

  /// The state of the token at `position`.
  template <class T>
  void add(Index position, std::span<const T> row) {
    if (position < first_ || position >= end_) return;
    const bool any = weights_ > 0;
    const double weight =
        pooling_ == SentencePooling::kWeightedMean ? static_cast<double>(position + 1) : 1;
    weights_ += weight;
    for (std::size_t j = 0; j < numbers_.size(); ++j) {
      const auto x = static_cast<double>(row[j]);
      if (pooling_ == SentencePooling::kMax) {
        numbers_[j] = any ? std::max(numbers_[j], x) : x;
      } else {
        numbers_[j] += weight * x;
      }
    }
  }

  /// Appends the vector to `out`; 0 without a token.
  void append(std::vector<double>& out) const {
    const double divisor = pooling_ == SentencePooling::kMax        ? 1
                           : pooling_ == SentencePooling::kMeanSqrt ? std::sqrt(weights_)
                                                                    : weights_;
    for (const double number : numbers_) out.push_back(weights_ == 0 ? 0 : number / divisor);
  }

 private:
  SentencePooling pooling_;
  Index first_, end_;
  std::vector<double> numbers_;
  double weights_ = 0;
};

/// Gives the states of a batch to the poolings of their sentences, in the order of the rows.
class StatePools : public model::Observer {
 public:
  /// `begins`: first row of each sequence in the batch; `rows`: those whose last states come, and
  /// `by_layer`: instead all states of the first and of the last layer come.
  StatePools(std::span<const Index> begins, std::span<const Index> rows, bool by_layer,
             Index last_layer)
      : begins_(begins), rows_(rows), by_layer_(by_layer), last_layer_(last_layer) {}

  /// Adds a pooling of the sequence.
  void add(Index sequence, PooledStates pool) {
    pools_.resize(std::max(pools_.size(), static_cast<std::size_t>(sequence) + 1));
    pools_[static_cast<std::size_t>(sequence)].push_back(std::move(pool));
  }

  void last_states(Index sequence, Index first, MatrixView<const float> rows) override {
    add_rows(sequence, first, rows);
  }
  void last_states(Index sequence, Index first, MatrixView<const double> rows) override {
    add_rows(sequence, first, rows);
  }
  void hidden_states(Index sequence, Index state, MatrixView<const float> rows) override {
    add_layer(sequence, state, rows);
  }
  void hidden_states(Index sequence, Index state, MatrixView<const double> rows) override {
    add_layer(sequence, state, rows);
  }

  /// The vectors of the sequence by its poolings, one after the other.
  std::vector<double> vector(Index sequence) const {
    std::vector<double> out;
    for (const PooledStates& pool : pools_[static_cast<std::size_t>(sequence)]) pool.append(out);
    return out;
  }

 private:
  template <class T>
  void add_layer(Index sequence, Index state, MatrixView<const T> rows) {
    if (!by_layer_) return;
    // A model of one layer has the same first and last.
    for (const Index wanted : {Index{1}, last_layer_}) {
      if (state != wanted) continue;
      for (Index i = 0; i < rows.rows; ++i) add_row(sequence, i, rows.row_span(i));
    }
  }

  template <class T>
  void add_rows(Index sequence, Index first, MatrixView<const T> rows) {
    const Index begin = begins_[static_cast<std::size_t>(sequence)];
    for (Index i = 0; i < rows.rows; ++i) {
      const Index row = rows_[static_cast<std::size_t>(first + i)];
      add_row(sequence, row - begin, rows.row_span(i));
    }
  }

  template <class T>
  void add_row(Index sequence, Index position, std::span<const T> row) {
    for (PooledStates& pool : pools_[static_cast<std::size_t>(sequence)]) pool.add(position, row);
  }

  std::span<const Index> begins_, rows_;
  bool by_layer_;
  Index last_layer_;
  std::vector<std::vector<PooledStates>> pools_;  ///< of each sequence
};

constexpr std::array<std::pair<std::string_view, Similarity>, 4> kSimilarityNames{
    {{"cosine", Similarity::kCosine},
     {"dot", Similarity::kDot},
     {"euclidean", Similarity::kEuclidean},
     {"manhattan", Similarity::kManhattan}}};

double length_of(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

Index shorter(Index a, Index b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

}  // namespace

NameTable<SentencePooling> pooling_names() { return kPoolingNames; }

double cosine(std::span<const double> x, std::span<const double> y) {
  MASQUE_CHECK(x.size() == y.size());
  double product = 0;
  for (std::size_t i = 0; i < x.size(); ++i) product += x[i] * y[i];
  return product / (std::max(length_of(x), 1e-12) * std::max(length_of(y), 1e-12));
}

NameTable<Similarity> similarity_names() { return kSimilarityNames; }

double similarity(Similarity kind, std::span<const double> x, std::span<const double> y) {
  MASQUE_CHECK(x.size() == y.size());
  if (kind == Similarity::kCosine) return cosine(x, y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - y[i];
    sum += kind == Similarity::kDot         ? x[i] * y[i]
           : kind == Similarity::kEuclidean ? difference * difference
                                            : std::abs(difference);
  }
  return kind == Similarity::kDot ? sum : kind == Similarity::kEuclidean ? -std::sqrt(sum) : -sum;
}

Index vector_size(const VectorOptions& options, Index hidden) {
  Index size = hidden * std::ssize(options.poolings);
  for (const VectorStep& step : options.steps) size = size_after(step, size);
  return options.dim > 0 ? std::min(options.dim, size) : size;
}

VectorMaker::VectorMaker(const model::Model& model, const VectorOptions& options, Sink sink)
    : model_(model),
      options_(options),
      longest_(shorter(options.max_length, model.design().max_position_embeddings)),
      sink_(std::move(sink)) {
  const bool by_layer =
      std::ranges::find(options_.poolings, SentencePooling::kFirstLast) != options_.poolings.end();
  MASQUE_CHECK(!options_.poolings.empty() && (!by_layer || options_.poolings.size() == 1));
}

std::optional<std::string> VectorMaker::length_problem(const Sentence& sentence) const {
  if (longest_ == 0 || sentence.size() <= longest_) return std::nullopt;
  const Index fits = longest_ - sentence.prefix - sentence.suffix;
  if (options_.truncate && fits >= 1) return std::nullopt;
  return too_long(sentence.size(), longest_);
}

void VectorMaker::add(std::uint64_t id, Sentence sentence) {
  MASQUE_CHECK(!length_problem(sentence));
  if (longest_ != 0 && sentence.size() > longest_) {
    const Index kept = longest_ - sentence.prefix - sentence.suffix;
    shortened_.add(sentence.tokens() - kept);
    const Index begin = options_.keep_last ? sentence.tokens() - kept : 0;
    sentence = part_of(sentence, begin, begin + kept);
  }
  const auto before = static_cast<Index>(batch_.ids.size());
  if (before > 0 && before + sentence.size() > options_.batch_tokens) flush();
  const auto begin = static_cast<Index>(batch_.ids.size());
  batch_.add(sentence.ids);
  if (options_.mask_of) batch_.masks.emplace_back(options_.mask_of(sentence.ids));
  any_segments_ = any_segments_ || !sentence.segments.empty();
  sentence.segments.resize(sentence.ids.size(), 0);
  batch_.segments.insert(batch_.segments.end(), sentence.segments.begin(), sentence.segments.end());
  Index least = sentence.size(), most = 0;
  for (const SentencePooling pooling : options_.poolings) {
    Range range{0, sentence.size()};
    if (pooling == SentencePooling::kTta)
      range = {sentence.prefix, sentence.size() - sentence.suffix};
    range.first = std::max(range.first, options_.unpooled);
    if (pooling == SentencePooling::kCls) {
      if (range.first >= range.end) range.first = 0;
      range.end = std::min<Index>(range.end, range.first + 1);
    }
    if (pooling == SentencePooling::kLastToken) range.first = std::max(range.first, range.end - 1);
    least = std::min(least, range.first);
    most = std::max(most, range.end);
    ranges_.push_back(range);
  }
  for (Index i = least; i < most; ++i) request_.rows.push_back(begin + i);
  ids_.push_back(id);
}

void VectorMaker::flush() {
  if (ids_.empty()) return;
  if (!any_segments_) batch_.segments.clear();
  const bool by_layer = options_.poolings.front() == SentencePooling::kFirstLast;
  if (by_layer) {
    request_.hidden_states = true;
    request_.rows.clear();
  } else {
    request_.last_states = true;
  }
  const model::Design& design = model_.design();
  StatePools pools(batch_.begins, request_.rows, by_layer, design.num_hidden_layers);
  auto range = ranges_.begin();
  for (Index s = 0; s < std::ssize(ids_); ++s) {
    for (const SentencePooling pooling : options_.poolings) {
      pools.add(s, PooledStates(pooling, range->first, range->end, design.hidden_size));
      ++range;
    }
  }
  if (!batch_.ids.empty()) model_.run(batch_, request_, &pools);
  for (std::size_t s = 0; s < ids_.size(); ++s) {
    std::vector<double> vector = pools.vector(static_cast<Index>(s));
    for (const VectorStep& step : options_.steps) apply_step(step, vector);
    if (options_.normalize) normalize(vector);
    if (options_.dim > 0 && options_.dim < std::ssize(vector))
      vector.resize(static_cast<std::size_t>(options_.dim));
    if (options_.normalize_kept) normalize(vector);
    sink_(ids_[s], std::move(vector));
  }
  batch_ = {};
  request_ = {};
  ids_.clear();
  ranges_.clear();
  any_segments_ = false;
}

// Folders of sentence-transformers: modules.json names the steps, each with a folder of its own.
// What each setting means, and which names older versions gave it, is what sentence-transformers
// 6.2 does with it.

namespace {

constexpr std::int64_t kMostTokens = INT32_MAX;

/// One note for the settings that nobody understands.
void note_unknown(const JsonSettings& settings, SentenceFolder& folder) {
  std::vector<std::string> names = settings.unknown();
  for (std::string& name : names) name = escape(name);
  if (names.empty()) return;
  folder.notes.push_back(
      fmt::format("{}: not used: {}", escape(settings.path()), comma_list(names)));
}

/// Throws InputError for a member of `settings` that is not known to change nothing.
void refuse_others(const JsonSettings& settings, std::string_view why) {
  const std::vector<std::string> names = settings.unknown();
  if (names.empty()) return;
  throw InputError(settings.path(),
                   fmt::format("{} is not supported: it {}", escape(names.front()), why));
}

/// The pooling that sentence-transformers calls `mode`.
SentencePooling pooling_of(JsonSettings& settings, const std::string& mode) {
  for (const auto& [name, pooling] : kPoolingNames) {
    const bool ours = pooling == SentencePooling::kFirstLast || pooling == SentencePooling::kTta;
    if (name == mode && !ours) return pooling;
  }
  throw InputError(settings.path(),
                   fmt::format("pooling '{}', expected cls, max, mean, mean_sqrt_len_tokens, "
                               "weightedmean or lasttoken",
                               escape(mode)));
}

/// Old files have a switch for each pooling, which a name replaces.
void read_pooling(const std::string& path, SentenceFolder& folder) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSwitches{
      {{"pooling_mode_cls_token", "cls"},
       {"pooling_mode_max_tokens", "max"},
       {"pooling_mode_mean_tokens", "mean"},
       {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
       {"pooling_mode_weightedmean_tokens", "weightedmean"},
       {"pooling_mode_lasttoken", "lasttoken"}}};
  JsonSettings settings = JsonSettings::read(path);
  std::vector<std::string> switched;
  for (const auto& [name, mode] : kSwitches) {
    if (settings.flag(name, false)) switched.emplace_back(mode);
  }
  if (switched.empty()) switched.emplace_back("mean");
  std::vector<std::string> modes;
  const JsonValue* named = settings.find("pooling_mode");
  if (named == nullptr) {
    modes = switched;
  } else if (named->is(JsonKind::kArray)) {
    for (const JsonValue& item : named->items) modes.push_back(item.text);
  } else {
    modes.push_back(*settings.string("pooling_mode"));
  }
  for (const std::string& mode : modes) folder.poolings.push_back(pooling_of(settings, mode));
  if (folder.poolings.empty()) settings.refuse("pooling_mode", "at least one pooling");
  folder.include_prompt = settings.flag("include_prompt", true);
  // How wide a vector is follows from the model.
  settings.ignore({"word_embedding_dimension", "embedding_dimension"});
  note_unknown(settings, folder);
}

/// `name`, else what it was called before: arguments of the classes of transformers.
JsonSettings arguments(JsonSettings& settings, std::string_view name, std::string_view old_name) {
  JsonSettings all = settings.object(settings.find(old_name) != nullptr ? old_name : name);
  settings.ignore({name});
  all.ignore({"trust_remote_code", "token", "cache_dir", "revision", "local_files_only",
              "subfolder", "force_download"});
  return all;
}

/// What is computed from ids: the last states of the text itself.
void check_task(JsonSettings& settings) {
  settings.need("transformer_task", "feature-extraction");
  settings.need("module_output_name", "token_embeddings");
  JsonSettings modalities = settings.object("modality_config");
  if (modalities.find("message") != nullptr)
    modalities.refuse("message", "none: texts would pass a chat template");
  if (!modalities.empty() && modalities.find("text") == nullptr)
    modalities.refuse("text", "an object: how text is read");
  JsonSettings text = modalities.object("text");
  text.need("method", "forward");
  text.need("method_output_name", "last_hidden_state");
}

/// How a text becomes ids.
void read_processing(JsonSettings& settings, SentenceFolder& folder) {
  const auto limit = settings.integer("max_seq_length", 1, kMostTokens);
  folder.lower_case = settings.flag("do_lower_case", false);
  if (settings.find("tokenizer_name_or_path") != nullptr)
    settings.refuse("tokenizer_name_or_path", "none: the folder's tokenizer is read");
  JsonSettings made = arguments(settings, "processor_kwargs", "tokenizer_args");
  made.ignore({"use_fast", "padding_side", "clean_up_tokenization_spaces"});
  const auto made_limit = made.integer("model_max_length", 1, kMostTokens);
  refuse_others(made, "may change the tokenizer");
  JsonSettings called = settings.object("processing_kwargs");
  called.ignore({"audio", "image", "video", "chat_template"});
  JsonSettings common = called.object("common");
  common.ignore({"return_tensors"});
  refuse_others(common, "may change the tokens");
  JsonSettings text = called.object("text");
  text.ignore({"padding", "return_tensors", "pad_to_multiple_of"});
  const JsonValue* cut = text.find("truncation");
  const bool usual = cut == nullptr || cut->text == "true" || cut->text == "longest_first" ||
                     cut->text == "only_first";
  if (!usual) text.refuse("truncation", "true, 'longest_first' or 'only_first'");
  const auto called_limit = text.integer("max_length", 1, kMostTokens);
  refuse_others(text, "may change the tokens");
  folder.max_length =
      static_cast<Index>(called_limit.value_or(made_limit.value_or(limit.value_or(0))));
}

/// Says where the arguments in `settings` make sentence-transformers round to a half type; those of
/// the model's class count before those of its config.json.
void note_half(JsonSettings& settings, SentenceFolder& folder) {
  using Names = std::pair<const char*, const char*>;
  for (const auto& [name, old_name] :
       {Names("model_kwargs", "model_args"), Names("config_kwargs", "config_args")}) {
    const char* object = settings.find(old_name) != nullptr ? old_name : name;
    JsonSettings all = settings.object(object);
    const char* key = all.find("dtype") != nullptr ? "dtype" : "torch_dtype";
    const JsonValue* type = all.find(key);
    if (type == nullptr || type->text == "auto") continue;
    if (type->text == "float16" || type->text == "half" || type->text == "bfloat16") {
      folder.notes.push_back(fmt::format(
          "{}: {}.{} is {}: sentence-transformers rounds the weights to it and computes in it, "
          "here they count as they are stored",
          escape(settings.path()), object, key, type->text));
    }
    return;
  }
}

void read_transformer(SentenceFolder& folder, const std::string& place) {
  // The first that has members counts, as the class of the model once named the file.
  for (const std::string_view stem :
       {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    const std::string path = join(place, fmt::format("sentence_{}_config.json", stem));
    if (!exists(path)) continue;
    JsonSettings settings = JsonSettings::read(path);
    if (settings.empty()) continue;
    check_task(settings);
    read_processing(settings, folder);
    note_half(settings, folder);
    JsonSettings model = arguments(settings, "model_kwargs", "model_args");
    // How and in which numbers the same weights are computed.
    model.ignore({"attn_implementation", "torch_dtype", "dtype", "device_map", "low_cpu_mem_usage",
                  "use_safetensors", "add_pooling_layer", "use_cache"});
    refuse_others(model, "may change the model");
    JsonSettings config = arguments(settings, "config_kwargs", "config_args");
    config.ignore({"use_cache", "torch_dtype", "dtype"});
    refuse_others(config, "may change the model");
    // Padding, and what only queries and documents of models with a vector a token have.
    settings.ignore({"unpad_inputs", "query_length", "document_length", "query_expansion"});
    note_unknown(settings, folder);
    return;
  }
}

void read_prompts(JsonSettings& settings, SentenceFolder& folder) {
  JsonSettings prompts = settings.object("prompts");
  if (const JsonValue* all = settings.find("prompts")) {
    for (const JsonMember& member : all->members)
      folder.prompts.emplace_back(member.name, prompts.string(member.name).value_or(""));
  }
  folder.default_prompt_name = settings.string("default_prompt_name");
  // These two names are always there, with nothing.
  if (!folder.default_prompt_name || *folder.default_prompt_name == "query" ||
      *folder.default_prompt_name == "document")
    return;
  const bool known = std::ranges::any_of(folder.prompts, [&](const auto& prompt) {
    return prompt.first == *folder.default_prompt_name;
  });
  if (!known) settings.refuse("default_prompt_name", "one of the names in prompts");
}

/// What counts for the folder as a whole.
void read_folder_settings(const std::string& path, SentenceFolder& folder) {
  if (!exists(path)) return;
  JsonSettings settings = JsonSettings::read(path);
  settings.need("model_type", "SentenceTransformer");
  read_prompts(settings, folder);
  if (const auto name = settings.string("similarity_fn_name")) {
    const NameTable<Similarity> names = similarity_names();
    const auto found =
        std::ranges::find(names, *name, &std::pair<std::string_view, Similarity>::first);
    if (found == names.end())
      settings.refuse("similarity_fn_name", "cosine, dot, euclidean or manhattan");
    folder.similarity = found->second;
  }
  folder.dim = static_cast<Index>(settings.integer("truncate_dim", 1, kMostTokens).value_or(0));
  // Versions of programs.
  settings.ignore({"__version__", "requirements"});
  note_unknown(settings, folder);
}

/// The class of a module, without the package that it is in; empty: not one of
/// sentence-transformers.
std::string class_of(const std::string& type) {
  for (const std::string_view package :
       {"sentence_transformers.models.", "sentence_transformers.base.modules.",
        "sentence_transformers.sentence_transformer.modules."}) {
    if (!type.starts_with(package)) continue;
    const std::string name = type.substr(package.size());
    return name.substr(name.rfind('.') + 1);
  }
  return {};
}

void read_module(const std::string& path, const JsonValue& item, SentenceFolder& folder,
                 bool& transformer) {
  const std::string type = item.text_of("type");
  const std::string name = class_of(type);
  const std::string place = item.text_of("path");
  const std::string modules = join(path, "modules.json");
  if (place.starts_with('/') || place == ".." || place.starts_with("../") ||
      place.ends_with("/..") || place.find("/../") != std::string::npos) {
    throw InputError(modules,
                     fmt::format("path '{}', expected one inside the folder", escape(place)));
  }
  const std::string inside = place.empty() ? path : join(path, place);
  const auto once = [&](bool first, std::string_view expected) {
    if (!first)
      throw InputError(modules, fmt::format("module '{}', expected {}", escape(type), expected));
  };
  if (name == "Transformer") {
    once(!transformer && folder.poolings.empty(), "one Transformer, which is the first module");
    transformer = true;
    if (!place.empty()) folder.model = inside;
    read_transformer(folder, inside);
  } else if (name == "Pooling") {
    once(transformer && folder.poolings.empty(), "one Pooling after the Transformer");
    read_pooling(join(inside, "config.json"), folder);
  } else if (name == "Normalize") {
    const std::string config = join(inside, "config.json");
    if (!place.empty() && exists(config)) {
      JsonSettings settings = JsonSettings::read(config);
      settings.need("module_input_name", "sentence_embedding");
      settings.need("module_output_name", "sentence_embedding");
      note_unknown(settings, folder);
    }
    // In front of a pooling there is nothing yet that it could scale.
    if (!folder.poolings.empty()) folder.steps.push_back({inside, NormalizeStep{}});
  } else if (name == "Dense" || name == "LayerNorm") {
    once(!folder.poolings.empty(), "it after the Pooling");
    folder.steps.push_back(name == "Dense" ? read_dense(inside, folder.notes)
                                           : read_layer_norm(inside, folder.notes));
  } else if (name != "Dropout") {  // which acts in training alone
    throw InputError(modules,
                     fmt::format("module '{}' is not supported, expected Transformer, Pooling, "
                                 "Dense, LayerNorm or Normalize of sentence_transformers",
                                 escape(type)));
  }
}

/// Whether the truncation of tokenizer.json, of which only the side counts, cuts texts in front.
bool cuts_left(const std::string& folder) {
  const std::string path = join(folder, "tokenizer.json");
  if (!exists(path)) return false;
  bool left = false;
  scan_json_leaves(
      InputFile::open(path).read_all(std::uint64_t{1} << 30),
      [&](const std::vector<JsonStep>& steps, JsonKind, const std::string& text, std::size_t) {
        if (steps.empty() || steps[0].key != "truncation") return true;
        if (steps.size() < 2) return false;  // null
        if (steps[1].key != "direction") return true;
        left = text == "Left" || text == "left";
        return false;
      });
  return left;
}

}  // namespace

SentenceFolder read_sentence_folder(const std::string& path) {
  SentenceFolder folder{.model = path};
  const std::string root = is_folder(path) ? path : folder_of(path);
  const std::string modules = join(root, "modules.json");
  if (!exists(modules)) return folder;
  const JsonValue list =
      parse_json_file(InputFile::open(modules).read_all(std::uint64_t{16} << 20), modules);
  if (!list.is(JsonKind::kArray))
    throw InputError(modules, fmt::format("{}, expected a list", described(list)));
  std::vector<std::string> names;
  bool transformer = false;
  for (const JsonValue& item : list.items) {
    // Of two modules with one name sentence-transformers keeps the second, at the place of the
    // first.
    names.push_back(item.text_of("name"));
    if (std::ranges::count(names, names.back()) > 1)
      throw InputError(modules, fmt::format("two modules named '{}', expected different names",
                                            escape(names.back())));
    read_module(root, item, folder, transformer);
  }
  if (folder.poolings.empty()) throw InputError(modules, "no module Pooling, expected one");
  // What whitening replaces.
  while (!folder.steps.empty() && std::holds_alternative<NormalizeStep>(folder.steps.back().how)) {
    folder.normalize = true;
    folder.steps.pop_back();
  }
  read_folder_settings(join(root, "config_sentence_transformers.json"), folder);
  return folder;
}

TokenizerLimit read_tokenizer_limit(const std::string& path) {
  const std::string folder = is_folder(path) ? path : folder_of(path);
  const std::string file = join(folder, "tokenizer_config.json");
  TokenizerLimit limit;
  if (!exists(file)) {
    limit.keep_last = cuts_left(folder);
    return limit;
  }
  JsonSettings settings = JsonSettings::read(file);
  // What model_max_length was called before counts only without it, even if it is null.
  const std::vector<std::string> present = settings.unknown();
  const bool stated = std::ranges::find(present, "model_max_length") != present.end();
  const std::string_view name = stated ? "model_max_length" : "max_len";
  if (const JsonValue* value = settings.find(name)) {
    const std::optional<double> number = value->number();
    if (!number || *number < 1 || *number != std::floor(*number))
      settings.refuse(name, "a whole number of at least 1");
    // No limit is written as 10^30.
    if (*number <= static_cast<double>(kMostTokens)) limit.max_length = static_cast<Index>(*number);
  }
  const std::optional<std::string> side = settings.string("truncation_side");
  if (side && *side != "left" && *side != "right")
    settings.refuse("truncation_side", "'left' or 'right'");
  limit.keep_last = side ? *side == "left" : cuts_left(folder);
  return limit;
}

}  // namespace masque::evaluate
