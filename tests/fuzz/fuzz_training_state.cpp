// Any bytes as the training.safetensors of a small run that goes on: taken whole, or refused.
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "support/memory_file.hpp"
#include "support/temp_folder.hpp"
#include "train/run/run.hpp"
#include "train/run/trainer_state.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

/// A run of a model with one layer on four sequences.
std::unique_ptr<train::TrainingRun> make_run() {
  static const test::MemoryFile vocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  text::Tokenizer tokenizer = text::Tokenizer::open("chars:" + vocabulary.path());
  train::Corpus corpus;
  for (const TokenId last : {1, 5, 5, 1}) corpus.add(std::vector<TokenId>{2, 5, last, 3});
  train::RunOptions options;
  options.objective = "clm";
  options.design.num_hidden_layers = 1;
  options.design.hidden_size = 2;
  options.design.num_attention_heads = 1;
  options.design.intermediate_size = 2;
  options.design.position = "none";
  options.trainer.schedule.steps = 4;
  options.trainer.batch_size = 2;
  options.settings = {{"steps", "4"}};
  return std::make_unique<train::TrainingRun>(std::move(options), std::move(tokenizer),
                                              std::move(corpus));
}

void check(std::string_view input) {
  static const std::unique_ptr<train::TrainingRun> run = make_run();
  static const test::TempFolder folder = test::TempFolder::in_memory();
  test::write_file(folder / "training.safetensors", input);
  test::accepts([&] { train::TrainingRun::spent_of(folder.path()); });
  test::accepts([&] { train::TrainingRun::saved_setting(folder.path(), "steps"); });
  test::accepts([&] {
    const std::string path = folder / "training.safetensors";
    const auto all = [](const std::string&) { return true; };
    train::read_moments(store::open_checkpoint(path), path, all, run->trainer(), run->parameters());
  });
  if (!test::accepts([&] { run->resume(folder.path()); })) return;
  test::require(run->trainer().done() >= 0, "fewer than no steps");
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_safetensors)
