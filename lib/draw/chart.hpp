// Curves over two axes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace masque::draw {

/// Points joined in order. A point that is not finite, or not positive on a logarithmic axis, is
/// left out and interrupts the line.
struct Curve {
  std::string name;       ///< in the legend
  std::vector<double> x;  ///< of each point
  std::vector<double> y;  ///< as many
  /// The spread around each y, drawn as a band; as many, or none.
  std::vector<double> low = {}, high = {};
};

/// An axis of a chart.
struct ChartAxis {
  std::string name;          ///< next to it
  bool logarithmic = false;  ///< decades at equal distances
  std::vector<double> ticks =
      {};  ///< numbers are here, as many as fit and as are in the range; empty: round numbers
  /// Values that the axis reaches whatever the curves have.
  std::optional<double> from = {}, to = {};
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
