// Any bytes as training data, in a format that the first byte says: lines, blocks, pairs, records
// with labels or without, columns with labels. All lists of a sequence are as long as its ids, and
// threads change nothing.
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "fuzz/small_tokenizer.hpp"
#include "support/memory_file.hpp"
#include "train/data/corpus.hpp"
#include "train/data/labelled_corpus.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

template <class List>
bool fits(const List& list, std::size_t size) {
  return list.empty() || list.size() == size;
}

void look_at(const train::Corpus& corpus) {
  test::require(corpus.size() >= 1, "an empty corpus");
  for (Index i = 0; i < corpus.size(); ++i) {
    const train::CorpusItem item = corpus.item(i);
    const std::size_t size = item.ids.size();
    test::require(size >= 1 && fits(item.segments, size) && fits(item.positions, size) &&
                      fits(item.labels, size) && fits(item.weights, size),
                  "a list of another length");
    for (const TokenId id : item.ids)
      test::require(id >= 0 && static_cast<std::size_t>(id) < test::small_tokenizer().size(),
                    "an id beyond");
  }
  corpus.position_end();
  corpus.longest();
}

void read(const std::string& path, unsigned choice) {
  train::CorpusOptions options;
  options.format = static_cast<train::CorpusFormat>(choice % 4);
  options.length = 12;
  options.labels = (choice & 4U) != 0;
  options.dropped = (choice & 8U) != 0;
  options.threads = 1;
  const train::Corpus corpus = train::read_corpus(path, test::small_tokenizer(), options);
  look_at(corpus);
  options.threads = 2;
  if ((choice & 16U) == 0) return;
  test::require(
      train::read_corpus(path, test::small_tokenizer(), options).digest() == corpus.digest(),
      "another corpus with two threads");
}

void read_labels(const std::string& path, unsigned choice) {
  train::LabelledOptions options;
  options.length = 12;
  options.header = (choice & 1U) != 0;
  if (options.header) {
    options.text_columns = {"a", "b"};
    options.label_column = "c";
  } else if ((choice & 2U) != 0) {
    options.text_columns = {"1", "3"};
  }
  const train::LabelledCorpus corpus = train::read_labelled(path, test::small_tokenizer(), options);
  look_at(corpus.corpus);
  const auto names = train::label_names(corpus);
  test::require(train::label_numbers(corpus, names).size() == corpus.labels.size(), "labels");
}

void check(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input[0]);
  const test::MemoryFile file(input.substr(1));
  test::accepts([&] {
    if ((choice & 32U) != 0) {
      read_labels(file.path(), choice);
    } else {
      read(file.path(), choice);
    }
  });
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_lines>)
