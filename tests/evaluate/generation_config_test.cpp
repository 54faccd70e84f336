// What generation_config.json says, key by key.
#include "evaluate/write/generation_config.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
namespace {

using test::message_of;
using test::TempFolder;
using test::write_file;

GenerationConfig read(const std::string& text, const char* name = "generation_config.json") {
  const TempFolder folder;
  write_file(folder / name, text);
  return read_generation_config(folder.path());
}

TEST_CASE("end tokens: a number or a list, of generation_config.json, else of config.json") {
  using Ids = std::vector<TokenId>;
  CHECK(read(R"({"eos_token_id":2})").ends == Ids{2});
  CHECK(read(R"({"eos_token_id":[4,2,3]})").ends == Ids{4, 2, 3});
  CHECK_FALSE(read(R"({"eos_token_id":null})").ends);
  CHECK_FALSE(read(R"({"eos_token_id":[]})").ends);
  CHECK(read(R"({"eos_token_id":[7,8]})", "config.json").ends == Ids{7, 8});
  const TempFolder folder;
  CHECK(read_generation_config(folder.path()).path.empty());
  write_file(folder / "config.json", R"({"eos_token_id":1})");
  write_file(folder / "generation_config.json", R"({"eos_token_id":2})");
  CHECK(read_generation_config(folder.path()).ends == Ids{2});
  CHECK(read_generation_config(folder / "model.safetensors").ends == Ids{2});
  CHECK(read_generation_config(folder / "model.gguf").path.empty());
  for (const auto& [bad, found] :
       {std::pair("-1", "is -1,"), std::pair("1.5", "is 1.5,"), std::pair("\"2\"", "is '2',"),
        std::pair("[2,[3]]", "has a list,"), std::pair("[true]", "has true,")}) {
    const std::string text = R"({"eos_token_id":)" + std::string(bad) + "}";
    CHECK(test::contains(message_of<InputError>([&] { read(text); }),
                         "eos_token_id " + std::string(found)));
  }
}

TEST_CASE("settings: what changes nothing, what options have, what is not supported") {
  const auto names = [](const std::vector<GenerationSetting>& settings) {
    std::string out;
    for (const GenerationSetting& one : settings) out += one.name + " " + one.text + ";";
    return out;
  };
  const GenerationConfig neutral = read(
      R"({"do_sample":false,"temperature":1.0,"top_k":0,"top_p":1,"num_beams":1,"length_penalty":1.0,)"
      R"("early_stopping":false,"num_return_sequences":1,"max_length":null,"min_length":0,)"
      R"("repetition_penalty":1.0,"no_repeat_ngram_size":0,"suppress_tokens":[],"min_p":0.0,)"
      R"("forced_eos_token_id":null,"pad_token_id":0,"bos_token_id":1,"use_cache":false,)"
      R"("transformers_version":"5.0","_from_model_config":true})");
  CHECK(neutral.defaults.empty());
  CHECK(neutral.unsupported.empty());
  CHECK(neutral.unknown.empty());
  const GenerationConfig chat =
      read(R"({"do_sample":true,"temperature":0.6,"top_p":0.9,"max_length":4096,"something":1})");
  CHECK(names(chat.defaults) == "do_sample true;temperature 0.6;top_p 0.9;max_length 4096;");
  CHECK(chat.do_sample);
  CHECK_FALSE(chat.beams);
  CHECK(chat.unknown == std::vector<std::string>{"something"});
  const GenerationConfig summary =
      read(R"({"num_beams":4,"repetition_penalty":1.05,"suppress_tokens":[1],"typical_p":0.9,)"
           R"("num_beam_groups":2,"guidance_scale":1.5})");
  CHECK(names(summary.defaults) ==
        "typical_p 0.9;num_beams 4;repetition_penalty 1.05;suppress_tokens a list;");
  CHECK(names(summary.unsupported) == "guidance_scale 1.5;num_beam_groups 2;");
  CHECK(summary.beams);
  // config.json has keys of its own.
  CHECK(read(R"({"hidden_size":8})", "config.json").unknown.empty());
  CHECK(names(read(R"({"no_repeat_ngram_size":3})", "config.json").defaults) ==
        "no_repeat_ngram_size 3;");
}

TEST_CASE("defaults that count are used, unless the caller states them") {
  const auto used = [](const std::string& text, GenerationSettings& settings) {
    const TempFolder folder;
    write_file(folder / "generation_config.json", text);
    std::string out;
    for (const GenerationSetting& one :
         use_generation_defaults(read_generation_config(folder.path()), settings))
      out += one.name + " " + one.text + ";";
    return out;
  };
  const auto refused = [&](const std::string& text) {
    return message_of<InputError>([&] {
      GenerationSettings settings;
      used(text, settings);
    });
  };
  const std::string chat =
      R"({"do_sample":true,"temperature":0.6,"top_p":0.9,"length_penalty":2,"max_length":64})";
  GenerationSettings all;
  CHECK(
      used(chat, all) ==
      "do_sample true;temperature 0.6;top_p 0.9;max_length 64;top_k 50 (the default of generate);");
  CHECK(all.temperature == 0.6);
  CHECK(all.top_k == 50);
  CHECK_FALSE(all.length_penalty);
  GenerationSettings stated;
  stated.temperature = 2;
  stated.top_k = 0;
  stated.max_new_tokens = 5;
  CHECK(used(chat, stated) == "do_sample true;top_p 0.9;");
  CHECK(stated.temperature == 2.0);
  GenerationSettings greedy;
  greedy.do_sample = false;
  CHECK(used(chat, greedy) == "max_length 64;");
  GenerationSettings beams;
  beams.num_beams = 2;
  CHECK(used(R"({"length_penalty":2,"early_stopping":"never","max_length":9,"max_new_tokens":4})",
             beams) == "length_penalty 2;early_stopping 'never';max_new_tokens 4;");
  CHECK(beams.early_stopping == EarlyStopping::kNever);
  GenerationSettings lists;
  CHECK(used(R"({"suppress_tokens":[1,2],"bad_words_ids":[[3],[4,5]],"forced_eos_token_id":6,)"
             R"("min_length":9,"min_new_tokens":2})",
             lists) ==
        "bad_words_ids a list;min_new_tokens 2;forced_eos_token_id 6;"
        "suppress_tokens a list;");
  CHECK(lists.bad_words_ids == std::vector<std::vector<TokenId>>{{3}, {4, 5}});
  CHECK(lists.forced_eos_token_id == std::vector<TokenId>{6});
  for (const char* bad :
       {R"({"do_sample":true,"temperature":0})", R"({"do_sample":1})", R"({"num_beams":0})",
        R"({"repetition_penalty":-1})", R"({"suppress_tokens":[-1]})", R"({"bad_words_ids":[3]})",
        R"({"bad_words_ids":[[]]})", R"({"bad_words_ids":{}})", R"({"min_length":1.5})",
        R"({"do_sample":true,"epsilon_cutoff":1})", R"({"forced_bos_token_id":"a"})",
        R"({"num_beams":2,"early_stopping":"true"})"})
    CHECK_MESSAGE(test::contains(refused(bad), "expected "), bad);
  // What does not count is not looked at.
  GenerationSettings none;
  CHECK(used(R"({"temperature":0,"early_stopping":"maybe"})", none).empty());
}

}  // namespace
}  // namespace masque::evaluate
