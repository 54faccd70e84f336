// What generation_config.json says, key by key.
#include "evaluate/write/generation_config.hpp"

#include <algorithm>

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
  for (const char* bad : {"-1", "1.5", "\"2\"", "[2,[3]]", "[true]"}) {
    const std::string text = R"({"eos_token_id":)" + std::string(bad) + "}";
    CHECK(test::contains(message_of<InputError>([&] { read(text); }), "eos_token_id is "));
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
           R"("num_beam_groups":2})");
  CHECK(names(summary.unsupported) ==
        "typical_p 0.9;repetition_penalty 1.05;suppress_tokens a list;num_beam_groups 2;");
  CHECK(summary.beams);
  // config.json has keys of its own.
  CHECK(read(R"({"hidden_size":8})", "config.json").unknown.empty());
  CHECK(names(read(R"({"no_repeat_ngram_size":3})", "config.json").unsupported) ==
        "no_repeat_ngram_size 3;");
}

}  // namespace
}  // namespace masque::evaluate
