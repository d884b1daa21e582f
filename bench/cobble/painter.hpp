#pragma once

#include <memory>
#include <span>
#include <string>

#include "color.hpp"

namespace cobble::program {

/// Whole pixels; x to the right, y down.
struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  bool operator==(const Box&) const = default;
};

enum class Anchor { start, middle, end };

struct Text {
  double x = 0;  ///< of the anchor
  double y = 0;  ///< of the line on which the letters stand
  std::string text;
  double size = 15;
  Anchor anchor = Anchor::start;
  Color color;
  bool bold = false;
  bool upward = false;  ///< reads from below to above
};

/// A white canvas. Later things cover earlier ones.
class Painter {
 public:
  virtual ~Painter() = default;
  virtual void fill(std::span<const Box> boxes, Color color) = 0;
  virtual void write(const Text& text) = 0;
  /// The file's content.
  virtual std::string finish() = 0;

  void fill(const Box& box, Color color) { fill(std::span<const Box>(&box, 1), color); }
};

std::unique_ptr<Painter> make_png_painter(int width, int height);
std::unique_ptr<Painter> make_svg_painter(int width, int height);

}  // namespace cobble::program
