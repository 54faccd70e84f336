#include "records/token_source.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/file/file.hpp"

namespace masque::records {

void TokenDigest::add(std::span<const TokenId> ids) {
  ids_->add(std::as_bytes(ids));
  tokens_ += ids.size();
  ends_->add(std::as_bytes(std::span(&tokens_, 1)));
}

std::string TokenDigest::digest() const {
  return xxh3_of(as_bytes(ids_->digest() + ends_->digest()));
}

void LengthTally::add(Index length) {
  const Index number = sequences_++;
  LengthCount& count = counts_.try_emplace(length, LengthCount{length, 0, number}).first->second;
  ++count.count;
}

std::vector<LengthCount> LengthTally::counts() const {
  std::vector<LengthCount> out;
  out.reserve(counts_.size());
  for (const auto& [length, count] : counts_) out.push_back(count);
  return out;
}

void TokenList::add(std::span<const TokenId> ids) {
  MASQUE_CHECK(!ids.empty());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  begins_.push_back(static_cast<Index>(ids_.size()));
  lengths_.add(std::ssize(ids));
}

void TokenList::read(Index begin, std::span<TokenId> out) const {
  MASQUE_CHECK(begin >= 0 && begin + std::ssize(out) <= tokens());
  std::copy_n(ids_.begin() + begin, out.size(), out.begin());
}

std::string TokenList::digest() const {
  TokenDigest digest;
  for (Index i = 0; i < sequences(); ++i) {
    digest.add(std::span(ids_).subspan(static_cast<std::size_t>(begin(i)),
                                       static_cast<std::size_t>(begin(i + 1) - begin(i))));
  }
  return digest.digest();
}

}  // namespace masque::records
