// Records of training data with labels: a small model takes a step on them, so that ids, positions,
// segments, masks and labels of a file reach every table and every kernel.
#include <cmath>

#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "fuzz/small_tokenizer.hpp"
#include "support/memory_file.hpp"
#include "train/run/run.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

train::RunOptions run_options(unsigned choice) {
  train::RunOptions options;
  options.objective = (choice & 1U) != 0 ? "mlm" : "records";
  options.requested.allow_leak = true;
  options.design.num_hidden_layers = 1;
  options.design.hidden_size = 4;
  options.design.num_attention_heads = 2;
  options.design.intermediate_size = 4;
  options.design.position = (choice & 2U) != 0 ? "rope" : "learned";
  options.trainer.schedule.steps = 2;
  options.trainer.batch_size = 2;
  return options;
}

void check(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input[0]);
  const test::MemoryFile file(input.substr(1));
  test::accepts([&] {
    train::CorpusOptions options{.format = train::CorpusFormat::kRecords, .length = 12};
    options.labels = (choice & 1U) == 0;
    options.threads = 1;
    train::Corpus corpus = train::read_corpus(file.path(), test::small_tokenizer(), options);
    train::TrainingRun run(run_options(choice), test::small_tokenizer(), std::move(corpus));
    const train::StepReport report = run.trainer().step();
    test::require(std::isfinite(report.gradient_norm), "a gradient that is no number");
    run.evaluate(run.corpus(), 2);
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_lines>)
