#include <fmt/core.h>

#include <array>

#include "painter.hpp"
#include "text.hpp"

namespace cobble::program {
namespace {

class SvgPainter final : public Painter {
 public:
  SvgPainter(int width, int height) {
    append(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}")"
           R"( font-family="Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif">)"
           "\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
           width, height);
  }

  void fill(std::span<const Box> boxes, Color color) override {
    append(R"(<path fill="{}" shape-rendering="crispEdges" d=")", to_hex(color));
    for (const Box& box : boxes) append("M{} {}h{}v{}h-{}z", box.x, box.y, box.width, box.height, box.width);
    svg_ += "\"/>\n";
  }

  void write(const Text& text) override {
    constexpr std::array<const char*, 3> kAnchors = {"start", "middle", "end"};
    append(R"(<text x="{0:.1f}" y="{1:.1f}" font-size="{2:.3g}" fill="{3}" text-anchor="{4}"{5}{6}>{7}</text>)"
           "\n",
           text.x, text.y, text.size, to_hex(text.color), kAnchors[static_cast<std::size_t>(text.anchor)],
           text.bold ? " font-weight=\"bold\"" : "",
           text.upward ? fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", text.x, text.y) : "",
           escape_xml(text.text));
  }

  std::string finish() override { return svg_ + "</svg>\n"; }

 private:
  template <class... Arguments>
  void append(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    svg_ += fmt::format(format, std::forward<Arguments>(arguments)...);
  }

  std::string svg_;
};

}  // namespace

std::unique_ptr<Painter> make_svg_painter(int width, int height) { return std::make_unique<SvgPainter>(width, height); }

}  // namespace cobble::program
