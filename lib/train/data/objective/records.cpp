// What records say: their labels, under their masks and weights.
#include "base/error.hpp"
#include "mask/builtin.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

class Records final : public Objective {
 public:
  using Objective::Objective;

  void adapt(model::Design& design) const override {
    const RecordNeeds& needs = options().records;
    const bool fixed = needs.streams == model::Streams::kFixedKeys;
    const bool causal = needs.causal && !two_streams();
    const bool next = causal || (needs.predicts_next && !two_streams());
    model::HeadKind head = next ? model::HeadKind::kCausal : model::HeadKind::kMasked;
    if (needs.labels == LabelKind::kReplaced) head = model::HeadKind::kDiscriminator;
    adapt_design({.objective = "records",
                  .streams = needs.streams,
                  .mask = causal  ? model::DefaultMask::kCausal
                          : fixed ? model::DefaultMask::kOthers
                                  : model::DefaultMask::kFull,
                  .head = head,
                  .other_mask = true,
                  .segments = options().pairs,
                  .own_masks = options().own_masks,
                  .allow_leak = options().allow_leak,
                  .vocab_size = options().tokens.size,
                  .mask_token = options().tokens.mask},
                 design);
    if (head == model::HeadKind::kDiscriminator) {
      // As ELECTRA has it.
      design.head = {};
      design.head.kind = head;
      design.head.transform = true;
      design.head.activation = design.activation;
      design.head.tied = false;
    }
    if (!next) return;
    // As of clm: states go to the vocabulary as they are.
    design.head.transform = false;
    design.head.norm.reset();
    design.head.activation = model::HeadDesign().activation;
  }

  void check(const Corpus& corpus) const override {
    Objective::check(corpus);
    if (corpus.labels() != options().records.labels)
      throw InputError(corpus.source(),
                       "sequences without labels of the kind that the run trains on");
  }

  bool takes_masks() const override { return true; }

 protected:
  Example make(records::Record& record) const override {
    Example out = example_of(record);
    const mask::Lengths lengths{out.size(), out.size()};
    // A mask that is written down replaces the design's.
    if (record.mask && !out.mask) out.mask = mask::parse_mask("full").bind(lengths);
    if (!two_streams()) return out;
    out.query_mask = out.mask ? *out.mask : mask::parse_mask("tta").bind(lengths);
    // In the content stream a token always reads itself too.
    out.mask = *out.query_mask | mask::band(lengths, 0, 0);
    return out;
  }

 private:
  bool two_streams() const { return options().records.streams == model::Streams::kTwo; }
};

/// Whether the model is an encoder with one stream, as BERT and ELECTRA are.
bool encodes(const ObjectiveOptions& options) {
  return !options.records.predicts_next && options.records.streams == model::Streams::kOne;
}

std::unique_ptr<const Objective> read_objective(const ObjectiveOptions& options) {
  return std::make_unique<const Records>(options);
}

const ObjectiveKind kRecords{
    "records",
    "what records say: their labels, masks, positions and weights",
    "droptoken; transformers' data collators",
    {.options = {"streams", "mask"}, .two_token_types = encodes, .reads_labels = true},
    read_objective};
const ObjectiveRegistration kRecordsRegistration{kRecords};

}  // namespace

}  // namespace masque::train
