#include "train/loss/mae_loss.hpp"

#include "base/error.hpp"

namespace masque::train {

template <class T>
MaeLoss<T>::MaeLoss(const ObjectiveOptions& requested, const MaeModel& model,
                    Parameters<T>& parameters, kernel::Precision precision)
    : objective_(find_objective("mae-mask").make(requested)),
      encoder_(model.encoder, model.encoder_map, parameters, precision),
      decoder_(model.decoder, model.decoder_map, parameters, precision),
      head_(model.decoder, model.decoder_map, parameters, precision) {}

template <class T>
void MaeLoss<T>::prepare() {
  encoder_.prepare();
  decoder_.prepare();
  head_.prepare();
}

template <class T>
void MaeLoss<T>::run_chunk(Chunks& chunks, double scale, const DropoutOptions& dropout, bool learns,
                           LossReport& report) {
  DropoutOptions other = dropout;
  other.seed = ~dropout.seed;  // the decoder's has nothing to do with the encoder's
  Matrix<T>& given = decoder_tape_.given;
  given.resize(chunks.encoder.rows(), encoder_.design().hidden_size);
  encoder_.forward(chunks.encoder, dropout, encoder_tape_, given.view());
  const auto wanted = static_cast<Index>(chunks.decoder.wanted.size());
  last_.resize(wanted, decoder_.design().hidden_size);
  decoder_.forward(chunks.decoder, other, decoder_tape_, last_.view());
  if (learns) d_last_.resize(wanted, decoder_.design().hidden_size);
  const std::vector<double> weights(chunks.decoder.wanted.size(), scale);
  const LossSums<T> sums = head_.run({last_.view(), chunks.decoder.targets, weights},
                                     learns ? d_last_.view() : MatrixView<T>());
  report.loss += static_cast<double>(sums.loss) / scale;
  report.weight += static_cast<double>(wanted);
  report.rows += wanted;
  report.correct += sums.correct;
  if (!learns) return;
  decoder_tape_.wants_given = encoder_.learns();
  decoder_.backward(chunks.decoder, other, decoder_tape_, d_last_.view());
  if (!encoder_.learns()) return;
  encoder_.backward(chunks.encoder, dropout, encoder_tape_, decoder_tape_.d_given.view());
}

template <class T>
StepLosses MaeLoss<T>::run(std::span<const StepItem> items, const DropoutOptions* dropout) {
  StepLosses losses;
  std::vector<MaeExamples> examples;
  examples.reserve(items.size());
  Index total = 0;
  for (const StepItem& item : items) {
    const Example hidden = objective_->example(item.item, item.epoch);
    losses.tokens += hidden.size();
    if (hidden.rows.empty()) continue;
    total += std::ssize(hidden.rows);
    examples.push_back(mae_examples(hidden));
  }
  LossReport report;
  DropoutOptions own = dropout != nullptr ? *dropout : DropoutOptions();
  auto weight = static_cast<double>(total);
  if (dropout != nullptr) {
    Index rows = 0;
    for (const MaeExamples& one : examples) rows += one.decoder.size();
    const RankTotals whole = totals(ranks(), weight, rows);
    weight = whole.weight;
    own.first_row += whole.rows_before;
  }
  for (std::size_t next = 0; next < examples.size();) {
    Chunks chunks;
    const std::size_t first = next;
    while (next < examples.size() &&
           (next == first || chunks.decoder.rows() + examples[next].decoder.size() <= chunk_rows)) {
      const MaeExamples& one = examples[next++];
      for (const Index row : one.given) chunks.decoder.given.push_back(chunks.decoder.rows() + row);
      chunks.encoder.add(one.encoder);
      chunks.decoder.add(one.decoder);
    }
    run_chunk(chunks, 1 / weight, own, dropout != nullptr, report);
    own.first_row += chunks.decoder.rows();
  }
  losses.parts.push_back({"", 1, report});
  return losses;
}

template <class T>
StepLosses MaeLoss<T>::add_gradients(std::span<const StepItem> items,
                                     const DropoutOptions& dropout) {
  StepLosses losses = run(items, &dropout);
  losses.sum(ranks());
  return losses;
}

template <class T>
StepLosses MaeLoss<T>::evaluate(std::span<const StepItem> items) {
  return run(items, nullptr);
}

template class MaeLoss<float>;
template class MaeLoss<double>;

}  // namespace masque::train
