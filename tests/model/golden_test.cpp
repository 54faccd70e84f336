// Every tiny checkpoint computes what transformers computes (in float64, stored as float32),
// whatever shares the batch, for any number of threads.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/json/json.hpp"
#include "kernel/parallel.hpp"
#include "mask/builtin.hpp"
#include "model/model.hpp"
#include "support/model_cases.hpp"
#include "support/near.hpp"

namespace masque::model {
namespace {

using kernel::Precision;
using test::ModelCase;

// Everything that a run shows, by the names of expected.safetensors.
class Recorder final : public Observer {
 public:
  void hidden_states(Index s, Index state, MatrixView<const float> x) override {
    keep(s, "hidden_states", state, x);
  }
  void hidden_states(Index s, Index state, MatrixView<const double> x) override {
    keep(s, "hidden_states", state, x);
  }
  void query_states(Index s, Index state, MatrixView<const float> x) override {
    keep(s, "query_states", state, x);
  }
  void query_states(Index s, Index state, MatrixView<const double> x) override {
    keep(s, "query_states", state, x);
  }
  void attention(Index s, Index l, Index h, MatrixView<const float> x) override {
    keep(s, "attentions", l * 1000 + h, x);
  }
  void attention(Index s, Index l, Index h, MatrixView<const double> x) override {
    keep(s, "attentions", l * 1000 + h, x);
  }
  void source_attention(Index s, Index l, Index h, MatrixView<const float> x) override {
    keep(s, "cross_attentions", l * 1000 + h, x);
  }
  void source_attention(Index s, Index l, Index h, MatrixView<const double> x) override {
    keep(s, "cross_attentions", l * 1000 + h, x);
  }
  void logits(Index s, Index first, MatrixView<const float> x) override {
    keep(s, "logits", first, x);
  }
  void logits(Index s, Index first, MatrixView<const double> x) override {
    keep(s, "logits", first, x);
  }

  std::vector<double> all(Index sequence, const std::string& what) const {
    std::vector<double> result;
    for (const auto& [key, values] : seen_) {
      if (std::get<0>(key) == sequence && std::get<1>(key) == what) {
        result.insert(result.end(), values.begin(), values.end());
      }
    }
    return result;
  }
  bool operator==(const Recorder& other) const { return seen_ == other.seen_; }

