// Any bytes as a model of llama.cpp: its config, its tensors and its tokenizer are read or refused.
#include "base/error.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "model/weights.hpp"
#include "store/checkpoint.hpp"
#include "store/gguf/gguf_tokenizer.hpp"
#include "support/temp_folder.hpp"
#include "text/open/gguf_vocabulary.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void check(std::string_view input) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  const std::string path = folder / "in.gguf";
  test::write_file(path, std::string(input));
  test::accepts([&] {
    const auto loaded = model::load_model<float>(path);
    const model::Design& design = loaded.design;
    MASQUE_CHECK(loaded.weights.word_table.view.rows == design.vocab_size);
    MASQUE_CHECK(std::ssize(loaded.weights.layers) == design.num_hidden_layers);
  });
  test::accepts([&] {
    const auto vocabulary = store::gguf_vocabulary(store::open_checkpoint(path));
    const text::Tokenizer tokenizer(text::read_gguf_vocabulary(vocabulary, path));
    MASQUE_CHECK(tokenizer.size() >= vocabulary.tokens.size());
    tokenizer.encode("a b", {});
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_gguf)
