// UniLM: one model, bidirectional, left to right, right to left, and from source to target.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class Unilm final : public Objective {
 public:
  explicit Unilm(const ObjectiveOptions& given) : Objective(given) {
    if (given.pairs) return;
    records::PrefixOptions prefix = given.prefix;
    prefix.seed = given.seed;
    if (given.mlm.draws > 0 || given.mlm.fixed_selection) {
      throw UsageError(fmt::format(
          "{} has no effect with the objective unilm, which draws its own masks; remove it",
          field(given.mlm.draws > 0 ? "draws" : "fixed_selection")));
    }
    prefix_ =
        make_prefix(prefix, prefix.mix[0] > 0 ? make_mlm(mlm_options(), given.tokens) : nullptr);
  }

  void adapt(model::Design& design) const override {
    adapt_design({.objective = "unilm",
                  .segments = true,
                  .own_masks = true,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
  }

  void check(const Corpus& corpus) const override {
    if (options().pairs && !corpus.pairs()) {
      throw InputError(corpus.source(), "sequences with one segment, expected sources and targets");
    }
    Objective::check(corpus);
    for (Index i = 0; corpus.pairs() && i < corpus.size(); ++i)
      source_size(corpus.item(i).segments);
  }

 protected:
  Example make(records::Record& record) const override {
    if (options().pairs) {
      label_target(record);
      return example_of(record);
    }
    records::Scratch scratch;
    records::Tally tally;
    prefix_->apply(record, scratch, tally);
    return example_of(record);
  }

 private:
  template <class Segments>
  static std::size_t source_size(const Segments& segments) {
    const auto target = std::find(segments.begin(), segments.end(), 1);
    if (std::find(target, segments.end(), 0) != segments.end()) {
      throw InputError("seg: a source token follows the target, expected 0 … 0 1 … 1");
    }
    return static_cast<std::size_t>(target - segments.begin());
  }

  /// The last source token predicts the first of the target.
  static void label_target(records::Record& record) {
    const std::size_t n = record.size();
    const std::size_t source = record.seg.present ? source_size(record.seg.values) : n;
    std::vector<std::int32_t>& labels = record.labels.make(n);
    std::fill(labels.begin(), labels.end(), records::kNoLabel);
    for (std::size_t i = std::max<std::size_t>(source, 1); i < n; ++i) {
      labels[i - 1] = record.ids[i];
    }
    record.mask = fmt::format("unilm({},{})", source, n - source);
  }

  std::unique_ptr<records::Corruption> prefix_;
};

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const Unilm>(options);
}

const ObjectiveKind kUnilm{"unilm",
                           "one of four per sequence: masked, to a target, left to right, right to "
                           "left; of pairs always to the target",
                           "UniLM, Dong et al. 2019, arXiv:1905.03197",
                           {.options = {"rate", "unit", "choice", "span_p", "span_longest", "split",
                                        "replace", "source", "mix", "drop"}},
                           read_objective};
const ObjectiveRegistration kUnilmRegistration{kUnilm};

}  // namespace

}  // namespace masque::train
