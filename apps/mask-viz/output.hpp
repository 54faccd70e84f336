// Where masks go: files of every kind by their names, or the terminal.
#pragma once

#include <string>

#include "cli/session.hpp"
#include "draw/mask_figure.hpp"
#include "mask/mask.hpp"

namespace masque::mask_viz {

/// Prints a figure that `make` draws for the number of cells that fit: `panels` grids side by side.
void print_figure(cli::Session& session, int panels,
                  const std::function<draw::Figure(Index max_cells)>& make);

/// Writes a mask to a picture or a file of data, as its name says.
void write_mask_or_picture(const std::string& path, const Mask& mask,
                           const draw::MaskFigureRequest& picture, bool force);

/// What -o takes.
inline constexpr const char* kOutputHelp =
    "a picture (.svg .png) or data (.npy .npz .safetensors .pbm .tsv .txt .json)";

}  // namespace masque::mask_viz