 private:
  template <class T>
  void keep(Index s, const char* what, Index place, MatrixView<const T> x) {
    std::vector<double> values;
    for (Index i = 0; i < x.rows; ++i) values.insert(values.end(), x.row(i), x.row(i) + x.columns);
    const std::lock_guard lock(mutex_);
    seen_[{s, what, place}] = std::move(values);
  }
  std::mutex mutex_;
  std::map<std::tuple<Index, std::string, Index>, std::vector<double>> seen_;
};

ModelOptions options_of(const ModelCase& one, Precision precision) {
  ModelOptions options;
  options.precision = precision;
  options.decoder = !one.lines.front().source.empty();
  if (one.name == "tta_over_bert") {
    options.family = "tta";
    options.mask_token_id = 3;
  } else if (one.name == "tta") {
    options.mask_token_id = 4;
  }
  return options;
}

// Some lines of a case as one batch.
Batch batch_of(const ModelCase& one, const std::vector<std::size_t>& lines) {
  Batch batch;
  bool positions = false;
  bool segments = false;
  for (const std::size_t l : lines) {
    positions |= !one.lines[l].positions.empty();
    segments |= !one.lines[l].segments.empty();
  }
  for (const std::size_t l : lines) {
    const test::ModelLine& line = one.lines[l];
    batch.add(line.ids);
    if (!line.source.empty()) batch.sources.push_back(line.source);
    for (std::size_t i = 0; i < line.ids.size(); ++i) {
      if (positions) {
        batch.positions.push_back(line.positions.empty() ? static_cast<Index>(i)
                                                         : line.positions[i]);
      }
      if (segments) batch.segments.push_back(line.segments.empty() ? 0 : line.segments[i]);
    }
    if (!line.mask.empty()) {
      const auto n = static_cast<Index>(line.ids.size());
      const mask::Mask query = mask::parse_mask(line.mask).bind({n, n});
      batch.query_masks.emplace_back(query);
      batch.masks.emplace_back(query | mask::band({n, n}, 0, 0));
    }
  }
  return batch;
}

Request everything(const Model& model) {
  Request request;
  request.hidden_states = true;
  request.attentions = model.design().variants.mixer == nullptr;
  request.source_attentions = model.encoder() != nullptr;
  request.logits = model.design().head.kind != HeadKind::kNone;
  request.all_rows = true;
  return request;
}

void check_case(const ModelCase& one, Precision precision, double tolerance) {
  CAPTURE(one.name);
  const std::unique_ptr<Model> model = open_model(one.folder, options_of(one, precision));
  for (std::size_t l = 0; l < one.lines.size(); ++l) {
    CAPTURE(l);
    const Batch batch = batch_of(one, {l});
    Recorder seen;
    model->run(batch, everything(*model), &seen);
    const auto compare = [&](const Recorder& recorder, const std::string& what,
                             const std::string& name) {
      CAPTURE(name);
      const auto wanted = test::expected(one, fmt::format("{}.{}", l, name));
      const std::vector<double> found = recorder.all(0, what);
      REQUIRE(found.empty() == !wanted.has_value());
      if (wanted) CHECK(test::far_off(found, wanted->values, tolerance, 1e-6) == "");
    };
    for (const char* what :
         {"hidden_states", "query_states", "attentions", "cross_attentions", "logits"})
      compare(seen, what, what);
    if (model->encoder() == nullptr) continue;
    Batch source;
    source.add(one.lines[l].source);
    Recorder of_encoder;
    model->encoder()->run(source, everything(*model->encoder()), &of_encoder);
    compare(of_encoder, "hidden_states", "encoder_hidden_states");
    compare(of_encoder, "attentions", "encoder_attentions");
  }
}

/// All cases, those of encoder–decoders with their decoders.
std::vector<ModelCase> all_cases() {
  std::vector<ModelCase> cases = test::model_cases();
  for (ModelCase& one : test::encoder_decoder_cases()) cases.push_back(std::move(one));
  return cases;
}

// Every case in each precision.
std::vector<std::pair<ModelCase, Precision>> cases_in(const std::vector<Precision>& precisions) {
  std::vector<std::pair<ModelCase, Precision>> result;
  for (const ModelCase& one : all_cases()) {
    for (const Precision precision : precisions) result.emplace_back(one, precision);
  }
  return result;
}

}  // namespace

TEST_CASE("every family computes what transformers computes, in float") {
  const auto cases = all_cases();
  REQUIRE(cases.size() >= 40);
  for (const ModelCase& one : cases) check_case(one, Precision::kF32, 1e-5);
}

TEST_CASE("every family computes what transformers computes, in double") {
  for (const ModelCase& one : all_cases()) check_case(one, Precision::kF64, 2e-6);
}

// An operand is rounded by up to 2⁻⁹ of itself, a product by 2⁻⁸ of the size of its terms. In two
// layers some 14 products follow each other, and the largest of some hundred elements is about 4
// times their root mean square: 14 · 2⁻⁸ · 4 of it. Found: from 0.007 (BERT) to 0.11 (T5).
TEST_CASE("bf16 models stay near double, and are not float") {
  for (const ModelCase& one : all_cases()) {
    CAPTURE(one.name);
    const auto rounded = open_model(one.folder, options_of(one, Precision::kBf16));
    const auto exact = open_model(one.folder, options_of(one, Precision::kF64));
    for (std::size_t l = 0; l < one.lines.size(); ++l) {
      const Batch batch = batch_of(one, {l});
      Recorder found, expected;
      rounded->run(batch, everything(*rounded), &found);
      exact->run(batch, everything(*exact), &expected);
      const std::vector<double> a = found.all(0, "hidden_states");
      const std::vector<double> b = expected.all(0, "hidden_states");
      REQUIRE(a.size() == b.size());
      double off = 0;
      double squares = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        off = std::max(off, std::abs(a[i] - b[i]));
        squares += b[i] * b[i];
      }
      const double size = std::sqrt(squares / static_cast<double>(b.size()));
      CHECK(off > 1e-4 * size);
      CHECK(off <= 0.25 * size);
    }
  }
}

