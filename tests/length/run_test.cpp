// Arms and lengths as they are spelled; what is scored is the same at every length.
#include "length/run.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "length/arms.hpp"
#include "support/temp_folder.hpp"

namespace masque::length {
using namespace train;
namespace {

TEST_CASE("lists of lengths") {
  CHECK(parse_lengths("x", "64,8-10,1") == std::vector<Index>{64, 8, 9, 10, 1});
  for (const char* wrong :
       {"", "0", "1,", "3-2", "1-3,2", "1.5", "-1", "x", "99999999999999999999"})
    CHECK_THROWS_AS(parse_lengths("x", wrong), UsageError);
  // Without memory for each of them: 80 GB.
  std::string many = "1-1000000";
  for (int i = 0; i < 10000; ++i) many += ",1-1000000";
  CHECK_THROWS_AS(parse_lengths("x", many), UsageError);
}

TEST_CASE("arms are all combinations, named by what differs") {
  DesignRecipe recipe;
  recipe.position = "rope,alibi";
  recipe.normalizer = "softmax,log_n(base=64)";
  std::vector<std::string> names;
  for (const LengthArm& arm : make_arms(recipe, "2")) {
    names.push_back(arm.name);
    CHECK(arm.name == arm.recipe.position + " " + arm.recipe.normalizer);
  }
  CHECK(names == std::vector<std::string>{"rope softmax", "rope log_n(base=64)", "alibi softmax",
                                          "alibi log_n(base=64)"});
  recipe.normalizer = "softmax,no_such_name";
  CHECK_THROWS_AS(make_arms(recipe, "2"), UsageError);
}

TEST_CASE("arms of heads, mixers and structures are named by what they are of") {
  DesignRecipe recipe;
  recipe.position = "none";
  recipe.mixer = "none,gmlp";
  std::vector<std::string> names;
  for (const LengthArm& arm : make_arms(recipe, "1,4")) {
    names.push_back(arm.name);
    CHECK(arm.recipe.mixer == (arm.name.ends_with("gmlp") ? "gmlp" : ""));
    CHECK(arm.recipe.num_attention_heads == (arm.name.find("heads=4") == arm.name.npos ? 1 : 4));
  }
  CHECK(names == std::vector<std::string>{
                     "num_attention_heads=1 mixer=none", "num_attention_heads=1 mixer=gmlp",
                     "num_attention_heads=4 mixer=none", "num_attention_heads=4 mixer=gmlp"});
  recipe.mixer.clear();
  recipe.talking_heads = "none,both";
  recipe.previous_scores = "accumulated";
  CHECK(make_arms(recipe, "4").at(1).name == "talking_heads=both");
  CHECK(make_arms(recipe, "4").at(1).recipe.talking_heads == "both");
  recipe.talking_heads = "none";
  recipe.layer_kind = "transformer,gated_attention";
  CHECK(make_arms(recipe, "2,4").size() == 3);
  recipe.layer_kind = "transformer";
  recipe.hidden_size = 24;
  CHECK(make_arms(recipe, "3").size() == 1);
  recipe.hidden_size = 256;
  for (const char* heads : {"0", "x", "1,1", "3", ""})
    CHECK_THROWS_AS(make_arms(recipe, heads), UsageError);
}

TEST_CASE("arms of masks") {
  DesignRecipe recipe;
  recipe.num_hidden_layers = 3;
  const std::vector<LengthArm> arms =
      make_arms(recipe, "2", "own; causal_window(8); 2*causal_window(8),causal");
  REQUIRE(arms.size() == 3);
  CHECK(arms[0].name == "mask=own");
  CHECK(arms[0].mask.empty());
  CHECK(arms[1].name == "mask=causal_window(8)");
  CHECK(arms[2].mask == "2*causal_window(8), causal");
  CHECK(make_arms(recipe, "2", "causal").front().mask == "causal");
  CHECK(make_arms(recipe, "2").front().mask.empty());
  for (const char* masks : {"", "causal;", "causal; causal", "2*causal", "nonsense", "tta_word"})
    CHECK_THROWS_AS(make_arms(recipe, "2", masks), UsageError);
}

/// The stream that blocks hold, and its targets (−1: none), put together again.
struct Scored {
  std::vector<TokenId> ids, targets;
};

Scored joined(const std::vector<Example>& blocks, bool causal) {
  Scored all;
  for (const Example& block : blocks) {
    std::vector<TokenId> targets(block.ids.size(), -1);
    for (std::size_t r = 0; r < block.rows.size(); ++r)
      targets.at(static_cast<std::size_t>(block.rows[r] + (causal ? 1 : 0))) = block.targets[r];
    CHECK(block.ids.front() == 2);
    CHECK(block.ids.back() == 3);
    all.ids.insert(all.ids.end(), block.ids.begin() + 1, block.ids.end() - 1);
    all.targets.insert(all.targets.end(), targets.begin() + 1, targets.end() - 1);
    CHECK(targets.front() == -1);
    CHECK(targets.back() == -1);
  }
  return all;
}

TEST_CASE("the same tokens are targets at every length, hidden in the same way") {
  const test::TempFolder folder;
  const std::string vocab = folder / "vocab.txt", text = folder / "text";
  test::write_file(vocab, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\non\nmat\n.\n");
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "the cat sat on the mat.\nthe mat sat.\n";
  test::write_file(text, lines);
  for (const char* objective : {"mlm", "tta", "clm"}) {
    CAPTURE(objective);
    TextSubject request;
    request.text = request.eval_text = text;
    request.tokenizer = vocab;
    request.objective = objective;
    request.train_lengths = {8};
    request.eval_lengths = {7, 16, 33};
    request.seed = 5;
    const auto subject = make_text_subject(request);
    const bool causal = std::string(objective) == "clm";
    const Scored first = joined(subject->examples(7), causal);
    Index targets = 0;
    for (const TokenId id : first.targets) targets += id >= 0 ? 1 : 0;
    CHECK(targets > 20);
    for (const Index length : {Index{16}, Index{33}}) {
      Scored other = joined(subject->examples(length), causal);
      // The last block may go on after what is scored.
      const std::size_t shared = std::min(first.ids.size(), other.ids.size());
      for (std::size_t i = 0; i < shared; ++i) {
        CHECK(first.ids[i] == other.ids[i]);
        CHECK(first.targets[i] == other.targets[i]);
      }
      for (std::size_t i = shared; i < std::max(first.ids.size(), other.ids.size()); ++i)
        CHECK((first.ids.size() > shared ? first : other).targets[i] == -1);
    }
  }
}

TEST_CASE("seeds of a cell are put together") {
  std::vector<LengthRow> rows;
  for (const double accuracy : {0.25, 0.75}) {
    LengthRow row;
    row.seed = rows.size();
    row.length = 8;
    row.accuracy = accuracy;
    row.whole = std::numeric_limits<double>::quiet_NaN();
    rows.push_back(row);
    row.window = 4;
    row.accuracy = 1;
    rows.push_back(row);
  }
  const std::vector<LengthSummary> all = summarise_lengths(rows);
  REQUIRE(all.size() == 2);
  CHECK(all[0].accuracy.n == 2);
  CHECK(all[0].accuracy.mean == 0.5);
  CHECK(all[1].window == 4);
  CHECK(all[1].accuracy.sd == 0);
}

}  // namespace
}  // namespace masque::length
