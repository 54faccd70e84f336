// Surroundings of every picture: margins, the title above, legend and note below.
#pragma once

#include "draw/scene.hpp"

namespace masque::draw {

/// An entry of a legend: a small box, or a piece of a curve.
struct Key {
  std::string name;         ///< next to it
  Ink ink = kInkText;       ///< its colour
  bool is_curve = false;    ///< a piece of a curve; else a box
  Dash dash = Dash::kNone;  ///< of a curve
};

/// What stands around a picture.
struct Page {
  std::string title;                ///< at most three lines; empty: none
  std::vector<Key> legend;          ///< in rows that wrap
  const HeatScale* heat = nullptr;  ///< a colour bar, if set
  std::string note;                 ///< at most six lines; empty: none
};

/// `body`, laid out at (0, 0) with its width and height, with everything of `page` around it, with
/// texts of the sizes of `metrics`; sets the size. Title and description of the scene are the
/// caller's.
Scene finish_page(Scene body, const Page& page, const Metrics& metrics);

}  // namespace masque::draw
