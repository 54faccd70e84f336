// ckpt diff: what two checkpoints differ in.
#include <algorithm>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "model/family_names.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/quantized/decoded_checkpoint.hpp"

namespace masque::ckpt {

namespace {

/// How tensors of two checkpoints are matched.
enum class NameMatch {
  kExact,   ///< by name
  kFamily,  ///< with or without base prefix, old and new names of layer norms
};

struct Options {
  std::string a;
  std::string b;
  store::CompareOptions compare;
  NameMatch names = NameMatch::kExact;
  cli::CommonOptions common;
};

std::string form_of(const store::TensorInfo* tensor, const store::OpaqueTensor* opaque) {
  if (opaque != nullptr) return fmt::format("{}{}", opaque->type, shape_text(opaque->shape));
  return tensor == nullptr
             ? ""
             : fmt::format("{}{}", dtype_name(tensor->dtype), shape_text(tensor->shape));
}

cli::ExitCode run(Options& o, cli::Session& session) {
  session.configure(o.common);
  const store::Checkpoint a = store::open_decoded(o.a);
  const store::Checkpoint b = store::open_decoded(o.b);
  for (const store::Checkpoint* checkpoint : {&a, &b}) {
    if (checkpoint->is_decoded())
      session.note(escape(checkpoint->path()) + ": " + checkpoint->decoded_note());
  }
  o.compare.threads = o.common.threads;
  o.compare.progress = session.progress("comparing");
  if (o.names == NameMatch::kFamily) o.compare.canonical = model::canonical_name;
  const auto changes = store::compare_checkpoints(a, b, o.compare);
  session.clear_progress();
  cli::Table table(session, o.common,
                   {"name", "change", "a", "b", "count", "max_abs", "max_rel", "first"});
  for (const store::TensorChange& change : changes) {
    const store::TensorDiff& d = change.diff;
    const bool one_sided =
        change.kind == store::ChangeKind::kOnlyA || change.kind == store::ChangeKind::kOnlyB;
    const bool compared = d.count > 0 || (change.kind == store::ChangeKind::kDtype &&
                                          change.a != nullptr && change.b != nullptr);
    const auto number = [&](auto value) { return compared ? cli::Cell(value) : cli::Cell::none(); };
    table.row({change.name, store::change_name(change.kind), form_of(change.a, change.opaque_a),
               form_of(change.b, change.opaque_b), number(d.count), number(d.max_absolute),
               number(d.max_relative), number(d.first)},
              one_sided ? cli::Tone::kDim : cli::Tone::kBad);
  }
  table.finish();
  std::size_t only_b = 0;
  for (const store::TensorChange& change : changes)
    only_b += change.kind == store::ChangeKind::kOnlyB;
  session.note(fmt::format("{} of {} tensors differ", changes.size(),
                           a.tensors().size() + a.opaque().size() + only_b));
  return changes.empty() ? cli::ExitCode::kDone : cli::ExitCode::kFound;
}

}  // namespace

void declare_diff(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "diff", "compares names, dtypes, shapes and values; exit code 1 if any differ");
  c.example("ckpt diff a.safetensors b.safetensors", "one line per tensor that differs");
  c.example("ckpt diff bert-base/ sharded-bert/ --rtol 1e-6", "ignores differences by rounding");
  cli::add_checkpoint(c, o->a, "A");
  c.argument("B", o->b, "another checkpoint");
  const double infinity = std::numeric_limits<double>::infinity();
  c.option("--atol", "X", o->compare.tolerance.absolute, cli::AllowedRange{0, infinity},
           "absolute tolerance: values are equal if |a − b| ≤ X + Y·|b|");
  c.option("--rtol", "Y", o->compare.tolerance.relative, cli::AllowedRange{0, infinity},
           "relative tolerance: Y in the same formula");
  c.choice("--names", o->names, {{"exact", NameMatch::kExact}, {"family", NameMatch::kFamily}},
           "family: ignores the base prefix (bert.), and LayerNorm.gamma equals LayerNorm.weight");
  add_threads(c, o->common);
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
