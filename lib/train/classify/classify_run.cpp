#include "train/classify/classify_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"
#include "evaluate/statistics/summary.hpp"
#include "mask/expression.hpp"
#include "model/checkpoint/placed.hpp"
#include "model/checkpoint/save.hpp"
#include "model/checkpoint/text_head.hpp"
#include "model/masks.hpp"
#include "records/selection.hpp"
#include "store/names/named_tensors.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "tensor/convert.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"
#include "train/run/folder_parts.hpp"

namespace masque::train {

using model::Role;

namespace {

/// The name of regression's one output in config.json.
constexpr const char* kNumber = "LABEL_0";
/// Of config.json: what a classifier's texts read, if not what the model says.
constexpr const char* kMaskKey = "classifier_mask";

/// A tensor under one of two names; empty if there is none of this shape. Of matrices only square
/// ones are ever kept the other way round.
Matrix<float> read_floats(const store::Checkpoint& checkpoint, const store::NamedTensors& names,
                          const std::string& name, const Shape& shape) {
  for (const std::string& prefix : {std::string("bert."), std::string()}) {
    const store::TensorInfo* tensor = names.find(prefix + name);
    if (tensor == nullptr || tensor->shape != shape || !can_encode(tensor->dtype)) continue;
    std::vector<std::byte> bytes(tensor->bytes());
    checkpoint.read(*tensor, 0, bytes);
    const auto columns = static_cast<Index>(shape.back());
    Matrix<float> out(shape.size() == 2 ? static_cast<Index>(shape.front()) : 1, columns);
    to_float(tensor->dtype, bytes, out.span());
    if (!names.is_transposed(*tensor)) return out;
    MASQUE_CHECK(out.rows() == out.columns());
    const MatrixView<float> transposed = out.view();
    for (Index i = 0; i < columns; ++i) {
      for (Index j = 0; j < i; ++j) std::swap(transposed.row(i)[j], transposed.row(j)[i]);
    }
    return out;
  }
  return {};
}

/// id2label of a config.json that has `labels` of them; else nothing.
std::vector<std::string> names_of(const JsonValue& config, std::uint64_t labels) {
  std::vector<std::string> names;
  const JsonValue* list = config.find("id2label");
  for (std::uint64_t i = 0; list != nullptr && i < labels; ++i) {
    const JsonValue* name = list->find(std::to_string(i));
    if (name == nullptr || !name->is(JsonKind::kString)) return {};
    names.push_back(name->text);
  }
  return names;
}

/// How a checkpoint that classifies pools; nothing for heads of other kinds: ModernBERT's
/// head.dense, DistilBERT's pre_classifier, DeBERTa's pooler with another activation, …
std::optional<ClassifierPooling> pooling_of(const JsonValue& config,
                                            const store::Checkpoint& checkpoint,
                                            const ClassifierStart& start) {
  const std::string named = config.text_of("classifier_pooling");
  const bool own = named.empty() && start.design.family == "bert";
  const bool is_first = own || named == pooling_name(ClassifierPooling::kFirst);
  if (is_first && start.pooler_weight.rows() > 0) return ClassifierPooling::kFirst;
  const bool is_mean = named == pooling_name(ClassifierPooling::kMean);
  if (is_mean && checkpoint.find("head.dense.weight") == nullptr) return ClassifierPooling::kMean;
  return std::nullopt;
}

/// The layer of labels that a checkpoint has, and how it pools.
void read_labels(const store::Checkpoint& checkpoint, const store::NamedTensors& tensors,
                 ClassifierStart& start) {
  const store::TensorInfo* weight = checkpoint.find("classifier.weight");
  if (weight == nullptr || weight->shape.size() != 2) return;
  const store::ModelConfig file = store::need_config(checkpoint);
  const JsonValue config = parse_json_file(file.text(), file.path());
  if (config.text_of("problem_type") == problem_type_name(ProblemType::kRegression))
    start.problem = ProblemType::kRegression;
  if ((start.problem == ProblemType::kRegression) != (weight->shape[0] == 1)) return;
  const auto pooling = pooling_of(config, checkpoint, start);
  if (!pooling) return;
  model::check_labels_texts(file, start.design.family);
  std::vector<std::string> names = names_of(config, weight->shape[0]);
  // transformers leaves out the names that every config has.
  if (names.empty() && start.problem == ProblemType::kRegression) names = {kNumber};
  const auto width = static_cast<std::uint64_t>(start.design.hidden_size);
  start.label_weight = read_floats(checkpoint, tensors, "classifier.weight", {names.size(), width});
  start.label_bias = read_floats(checkpoint, tensors, "classifier.bias", {names.size()});
  if (start.label_weight.rows() == 0 || start.label_bias.rows() == 0) return;
  start.names = names;
  start.pooling = pooling;
  const JsonValue* mask = config.find(kMaskKey);
  if (mask == nullptr) return;
  if (const auto problem = usage_error_message([&] { mask::parse_open_mask(mask->text); }))
    throw InputError(file.path(), fmt::format("{}: {}", kMaskKey, *problem));
  start.mask = mask->text;
}

void copy_to(MatrixView<const float> from, MatrixView<float> to) {
  MASQUE_CHECK(from.rows == to.rows && from.columns == to.columns);
  for (Index i = 0; i < from.rows; ++i) std::copy_n(from.row(i), from.columns, to.row(i));
}

}  // namespace

/// A classifier on the items of its corpus.
class ClassifyRun::Loss final : public StepLoss {
 public:
  explicit Loss(const ClassifyRun& run)
      : run_(run), classifier_(*run.classifier_), examples_(*run.examples_) {}

