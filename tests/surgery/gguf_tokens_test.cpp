// The vocabulary inside of a GGUF file: as names of rows, and changed with the table.
#include "surgery/gguf_tokens.hpp"

#include <algorithm>
#include <functional>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/gguf_metadata.hpp"
#include "store/gguf_names.hpp"
#include "support/make_gguf.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"
#include "surgery/change_vocabulary.hpp"
#include "surgery/correct_checkpoint.hpp"
#include "surgery/head.hpp"
#include "surgery/mlm_correction.hpp"
#include "surgery/patch_rows.hpp"
#include "surgery/resize_positions.hpp"
#include "surgery/resize_types.hpp"
#include "surgery/vocabulary_spelling.hpp"

namespace masque::test {
namespace {

const std::string kBert = MASQUE_TEST_DATA "/gguf/good/bert.gguf";
const std::vector<std::string> kTokens{"[PAD]", "[UNK]", "[CLS]",    "[SEP]",  "[MASK]",
                                       "the",   "un",    "##aff",    "##able", "a",
                                       "##s",   "世",    "[unused1]"};

using Texts = std::vector<std::string>;

Texts texts_of(const Checkpoint& checkpoint) {
  return gguf_texts(*find_gguf_value(checkpoint, kGgufTokens)).value();
}

std::string json_of(const Checkpoint& checkpoint, std::string_view key) {
  const TypedValue* value = find_gguf_value(checkpoint, key);
  return value == nullptr ? "none" : value->json;
}

Texts names_of(const Checkpoint& checkpoint) {
  const TokenNames names = TokenNames::of(checkpoint);
  Texts out;
  for (std::uint64_t id = 0; id < names.size(); ++id) out.push_back(names.token(id));
  return out;
}

/// A decoder with merges where asked for, scores, 5 tokens and at least as many rows.
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
                                    gguf_array(kGgufTokens, 8, 5, tokens),
                                    gguf_array(kGgufTokenTypes, 5, 5, types),
                                    gguf_array(kGgufScores, 6, 5, scores),
                                    gguf_value("tokenizer.ggml.eos_token_id", 4, u32(4))};
  if (merges) metadata.push_back(gguf_array(kGgufMerges, 8, 1, gguf_text("a b")));
  std::string data;
  for (std::uint64_t i = 0; i < rows * 8; ++i) data += le(static_cast<float>(i));
  const std::uint64_t bytes = data.size();
  std::vector<std::string> tensors{gguf_tensor("token_embd.weight", {8, rows}, 0, 0),
                                   gguf_tensor("position_embd.weight", {8, 3}, 0, bytes)};
  if (own_head) tensors.push_back(gguf_tensor("output.weight", {8, rows}, 0, bytes + 96));
  return make_gguf(metadata, tensors, data + data.substr(0, 96) + (own_head ? data : ""));
}

/// A BERT with rows of 8 numbers, and more metadata.
std::string encoder(const Texts& texts, const std::vector<int>& types, const Texts& more = {}) {
  std::string tokens;
  std::string numbers;
  std::string data;
  for (const std::string& text : texts) tokens += gguf_text(text);
  for (const int type : types) numbers += le(type);
  for (std::size_t i = 0; i < texts.size() * 8; ++i) data += le(static_cast<float>(i * i % 13));
  Texts metadata{gguf_value("general.architecture", 8, gguf_text("bert")),
                 gguf_value("tokenizer.ggml.model", 8, gguf_text("bert")),
                 gguf_array(kGgufTokens, 8, texts.size(), tokens),
                 gguf_array(kGgufTokenTypes, 5, types.size(), numbers)};
  metadata.insert(metadata.end(), more.begin(), more.end());
  return make_gguf(metadata, {gguf_tensor("token_embd.weight", {8, texts.size()}, 0, 0)}, data);
}

VocabularyReport change(const std::string& in, const std::string& out, const VocabularyPlan& plan) {
  VocabularyRequest request;
  request.verify = true;
  return change_vocabulary(in, out, plan, request);
}

