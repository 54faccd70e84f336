// Pictures into files.
#pragma once

#include <string>
#include <string_view>

#include "draw/chart.hpp"
#include "draw/figure.hpp"

namespace masque::draw {

/// Whether a file of the name `path` would be a picture: it ends in .svg or .png.
bool is_picture_name(std::string_view path);

/// Writes `figure` to `path` in the format of the name, replacing the file as a whole or not at
/// all. Throws UsageError for another name and as svg() or png(), InputError if it cannot be
/// written.
void write_picture(const std::string& path, const Figure& figure);
/// Writes `chart` to `path` in the same way.
void write_picture(const std::string& path, const Chart& chart);

}  // namespace masque::draw
