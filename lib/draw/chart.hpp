// Curves over two axes.
#pragma once

#include <string>
#include <vector>

namespace masque::draw {

/// Points joined in order. A point that is not finite, or not positive on a logarithmic axis, is
/// left out and interrupts the line.
struct Curve {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
};

struct ChartAxis {
  std::string name;
  bool logarithmic = false;
};

/// Up to 12 curves look different: four colours, then dashed, then dotted.
struct Chart {
  std::string title;
  std::string description;  ///< made from the names if empty
  ChartAxis x;
  ChartAxis y;
  std::vector<Curve> curves;
  std::string note;  ///< under the picture
};

}  // namespace masque::draw