TEST_CASE("tokens of a BERT in GGUF are those of its vocab.txt, and back") {
  const Checkpoint checkpoint = open_checkpoint(kBert);
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
  const Checkpoint added = open_checkpoint(folder / "added.gguf");
  CHECK(report.rows_after == 16);
  CHECK(added.get("token_embd.weight").shape == Shape{16, 32});
  Texts wanted = kTokens;
  wanted.insert(wanted.end(), {"new", "##er"});
  CHECK(names_of(added) == wanted);
  CHECK(texts_of(added)[15] == "\u2581[PAD15]");
  CHECK(texts_of(added)[13] == "\u2581new");
  CHECK(texts_of(added)[14] == "er");
  const TypedValue* types = find_gguf_value(added, kGgufTokenTypes);
  const std::string_view bytes = *gguf_elements(*types, GgufType::kInt32);
  CHECK(bytes.size() == 64);
  CHECK(bytes.substr(48) == le(1) + le(1) + le(1) + le(5));
  CHECK(json_of(added, "bert.vocab_size") == "16");
  CHECK(added.opaque().size() == 1);

  change(folder / "added.gguf", folder / "fewer.gguf", [](const VocabularyState& state) {
    return plan_remove(state, {{"[unused1]", "the"}});
  });
  const Checkpoint fewer = open_checkpoint(folder / "fewer.gguf");
  std::erase(wanted, "[unused1]");
  std::erase(wanted, "the");
  CHECK(names_of(fewer) == wanted);
  CHECK(texts_of(fewer)[13] == "\u2581[PAD13]");
  CHECK(json_of(fewer, "tokenizer.ggml.mask_token_id") == "4");

  Texts order = kTokens;
  std::ranges::reverse(order);
  change(kBert, folder / "turned.gguf",
         [&](const VocabularyState& state) { return plan_permute(state, {order}); });
  const Checkpoint turned = open_checkpoint(folder / "turned.gguf");
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
  CHECK(contains(why(folder / "gpt2.gguf", removes("b")),
                 "token 'b' would be gone, but tokenizer.ggml.merges may make it"));
  VocabularyRequest request;
  request.other_tokenizer = true;
  const auto swap = [&] { change_vocabulary(kBert, folder / "out.gguf", removes("the"), request); };
  CHECK(contains(message_of(swap), "carries its tokenizer in its metadata"));
  CHECK_FALSE(exists(folder / "out.gguf"));
  // Without merges the same is done, with the least score for what is new.
  write_file(folder / "spm.gguf", decoder(true, "llama", false));
  change(folder / "spm.gguf", folder / "fewer.gguf", removes("b"));
  CHECK(texts_of(open_checkpoint(folder / "fewer.gguf")) == Texts{"a", "c", "d", "e"});
  CHECK(json_of(open_checkpoint(folder / "fewer.gguf"), "tokenizer.ggml.eos_token_id") == "3");
  change(folder / "gpt2.gguf", folder / "more.gguf",
         [](const VocabularyState& state) { return plan_add(state, {"f"}, false, 1); });
  const Checkpoint more = open_checkpoint(folder / "more.gguf");
  CHECK(json_of(more, kGgufTokenTypes) == R"({"count":6,"first":[1,1,1,1,3]})");
  const TypedValue* scores = find_gguf_value(more, kGgufScores);
  CHECK(gguf_elements(*scores, GgufType::kFloat32)->substr(20) == le(-4.0F));
  CHECK(more.get("output.weight").shape == Shape{6, 8});
}

TEST_CASE("unused rows of a GGUF file are no tokens") {
  const TempFolder folder;
  write_file(
      folder / "in.gguf",
      encoder({"[MASK]", "\u2581the", "gone", "s", "\u2581[PAD4]", "[PAD5]"}, {3, 1, 5, 1, 5, 5}));
  const Checkpoint in = open_checkpoint(folder / "in.gguf");
  CHECK(names_of(in) == Texts{"[MASK]", "the", "", "##s"});
  CHECK_FALSE(TokenNames::of(in).assigned(2));
  CHECK(used_weights(6, TokenNames::of(in)) ==
        std::vector<double>{1. / 3, 1. / 3, 0, 1. / 3, 0, 0});
  const auto report =
      change(folder / "in.gguf", folder / "add.gguf",
             [](const VocabularyState& state) { return plan_add(state, {"Foo"}, false, 1); });
  CHECK(report.rows_after == 6);
  CHECK(report.tokens_after == 4);
  const Checkpoint added = open_checkpoint(folder / "add.gguf");
  CHECK(texts_of(added) == Texts{"[MASK]", "\u2581the", "gone", "s", "\u2581Foo", "[PAD5]"});
  CHECK(gguf_elements(*find_gguf_value(added, kGgufTokenTypes), GgufType::kInt32) ==
        le(3) + le(1) + le(5) + le(1) + le(1) + le(5));
  change(folder / "in.gguf", folder / "fewer.gguf",
         [](const VocabularyState& state) { return plan_remove(state, {{"the"}}); });
  CHECK(texts_of(open_checkpoint(folder / "fewer.gguf")) ==
        Texts{"[MASK]", "gone", "s", "\u2581[PAD3]", "[PAD4]"});
  change(folder / "in.gguf", folder / "cut.gguf",
         [](const VocabularyState& state) { return plan_resize(state, 4, 1); });
  CHECK(texts_of(open_checkpoint(folder / "cut.gguf")).back() == "s");
}

