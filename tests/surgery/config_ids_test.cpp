#include "surgery/vocabulary/config_ids.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/message.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

constexpr std::uint64_t kNew = VocabularyChange::kNew;

/// What becomes of a generation_config.json, and of a config.json, when rows 0 and 1 of seven go.
struct Renumbered {
  explicit Renumbered(const std::string& generation, const std::string& config = "{}",
                      std::vector<std::uint64_t> from = {2, 3, 4, 5, 6},
                      const RoleIds& roles = {}) {
    ExampleBert bert;
    bert.config = config;
    bert.write(folder);
    write_file(folder / "in/generation_config.json", generation);
    const store::Checkpoint checkpoint = store::open_checkpoint(folder / "in");
    CheckpointEdit edit(checkpoint);
    VocabularyChange change;
    change.tokens.resize(from.size());
    change.from = std::move(from);
    notes = change_config_ids(edit, nullptr, change, 7, roles);
    now = *edit.file_text("generation_config.json");
    config_now = *edit.file_text("config.json");
  }

  TempFolder folder;
  std::string now;
  std::string config_now;
  std::vector<std::string> notes;
};

std::string now(const std::string& generation) { return Renumbered(generation).now; }

TEST_CASE("ids follow their tokens in lists, sequences, pairs and biases") {
  CHECK(now(R"({"suppress_tokens": [4, 5],"begin_suppress_tokens":[2,6]})") ==
        R"({"suppress_tokens": [2, 3],"begin_suppress_tokens":[0,4]})");
  CHECK(now(R"({"bad_words_ids":[[3,4],[5]]})") == R"({"bad_words_ids":[[1,2],[3]]})");
  CHECK(now(R"({"force_words_ids":[[3,4],[[5],[6,2]]]})") ==
        R"({"force_words_ids":[[1,2],[[3],[4,0]]]})");
  CHECK(now(R"({"forced_decoder_ids":[[1,4],[2,null]]})") ==
        R"({"forced_decoder_ids":[[1,2],[2,null]]})");
  CHECK(now(R"({"sequence_bias":[[[5],-10.0],[[2,3],4.0]]})") ==
        R"({"sequence_bias":[[[3],-10.0],[[0,1],4.0]]})");
  CHECK(now(R"j({"sequence_bias":{"(5,)":-10.0,"(2, 3)":4.0}})j") ==
        R"j({"sequence_bias":{"(3,)":-10.0,"(0, 1)":4.0}})j");
  CHECK(now(R"({"lang_to_id":{"<|en|>":5,"<|de|>":6}})") ==
        R"({"lang_to_id":{"<|en|>":3,"<|de|>":4}})");
  CHECK(now(R"({"eos_token_id":[6,5],"decoder_start_token_id":2,"image_token_index":3})") ==
        R"({"eos_token_id":[4,3],"decoder_start_token_id":0,"image_token_index":1})");
  CHECK(now(R"({"max_new_tokens":5,"suppress_tokens":null,"pad_token_id":-1})") ==
        R"({"max_new_tokens":5,"suppress_tokens":null,"pad_token_id":-1})");
}

TEST_CASE("entries of removed tokens are left out, with a note") {
  const Renumbered lists(
      R"({"suppress_tokens":[0,4,1],"bad_words_ids":[[0,4],[5]],"sequence_bias":[[[1],-1.0]]})");
  CHECK(lists.now == R"({"suppress_tokens":[2],"bad_words_ids":[[3]],"sequence_bias":null})");
  REQUIRE(lists.notes.size() == 3);
  CHECK(lists.notes[0] ==
        "generation_config.json: suppress_tokens: ids of removed tokens are left out: 0, 1");
  const Renumbered none(R"({"suppress_tokens":[0,1],"forced_decoder_ids":[[1,0]]})");
  CHECK(none.now == R"({"suppress_tokens":null,"forced_decoder_ids":null})");
  CHECK(Renumbered(R"({"suppress_tokens":[]})").now == R"({"suppress_tokens":[]})");
  CHECK(contains(message_of([] { Renumbered(R"({"forced_bos_token_id":1})"); }),
                 "forced_bos_token_id is 1, a row that would be removed"));
}

TEST_CASE("the same in config.json and in nested objects, unless they have a vocabulary") {
  const Renumbered config(
      "{}",
      R"({"vocab_size":7,"bad_words_ids":[[3,4]],"task_specific_params":{"x":{"suppress_tokens":[6]}},)"
      R"("text_config":{"vocab_size":7,"bos_token_id":6},"audio_config":{"vocab_size":1024,"eos_token_id":2}})");
  CHECK(
      config.config_now ==
      R"({"vocab_size":5,"bad_words_ids":[[1,2]],"task_specific_params":{"x":{"suppress_tokens":[4]}},)"
      R"("text_config":{"vocab_size":5,"bos_token_id":4},"audio_config":{"vocab_size":1024,"eos_token_id":2}})");
  CHECK(fmt::format("{}", fmt::join(config.notes, "\n")) ==
        "config.json: 'audio_config' has a vocabulary of its own: its ids stay unchanged");
  const Renumbered unknown(R"({"my_token_list":[2,3],"codec_eos_token_id":6,"out_indices":[1,2]})");
  CHECK(unknown.now == R"({"my_token_list":[2,3],"codec_eos_token_id":6,"out_indices":[1,2]})");
  CHECK(fmt::format("{}", fmt::join(unknown.notes, "\n")) ==
        "generation_config.json: 'my_token_list' may hold token ids: left unchanged");
}

