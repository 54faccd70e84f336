// A cell of a length run: where it was interrupted and what else was trained leaves no trace.
#include "length/cell.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/digest_line.hpp"
#include "length/table.hpp"
#include "model/treatable_model.hpp"
#include "store/checkpoint_writer.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "train/run/trainer_state.hpp"

namespace masque::length {
using namespace train;
namespace {

/// A tiny model of a task, and everything that a cell asks for.
struct Case {
  test::TempFolder folder;
  std::unique_ptr<const LengthSubject> subject;
  LengthRequest request;
  RunOptions options;
  CellFiles files;
  std::vector<std::string> notes;

  explicit Case(const std::vector<Index>& finetune_lengths = {}) {
    subject = make_task_subject({.task = "copy(alphabet=4)",
                                 .train_lengths = {1, 2, 3},
                                 .eval_lengths = {2, 3, 6},
                                 .finetune_lengths = finetune_lengths,
                                 .eval_examples = 8,
                                 .seed = 3});
    request.subject = subject.get();
    request.arms = 1;
    request.eval_lengths = {3, 6};
    request.windows = {0, 2};
    request.note = [this](const std::string& line) { notes.push_back(line); };
    if (!finetune_lengths.empty())
      request.finetuning = Finetuning{finetune_lengths, {.learning_rate = 0.01, .steps = 4}};
    options.design.num_hidden_layers = 1;
    options.design.hidden_size = 8;
    options.design.num_attention_heads = 2;
    options.design.position = "rope";
    options.trainer.schedule = {.learning_rate = 0.01, .steps = 6};
    options.trainer.batch_size = 4;
    options.trainer.hidden_dropout = 0.1;
    options.trainer.seed = 7;
    files.checkpoint = folder / "state.safetensors";
  }