  void check(const Corpus& corpus) const override { examples_.check(corpus); }
  void prepare() override { classifier_.prepare(); }
  StepLosses add_gradients(std::span<const StepItem> items,
                           const DropoutOptions& dropout) override {
    std::vector<Example> batch;
    batch.reserve(items.size());
    for (const StepItem& item : items)
      batch.push_back(examples_.dropped(item.item, item.epoch, target_of(item)));
    const RankTotals whole = totals(ranks(), static_cast<double>(batch.size()), tokens_of(batch));
    DropoutOptions own = dropout;
    own.first_row += whole.rows_before;
    StepLosses losses =
        report_of(batch, classifier_.train(batch, 1 / whole.weight, own, passed(classifier_)));
    losses.sum(ranks());
    return losses;
  }
  StepLosses evaluate(std::span<const StepItem> items) override {
    std::vector<Example> batch;
    batch.reserve(items.size());
    for (const StepItem& item : items) batch.push_back(examples_.whole(item.item, target_of(item)));
    return report_of(batch, classifier_.evaluate(batch));
  }

 private:
  TextTarget target_of(const StepItem& item) const {
    return run_.target(run_.texts_, static_cast<Index>(item.item.number));
  }
  static StepLosses report_of(std::span<const Example> batch, const LossReport& report) {
    return {.parts = {{"", 1, report}}, .shares = {}, .detections = {}, .tokens = tokens_of(batch)};
  }

