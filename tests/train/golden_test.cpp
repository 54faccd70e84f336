// Ten steps of AdamW against PyTorch's, of every family (scripts/goldens/train_steps.py).
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "kernel/optimizer.hpp"
#include "mask/builtin.hpp"
#include "model/checkpoint/starting_model.hpp"
#include "train/network/network.hpp"
#include "train/run/starting_design.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

const std::string kData = MASQUE_TEST_DATA;
constexpr TokenId kMaskOfTta = 4;

/// Folders of tests/data/model and tests/data/encoder_decoder with a file in
/// tests/data/train/steps.
constexpr const char* kCases[] = {
    "albert",     "bart",          "bart_scaled",
    "bert",       "big_bird",      "bloom",
    "cohere",     "deberta_v3",    "deberta_v3_longer",
    "distilbert", "dream",         "electra_generator",
    "esm",        "falcon_groups", "falcon_rw",
    "fnet",       "gau_alpha",     "gemma2",
    "gemma3",     "gpt2",          "gpt2_layer_scale",
    "gpt_neo",    "gpt_neox",      "gpt_oss",
    "granite",    "llada",         "llada_bias",
    "llama",      "longformer",    "mbart",
    "mixtral",    "modernbert",    "mpnet",
    "mpt",        "mt5",           "neobert",
    "olmo",       "olmo2",         "olmoe",
    "opt",        "opt_narrow",    "phi",
    "phi3",       "qwen2_moe",     "qwen3",
    "roberta",    "roformer",      "stablelm",
    "t5",         "t5_encoder",    "t5_gated",
    "t5_untied",  "tta",           "xlm_roberta",
    "xlnet",      "xlnet_memory",
};

std::vector<double> numbers(const JsonValue* list) {
  std::vector<double> out;
  if (list == nullptr) return out;
  for (const JsonValue& item : list->items) out.push_back(*item.number());
  return out;
}

template <class T>
std::vector<T> whole_numbers(const JsonValue* list) {
  std::vector<T> out;
  for (const double number : numbers(list)) out.push_back(static_cast<T>(number));
  return out;
}

std::vector<Example> examples_of(const JsonValue& golden) {
  std::vector<Example> examples;
  for (const JsonValue& sequence : golden.find("sequences")->items) {
    Example e;
    e.ids = whole_numbers<TokenId>(sequence.find("ids"));
    e.source = whole_numbers<TokenId>(sequence.find("source"));
    e.segments = whole_numbers<Index>(sequence.find("seg"));
    e.rows = whole_numbers<Index>(sequence.find("rows"));
    e.targets = whole_numbers<TokenId>(sequence.find("targets"));
    if (const JsonValue* mask = sequence.find("mask")) {
      const Index n = e.size();
      e.query_mask = mask::parse_mask(mask->text).bind({n, n});
      e.mask = *e.query_mask | mask::band({n, n}, 0, 0);
    }
    examples.push_back(std::move(e));
  }
  return examples;
}

/// A checkpoint as lm-train starts with it, in double.
class StartedModel {
 public:
  StartedModel(const std::string& path, model::StartingPart part) {
    const model::StartingModel start(path, part);
    design_ = start.design();
    Parameters<float> single;
    const ParameterMap map = add(start, single);
    CHECK(copy_weights(start.weights(), map, single).empty());
    std::optional<EncoderPart> source = source_;
    if (source) CHECK(copy_weights(start.encoder()->weights(), source->map, single).empty());
    map_ = add(start, parameters_);
    std::ranges::copy(single.values(), parameters_.values().begin());
    // Memory with its own places as values shows which element of a file is where.
    std::iota(single.values().begin(), single.values().end(), 0.0F);
    const model::ModelWeights<float> weights = weights_of(design_, map, single);
    model::ModelWeights<float> of_source;
    if (source) of_source = weights_of(source->design, source->map, single);
    const model::ModelFiles files =
        start.files(design_, weights, {}, true, source ? &of_source : nullptr);
    for (const store::OutputTensor& tensor : files.weights.tensors) {
      if (const auto* own = std::get_if<store::Computed>(&tensor.source)) {
        std::vector<float> places(tensor.info.elements());
        own->fill(0, std::as_writable_bytes(std::span(places)));
        places_[tensor.info.name].assign(places.begin(), places.end());
      }
    }
    if (design_.streams == model::Streams::kFixedKeys) design_.mask_token_id = kMaskOfTta;
    // T5's encoder, which has none: its table decodes its states as they are.
    if (design_.head.kind == model::HeadKind::kNone) design_.head.kind = model::HeadKind::kMasked;
  }

