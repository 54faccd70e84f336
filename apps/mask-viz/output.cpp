#include "output.hpp"

#include <algorithm>

#include "draw/figure_file.hpp"
#include "draw/terminal.hpp"
#include "exchange/mask_file.hpp"

namespace masque::mask_viz {

void print_figure(cli::Session& session, int panels,
                  const std::function<draw::Figure(Index max_cells)>& make) {
  const draw::TerminalStyle style{.width = session.terminal_width(),
                                  .unicode = session.takes_utf8(),
                                  .color = session.shows_color()};
  draw::TerminalStyle share = style;
  share.width = std::max(12, style.width / panels - 2);
  session.print(draw::terminal(make(draw::terminal_cells(share)), style));
}

void write_mask_or_picture(const std::string& path, const Mask& mask,
                           const draw::MaskFigureRequest& picture, bool force) {
  if (draw::is_picture_name(path)) return draw::write_picture(path, mask_figure(mask, picture));
  write_mask(path, mask, {.force = force});
}

}  // namespace masque::mask_viz
