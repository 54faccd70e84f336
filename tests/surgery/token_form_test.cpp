#include "surgery/rows/token_form.hpp"

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::TempFolder;
using test::write_file;
using Tokens = std::vector<std::string>;

std::string tokenizer_file(const std::string& normalizer, const std::string& words,
                           const std::string& model) {
  return R"({"version":"1.0","added_tokens":[{"id":0,"content":"<unk>","single_word":false,)"
         R"("lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":)" +
         normalizer + R"(,"pre_tokenizer":)" + words +
         R"(,"post_processor":null,"decoder":null,"model":)" + model + "}";
}

const std::string kPrepend =
    R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]})";
const std::string kLlama =
    R"({"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"vocab":{"<unk>":0,"<0x0A>":1,"<0xC3>":2,"▁":3,"t":4,"h":5,"e":6,"th":7,"the":8,"▁the":9,"é":10},"merges":["t h","th e","▁ the"]})";
const std::string kBytes =
    R"({"type":"BPE","vocab":{"<unk>":0,"Ċ":1,"Ã":2,"Ġ":3,"t":4,"h":5,"e":6,"th":7,"the":8,"Ġthe":9,"Ã©":10,"©":11},"merges":["t h","th e","Ġ the","Ã ©"]})";
const std::string kWords =
    R"({"type":"WordPiece","unk_token":"<unk>","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"<unk>":0,"the":1,"##s":2,",":3,"##,":4,"s":5,"##es":6,"##e":7}})";

/// A tokenizer of a file, with its forms.
struct FormsExample {
  explicit FormsExample(const std::string& text) {
    write_file(folder / "tokenizer.json", text);
    tokenizer.emplace(text::Tokenizer::open(folder / "tokenizer.json"));
    forms.emplace(*tokenizer);
  }
  std::vector<TokenForm> of(const std::string& token) const {
    return forms->of(tokenizer->find(token).value(), token);
  }
  Tokens pieces(const std::string& text) const {
    const TokenForms::Pieces found = forms->pieces(text);
    Tokens out;
    for (const std::uint64_t id : found.ids)
      out.emplace_back(tokenizer->token(static_cast<TokenId>(id)));
    if (!found.known) out.emplace_back("?");
    return out;
  }

  TempFolder folder;
  std::optional<text::Tokenizer> tokenizer;
  std::optional<TokenForms> forms;
};

std::vector<TokenForm> forms(const std::vector<std::string>& texts) {
  std::vector<TokenForm> out;
  for (const std::string& text : texts) out.push_back({.text = text});
  return out;
}

TEST_CASE("one form for the start of a word, its continuation and bytes in all spellings") {
  const FormsExample llama(tokenizer_file(kPrepend, "null", kLlama));
  const FormsExample bytes(tokenizer_file(
      "null", R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})", kBytes));
  const FormsExample words(tokenizer_file("null", R"({"type":"BertPreTokenizer"})", kWords));
  CHECK(llama.of("▁the") == forms({" the"}));
  CHECK(bytes.of("Ġthe") == forms({" the"}));
  CHECK(words.of("the") == forms({" the"}));
  CHECK(llama.of("the") == forms({"the"}));
  CHECK(bytes.of("the") == forms({"the"}));
  CHECK(words.of("##s") == forms({"s"}));
  CHECK(llama.of("é") == forms({"\xC3\xA9"}));
  CHECK(bytes.of("Ã©") == forms({"\xC3\xA9"}));
  CHECK(bytes.of("Ã") == forms({"\xC3"}));
  CHECK(bytes.of("Ċ") == forms({"\n"}));
  CHECK(llama.of("<0xC3>") == std::vector<TokenForm>{{.text = "\xC3", .byte = true}});
  CHECK(llama.of("<unk>").empty());
  // WordPiece makes one token of a comma, after a space and after a word.
  CHECK(words.of(",") == forms({",", " ,"}));
  CHECK(words.of("##,") == std::vector<TokenForm>{{.text = ",", .unused = true}});
}