  const model::Design& design() const { return design_; }
  const ParameterMap& map() const { return map_; }
  const EncoderPart* source() const { return source_ ? &*source_ : nullptr; }
  Parameters<double>& parameters() { return parameters_; }
  /// Of the tensors that are trained.
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& [name, places] : places_) {
      if (parameter_of(name).trained) all.insert(name);
    }
    return all;
  }

  /// The gradients, in memory as the values; 0 of what is not trained.
  std::vector<double> gradients() {
    std::vector<double> out(parameters_.values().size());
    for (Index i = 0; i < parameters_.count(); ++i) {
      if (!parameters_[i].trained) continue;
      const MatrixView<double> d = parameters_.gradient(i);
      std::copy_n(d.data, parameters_[i].size(), out.begin() + parameters_[i].offset);
    }
    return out;
  }
  /// The elements of a tensor of the file, out of what lies in memory as the parameters do.
  std::vector<double> tensor(const std::string& name, std::span<const double> memory) const {
    std::vector<double> out;
    for (const std::size_t place : places_.at(name)) out.push_back(memory[place]);
    return out;
  }
  bool decays(const std::string& name) const { return parameter_of(name).decays; }

 private:
  /// Adds the parameters of the model, those of its encoder first.
  template <class T>
  ParameterMap add(const model::StartingModel& start, Parameters<T>& parameters) {
    return add_starting_model(start, start.saved_design(design_).plan, source_, parameters);
  }
  const Parameter& parameter_of(const std::string& name) const {
    const auto place = static_cast<Index>(places_.at(name).front());
    Index i = parameters_.count() - 1;
    while (parameters_[i].offset > place) --i;
    return parameters_[i];
  }
  model::Design design_;
  Parameters<double> parameters_;
  ParameterMap map_;
  std::optional<EncoderPart> source_;
  std::map<std::string, std::vector<std::size_t>> places_;
};

void check_close(double found, double expected) {
  CHECK(std::abs(found - expected) <= 1e-9 * (1 + std::abs(expected)));
}

/// `expected` ends with pairs of place and value, which begin at `first`.
void check_places(std::span<const double> found, std::span<const double> expected,
                  std::size_t first) {
  REQUIRE((expected.size() > first && (expected.size() - first) % 2 == 0));
  for (std::size_t i = first; i < expected.size(); i += 2) {
    const auto place = static_cast<std::size_t>(expected[i]);
    REQUIRE(place < found.size());
    check_close(found[place], expected[i + 1]);
  }
}

void check_gradients(StartedModel& model, const JsonValue& tensors) {
  std::set<std::string> names;
  for (const JsonMember& member : tensors.members) {
    CAPTURE(member.name);
    names.insert(member.name);
    REQUIRE(model.names().contains(member.name));
    CHECK(model.decays(member.name) == (member.value.find("decays")->text == "true"));
    const std::vector<double> found = model.tensor(member.name, model.gradients());
    const std::vector<double> expected = numbers(member.value.find("gradient"));
    check_close(std::sqrt(kernel::sum_of_squares<double>(found)), expected[0]);
    check_places(found, expected, 1);
  }
  CHECK(names == model.names());
}