TEST_CASE("bracketed tokens of earlier converters are read and written as they are") {
  const TempFolder folder;
  write_file(folder / "in.gguf",
             encoder({"[MASK]", "[unused0]", "\u2581[unused1]", "s", "[x"}, {3, 1, 1, 1, 1}));
  CHECK(names_of(open_checkpoint(folder / "in.gguf")) ==
        Texts{"[MASK]", "[unused0]", "[unused1]", "##s", "##[x"});
  change(folder / "in.gguf", folder / "out.gguf", [](const VocabularyState& state) {
    return plan_rename(state, {{"[unused0]", "[E1]"}, {"[unused1]", "[E2]"}, {"##s", "[E3]"}});
  });
  CHECK(texts_of(open_checkpoint(folder / "out.gguf")) ==
        Texts{"[MASK]", "[E1]", "\u2581[E2]", "\u2581[E3]", "[x"});
  change(folder / "out.gguf", folder / "word.gguf", [](const VocabularyState& state) {
    return plan_rename(state, {{"[E1]", "word"}});
  });
  CHECK(texts_of(open_checkpoint(folder / "word.gguf"))[1] == "\u2581word");
}

TEST_CASE("control tokens of a GGUF file are special") {
  const TempFolder folder;
  write_file(folder / "in.gguf", encoder({"[MASK]", "\u2581the", "[extra]", "s"}, {3, 1, 3, 1}));
  const auto removes = [&] {
    change(folder / "in.gguf", folder / "out.gguf",
           [](const VocabularyState& state) { return plan_remove(state, {{"[extra]"}}); });
  };
  CHECK(contains(message_of(removes), "2 [extra] is a special token of the tokenizer"));
  const auto report =
      change(folder / "in.gguf", folder / "kept.gguf",
             [](const VocabularyState& state) { return plan_keep(state, {{"##s"}}); });
  CHECK(names_of(open_checkpoint(folder / "kept.gguf")) == Texts{"[MASK]", "[extra]", "##s"});
  CHECK(contains(report.notes.front(), "2 special tokens are kept, too: 0 [MASK], 2 [extra]"));
}

TEST_CASE("a part of a split GGUF model keeps its rows, and its head is not known") {
  const TempFolder folder;
  const std::string in = folder / "in-00001-of-00002.gguf";
  const std::string out = folder / "out.gguf";
  write_file(in, encoder({"[MASK]", "\u2581the"}, {3, 1},
                         {gguf_value("split.no", 2, le(std::uint16_t{0})),
                          gguf_value("split.count", 2, le(std::uint16_t{2}))}));
  const Checkpoint part = open_checkpoint(in);
  CHECK(find_embedding_table(part, std::nullopt, std::nullopt).head == HeadState::kUnknown);
  const auto append = [](const VocabularyState& state) { return plan_append(state, 1, 1); };
  PositionsRequest positions;
  positions.positions = 4;
  TypesRequest types;
  types.types = 3;
  for (const std::function<void()>& edit : std::vector<std::function<void()>>{
           [&] { change(in, out, append); }, [&] { untie_checkpoint(in, out, {}); },
           [&] { tie_checkpoint(in, out, {}); }, [&] { resize_positions(in, out, positions); },
           [&] { resize_types(in, out, types); }}) {
    CHECK(contains(message_of(edit), "part 1 of 2 of a model, whose other parts would have to"));
  }
  CorrectionRequest request;
  CHECK(contains(message_of([&] { correct_checkpoint(in, out, request); }), "--tied keep"));
  CHECK_FALSE(exists(out));
  request.tied = TiedPolicy::kKeep;
  CHECK(correct_checkpoint(in, out, request).moves.rows == 1);
}

