#include <png.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cobble/error.hpp"
#include "painter.hpp"
#include "stroke_font.hpp"

namespace cobble::program {
namespace {

double distance_to_stroke(const Stroke& stroke, double x, double y) {
  const double dx = stroke.x1 - stroke.x0;
  const double dy = stroke.y1 - stroke.y0;
  const double length_squared = dx * dx + dy * dy;
  const double t =
      length_squared == 0 ? 0 : std::clamp(((x - stroke.x0) * dx + (y - stroke.y0) * dy) / length_squared, 0.0, 1.0);
  return std::hypot(x - stroke.x0 - t * dx, y - stroke.y0 - t * dy);
}

class PngPainter final : public Painter {
 public:
  PngPainter(int width, int height)
      : width_(width),
        height_(height),
        pixels_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), {255, 255, 255}) {}

  void fill(std::span<const Box> boxes, Color color) override {
    for (const Box& box : boxes) {
      const int left = std::clamp(box.x, 0, width_);
      const int right = std::clamp(box.x + box.width, left, width_);
      const int bottom = std::clamp(box.y + box.height, 0, height_);
      for (int y = std::clamp(box.y, 0, height_); y < bottom; ++y) {
        std::fill(&pixel(0, y) + left, &pixel(0, y) + right, color);
      }
    }
  }

  void write(const Text& text) override {
    const double width = text_width(text.text, text.size);
    double pen = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? -width / 2 : -width;
    const double spacing = grid_spacing(text.size);
    for (const char character : text.text) {
      const Glyph& shape = glyph(character);
      std::vector<Stroke> strokes = shape.strokes;
      for (Stroke& stroke : strokes) {
        place(text, pen, stroke.x0, stroke.y0);
        place(text, pen, stroke.x1, stroke.y1);
      }
      draw(strokes, stroke_width(text.size, text.bold), text.color);
      pen += shape.advance * spacing;
    }
  }

  std::string finish() override {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width_);
    image.height = static_cast<png_uint_32>(height_);
    image.format = PNG_FORMAT_RGB;
    std::vector<png_byte> bytes;
    bytes.reserve(pixels_.size() * 3);
    for (const Color& color : pixels_) bytes.insert(bytes.end(), {color.red, color.green, color.blue});
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::string file(size, '\0');
    if (png_image_write_to_memory(&image, file.data(), &size, 0, bytes.data(), 0, nullptr) == 0) {
      throw Error(ErrorCode::file_write, std::string("cannot encode the PNG image: ") + image.message);
    }
    file.resize(size);
    return file;
  }

 private:
  Color& pixel(int x, int y) {
    return pixels_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)];
  }

  /// From the font's grid to the canvas.
  static void place(const Text& text, double pen, double& x, double& y) {
    const double spacing = grid_spacing(text.size);
    const double along = pen + x * spacing;
    const double above = cap_height(text.size) - y * spacing;
    x = text.upward ? text.x - above : text.x + along;
    y = text.upward ? text.y - along : text.y - above;
  }

  /// Each pixel by its distance to the nearest of the strokes, so that strokes which meet leave no mark.
  void draw(const std::vector<Stroke>& strokes, double width, Color color) {
    if (strokes.empty()) return;
    double left = strokes[0].x0, right = left, top = strokes[0].y0, bottom = top;
    for (const Stroke& stroke : strokes) {
      left = std::min({left, stroke.x0, stroke.x1});
      right = std::max({right, stroke.x0, stroke.x1});
      top = std::min({top, stroke.y0, stroke.y1});
      bottom = std::max({bottom, stroke.y0, stroke.y1});
    }
    const double reach = width / 2 + 1;
    const int x_end = std::min(width_, static_cast<int>(std::ceil(right + reach)));
    const int y_end = std::min(height_, static_cast<int>(std::ceil(bottom + reach)));
    for (int y = std::max(0, static_cast<int>(top - reach)); y < y_end; ++y) {
      for (int x = std::max(0, static_cast<int>(left - reach)); x < x_end; ++x) {
        double distance = reach;
        for (const Stroke& stroke : strokes)
          distance = std::min(distance, distance_to_stroke(stroke, x + 0.5, y + 0.5));
        blend(pixel(x, y), color, std::clamp(width / 2 - distance + 0.5, 0.0, 1.0));
      }
    }
  }

  static void blend(Color& pixel, Color color, double opacity) {
    const auto channel = [opacity](std::uint8_t below, std::uint8_t above) {
      return static_cast<std::uint8_t>(std::lround(below + opacity * (above - below)));
    };
    pixel = {channel(pixel.red, color.red), channel(pixel.green, color.green), channel(pixel.blue, color.blue)};
  }

  int width_;
  int height_;
  std::vector<Color> pixels_;
};

}  // namespace

std::unique_ptr<Painter> make_png_painter(int width, int height) { return std::make_unique<PngPainter>(width, height); }

}  // namespace cobble::program