void check_end(StartedModel& model, const JsonValue& tensors) {
  for (const JsonMember& member : tensors.members) {
    CAPTURE(member.name);
    const std::vector<double> found = model.tensor(member.name, model.parameters().values());
    const std::vector<double> expected = numbers(member.value.find("end"));
    check_close(std::accumulate(found.begin(), found.end(), 0.0), expected[0]);
    check_close(kernel::sum_of_squares<double>(found), expected[1]);
    check_places(found, expected, 2);
  }
}

/// AdamW with the script's settings, clipped to norm 1.
class Adam {
 public:
  explicit Adam(Parameters<double>& parameters)
      : parameters_(parameters),
        first_(Matrix<double>::zero(1, std::ssize(parameters.values()))),
        second_(Matrix<double>::zero(1, std::ssize(parameters.values()))) {}

  void step(double norm) {
    kernel::OptimizerSettings settings;
    settings.step = ++steps_;
    settings.gradient_scale = std::min(1.0, 1 / (norm + 1e-6));
    for (Index i = 0; i < parameters_.count(); ++i) {
      const Parameter& p = parameters_[i];
      if (!p.trained) continue;
      settings.weight_decay = p.decays ? 0.01 : 0;
      kernel::adamw_update<double>(
          settings,
          {elements_of(parameters_.values(), p.offset, p),
           elements_of(parameters_.gradients(), p.gradient_offset, p),
           elements_of(first_.span(), p.offset, p), elements_of(second_.span(), p.offset, p)});
    }
  }

 private:
  Parameters<double>& parameters_;
  Matrix<double> first_, second_;
  std::int64_t steps_ = 0;
};

void check_steps(const std::string& name) {
  CAPTURE(name);
  const std::string file = kData + "/train/steps/" + name + ".json";
  const JsonValue golden = parse_json_file(read_text(file, 1 << 20), file);
  const bool pairs = golden.find("objective")->text == "seq2seq";
  StartedModel model(
      kData + (pairs ? "/encoder_decoder/" : "/model/") + name.substr(0, name.find("_memory")),
      pairs ? model::StartingPart::kDecoder : model::StartingPart::kModel);
  Network<double> network(model.design(), model.map(), model.parameters(), kernel::Precision::kF64,
                          {}, model.source());
  if (const JsonValue* size = golden.find("block_size"))
    network.stop_at_blocks(static_cast<Index>(*size->number()));
  const std::vector<Example> examples = examples_of(golden);
  const std::vector<double> losses = numbers(golden.find("losses"));
  const std::vector<double> norms = numbers(golden.find("norms"));
  REQUIRE(losses.size() == 10);
  Adam adam(model.parameters());
  for (std::size_t step = 0; step < losses.size(); ++step) {
    CAPTURE(step);
    model.parameters().clear_gradients();
    network.prepare();
    const LossReport report = network.train(examples, 1 / total_weight(examples), {});
    CHECK(report.mean() == doctest::Approx(losses[step]).epsilon(1e-9));
    const double norm = std::sqrt(kernel::sum_of_squares<double>(model.parameters().gradients()));
    CHECK(norm == doctest::Approx(norms[step]).epsilon(1e-9));
    if (step == 0) check_gradients(model, *golden.find("tensors"));
    adam.step(norm);
  }
  check_end(model, *golden.find("tensors"));
}

}  // namespace

TEST_CASE("ten steps of AdamW are those of PyTorch: losses, gradients, weights") {
  for (const char* name : kCases) check_steps(name);
}

TEST_CASE("every golden file of steps is compared") {
  std::set<std::string> names, files;
  for (const char* name : kCases) names.insert(std::string(name) + ".json");
  for (const auto& file : std::filesystem::directory_iterator(kData + "/train/steps"))
    files.insert(file.path().filename());
  CHECK(names == files);
}

}  // namespace masque::test