  std::vector<LengthRow> rows() { return train_cell(request, options, 0, 7, files); }
  std::unique_ptr<Learner> learner() const { return subject->learner(options); }
};

/// Equal in all but `whole`, which may be no number.
bool same(const std::vector<LengthRow>& a, const std::vector<LengthRow>& b) {
  return std::ranges::equal(a, b, [](const LengthRow& x, const LengthRow& y) {
    return x.length == y.length && x.window == y.window && x.finetuned == y.finetuned &&
           x.loss == y.loss && x.accuracy == y.accuracy && x.targets == y.targets;
  });
}

/// As an interrupted cell leaves it.
void save_state(const std::string& path, Learner& learner) {
  store::write_checkpoint_file(path, trainer_state(learner.trainer(), learner.parameters()), {});
}

TEST_CASE("a cell goes on from its checkpoint to the same rows") {
  Case whole;
  const std::vector<LengthRow> expected = whole.rows();
  REQUIRE(expected.size() == 4);
  for (const int done : {0, 1, 4, 6}) {
    CAPTURE(done);
    Case other;
    const auto learner = other.learner();
    for (int s = 0; s < done; ++s) learner->trainer().step();
    save_state(other.files.checkpoint, *learner);
    CHECK(same(other.rows(), expected));
    REQUIRE(other.notes.size() == (done < 6 ? 2 : 1));
    CHECK(test::contains(other.notes[0], "after step " + std::to_string(done)));
  }
  // The test would notice: other steps, other rows.
  Case more;
  more.options.trainer.schedule.steps = 7;
  CHECK_FALSE(same(more.rows(), expected));
}

TEST_CASE("what comes after training may break off without losing it") {
  for (const std::string at : {"last loss", "fine-tuned at 3", "fine-tuned at 6"}) {
    CAPTURE(at);
    Case whole({3, 6}), broken({3, 6});
    const auto usual = broken.request.note;
    broken.request.note = [&](const std::string& line) {
      if (test::contains(line, at)) throw InputError("here");
    };
    CHECK(test::message_of([&] { broken.rows(); }) == "here");
    broken.request.note = usual;
    CHECK(same(broken.rows(), whole.rows()));
    CHECK(test::contains(broken.notes.at(0), "after step 6"));
  }
}

TEST_CASE("a checkpoint of another model is refused") {
  Case other;
  other.options.design.hidden_size = 16;
  const auto learner = other.learner();
  save_state(other.files.checkpoint, *learner);
  other.options.design.hidden_size = 8;
  CHECK(test::contains(test::message_of([&] { other.rows(); }), "], expected ["));
}

TEST_CASE("fine-tuning begins with the trained model at every length") {
  Case plain;
  const std::vector<LengthRow> trained = plain.rows();
  Case one({6}), two({3, 6});
  const std::vector<LengthRow> once = one.rows(), twice = two.rows();
  REQUIRE(once.size() == 6);
  REQUIRE(twice.size() == 8);
  // What was scored before does not change, whatever comes later.
  CHECK(same({once.begin(), once.begin() + 4}, trained));
  CHECK(same({twice.begin(), twice.begin() + 4}, trained));
  // By window; each is scored at its own length.
  CHECK(twice[4].length == 3);
  CHECK(twice[5].window == 2);
  CHECK(same({twice.begin() + 6, twice.end()}, {once.begin() + 4, once.end()}));
  CHECK(once[4].finetuned);
  CHECK_FALSE(once[3].finetuned);
  CHECK(once[4].loss != once[1].loss);
}

TEST_CASE("the lengths of fine-tuning leave the trained model's rows of a table alone") {
  Case plain, tuned({6});
  plain.options.design.position = tuned.options.design.position = "learned(alpha=0.4)";
  const std::vector<LengthRow> expected = plain.rows(), found = tuned.rows();
  REQUIRE(found.size() == 6);
  CHECK(same({found.begin(), found.begin() + 4}, expected));
  // A table that ends has no trained row there: nothing is scored with a random one.
  tuned.options.design.position = "learned";
  tuned.files.checkpoint = tuned.folder / "other.safetensors";
  const std::vector<LengthRow> ended = tuned.rows();
  REQUIRE(ended.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(ended[i].finetuned == (i >= 2));
    CHECK(ended[i].length == (i < 2 ? 3 : 6));
  }
}

TEST_CASE("kept models say how long the sequences of their training were") {
  const auto positions = [](const std::string& folder) {
    return model::TreatableModel(folder, "", kernel::Precision::kF32).trained_length();
  };
  for (const std::string position : {"rope", "alibi", "learned", "learned(alpha=0.4)"}) {
    CAPTURE(position);
    Case kept({2, 6});
    kept.options.design.position = position;
    kept.request.eval_lengths = {2, 3, 6};
    kept.files.model = kept.folder / "model";
    kept.rows();
    const Index trained = kept.subject->tokens(3), longest = kept.subject->tokens(6);
    REQUIRE(longest > trained);
    CHECK(positions(kept.files.model) == trained);
    CHECK(positions(finetuned_model(kept.files.model, 2)) == trained);
    // A table that is extended has the rows of training alone.
    CHECK(positions(finetuned_model(kept.files.model, 6)) ==
          (position == "learned(alpha=0.4)" ? trained : longest));
  }
}

TEST_CASE("models are kept, the trained one and the fine-tuned ones") {
  Case kept({6});
  kept.files.model = kept.folder / "model";
  kept.rows();
  for (const std::string& folder : {kept.files.model, finetuned_model(kept.files.model, 6)}) {
    CHECK(exists(join(folder, "config.json")));
    CHECK(exists(join(folder, "model.safetensors")));
  }
  CHECK(test::read_file(join(kept.files.model, "model.safetensors")) !=
        test::read_file(join(finetuned_model(kept.files.model, 6), "model.safetensors")));
}

/// results.tsv of cells by `seed`, as length-gen writes it.
std::string results(const std::vector<std::uint64_t>& seeds, const std::string& steps = "5") {
  LengthResult result;
  for (const std::uint64_t seed : seeds) {
    for (const Index length : {Index{8}, Index{16}}) {
      LengthRow row;
      row.seed = seed;
      row.length = length;
      row.loss = 1.0 / static_cast<double>(seed + 3);
      row.accuracy = 0.05 * static_cast<double>(length);
      row.targets = 9;
      result.rows.push_back(row);
    }
    result.settings.push_back({{"objective", "tta"},
                               {"position", "rope"},
                               {"steps", steps},
                               {"eval_lengths", "8,16"},
                               {"windows", "0"},
                               {"seed", std::to_string(seed)}});
  }
  LengthNames names;
  names.designs = {"rope"};
  names.trained = "8";
  names.chance = {{8, 0.25}, {16, 0.125}};
  return results_text(result, names);
}

TEST_CASE("a table is read as it was written") {
  const LengthTable table = read_results("x", results({1, 2}));
  CHECK(table.title == "tta");
  CHECK(table.steps == 5);
  CHECK(table.names.designs == std::vector<std::string>{"rope"});
  CHECK(table.names.trained == "8");
  CHECK(table.names.chance.at(16) == 0.125);
  REQUIRE(table.rows.size() == 4);
  CHECK(table.rows[3].loss == 1.0 / 5);
  CHECK(table.rows[3].accuracy == 0.05 * 16.0);
  CHECK(table.rows[2].seed == 2);
  const std::string good = results({1});
  for (const std::string& bad : {std::string(), std::string("design\n"),
                                 good.substr(0, good.size() - 1), good + "x\n", "x" + good}) {
    CAPTURE(bad);
    CHECK(test::message_of([&] { read_results("x", bad); }) ==
          "x: expected the lines that length-gen wrote");
  }
}

TEST_CASE("a replaced table says what is lost") {
  CHECK(!lost_rows(results({1, 2}), results({1, 2, 3})));
  CHECK(lost_rows(results({1, 2}), results({2})) == "2 rows of another run");
  CHECK(lost_rows(results({1}), results({1}, "6")) == "2 rows of another run: steps 5 (now 6)");
  CHECK(lost_rows("anything\nelse\n", results({1})) == "1 row of another run");
  CHECK(!lost_rows("", results({1})));
}

TEST_CASE("cells are collected in their order, from one folder or several") {
  const test::TempFolder a, b;
  for (std::uint64_t seed = 0; seed < 11; ++seed) {
    const test::TempFolder& folder = seed % 3 == 0 ? a : b;
    test::write_file(folder / part_name(seed + 1, 11), with_digest_line(results({seed})));
  }
  test::write_file(a / "notes", "not a cell");
  const std::string expected = results({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(collect_parts({a.path(), b.path()}) == expected);
  CHECK(collect_parts({b.path(), a.path(), a.path()}) == expected);
  const auto refusal = [&](const std::vector<std::string>& folders) {
    return test::message_of([&] { collect_parts(folders); });
  };
  CHECK(refusal({a.path()}) ==
        a.path() +
            ": 7 of 11 cells are missing: 2-of-11.tsv, 3-of-11.tsv, 5-of-11.tsv, "
            "6-of-11.tsv, 8-of-11.tsv, 9-of-11.tsv, 11-of-11.tsv");
  test::write_file(b / part_name(2, 11), with_digest_line(results({1}, "6")));
  CHECK(test::contains(refusal({a.path(), b.path()}), "2-of-11.tsv: steps is 6, expected 5 as in"));
  test::write_file(b / part_name(2, 11), with_digest_line(results({1})));
  test::write_file(b / part_name(1, 11), with_digest_line(results({7})));
  CHECK(test::contains(refusal({a.path(), b.path()}), "1-of-11.tsv: same cell as"));
  test::write_file(b / part_name(1, 11), with_digest_line(results({0})));
  test::write_file(b / part_name(2, 11), with_digest_line(results({0})));
  CHECK(test::contains(refusal({a.path(), b.path()}), "2-of-11.tsv: same design and seed as"));
  std::string cut = results({1});
  cut.resize(cut.rfind('\n', cut.size() - 2) + 1);
  std::string high = results({1});
  high.replace(high.find("0.4"), 3, "1.4");
  std::string unknown = results({1});
  for (std::size_t at = 0; (at = unknown.find("\trope\t")) != std::string::npos;)
    unknown.replace(at, 6, "\trop\t");
  for (const auto& [bad, why] : std::vector<std::pair<std::string, std::string>>{
           {cut, "no row for length 16"},
           {high, "9 targets with accuracy 1.4 at length 8"},
           {results({1, 2}), "expected the lines"},
           {unknown, "there is no position scheme"}}) {
    test::write_file(b / part_name(2, 11), with_digest_line(bad));
    CHECK(test::contains(refusal({a.path(), b.path()}), "2-of-11.tsv: " + why));
  }
  test::write_file(b / part_name(2, 11), results({1}));
  CHECK(test::contains(refusal({a.path(), b.path()}), "2-of-11.tsv: its end is missing"));
  test::write_file(b / part_name(2, 11), with_digest_line(results({1})));
  const test::TempFolder other;
  test::write_file(other / part_name(1, 2), with_digest_line(results({1})));
  CHECK(test::contains(refusal({a.path(), other.path()}), "from a run of 2 cells, expected 11"));
  const test::TempFolder empty;
  CHECK(test::contains(refusal({empty.path()}), "no results of cells"));
}

}  // namespace
}  // namespace masque::length
