#include "surgery/vocabulary/vocabulary_plan.hpp"

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

constexpr std::uint64_t kNew = VocabularyChange::kNew;
using Ids = std::vector<std::uint64_t>;
using Tokens = std::vector<std::string>;

/// The vocabulary of the example: nine tokens, eleven rows.
struct PlanExample {
  explicit PlanExample(bool with_names = true) {
    ExampleBert bert;
    if (!with_names) bert.vocabulary.clear();
    bert.write(folder);
    checkpoint.emplace(store::open_checkpoint(folder / "in"));
    names = TokenNames::load(folder / "in");
  }
  VocabularyState state() { return {*checkpoint, names, 11, notes}; }

  /// What a plan says no to.
  template <class Plan>
  std::string refusal(Plan&& plan) {
    return message_of<Error>([&] { plan(state()); });
  }

  TempFolder folder;
  std::optional<store::Checkpoint> checkpoint;
  TokenNames names;
  std::vector<std::string> notes;
};

TEST_CASE("add fills rows without token, then goes on after the last") {
  PlanExample example;
  const auto one = plan_add(example.state(), {"king"}, false, 1);
  CHECK(one.from == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, kNew, 10});
  CHECK(one.tokens[9] == "king");
  CHECK(one.tokens[10].empty());
  const auto four = plan_add(example.state(), {"a", "b", "c", "d"}, false, 8);
  CHECK(four.from == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, kNew, kNew, kNew, kNew, kNew, kNew, kNew});
  CHECK(four.tokens == Tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "the",
                              "of", "and", "a", "b", "c", "d", "", "", ""});
}

TEST_CASE("add: tokens that are there, twice or empty") {
  PlanExample example;
  CHECK(contains(example.refusal([](auto s) {
    plan_add(s, {"king", "the"}, false, 1);
  }),
                 "'the' is already a token, with id 6"));
  CHECK(contains(example.refusal([](auto s) {
    plan_add(s, {"king", "king"}, true, 1);
  }),
                 "'king' is listed twice"));
  CHECK(contains(example.refusal([](auto s) { plan_add(s, {""}, false, 1); }), "an empty token"));
  const auto change = plan_add(example.state(), {"the", "king", "of"}, true, 1);
  CHECK(change.from.size() == 11);
  CHECK(change.tokens[9] == "king");
  CHECK(example.notes == Tokens{"existing tokens skipped: the of"});
  PlanExample bare(false);
  CHECK(contains(bare.refusal([](auto s) { plan_add(s, {"king"}, false, 1); }), "count N"));
  CHECK(plan_append(bare.state(), 3, 8).from.size() == 16);
  CHECK(plan_append(bare.state(), 2, 1).from.size() == 13);
  CHECK(contains(example.refusal([](auto s) { plan_append(s, 1, 1); }),
                 "vocab.txt has tokens for the rows"));
  CHECK(contains(bare.refusal([](auto s) { plan_append(s, ~std::uint64_t{0}, 1); }), "at most"));
  CHECK(contains(bare.refusal([](auto s) { plan_append(s, 1, 0); }), "multiple: found 0"));
}

TEST_CASE("remove moves later rows down, and leaves special tokens alone") {
  PlanExample example;
  const auto change = plan_remove(example.state(), {{"of", "[unused0]"}});
  CHECK(change.from == Ids{0, 1, 2, 3, 4, 6, 8, 9, 10});
  CHECK(change.tokens ==
        Tokens{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "and", "", ""});
  CHECK(plan_remove(example.state(), {{"10", "5"}}).from == Ids{0, 1, 2, 3, 4, 6, 7, 8, 9});
  CHECK(contains(example.refusal([](auto s) { plan_remove(s, {{"[MASK]"}}); }),
                 "4 [MASK] is a special token"));
  PlanExample bare(false);
  Tokens all;
  for (int i = 0; i < 11; ++i) all.push_back(std::to_string(i));
  CHECK(contains(bare.refusal([&](auto s) { plan_remove(s, {all}); }), "no row would be left"));
}

TEST_CASE("keep takes the listed rows by id, and special tokens") {
  PlanExample example;
  const auto change = plan_keep(example.state(), {{"and", "[PAD]", "the"}});
  CHECK(change.from == Ids{0, 1, 2, 3, 4, 6, 8});
  CHECK(change.tokens.back() == "and");
  CHECK(example.notes ==
        Tokens{"4 special tokens are also kept: 1 [UNK], 2 [CLS], 3 [SEP], 4 [MASK]"});
  PlanExample bare(false);
  CHECK(plan_keep(bare.state(), {{"7", "1"}}).from == Ids{1, 7});
}

TEST_CASE("keep also takes the ids that configurations give to roles") {
  PlanExample example;
  write_file(
      example.folder / "in/generation_config.json",
      R"({"eos_token_id":[8],"decoder_start_token_id":5,"bos_token_id":99,"x":{"pad_id":7}})");
  CHECK(plan_keep(example.state(), {{"the"}}).from == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8});
  PlanExample bare(false);
  write_file(bare.folder / "in/config.json",
             R"({"model_type":"bert","eos_token_id":4,"audio":{"vocab_size":9,"eos_token_id":2}})");
  CHECK(plan_keep(bare.state(), {{"7", "1"}}).from == Ids{1, 4, 7});
}