  const ClassifyRun& run_;
  Classifier<float>& classifier_;
  const ClassifyExamples& examples_;
};

ClassifierStart start_of(const std::string& checkpoint, bool full_mask) {
  ClassifierStart start;
  start.model = std::make_shared<const model::StartingModel>(checkpoint);
  start.design = start.model->design();
  // XLNet's content stream alone.
  if (start.design.streams == model::Streams::kTwo) start.design.streams = model::Streams::kOne;
  start.design.head = {};
  start.design.notes.clear();
  const auto width = static_cast<std::uint64_t>(start.design.hidden_size);
  const store::Checkpoint file = store::open_checkpoint(checkpoint);
  const store::NamedTensors names(file, store::find_config(file));
  start.pooler_weight = read_floats(file, names, "pooler.dense.weight", {width, width});
  start.pooler_bias = read_floats(file, names, "pooler.dense.bias", {width});
  read_labels(file, names, start);
  if (full_mask) {
    if (start.design.mask == model::DefaultMask::kFull && start.design.variants.masks.empty() &&
        !start.mask)
      throw UsageError(
          fmt::format("{} full has no effect: a {} already has full attention; remove it",
                      field("mask"), start.design.family));
    model::set_mask("full", start.design);
    start.mask.reset();
  }
  return start;
}

ClassifierStart start_of(const DesignRecipe& recipe, const text::Tokenizer& tokenizer) {
  ClassifierStart start;
  start.design = design_of(recipe);
  start.design.head = {};
  if (tokenizer.roles().pad) start.design.pad_token_id = *tokenizer.roles().pad;
  start.design.mask_token_id = tokenizer.roles().mask;
  start.design.type_vocab_size = 2;
  start.residual_gain = residual_gain(recipe);
  return start;
}

ClassifyRun::~ClassifyRun() = default;

ClassifyRun::ClassifyRun(const ClassifierStart& start, const ClassifyOptions& options,
                         std::vector<std::string> names, LabelledTexts texts, Ranks& ranks)
    : options_(options), names_(std::move(names)), texts_(std::move(texts)), design_(start.design) {
  check_score_noise(options.trainer, design_);
  if (design_.streams == model::Streams::kTwo)
    throw UsageError("the model has two streams, expected one stream");
  if (design_.streams == model::Streams::kTowers)
    throw UsageError("the model has two towers, expected a model with one state per token");
  if (options.pooling == ClassifierPooling::kFirst && design_.mask == model::DefaultMask::kCausal) {
    throw UsageError(fmt::format(
        "{} cls: the first token of a causal model reads only itself; use mean", field("pooling")));
  }
  if (problem() == ProblemType::kRegression && options.trainer.schedule.plan().steps() > 0) {
    evaluate::Moments moments;
    for (const double number : texts_.numbers) moments.add(number);
    mean_ = moments.mean;
    deviation_ = std::sqrt(moments.sum_squares / static_cast<double>(moments.n));
    if (deviation_ == 0) deviation_ = 1;
  }
  const model::TrainingConfig training{.initializer_range = options.initializer_range,
                                       .hidden_dropout = options.trainer.hidden_dropout,
                                       .attention_dropout = options.trainer.attention_dropout};
  const auto unwritten =
      usage_error_message([&] { saved_ = model::saved_design(design_, training); });
  if (unwritten && !start.model) throw UsageError(*unwritten);
  if (unwritten) {
    family_ = start.model;
    saved_ = family_->saved_design(design_, training);
  }
  const model::ModelPlan& plan = saved_.plan;
  prefix_ = plan.prefix;
  is_bert_ = !family_ && saved_.family == "bert";
  model_map_ = add_model(plan, nullptr, "", ParameterMap(), parameters_);
  map_ = add_classifier(design_.hidden_size, std::ssize(names_), options.pooling,
                        is_bert_ ? prefix_ : "", parameters_);
  start_parameters(start);
  classifier_ = std::make_unique<Classifier<float>>(design_, model_map_, map_, options.pooling,
                                                    parameters_, options.precision, problem());
  classifier_->chunk_rows = options.chunk_rows;
  const Index layers = model::count_layers(design_);
  const std::array<TrainedNetwork, 2> parts{{{layers, &model_map_}, {layers, &map_}}};
  choose_trained(options.trained, parts, parameters_);
  examples_ = std::make_unique<const ClassifyExamples>(options.texts, options.pooling, design_);
  loss_ = std::make_unique<Loss>(*this);
  trainer_ = std::make_unique<Trainer>(*loss_, parameters_, *texts_.corpus, options.trainer, ranks);
}

void ClassifyRun::start_parameters(const ClassifierStart& start) {
  const StartOptions options{.seed = options_.trainer.seed,
                             .initializer_range = options_.initializer_range,
                             .residual_gain = start.residual_gain};
  initialize_parameters(design_, model_map_, options, parameters_);
  // No design knows these places: a pooler is no head's transform.
  initialize_parameters(design_, map_,
                        {.seed = options.seed, .initializer_range = options.initializer_range},
                        parameters_);
  if (start.model) copy_weights(start.model->weights(), model_map_, parameters_);
  if (!start.names.empty() && start.names == names_) {
    copy_to(start.label_weight.view(), parameters_.value(map_.weight(Role::kDecoder)));
    copy_to(start.label_bias.view(), parameters_.value(map_.bias(Role::kDecoder)));
    if (problem() == ProblemType::kRegression) standardise();
  }
  const Index pooler = map_.weight(Role::kHeadTransform);
  if (pooler == ParameterMap::kNone || start.pooler_weight.rows() == 0 ||
      start.pooler_bias.rows() == 0)
    return;
  copy_to(start.pooler_weight.view(), parameters_.value(pooler));
  copy_to(start.pooler_bias.view(), parameters_.value(map_.bias(Role::kHeadTransform)));
}

void ClassifyRun::standardise() {
  for (const bool bias : {false, true}) {
    const Index at = bias ? map_.bias(Role::kDecoder) : map_.weight(Role::kDecoder);
    for (Index i = 0; i < parameters_[at].size(); ++i) {
      float& x = parameters_.value(at).data[i];
      x = static_cast<float>((static_cast<double>(x) - (bias ? mean_ : 0)) / deviation_);
    }
  }
}

ProblemType ClassifyRun::problem() const {
  return texts_.numbers.empty() ? ProblemType::kSingleLabel : ProblemType::kRegression;
}

TextTarget ClassifyRun::target(const LabelledTexts& texts, Index item) const {
  const auto at = static_cast<std::size_t>(item);
  if (texts.numbers.empty()) return {.label = texts.labels[at]};
  return {.number = (texts.numbers[at] - mean_) / deviation_};
}

Classified ClassifyRun::classify(const LabelledTexts& texts) {
  constexpr Index kBatch = 64;
  const Index labels = std::ssize(names_);
  loss_->check(*texts.corpus);
  classifier_->prepare();
  Classified out{
      {}, evaluate::Confusion(std::max<Index>(labels, 2)), texts.labels, {}, {}, texts.numbers, {}};
  std::vector<double> outputs;
  std::vector<Example> batch;
  const Index count = texts.corpus->size();
  for (Index i = 0; i < count; ++i) {
    batch.push_back(examples_->whole(texts.corpus->item(i), target(texts, i)));
    if (std::ssize(batch) < kBatch && i + 1 < count) continue;
    out.report.add(classifier_->evaluate(batch, &outputs));
    batch.clear();
  }
  if (problem() == ProblemType::kRegression) {
    for (const double output : outputs)
      out.predicted_numbers.push_back(mean_ + deviation_ * output);
    return out;
  }
  out.probabilities = std::move(outputs);
  out.predicted.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) {
    const auto row = out.probabilities.begin() + i * labels;
    out.predicted.push_back(static_cast<TokenId>(std::max_element(row, row + labels) - row));
    out.confusion.add(texts.labels[static_cast<std::size_t>(i)], out.predicted.back());
  }
  return out;
}

