#include "output.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/edit_distance.hpp"
#include "draw/figure_file.hpp"
#include "draw/terminal.hpp"
#include "exchange/mask_file.hpp"
#include "mask/report.hpp"

namespace masque::mask_viz {

namespace {

/// Masks of at most so many queries have a line for each.
constexpr int kSingleRows = 16;

}  // namespace

void print_figure(cli::Session& session, int panels,
                  const std::function<draw::Figure(Index max_cells)>& make) {
  const draw::TerminalStyle style{.width = session.terminal_width(),
                                  .unicode = session.takes_utf8(),
                                  .color = session.shows_color(),
                                  .single_rows = kSingleRows};
  draw::TerminalStyle share = style;
  share.width = std::max(12, style.width / panels - 2);
  session.print(draw::terminal(make(draw::terminal_cells(share)), style));
}

void write_mask_or_picture(const std::string& path, const mask::Mask& mask,
                           const draw::MaskFigureRequest& picture, bool force) {
  if (draw::is_picture_name(path)) return draw::write_picture(path, mask_figure(mask, picture));
  exchange::write_mask(path, mask, {.force = force});
}

const exchange::Convention& convention_of(const std::string& name) {
  const exchange::Convention* found = exchange::find_convention(name);
  if (found != nullptr) return *found;
  std::vector<std::string_view> names;
  for (const exchange::Convention* known : exchange::conventions()) names.push_back(known->name);
  const auto near = nearest(name, names);
  throw UsageError(fmt::format("no convention '{}'{}", escape(name),
                               near ? fmt::format("; did you mean '{}'?", *near)
                                    : fmt::format(", expected one of {}", fmt::join(names, " "))));
}

void write_convention(const std::string& path, const mask::Mask& mask,
                      const exchange::Convention& convention, const std::string& name, bool force,
                      cli::Session& session) {
  const bool known = path.ends_with(".npy") || path.ends_with(".npz") ||
                     path.ends_with(".safetensors") || path.ends_with(".tsv");
  if (!known) {
    throw UsageError(
        fmt::format("{}: expected a name that ends in .npy .npz .safetensors .tsv", escape(path)));
  }
  exchange::check_dense_size(path, mask.lengths(), convention.cell_bits,
                             force || convention.cell_bits == 0);
  // Counted before the file is there: an interrupted run leaves none.
  const std::vector<Index> visible =
      convention.empty_row_warning ? mask::visible_keys(mask) : std::vector<Index>();
  exchange::write_matrix(path, convention.encode(mask, name), std::string(convention.header));
  const auto empty = std::count(visible.begin(), visible.end(), 0);
  if (empty == 0) return;
  const auto first = std::find(visible.begin(), visible.end(), 0) - visible.begin();
  session.note(
      fmt::format("{} of {} queries read no key (the first is {}): other programs may let such a "
                  "query read all keys",
                  empty, visible.size(), first));
}

void add_large_output(cli::Command& command, bool& force) {
  command.flag("--force", force, "allow files of more than 2^31 cells");
}

}  // namespace masque::mask_viz
