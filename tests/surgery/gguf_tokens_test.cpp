// The vocabulary inside of a GGUF file: as names of rows, and changed with the table.
#include "surgery/vocabulary/gguf_tokens.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/edit/head.hpp"
#include "surgery/gguf_files.hpp"
#include "surgery/patch/patch_rows.hpp"
#include "surgery/positions/resize_positions.hpp"
#include "surgery/positions/resize_types.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::gguf_array;
using test::gguf_tensor;
using test::gguf_text;
using test::gguf_value;
using test::le;
using test::make_gguf;
using test::message_of;
using test::TempFolder;
using test::u32;
using test::write_file;

const std::string kBert = MASQUE_TEST_DATA "/gguf/good/bert.gguf";
const std::vector<std::string> kTokens{"[PAD]", "[UNK]", "[CLS]",    "[SEP]",  "[MASK]",
                                       "the",   "un",    "##aff",    "##able", "a",
                                       "##s",   "世",    "[unused1]"};

/// A decoder with merges where requested, scores, 5 tokens and at least as many rows.
std::string decoder(bool own_head, const std::string& model = "gpt2", bool merges = true,
                    std::uint64_t rows = 5) {
  std::string tokens;
  std::string types;
  std::string scores;
  for (int i = 0; i < 5; ++i) {
    tokens += gguf_text(std::string(1, static_cast<char>('a' + i)));
    types += le(std::int32_t{i == 4 ? 3 : 1});
    scores += le(static_cast<float>(-i));
  }
  std::vector<std::string> metadata{gguf_value("general.architecture", 8, gguf_text("gpt2")),
                                    gguf_value("gpt2.context_length", 2, le(std::uint16_t{3})),
                                    gguf_value("tokenizer.ggml.model", 8, gguf_text(model)),
                                    gguf_array(store::kGgufTokens, 8, 5, tokens),
                                    gguf_array(store::kGgufTokenTypes, 5, 5, types),
                                    gguf_array(store::kGgufScores, 6, 5, scores),
                                    gguf_value("tokenizer.ggml.eos_token_id", 4, u32(4))};
  if (merges) metadata.push_back(gguf_array(store::kGgufMerges, 8, 1, gguf_text("a b")));
  std::string data;
  for (std::uint64_t i = 0; i < rows * 8; ++i) data += le(static_cast<float>(i));
  const std::uint64_t bytes = data.size();
  std::vector<std::string> tensors{gguf_tensor("token_embd.weight", {8, rows}, 0, 0),
                                   gguf_tensor("position_embd.weight", {8, 3}, 0, bytes)};
  if (own_head) tensors.push_back(gguf_tensor("output.weight", {8, rows}, 0, bytes + 96));
  return make_gguf(metadata, tensors, data + data.substr(0, 96) + (own_head ? data : ""));
}

TEST_CASE("tokens of a BERT in GGUF are those of its vocab.txt, and back") {
  const store::Checkpoint checkpoint = store::open_checkpoint(kBert);
  CHECK(names_of(checkpoint) == kTokens);
  const TokenNames names = TokenNames::of(checkpoint);
  CHECK(names.role("mask_token") == 4);
  CHECK(names.role("sep_token") == 3);
  CHECK(names.role("pad_token") == 0);
  const Texts texts = texts_of(checkpoint);
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const auto type = id < 5 ? GgufToken::kControl : GgufToken::kNormal;
    CHECK(gguf_token("bert", kTokens[id], type) == texts[id]);
    CHECK(plain_gguf_token("bert", texts[id], type) == kTokens[id]);
    CHECK(plain_gguf_token("gpt2", texts[id], type) == texts[id]);
  }
}

TEST_CASE("a vocabulary change of a GGUF file keeps table and tokens together") {
  const TempFolder folder;
  const auto report = change(kBert, folder / "added.gguf", [](const VocabularyState& state) {
    return plan_add(state, {"new", "##er"}, false, 8);
  });
  const store::Checkpoint added = store::open_checkpoint(folder / "added.gguf");
  CHECK(report.rows_after == 16);
  CHECK(added.get("token_embd.weight").shape == Shape{16, 32});
  Texts wanted = kTokens;
  wanted.insert(wanted.end(), {"new", "##er"});
  CHECK(names_of(added) == wanted);
  CHECK(texts_of(added)[15] == "\u2581[PAD15]");
  CHECK(texts_of(added)[13] == "\u2581new");
  CHECK(texts_of(added)[14] == "er");
  const store::TypedValue* types = store::find_gguf_value(added, store::kGgufTokenTypes);
  const std::string_view bytes = *store::gguf_elements(*types, store::GgufType::kInt32);
  CHECK(bytes.size() == 64);
  CHECK(bytes.substr(48) == le(1) + le(1) + le(1) + le(5));
  CHECK(json_of(added, "bert.vocab_size") == "16");
  CHECK(added.opaque().size() == 1);

  change(folder / "added.gguf", folder / "fewer.gguf", [](const VocabularyState& state) {
    return plan_remove(state, {{"[unused1]", "the"}});
  });
  const store::Checkpoint fewer = store::open_checkpoint(folder / "fewer.gguf");
  std::erase(wanted, "[unused1]");
  std::erase(wanted, "the");
  CHECK(names_of(fewer) == wanted);
  CHECK(texts_of(fewer)[13] == "\u2581[PAD13]");
  CHECK(json_of(fewer, "tokenizer.ggml.mask_token_id") == "4");

  Texts order = kTokens;
  std::ranges::reverse(order);
  change(kBert, folder / "turned.gguf",
         [&](const VocabularyState& state) { return plan_permute(state, {order}); });
  const store::Checkpoint turned = store::open_checkpoint(folder / "turned.gguf");
  CHECK(names_of(turned) == order);
  CHECK(json_of(turned, "tokenizer.ggml.mask_token_id") == "8");
  CHECK(json_of(turned, "tokenizer.ggml.seperator_token_id") == "9");
}