TEST_CASE("marks at the ends of words, and another sign for a space") {
  const FormsExample ends(tokenizer_file(
      "null", R"({"type":"BertPreTokenizer"})",
      R"({"type":"BPE","unk_token":"<unk>","end_of_word_suffix":"</w>","vocab":{"<unk>":0,"t":1,"h":2,"e":3,"e</w>":4,"th":5,"the</w>":6,",":7,",</w>":8},"merges":["t h","th e</w>"]})"));
  CHECK(ends.of("the</w>") == forms({" the", "the"}));
  CHECK(ends.of("th") == forms({"th", " th"}));
  CHECK(ends.of(",</w>") == forms({",", " ,"}));
  CHECK(ends.of(",") == std::vector<TokenForm>{{.text = ",", .unused = true}});
  CHECK(ends.pieces(" the") == Tokens{"the</w>"});
  const FormsExample sign(tokenizer_file(
      "null", R"({"type":"Metaspace","replacement":"_","prepend_scheme":"always","split":true})",
      R"({"type":"BPE","unk_token":"<unk>","vocab":{"<unk>":0,"_":1,"t":2,"h":3,"e":4,"th":5,"the":6,"_the":7},"merges":["t h","th e","_ the"]})"));
  CHECK(sign.of("_the") == forms({" the"}));
  CHECK(sign.of("the") == forms({"the"}));
  CHECK(sign.pieces(" the") == Tokens{"_the"});
}

TEST_CASE("pieces begin a word only where the text has a space") {
  const FormsExample llama(tokenizer_file(kPrepend, "null", kLlama));
  CHECK(llama.pieces(" the") == Tokens{"▁the"});
  CHECK(llama.pieces("the") == Tokens{"the"});
  CHECK(llama.pieces("the the") == Tokens{"the", "▁the"});
  CHECK(llama.pieces("\n") == Tokens{"<0x0A>"});
  CHECK(llama.pieces("\xC3") == Tokens{"<0xC3>"});
  CHECK(llama.pieces("th\xC3") == Tokens{"th", "<0xC3>"});
  CHECK(llama.pieces("\xFF") == Tokens{"?"});
  for (const char* scheme : {"always", "first", "never"}) {
    const FormsExample meta(
        tokenizer_file("null",
                       R"({"type":"Metaspace","replacement":"▁","split":true,"prepend_scheme":")" +
                           std::string(scheme) + "\"}",
                       kLlama));
    CAPTURE(scheme);
    CHECK(meta.pieces(" the") == Tokens{"▁the"});
    CHECK(meta.pieces("the") == Tokens{"the"});
  }
  for (const char* prefix : {"true", "false"}) {
    const FormsExample bytes(
        tokenizer_file("null",
                       R"({"type":"ByteLevel","trim_offsets":true,"add_prefix_space":)" +
                           std::string(prefix) + "}",
                       kBytes));
    CHECK(bytes.pieces(" the") == Tokens{"Ġthe"});
    CHECK(bytes.pieces("the") == Tokens{"the"});
    CHECK(bytes.pieces("\xC3") == Tokens{"Ã"});
  }
  const FormsExample words(tokenizer_file("null", R"({"type":"BertPreTokenizer"})", kWords));
  CHECK(words.pieces(" the") == Tokens{"the"});
  CHECK(words.pieces("ses") == Tokens{"##s", "##es"});
  CHECK(words.pieces(" thes") == Tokens{"the", "##s"});
  CHECK(words.pieces(",s") == Tokens{",", "s"});
  CHECK(words.pieces("the") == Tokens{"<unk>", "?"});
}

TEST_CASE("what a new token writes") {
  const FormsExample llama(tokenizer_file(kPrepend, "null", kLlama));
  CHECK(llama.forms->text_of_new("london") == " london");  // found where a word begins
  CHECK(llama.forms->text_of_new("▁london") == " london");
  const FormsExample meta(tokenizer_file(
      "null", R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})", kLlama));
  CHECK(meta.forms->text_of_new("london") == "london");
  CHECK(meta.forms->text_of_new(" london") == " london");
  CHECK(meta.forms->text_of_new("▁london") == " london");
  const FormsExample bytes(tokenizer_file(
      "null", R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})", kBytes));
  CHECK(bytes.forms->text_of_new("é") == "é");
  CHECK(bytes.forms->text_of_new("Ġx") == " x");
  const FormsExample words(tokenizer_file("null", R"({"type":"BertPreTokenizer"})", kWords));
  CHECK(words.forms->text_of_new("##ing") == "ing");
  CHECK(words.forms->text_of_new("covid") == " covid");
}

}  // namespace
}  // namespace masque::surgery