TEST_CASE("tokens that a file calls special are kept, and not removed") {
  const std::string decoder =
      R"({"added_tokens_decoder":{"5":{"special":true,"content":"[unused0]"},)"
      R"("6":{"content":"the","special":false}}})";
  const std::string list = R"({"additional_special_tokens":["[unused0]"]})";
  const std::string objects = R"({"additional_special_tokens":[{"content":"[unused0]"}]})";
  for (const std::string& config : {decoder, list, objects}) {
    CAPTURE(config);
    PlanExample example;
    write_file(example.folder / "in/tokenizer_config.json", config);
    example.names = TokenNames::load(example.folder / "in");
    CHECK(plan_keep(example.state(), {{"and"}}).from == Ids{0, 1, 2, 3, 4, 5, 8});
    CHECK(example.notes == Tokens{"6 special tokens are also kept: 0 [PAD], 1 [UNK], 2 [CLS], "
                                  "3 [SEP], 4 [MASK], 5 [unused0]"});
    CHECK(contains(example.refusal([](auto s) { plan_remove(s, {{"[unused0]"}}); }),
                   "5 [unused0] is a special token"));
    CHECK(plan_remove(example.state(), {{"the"}}).from.size() == 10);
  }
  PlanExample example;
  write_file(example.folder / "in/tokenizer.json",
             R"({"added_tokens":[{"id":0,"content":"a","special":true},{"id":1,"content":"b",)"
             R"("special":false}],"model":{"vocab":{"a":0,"b":1,"c":2}}})");
  example.names = TokenNames::load(example.folder / "in");
  CHECK(plan_keep(example.state(), {{"c"}}).from == Ids{0, 2});
  CHECK(example.notes == Tokens{"1 special token is also kept: 0 a"});
  // Of many the first ones are listed.
  std::string reserved;
  for (int i = 0; i < 9; ++i)
    reserved += (i == 0 ? R"({"id":)" : R"(,{"id":)") + std::to_string(i) + R"(,"content":"r)" +
                std::to_string(i) + R"(","special":true})";
  write_file(example.folder / "in/tokenizer.json",
             R"({"added_tokens":[)" + reserved + R"(],"model":{"vocab":{"c":9}}})");
  example.names = TokenNames::load(example.folder / "in");
  example.notes.clear();
  CHECK(plan_keep(example.state(), {{"c"}}).from.size() == 10);
  CHECK(example.notes == Tokens{"9 special tokens are also kept: 0 r0, 1 r1, 2 r2, 3 r3, 4 r4, "
                                "5 r5, 6 r6, 7 r7 and 1 more"});
}

TEST_CASE("permute wants every row with a token") {
  PlanExample example;
  const auto change = plan_permute(example.state(), {{"and", "of", "the", "[unused0]", "[MASK]",
                                                      "[SEP]", "[CLS]", "[UNK]", "[PAD]"}});
  CHECK(change.from == Ids{8, 7, 6, 5, 4, 3, 2, 1, 0, 9, 10});
  CHECK(change.tokens[0] == "and");
  CHECK(contains(example.refusal([](auto s) {
    plan_permute(s, {{"and", "of"}});
  }),
                 "row 0 [PAD] is missing from the list, which has 2 of 11 rows"));
  PlanExample bare(false);
  CHECK(contains(bare.refusal([](auto s) { plan_permute(s, {{"1", "0"}}); }), "row 2 is missing"));
}

TEST_CASE("resize pads, rounds up, and cuts off no token") {
  PlanExample example;
  CHECK(plan_resize(example.state(), 9, 1).from.size() == 9);
  CHECK(plan_resize(example.state(), 9, 8).from.size() == 16);
  CHECK(plan_resize(example.state(), 16, 8).from.size() == 16);
  CHECK(plan_resize(example.state(), 12, 1).from == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, kNew});
  CHECK(contains(example.refusal([](auto s) { plan_resize(s, 8, 1); }),
                 "8 rows would cut off token 8 and"));
  CHECK(contains(example.refusal([](auto s) { plan_resize(s, 0, 1); }), "0 rows"));
}

TEST_CASE("a list is of ids if all of it are numbers, unless stated") {
  PlanExample example;
  write_file(example.folder / "in/vocab.txt", "[PAD]\n7\n2\nthe\n");
  example.names = TokenNames::load(example.folder / "in");
  CHECK(rows_of(example.state(), {{"7", "2"}}) == Ids{7, 2});
  CHECK(contains(example.notes.at(0), "read as ids"));
  CHECK(rows_of(example.state(), {{"7", "2"}, TokenList::As::kTokens}) == Ids{1, 2});
  CHECK(rows_of(example.state(), {{"7", "the"}}) == Ids{1, 3});
  CHECK(rows_of(example.state(), {{"7"}, TokenList::As::kIds}) == Ids{7});
  CHECK(example.notes.size() == 1);
  CHECK(contains(example.refusal([](auto s) { rows_of(s, {{"7", "7"}}); }), "listed twice"));
  CHECK(contains(example.refusal([](auto s) { rows_of(s, {{"11"}}); }),
                 "found row 11, expected a row below 11"));
  CHECK(contains(example.refusal([](auto s) {
    rows_of(s, {{"8", "nobody"}});
  }),
                 "'8': no such token in vocab.txt"));
  CHECK(contains(example.refusal([](auto s) {
    rows_of(s, {{"the"}, TokenList::As::kIds});
  }),
                 "expected an id"));
}

}  // namespace
}  // namespace masque::surgery