TEST_CASE("what the metadata of a GGUF file cannot follow is refused") {
  const TempFolder folder;
  const auto why = [&](const std::string& in, const VocabularyPlan& plan) {
    return message_of([&] { change(in, folder / "out.gguf", plan); });
  };
  write_file(folder / "gpt2.gguf", decoder(true));
  const auto removes = [](const char* token) {
    return [token](const VocabularyState& state) { return plan_remove(state, {{token}}); };
  };
  const auto renames = [](const VocabularyState& state) {
    VocabularyChange renamed = all_rows(state);
    renamed.tokens[1] = "x";
    return renamed;
  };
  CHECK(contains(why(folder / "gpt2.gguf", renames),
                 "token 'b' would be renamed, but tokenizer.ggml.merges use it"));
  change(folder / "gpt2.gguf", folder / "trimmed.gguf", removes("b"));
  const store::Checkpoint trimmed = store::open_checkpoint(folder / "trimmed.gguf");
  CHECK(texts_of(trimmed) == Texts{"a", "c", "d", "e"});
  CHECK(store::gguf_texts(*store::find_gguf_value(trimmed, store::kGgufMerges))->empty());
  VocabularyRequest request;
  request.other_tokenizer = true;
  const auto swap = [&] { change_vocabulary(kBert, folder / "out.gguf", removes("the"), request); };
  CHECK(contains(message_of(swap), "stores its tokenizer in its metadata"));
  CHECK_FALSE(exists(folder / "out.gguf"));
  // Without merges the same is done, with the least score for what is new.
  write_file(folder / "spm.gguf", decoder(true, "llama", false));
  change(folder / "spm.gguf", folder / "fewer.gguf", removes("b"));
  CHECK(texts_of(store::open_checkpoint(folder / "fewer.gguf")) == Texts{"a", "c", "d", "e"});
  CHECK(json_of(store::open_checkpoint(folder / "fewer.gguf"), "tokenizer.ggml.eos_token_id") ==
        "3");
  change(folder / "gpt2.gguf", folder / "more.gguf",
         [](const VocabularyState& state) { return plan_add(state, {"f"}, false, 1); });
  const store::Checkpoint more = store::open_checkpoint(folder / "more.gguf");
  CHECK(json_of(more, store::kGgufTokenTypes) == R"({"count":6,"first":[1,1,1,1,3]})");
  const store::TypedValue* scores = store::find_gguf_value(more, store::kGgufScores);
  CHECK(store::gguf_elements(*scores, store::GgufType::kFloat32)->substr(20) == le(-4.0F));
  CHECK(more.get("output.weight").shape == Shape{6, 8});
}

TEST_CASE("a vocabulary with merges and more rows than tokens") {
  const TempFolder folder;
  write_file(folder / "in.gguf", decoder(false, "gpt2", true, 8));
  const auto plan = [](const char* token) {
    return [token](const VocabularyState& state) { return plan_add(state, {token}, false, 1); };
  };
  CHECK(change(folder / "in.gguf", folder / "add.gguf", plan("f")).rows_after == 8);
  CHECK(texts_of(store::open_checkpoint(folder / "add.gguf")) ==
        Texts{"a", "b", "c", "d", "e", "f", "[PAD6]", "[PAD7]"});
  change(folder / "in.gguf", folder / "turned.gguf", [](const VocabularyState& state) {
    return plan_permute(state, {{"b", "a", "c", "d", "e"}});
  });
  CHECK(names_of(store::open_checkpoint(folder / "turned.gguf"))[1] == "a");
  change(folder / "in.gguf", folder / "fewer.gguf",
         [](const VocabularyState& state) { return plan_remove(state, {{"b"}}); });
  CHECK(names_of(store::open_checkpoint(folder / "fewer.gguf"))[1] == "c");
}