TEST_CASE("a sequence's results do not depend on its batch, and not on threads") {
  for (const auto& variant : cases_in({Precision::kF32, Precision::kBf16})) {
    const auto& one = variant.first;
    const auto& precision = variant.second;
    CAPTURE(one.name);
    const std::unique_ptr<Model> model = open_model(one.folder, options_of(one, precision));
    std::vector<std::size_t> lines;
    for (std::size_t round = 0; round < 3; ++round) {
      for (std::size_t l = 0; l < one.lines.size(); ++l) {
        if (one.lines[l].positions.empty()) lines.push_back(l);
      }
    }
    Recorder alone, together;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      kernel::set_threads(1);
      Recorder one_line;
      model->run(batch_of(one, {lines[i]}), everything(*model), &one_line);
      kernel::set_threads(3);
      if (i == 0) model->run(batch_of(one, lines), everything(*model), &together);
      for (const char* what : {"hidden_states", "query_states", "attentions", "cross_attentions"}) {
        CHECK(one_line.all(0, what) == together.all(static_cast<Index>(i), what));
      }
    }
  }
  kernel::set_threads(0);
}

TEST_CASE("asking for some rows gives the same bits as asking for all") {
  for (const auto& variant : cases_in({Precision::kF32, Precision::kBf16})) {
    const auto& one = variant.first;
    const auto& precision = variant.second;
    CAPTURE(one.name);
    const std::unique_ptr<Model> model = open_model(one.folder, options_of(one, precision));
    const HeadKind head = model->design().head.kind;
    if (head == HeadKind::kNone || head == HeadKind::kDiscriminator) continue;
    for (std::size_t l = 0; l < one.lines.size(); ++l) {
      const Batch batch = batch_of(one, {l});
      Request all;
      all.all_rows = true;
      all.targets.assign(batch.ids.begin(), batch.ids.end());
      const std::vector<double> expected = model->run(batch, all);
      for (std::size_t row = 0; row < batch.ids.size(); row += 3) {
        Request some;
        some.rows = {static_cast<Index>(row)};
        some.targets = {batch.ids[row]};
        const std::vector<double> found = model->run(batch, some);
        REQUIRE(found.size() == 1);
        CHECK(found[0] == expected[row]);
      }
    }
  }
}

TEST_CASE("under masks that differ between heads models compute what transformers computes") {
  std::ifstream in(MASQUE_TEST_DATA "/evaluate/head_masks.json");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const JsonValue cases = parse_json_file(text, "head_masks.json");
  REQUIRE(cases.items.size() == 4);
  for (const JsonValue& one : cases.items) {
    const std::string name = one.find("model")->text;
    CAPTURE(name);
    for (const bool written : {false, true}) {
      ModelOptions options;
      options.precision = Precision::kF64;
      options.masks = mask::parse_mask_layers(one.find("mask")->text);
      REQUIRE(options.masks.front().mask.heads().size() > 1);
      // As a list with an entry a layer, too.
      if (written) options.masks.push_back(options.masks.front());
      const auto model = open_model(MASQUE_TEST_DATA "/model/" + name, options);
      std::vector<TokenId> ids;
      for (const JsonValue& id : one.find("ids")->items)
        ids.push_back(static_cast<TokenId>(id.integer().value()));
      Batch batch;
      batch.add(ids);
      Request request;
      request.all_rows = true;
      request.targets = ids;
      const std::vector<double> found = model->run(batch, request);
      const std::vector<JsonValue>& expected = one.find("log_p")->items;
      REQUIRE(found.size() == expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        // Angles of Llama are rounded to float.
        CHECK(std::abs(found[i] - expected[i].number().value()) < 1e-8);
    }
  }
}

}  // namespace masque::model
