// Surroundings of every picture: margins, the title above, legend and note below.
#pragma once

#include "draw/scene.hpp"

namespace masque::draw {

/// An entry of a legend: a small box, or a piece of a curve.
struct Key {
  std::string name;
  Ink ink = kInkText;
  bool is_curve = false;
  Dash dash = Dash::kNone;
};

struct Page {
  std::string title;
  std::vector<Key> legend;
  const HeatScale* heat = nullptr;  ///< a colour bar, if set
  std::string note;
};

/// `body`, laid out at (0, 0), with everything around it; sets the size. Descriptions are the
/// caller's.
Scene finish_page(Scene body, const Page& page, const Metrics& metrics);

}  // namespace masque::draw
