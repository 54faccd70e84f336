#include "train/data/objective.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/registry.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

using ObjectiveKinds = Registry<ObjectiveKind>;

}  // namespace

ObjectiveRegistration::ObjectiveRegistration(const ObjectiveKind& kind) {
  ObjectiveKinds::of_process().add(kind);
}

std::span<const ObjectiveKind* const> objectives() { return ObjectiveKinds::of_process().all(); }

const ObjectiveKind& find_objective(std::string_view name) {
  if (const ObjectiveKind* found = ObjectiveKinds::of_process().find(name)) return *found;
  throw UsageError(fmt::format("{}: found '{}', expected one of {}", field("objective"),
                               escape(name), ObjectiveKinds::of_process().names()));
}

std::unique_ptr<records::Corruption> make_dropping(records::DropOptions drop, std::uint64_t seed,
                                                   const records::TokenTable& tokens) {
  if (!(drop.rate >= 0 && drop.rate < 1))
    throw UsageError(fmt::format("{}: found {}, expected a share from 0 to less than 1",
                                 field("drop"), drop.rate));
  drop.seed = seed;
  return drop.rate == 0 ? nullptr : make_drop(drop, tokens);
}

Objective::Objective(const ObjectiveOptions& options) : options_(options) {
  drop_ = make_dropping(options.drop, options.seed, options.tokens);
}

void Objective::check(const Corpus& corpus) const {
  if (corpus.pairs() && !options_.pairs) {
    throw InputError("sequences of two segments, expected those of one");
  }
}

records::Record Objective::record_of(const CorpusItem& item, std::uint64_t epoch) const {
  return dropped_record(item, epoch, drop_.get());
}

records::MlmOptions Objective::mlm_options() const {
  records::MlmOptions mlm = options_.mlm;
  mlm.selection.seed = options_.seed;
  return mlm;
}

Example Objective::example(const CorpusItem& item, std::uint64_t epoch) const {
  records::Record record = record_of(item, epoch);
  return make(record);
}

Example Objective::never_selected_example(const CorpusItem& /*item*/, std::uint64_t /*draw*/,
                                          std::uint64_t /*epochs*/) const {
  check_failed("has_never_selected()", __FILE__, __LINE__);
}

}  // namespace masque::train
