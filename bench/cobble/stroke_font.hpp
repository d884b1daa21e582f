#pragma once

#include <string_view>
#include <vector>

// A small font made of strokes, for pictures without a font library. Each printable ASCII character is a 5 x 8 grid of
// dots; neighbouring dots are joined by lines, so that the font can be drawn at any size with smooth edges.

namespace cobble::program {

/// From (x0, y0) to (x1, y1); a dot when both are the same. x goes right from the pen, y down from the top of capitals.
struct Stroke {
  double x0 = 0;
  double y0 = 0;
  double x1 = 0;
  double y1 = 0;
};

struct Glyph {
  std::vector<Stroke> strokes;  ///< in units of the grid's spacing
  double advance = 0;           ///< how far the pen moves on
};

/// Characters that are not printable ASCII are drawn as '?'.
const Glyph& glyph(char character);

/// The grid's spacing of a font of this size; capitals are six spacings and one stroke high.
constexpr double grid_spacing(double font_size) { return font_size * 0.115; }
constexpr double stroke_width(double font_size, bool bold) { return font_size * (bold ? 0.145 : 0.1); }
/// From the top of capitals to the line on which they stand.
constexpr double cap_height(double font_size) { return 6 * grid_spacing(font_size); }

double text_width(std::string_view text, double font_size);

}  // namespace cobble::program
