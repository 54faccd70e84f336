#include "probe/score/batching.hpp"

#include "base/error.hpp"

namespace masque::probe {

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
class LogitRows : public model::Observer {
 public:
  LogitRows(const std::vector<TakeLogits>& takes, const std::vector<Index>& first_rows)
      : takes_(takes), first_rows_(first_rows) {}
  void logits(Index sequence, Index first, MatrixView<const float> rows) override {
    for (Index i = 0; i < rows.rows; ++i) {
      const std::span<const float> row = rows.row_span(i);
      give(sequence, first + i, std::vector<double>(row.begin(), row.end()));
    }
  }
  void logits(Index sequence, Index first, MatrixView<const double> rows) override {
    for (Index i = 0; i < rows.rows; ++i) give(sequence, first + i, rows.row_span(i));
  }

 private:
  void give(Index sequence, Index row, std::span<const double> logits) const {
    const auto at = static_cast<std::size_t>(sequence);
    takes_[at](static_cast<std::size_t>(row - first_rows_[at]), logits);
  }

  const std::vector<TakeLogits>& takes_;
  const std::vector<Index>& first_rows_;
};

}  // namespace

void JobRunner::add(Job job) {
  const auto length = static_cast<Index>(job.ids.size());
  const auto before = static_cast<Index>(batch_.ids.size());
  MASQUE_CHECK(job.take ? job.out.empty() && job.targets.empty()
                        : job.out.size() == job.rows.size());
  MASQUE_CHECK(job.targets.empty() || job.targets.size() == job.rows.size());
  if (before > 0 && before + length > batch_tokens_) {
    run();
    return add(std::move(job));
  }
  batch_.add(job.ids, {{}, job.segments, std::move(job.mask), std::move(job.query_mask)});
  if (job.take) {
    takes_.push_back(std::move(job.take));
    first_rows_.push_back(std::ssize(request_.rows));
  }
  for (const Index row : job.rows) request_.rows.push_back(before + row);
  request_.targets.insert(request_.targets.end(), job.targets.begin(), job.targets.end());
  out_.insert(out_.end(), job.out.begin(), job.out.end());
}

void JobRunner::run() {
  if (batch_.sequences() == 0) return;
  if (!takes_.empty()) {
    MASQUE_CHECK(std::ssize(takes_) == batch_.sequences());
    request_.logits = true;
    LogitRows rows(takes_, first_rows_);
    model_.run(batch_, request_, &rows);
  } else if (request_.targets.empty()) {
    request_.logits = true;
    LogitColumn column(out_);
    model_.run(batch_, request_, &column);
  } else {
    MASQUE_CHECK(request_.targets.size() == request_.rows.size());
    const std::vector<double> values = model_.run(batch_, request_);
    for (std::size_t i = 0; i < out_.size(); ++i) *out_[i] = values[i];
  }
  done_ += static_cast<std::uint64_t>(batch_.sequences());
  batch_ = {};
  request_ = {};
  out_.clear();
  takes_.clear();
  first_rows_.clear();
}

}  // namespace masque::probe
