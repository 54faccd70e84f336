// Pictures into files.
#pragma once

#include <string>
#include <string_view>

#include "draw/chart.hpp"
#include "draw/figure.hpp"

namespace masque::draw {

/// Whether a file of this name would be a picture: it ends in .svg or .png.
bool is_picture_name(std::string_view path);

/// Writes the picture, replacing the file as a whole or not at all. Throws UsageError for another
/// name, InputError if it cannot be written.
void write_picture(const std::string& path, const Figure& figure);
void write_picture(const std::string& path, const Chart& chart);

}  // namespace masque::draw