std::string digest_of(const LabelledTexts& texts) {
  const std::unique_ptr<Hasher> hasher = make_xxh3();
  hasher->add(as_bytes(texts.corpus->digest()));
  hasher->add(std::as_bytes(std::span(texts.labels)));
  hasher->add(std::as_bytes(std::span(texts.numbers)));
  return hasher->digest();
}

std::vector<std::pair<std::string, std::string>> ClassifyRun::facts() {
  // Folders of labels are older than the word.
  std::vector<std::pair<std::string, std::string>> facts;
  if (problem() == ProblemType::kRegression)
    facts.emplace_back("problem_type", problem_type_name(problem()));
  const std::vector<std::pair<std::string, std::string>> others = {
      {"pooling", std::string(pooling_name(options_.pooling))},
      {"mask", options_.texts.mask.value_or("model")},
      {"labels", fmt::format("{}", fmt::join(names_, "\t"))},
      {"learned", digest_of(texts_)},
      {"config", xxh3_of(as_bytes(config_text()))},
      {"start", xxh3_of(std::as_bytes(std::span<const float>(parameters_.values())))}};
  facts.insert(facts.end(), others.begin(), others.end());
  return facts;
}

std::string ClassifyRun::config_text() const {
  std::string text = saved_.config;
  const std::string names = json_text(
      [&](JsonWriter& json) {
        json.begin_object();
        for (std::size_t i = 0; i < names_.size(); ++i) json.member(fmt::to_string(i), names_[i]);
        json.end_object();
      },
      JsonLayout::kSpaced);
  const std::string numbers = json_text(
      [&](JsonWriter& json) {
        json.begin_object();
        for (std::size_t i = 0; i < names_.size(); ++i) json.member(names_[i], i);
        json.end_object();
      },
      JsonLayout::kSpaced);
  const bool first = options_.pooling == ClassifierPooling::kFirst;
  if (is_bert_ && first)
    text = set_json_member(text, {"architectures"}, R"(["BertForSequenceClassification"])");
  text = set_json_member(text, {"id2label"}, names);
  text = set_json_member(text, {"label2id"}, numbers);
  if (options_.texts.mask)
    text = set_json_member(text, {kMaskKey}, quote_json(*options_.texts.mask));
  text = set_json_member(text, {"problem_type"}, quote_json(problem_type_name(problem())));
  return set_json_member(text, {"classifier_pooling"}, quote_json(pooling_name(options_.pooling)));
}

