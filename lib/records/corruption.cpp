#include "records/corruption.hpp"

#include <cmath>

#include <fmt/format.h>

namespace masque::records {

namespace {

constexpr std::uint64_t kKnownEpochs = 64;

RandomStream stream_of(std::uint64_t seed, const std::string& purpose, std::uint64_t epoch) {
  return {seed, epoch == 0 ? purpose : fmt::format("{} epoch {}", purpose, epoch)};
}

}  // namespace

void Tally::add(const Tally& other) {
  records += other.records;
  tokens_in += other.tokens_in;
  tokens_out += other.tokens_out;
  ordinary += other.ordinary;
  selected += other.selected;
  masked += other.masked;
  kept += other.kept;
  random += other.random;
  dropped += other.dropped;
  for (std::size_t i = 0; i < errors.size(); ++i) errors[i] += other.errors[i];
}

RandomSource::RandomSource(std::uint64_t seed, std::string_view purpose)
    : seed_(seed), purpose_(purpose) {
  for (std::uint64_t epoch = 0; epoch < kKnownEpochs; ++epoch) {
    first_.push_back(stream_of(seed, purpose_, epoch));
  }
}

RandomStream RandomSource::stream(std::uint64_t epoch, std::uint64_t record) const {
  const RandomStream stream =
      epoch < kKnownEpochs ? first_[epoch] : stream_of(seed_, purpose_, epoch);
  return stream.for_item(record);
}

std::uint64_t share_threshold(double share) {
  return static_cast<std::uint64_t>(std::llround(share * 0x1p32));
}

}  // namespace masque::records