TEST_CASE("metadata of a GGUF file that name tokens and do not follow are noted") {
  const TempFolder folder;
  write_file(folder / "in.gguf",
             encoder({"[MASK]", "\u2581the", "s"}, {3, 1, 1},
                     {gguf_value("tokenizer.huggingface.json", 8, gguf_text("{}")),
                      gguf_array("tokenizer.ggml.suppress_tokens", 5, 1, le(2))}));
  const auto notes = [&](const char* out, const VocabularyPlan& plan) {
    return fmt::format("{}", fmt::join(change(folder / "in.gguf", folder / out, plan).notes, "\n"));
  };
  const std::string removed =
      notes("a.gguf", [](const VocabularyState& state) { return plan_remove(state, {{"the"}}); });
  CHECK(contains(removed, "metadata 'tokenizer.huggingface.json' stays as it is"));
  CHECK(contains(removed, "metadata 'tokenizer.ggml.suppress_tokens' stays as it is"));
  const std::string added = notes(
      "b.gguf", [](const VocabularyState& state) { return plan_add(state, {"foo"}, false, 1); });
  CHECK(contains(added, "metadata 'tokenizer.huggingface.json' stays as it is"));
  CHECK_FALSE(contains(added, "suppress_tokens"));
}

TEST_CASE("a vocabulary with merges and more rows than tokens") {
  const TempFolder folder;
  write_file(folder / "in.gguf", decoder(false, "gpt2", true, 8));
  const auto plan = [](const char* token) {
    return [token](const VocabularyState& state) { return plan_add(state, {token}, false, 1); };
  };
  CHECK(change(folder / "in.gguf", folder / "add.gguf", plan("f")).rows_after == 8);
  CHECK(texts_of(open_checkpoint(folder / "add.gguf")) ==
        Texts{"a", "b", "c", "d", "e", "f", "[PAD6]", "[PAD7]"});
  change(folder / "in.gguf", folder / "turned.gguf", [](const VocabularyState& state) {
    return plan_permute(state, {{"b", "a", "c", "d", "e"}});
  });
  CHECK(names_of(open_checkpoint(folder / "turned.gguf"))[1] == "a");
  const auto removes = [&] {
    change(folder / "in.gguf", folder / "out.gguf",
           [](const VocabularyState& state) { return plan_remove(state, {{"b"}}); });
  };
  CHECK(contains(message_of(removes), "token 'b' would be gone"));
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
    CHECK(contains(why("q.gguf"), "tensor '" + name + "' is Q8_0, whose values are not read"));
  }
  // A head of its own, too: its rows would have to follow, and could not be compared.
  write_file(folder / "head.gguf",
             make_gguf({gguf_value("general.architecture", 8, gguf_text("llama"))},
                       {gguf_tensor("token_embd.weight", {32, 2}, 0, 0),
                        gguf_tensor("output.weight", {32, 2}, 8, 256)},
                       std::string(256 + 68, 'x')));
  CHECK(contains(why("head.gguf"), "tensor 'output.weight' is Q8_0, whose values are not read"));
  const auto tie = [&] { tie_checkpoint(folder / "head.gguf", folder / "out.gguf", {}); };
  CHECK(contains(message_of(tie), "tensor 'output.weight' is Q8_0, whose values are not read"));
  CHECK(folder.names() == Texts{"head.gguf", "q.gguf"});
  const Checkpoint head = open_checkpoint(folder / "head.gguf");
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
  const Checkpoint out = open_checkpoint(folder / "out.gguf");
  CHECK(find_metadata(out.files()[0].content.metadata, "masque.mlm_correct") != nullptr);
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
  CHECK(contains(why, "--tied keep changes both"));
  CHECK(contains(why, "ckpt convert --names hf"));
  CHECK(contains(
      message_of([&] { untie_checkpoint(folder / "tied.gguf", folder / "out.gguf", {}); }), why));
  CHECK_FALSE(exists(folder / "out.gguf"));
  CHECK(correct("own.gguf").head == HeadState::kOwn);
  request.tied = TiedPolicy::kKeep;
  CHECK(correct("tied.gguf").head == HeadState::kTied);
  tie_checkpoint(folder / "own.gguf", folder / "out.gguf", {});
  CHECK(open_checkpoint(folder / "out.gguf").find("output.weight") == nullptr);
}

TEST_CASE("positions and token types of a GGUF file, and the sizes that say so") {
  const TempFolder folder;
  PositionsRequest positions;
  positions.positions = 24;
  positions.how = "repeat";
  resize_positions(kBert, folder / "long.gguf", positions);
  const Checkpoint longer = open_checkpoint(folder / "long.gguf");
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
  CHECK(open_checkpoint(folder / "types.gguf").get("token_types.weight").shape == Shape{3, 32});
}

}  // namespace
}  // namespace masque::test