void ClassifyRun::save(
    const std::string& folder, const text::Tokenizer& tokenizer,
    const std::vector<std::pair<std::string, std::string>>& files,
    const std::function<std::pair<std::string, std::string>(const FileDigests& others)>& record) {
  const model::ModelWeights<float> weights = weights_of(design_, model_map_, parameters_);
  model::ModelFiles model =
      family_ ? family_->files(design_, weights, {}, false) : model::model_files(saved_, weights);
  std::deque<std::vector<float>> given_units;
  map_.for_each([&](Role role, bool bias, Index /*layer*/, Index /*part*/, Index at) {
    const MatrixView<float> value = parameters_.value(at);
    const auto rows = static_cast<std::uint64_t>(value.rows);
    const auto columns = static_cast<std::uint64_t>(value.columns);
    std::span<const float> saved(value.data, static_cast<std::size_t>(value.rows * value.columns));
    if (role == Role::kDecoder && problem() == ProblemType::kRegression) {
      std::vector<float>& own = given_units.emplace_back(saved.begin(), saved.end());
      for (float& x : own)
        x = static_cast<float>(deviation_ * static_cast<double>(x) + (bias ? mean_ : 0));
      saved = own;
    }
    model.weights.tensors.push_back(
        float_tensor(parameters_[at].name, bias ? Shape{columns} : Shape{rows, columns}, saved));
  });
  std::ranges::sort(model.weights.tensors, {},
                    [](const store::OutputTensor& t) { return t.info.name; });
  std::deque<InputFile> opened;
  std::vector<store::OutputExtra> extras = tokenizer_files(tokenizer, config_text(), opened);
  extras.push_back(text_file("config.json", config_text()));
  for (const auto& [name, text] : files) extras.push_back(text_file(name, text));
  const auto [record_name, record_text] = record(digests_of(model.weights, extras));
  extras.push_back(text_file(record_name, record_text));
  store::write_checkpoint_folder(folder, {std::move(model.weights)}, extras, {});
}

ClassifyExamples::ClassifyExamples(const ClassifyTextOptions& options, ClassifierPooling pooling,
                                   const model::Design& design)
    : pooling_(pooling),
      segments_(design.type_vocab_size > 1),
      longest_(model::longest_trained(design)),
      tokens_(options.tokens),
      drop_(make_dropping(options.drop, options.seed, options.tokens)) {
  mask_ = options.mask ? mask::parse_open_mask(*options.mask) : model::open_mask(design);
}

mask::Mask ClassifyExamples::mask_of(std::span<const TokenId> ids) const {
  mask::MaskExpression mask = *mask_;
  if (mask.open()) mask = mask.closed(records::word_lengths(ids, tokens_), 0);
  std::optional<mask::Mask> bound;
  if (const auto problem =
          usage_error_message([&] { bound = mask.bind_sequence(std::ssize(ids)); }))
    throw UsageError(fmt::format("{} {}", field("mask"), *problem));
  return *std::move(bound);
}

void ClassifyExamples::check(const Corpus& corpus) const {
  check_length(corpus, longest_, "the model");
  if (!mask_) return;
  std::set<Index> lengths;
  bool alone = pooling_ == ClassifierPooling::kFirst && corpus.longest() > 1;
  for (Index i = 0; i < corpus.size(); ++i) {
    // Texts of a length have the same mask, but for their words.
    const Index n = corpus.length(i);
    if (!lengths.insert(n).second && !mask_->open()) continue;
    const mask::Mask bound = mask_of(corpus.item(i).ids);
    for (Index k = 1; alone && k < n; ++k) alone = !bound.allows(0, k);
  }
  if (alone) {
    throw UsageError(fmt::format("{} cls: with {} {} the first token reads only itself; use mean",
                                 field("pooling"), field("mask"), mask_->text()));
  }
}

Example ClassifyExamples::whole(const CorpusItem& item, const TextTarget& target) const {
  return example(dropped_record(item, 0, nullptr), target);
}

Example ClassifyExamples::dropped(const CorpusItem& item, std::uint64_t epoch,
                                  const TextTarget& target) const {
  return example(dropped_record(item, epoch, drop_.get()), target);
}

Example ClassifyExamples::example(records::Record record, const TextTarget& target) const {
  record.seg.present = record.seg.present && segments_;
  Example example = example_of(record);
  const Index rows = pooling_ == ClassifierPooling::kFirst ? 1 : example.size();
  for (Index i = 0; i < rows; ++i) example.rows.push_back(i);
  example.targets.assign(static_cast<std::size_t>(rows), target.label);
  example.offsets.assign(static_cast<std::size_t>(rows), -target.number);
  if (mask_) example.mask = mask_of(example.ids);
  return example;
}

}  // namespace masque::train
