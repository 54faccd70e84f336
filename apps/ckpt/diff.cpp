// ckpt diff: what two checkpoints differ in.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/string/name_table.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands.hpp"
#include "model/family_names.hpp"
#include "store/gguf/gguf_model.hpp"
#include "store/inspect/compare_checkpoints.hpp"
#include "store/quantized/decoded_checkpoint.hpp"

namespace masque::ckpt {

namespace {

/// How tensors of two checkpoints are matched.
enum class NameMatch {
  kExact,   ///< by name
  kFamily,  ///< with or without base prefix, old and new names of layer norms, those of llama.cpp
};

constexpr std::array<std::pair<std::string_view, NameMatch>, 2> kNameMatches{
    {{"exact", NameMatch::kExact}, {"family", NameMatch::kFamily}}};

struct Options {
  std::string a;
  std::string b;
  store::CompareOptions compare;
  std::optional<NameMatch> names;
  cli::CommonOptions common;
};

std::string form_of(const std::string& type, const store::TensorInfo* tensor,
                    const store::OpaqueTensor* opaque) {
  if (tensor == nullptr && opaque == nullptr) return "";
  return type + shape_text(tensor != nullptr ? tensor->shape : opaque->shape);
}

/// How tensors are matched, where no option says it.
NameMatch names_for(const store::Checkpoint& a, const store::Checkpoint& b, cli::Session& session) {
  const bool first = store::runs_gguf(a);
  if (first == store::runs_gguf(b)) return NameMatch::kExact;
  session.note(
      fmt::format("{}: tensors of llama.cpp are compared as those of transformers (--names "
                  "family)",
                  (first ? a : b).path()));
  return NameMatch::kFamily;
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
  if ((o.names ? *o.names : names_for(a, b, session)) == NameMatch::kFamily) {
    o.compare.canonical = model::canonical_name;
    o.compare.as_transformers = true;
  }
  const auto changes = store::compare_checkpoints(a, b, o.compare);
  session.clear_progress();
  cli::Table table(session, o.common,
                   {"name", "change", "a", "b", "count", "max_abs", "max_rel", "first",
                    "relative_error", "cosine"});
  for (const store::TensorChange& change : changes) {
    const store::TensorDiff& d = change.diff;
    const bool one_sided =
        change.kind == store::ChangeKind::kOnlyA || change.kind == store::ChangeKind::kOnlyB;
    const bool compared = d.count > 0 || (change.kind == store::ChangeKind::kDtype &&
                                          change.a != nullptr && change.b != nullptr);
    const auto number = [&](auto value) { return compared ? cli::Cell(value) : cli::Cell::none(); };
    table.row(
        {change.name, store::change_name(change.kind),
         form_of(change.type_a, change.a, change.opaque_a),
         form_of(change.type_b, change.b, change.opaque_b), number(d.count), number(d.max_absolute),
         number(d.max_relative), number(d.first), number(d.relative_error), number(d.cosine)},
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
  c.example("ckpt diff llama/ llama-q8_0.gguf", "the error of each tensor of a quantised copy");
  cli::add_checkpoint(c, o->a, "A");
  c.argument("B", o->b, "another checkpoint");
  const double infinity = std::numeric_limits<double>::infinity();
  c.option("--atol", "X", o->compare.tolerance.absolute, cli::AllowedRange{0, infinity},
           "absolute tolerance: values are equal if |a − b| ≤ X + Y·|b|");
  c.option("--rtol", "Y", o->compare.tolerance.relative, cli::AllowedRange{0, infinity},
           "relative tolerance: Y in the same formula");
  c.choice("--names", o->names, NameTable<NameMatch>(kNameMatches),
           "family: ignores the base prefix (bert.), LayerNorm.gamma equals LayerNorm.weight, and "
           "models of llama.cpp have the names of transformers, decoded where they are quantised "
           "[exact; family if one of the two is such a model]");
  add_threads(c, o->common);
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::ckpt
