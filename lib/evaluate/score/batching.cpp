#include "evaluate/score/batching.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::evaluate {

namespace {

/// The one logit of each row of a discriminator.
class LogitColumn : public model::Observer {
 public:
  explicit LogitColumn(const std::vector<double*>& out) : out_(out) {}
  void logits(Index, Index first, MatrixView<const float> rows) override { take(first, rows); }
  void logits(Index, Index first, MatrixView<const double> rows) override { take(first, rows); }

 private:
  template <class T>
  void take(Index first, MatrixView<const T> rows) {
    MASQUE_CHECK(rows.columns == 1);
    for (Index i = 0; i < rows.rows; ++i)
      *out_[static_cast<std::size_t>(first + i)] = static_cast<double>(rows.at(i, 0));
  }

  const std::vector<double*>& out_;
};

/// Hands logits to those who take them.
class JobLogits final : public LogitRowObserver {
 public:
  JobLogits(const std::vector<TakeLogits>& takes, const std::vector<Index>& first_rows,
            const std::vector<TakeDetections>& detections)
      : takes_(takes), first_rows_(first_rows), detections_(detections) {}
  void detections(Index sequence, MatrixView<const float> probabilities) override {
    give(sequence, probabilities);
  }
  void detections(Index sequence, MatrixView<const double> probabilities) override {
    give(sequence, probabilities);
  }

 private:
  template <class T>
  void give(Index sequence, MatrixView<const T> probabilities) const {
    const TakeDetections& own = detections_[static_cast<std::size_t>(sequence)];
    if (!own) return;
    std::vector<double> all;
    for (Index i = 0; i < probabilities.rows; ++i)
      all.push_back(static_cast<double>(probabilities.at(i, 0)));
    own(all);
  }
  void take(Index sequence, Index row, std::span<const double> logits) override {
    const auto at = static_cast<std::size_t>(sequence);
    takes_[at](static_cast<std::size_t>(row - first_rows_[at]), logits);
  }

  const std::vector<TakeLogits>& takes_;
  const std::vector<Index>& first_rows_;
  const std::vector<TakeDetections>& detections_;
};

/// log P(a token of the set), for each set, of each row.
class SetSums : public model::Observer {
 public:
  SetSums(const std::vector<TokenSet>& sets, const std::vector<double*>& out)
      : sets_(sets), out_(out) {}
  void logits(Index, Index first, MatrixView<const float> rows) override { take(first, rows); }
  void logits(Index, Index first, MatrixView<const double> rows) override { take(first, rows); }

 private:
  template <class T>
  void take(Index first, MatrixView<const T> rows) {
    std::vector<double> powers(static_cast<std::size_t>(rows.columns));
    for (Index i = 0; i < rows.rows; ++i) {
      double* const out = out_[static_cast<std::size_t>(first + i)];
      const std::span<const T> row = rows.row_span(i);
      const auto largest = static_cast<double>(*std::ranges::max_element(row));
      double whole = 0;
      for (std::size_t v = 0; v < row.size(); ++v)
        whole += powers[v] = std::exp(static_cast<double>(row[v]) - largest);
      for (std::size_t s = 0; s < sets_.size(); ++s) {
        double part = 0;
        const std::size_t known = std::min(row.size(), sets_[s].size());
        for (std::size_t v = 0; v < known; ++v) part += sets_[s][v] != 0 ? powers[v] : 0;
        out[s] = std::log(part) - std::log(whole);
      }
    }
  }

  const std::vector<TokenSet>& sets_;
  const std::vector<double*>& out_;
};

}  // namespace

void JobRunner::add(Job job) {
  throw_if_interrupted();
  const auto length = std::ssize(job.ids) + std::ssize(job.source);
  const auto before = static_cast<Index>(batch_.ids.size());
  MASQUE_CHECK(job.take ? job.out.empty() && job.targets.empty()
                        : job.out.size() == job.rows.size());
  MASQUE_CHECK(job.targets.empty() || job.targets.size() == job.rows.size());
  MASQUE_CHECK(sets_.empty() || job.set_out.size() == job.rows.size());
  if (before > 0 && tokens_ + length > batch_tokens_) {
    run();
    return add(std::move(job));
  }
  tokens_ += length;
  batch_.add(job.ids, {job.positions, job.segments, std::move(job.mask), std::move(job.query_mask),
                       job.source});
  // Scoring hides tokens of two streams by masks.
  batch_.masks_join = model_.design().streams == model::Streams::kTwo;
  MASQUE_CHECK(job.take || !job.take_detections);
  if (job.take) {
    takes_.push_back(std::move(job.take));
    request_.detections = request_.detections || static_cast<bool>(job.take_detections);
    take_detections_.push_back(std::move(job.take_detections));
    first_rows_.push_back(std::ssize(request_.rows));
  }
  for (const Index row : job.rows) request_.rows.push_back(before + row);
  request_.targets.insert(request_.targets.end(), job.targets.begin(), job.targets.end());
  out_.insert(out_.end(), job.out.begin(), job.out.end());
  set_out_.insert(set_out_.end(), job.set_out.begin(), job.set_out.end());
}

void JobRunner::run() {
  if (batch_.sequences() == 0) return;
  if (!takes_.empty()) {
    MASQUE_CHECK(std::ssize(takes_) == batch_.sequences());
    request_.logits = true;
    JobLogits rows(takes_, first_rows_, take_detections_);
    model_.run(batch_, request_, &rows);
  } else if (request_.targets.empty()) {
    request_.logits = true;
    LogitColumn column(out_);
    model_.run(batch_, request_, &column);
  } else {
    MASQUE_CHECK(request_.targets.size() == request_.rows.size());
    request_.logits = !sets_.empty();
    request_.excluded = excluded_;
    SetSums sums(sets_, set_out_);
    const std::vector<double> values =
        model_.run(batch_, request_, sets_.empty() ? nullptr : &sums);
    for (std::size_t i = 0; i < out_.size(); ++i) *out_[i] = values[i];
  }
  done_ += static_cast<std::uint64_t>(batch_.sequences());
  batch_ = {};
  tokens_ = 0;
  request_ = {};
  out_.clear();
  takes_.clear();
  take_detections_.clear();
  first_rows_.clear();
  set_out_.clear();
}

void LogitRowObserver::logits(Index sequence, Index first, MatrixView<const float> rows) {
  std::vector<double> row;
  for (Index i = 0; i < rows.rows; ++i) {
    const std::span<const float> given = rows.row_span(i);
    row.assign(given.begin(), given.end());
    take(sequence, first + i, row);
  }
}

void LogitRowObserver::logits(Index sequence, Index first, MatrixView<const double> rows) {
  for (Index i = 0; i < rows.rows; ++i) take(sequence, first + i, rows.row_span(i));
}

}  // namespace masque::evaluate