TEST_CASE("other names of ids, and ids in another spelling") {
  CHECK(now(R"({"pad_index":2,"mask_id":4,"eod_id":3,"im_start_id":6,"blank_id":5})") ==
        R"({"pad_index":0,"mask_id":2,"eod_id":1,"im_start_id":4,"blank_id":3})");
  CHECK(now(R"({"logit_bias":{"5":-1.5,"6":2}})") == R"({"logit_bias":{"3":-1.5,"4":2}})");
  CHECK(Renumbered(R"({"logit_bias":{"1":-1.5,"6":2}})").now == R"({"logit_bias":{"4":2}})");
  const std::string same =
      R"({"eos_token_id":"6","bos_token_id":6.0,"pad_token_id":null,"sep_token_id":-1,)"
      R"("language_tokens":{"en":4},"vocabulary_map":{"4":0},"audio_end_id":3,"layer_id":3,)"
      R"("pad_token_type_id":0,"id2label":{"0":"a"}})";
  const Renumbered noted(same);
  CHECK(noted.now == same);
  CHECK(fmt::format("{}", fmt::join(noted.notes, "\n")) ==
        "generation_config.json: eos_token_id is \"6\", expected an id: left unchanged\n"
        "generation_config.json: bos_token_id is 6.0, expected an id: left unchanged\n"
        "generation_config.json: 'language_tokens' may hold token ids: left unchanged\n"
        "generation_config.json: 'vocabulary_map' may hold token ids: left unchanged\n"
        "generation_config.json: 'audio_end_id' may hold token ids: left unchanged");
  const Renumbered sizes("{}", R"({"vocab_size":7,"decoder_vocab_size":9,"text_vocab_size":7,)"
                               R"("type_vocab_size":2,"image_vocab_size":8})");
  CHECK(fmt::format("{}", fmt::join(sizes.notes, "\n")) ==
        "config.json: 'decoder_vocab_size' may be the number of tokens: it stays 9\n"
        "config.json: 'text_vocab_size' may be the number of tokens: it stays 7");
  const RoleIds roles = [](std::string_view name) {
    return name == "pad_token_id" ? std::optional<std::uint64_t>(1) : std::nullopt;
  };
  CHECK(Renumbered(R"({"pad_index":0,"mask_id":1})", "{}", {2, kNew, 3, 4}, roles).now ==
        R"({"pad_index":1,"mask_id":null})");
}

TEST_CASE("vocab_size is that of the table after every change, also where it was wrong") {
  const std::vector<std::uint64_t> same{0, 1, 2, 3, 4, 5, 6};
  const Renumbered wrong("{}", R"({"vocab_size": 5})", same);
  CHECK(wrong.config_now == R"({"vocab_size": 7})");
  CHECK(wrong.notes.at(0) == "config.json: vocab_size was 5, but the table has 7 rows: corrected");
  const Renumbered right("{}", R"({"vocab_size": 7})", same);
  CHECK(right.config_now == R"({"vocab_size": 7})");
  CHECK(right.notes.empty());
  CHECK(Renumbered("{}", R"({"a": 1})", {0, 1}).config_now == R"({"a": 1,"vocab_size": 2})");
}

TEST_CASE("ids of roles come from the new tokenizer where it knows them") {
  const RoleIds roles = [](std::string_view name) {
    return name == "bos_token_id" || name == "eos_token_id" ? std::optional<std::uint64_t>(1)
                                                            : std::nullopt;
  };
  const Renumbered swapped(R"({"bos_token_id":0,"eos_token_id":[0,4],"sep_token_id":3})", "{}",
                           {2, kNew, 3, 4}, roles);
  CHECK(swapped.now == R"({"bos_token_id":1,"eos_token_id":[1,3],"sep_token_id":2})");
  const Renumbered without(R"({"pad_token_id":0,"cls_token_id":3})", "{}", {2, kNew, 3, 4}, roles);
  CHECK(without.now == R"({"pad_token_id":null,"cls_token_id":2})");
  CHECK(contains(without.notes.at(0), "pad_token_id becomes null"));
  CHECK(contains(message_of([&] {
                   Renumbered(R"({"decoder_start_token_id":0})", "{}", {2, 3}, roles);
                 }),
                 "decoder_start_token_id is 0, a row that would be removed"));
}

}  // namespace
}  // namespace masque::surgery
