// Curves over two axes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace masque::draw {

/// Points joined in order. A point that is not finite, or not positive on a logarithmic axis, is
/// left out and interrupts the line. A point that has no neighbours then is a small square.
struct Curve {
  std::string name;              ///< in the legend
  std::vector<double> x;         ///< of each point
  std::vector<double> y;         ///< as many
  std::vector<double> low = {},  ///< lower end of a band around each y; as many, or none
      high = {};                 ///< its upper end; as many as `low`
};

/// An axis of a chart.
struct ChartAxis {
  std::string name;          ///< next to it
  bool logarithmic = false;  ///< decades at equal distances
  /// Numbers are here, as many as fit and as are in the range; empty: round numbers. Of the x axis
  /// alone.
  std::vector<double> ticks = {};
  std::optional<double> from = {},  ///< a value that the axis reaches whatever the curves have
      to = {};                      ///< another
};

/// Up to 12 curves look different: four colours, then dashed, then dotted.
struct Chart {
  std::string title;          ///< above the picture; empty: none
  std::string description;    ///< made from the names if empty
  ChartAxis x;                ///< from left to right
  ChartAxis y;                ///< upwards
  std::vector<Curve> curves;  ///< in the order of the legend
  std::string note;           ///< under the picture
};

}  // namespace masque::draw
