#include "draw/figure_file.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/output_file.hpp"
#include "draw/png.hpp"
#include "draw/svg.hpp"

namespace masque::draw {

namespace {

template <class Picture>
void write(const std::string& path, const Picture& picture) {
  if (!is_picture_name(path)) {
    throw UsageError(fmt::format("{}: expected a name that ends in .svg or .png", escape(path)));
  }
  OutputFile file(path);
  if (path.ends_with(".svg")) {
    write_all(file.descriptor(), as_bytes(svg(picture)), path);
  } else {
    write_all(file.descriptor(), png(picture), path);
  }
  file.commit();
}

}  // namespace

bool is_picture_name(std::string_view path) {
  return path.ends_with(".svg") || path.ends_with(".png");
}

void write_picture(const std::string& path, const Figure& figure) { write(path, figure); }
void write_picture(const std::string& path, const Chart& chart) { write(path, chart); }

}  // namespace masque::draw
