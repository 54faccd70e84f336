// Where masks go: files of every kind by their names, or the terminal.
#pragma once

#include <string>

#include "cli/session.hpp"
#include "draw/mask_figure.hpp"
#include "exchange/convention.hpp"
#include "mask/mask.hpp"

namespace masque::mask_viz {

/// Prints a figure that `make` draws for the number of cells that fit: `panels` grids side by side.
void print_figure(cli::Session& session, int panels,
                  const std::function<draw::Figure(Index max_cells)>& make);

/// Writes a mask to a picture or a data file, by the ending of the name.
void write_mask_or_picture(const std::string& path, const mask::Mask& mask,
                           const draw::MaskFigureRequest& picture, bool force);

/// The convention of this name. Throws UsageError that suggests the nearest name.
const exchange::Convention& convention_of(const std::string& name);

/// Writes a mask in a convention. Prints a note if rows read nothing, since in other programs such
/// rows may read everything. `name` names the mask in messages.
void write_convention(const std::string& path, const mask::Mask& mask,
                      const exchange::Convention& convention, const std::string& name, bool force,
                      cli::Session& session);

/// Help text of -o.
inline constexpr const char* kOutputHelp =
    "a picture (.svg .png) or data (.npy .npz .safetensors .pbm .tsv .txt .json)";

/// Declares --force of commands that write matrices.
void add_large_output(cli::Command& command, bool& force);

}  // namespace masque::mask_viz