TEST_CASE("quantised tables are refused by their name and type") {
  const TempFolder folder;
  const auto add = [](const VocabularyState& state) { return plan_append(state, 1, 1); };
  const auto why = [&](const char* name) {
    return message_of([&] { change(folder / name, folder / "out.gguf", add); });
  };
  for (const std::string name : {"token_embd.weight", "bert.embeddings.word_embeddings.weight"}) {
    write_file(folder / "q.gguf",
               make_gguf({}, {gguf_tensor(name, {32, 2}, 8, 0)}, std::string(68, 'x')));
    CHECK(contains(why("q.gguf"),
                   "tensor '" + name + "' is Q8_0: values of this type cannot be read"));
  }
  // A head of its own, too: its rows would have to follow, and could not be compared.
  write_file(folder / "head.gguf",
             make_gguf({gguf_value("general.architecture", 8, gguf_text("llama"))},
                       {gguf_tensor("token_embd.weight", {32, 2}, 0, 0),
                        gguf_tensor("output.weight", {32, 2}, 8, 256)},
                       std::string(256 + 68, 'x')));
  CHECK(contains(why("head.gguf"),
                 "tensor 'output.weight' is Q8_0: values of this type cannot be read"));
  const auto tie = [&] { tie_checkpoint(folder / "head.gguf", folder / "out.gguf", {}); };
  CHECK(contains(message_of(tie),
                 "tensor 'output.weight' is Q8_0: values of this type cannot be read"));
  CHECK(folder.names() == Texts{"head.gguf", "q.gguf"});
  const store::Checkpoint head = store::open_checkpoint(folder / "head.gguf");
  const EmbeddingTable table = find_embedding_table(head, std::nullopt, std::nullopt);
  CHECK(table.head == HeadState::kOwn);
}

TEST_CASE("a correction of a GGUF file and its inverse") {
  const TempFolder folder;
  CorrectionRequest request;
  request.verify = true;
  const auto report = correct_checkpoint(kBert, folder / "out.gguf", request);
  CHECK(report.head == HeadState::kNone);
  CHECK(report.moves.rows == 9);  // all but [MASK], [CLS], [SEP], [PAD]
  const store::Checkpoint out = store::open_checkpoint(folder / "out.gguf");
  CHECK(store::find_metadata(out.files()[0].content.metadata, "masque.mlm_correct") != nullptr);
  CHECK(json_of(out, "bert.context_length") == "16");
  request.inverse = true;
  const auto back = correct_checkpoint(folder / "out.gguf", folder / "back.gguf", request);
  CHECK(back.moves.rows == 9);
}

TEST_CASE("a tied head in llama.cpp's layout stays tied") {
  const TempFolder folder;
  write_file(folder / "tied.gguf", decoder(false));
  write_file(folder / "own.gguf", decoder(true));
  CorrectionRequest request;
  request.mask_token = "0";
  const auto correct = [&](const char* name) {
    return correct_checkpoint(folder / name, folder / "out.gguf", request);
  };
  const std::string why = message_of([&] { correct("tied.gguf"); });
  CHECK(contains(why, "tied keep changes both"));
  CHECK(contains(why, "ckpt convert names hf"));
  CHECK(contains(
      message_of([&] { untie_checkpoint(folder / "tied.gguf", folder / "out.gguf", {}); }), why));
  CHECK_FALSE(exists(folder / "out.gguf"));
  CHECK(correct("own.gguf").head == HeadState::kOwn);
  request.tied = TiedPolicy::kKeep;
  CHECK(correct("tied.gguf").head == HeadState::kTied);
  tie_checkpoint(folder / "own.gguf", folder / "out.gguf", {});
  CHECK(store::open_checkpoint(folder / "out.gguf").find("output.weight") == nullptr);
}

TEST_CASE("positions and token types of a GGUF file, and the sizes that say so") {
  const TempFolder folder;
  PositionsRequest positions;
  positions.positions = 24;
  positions.how = "repeat";
  resize_positions(kBert, folder / "long.gguf", positions);
  const store::Checkpoint longer = store::open_checkpoint(folder / "long.gguf");
  CHECK(longer.get("position_embd.weight").shape == Shape{24, 32});
  CHECK(json_of(longer, "bert.context_length") == "24");
  // The number must fit its type, and stays as it was if it does not.
  write_file(folder / "gpt2.gguf", decoder(true));
  positions.positions = 70000;
  CHECK(contains(
      message_of([&] { resize_positions(folder / "gpt2.gguf", folder / "out.gguf", positions); }),
      "metadata 'gpt2.context_length' is UINT16, which cannot be 70000"));
  TypesRequest types;
  types.types = 3;
  resize_types(kBert, folder / "types.gguf", types);
  CHECK(store::open_checkpoint(folder / "types.gguf").get("token_types.weight").shape ==
        Shape{3, 32});
}

}  // namespace
}  // namespace masque::surgery
