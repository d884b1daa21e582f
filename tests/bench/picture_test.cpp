#include "picture.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "cobble/error.hpp"
#include "stroke_font.hpp"

using namespace cobble;
using namespace cobble::program;

namespace {

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> texts;
  for (const Tick& tick : ticks) texts.push_back(tick.label);
  return texts;
}

/// Keeps what is drawn.
class RecordingPainter final : public Painter {
 public:
  void fill(std::span<const Box> boxes, Color color) override {
    for (const Box& box : boxes) filled.push_back({box, color});
  }
  void write(const Text& text) override { texts.push_back(text); }
  std::string finish() override { return {}; }

  /// The colour that is seen at a pixel.
  Color at(int x, int y) const {
    for (auto entry = filled.rbegin(); entry != filled.rend(); ++entry) {
      const Box& box = entry->first;
      if (x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height) return entry->second;
    }
    return {255, 255, 255};
  }

  std::vector<std::pair<Box, Color>> filled;
  std::vector<Text> texts;
};

}  // namespace

TEST_CASE("ticks stand at round numbers, or at multiples of a power of two") {
  CHECK(labels(make_ticks(200, 6)) == std::vector<std::string>{"0", "50", "100", "150", "200"});
  CHECK(labels(make_ticks(16384, 5)) == std::vector<std::string>{"0", "4,096", "8,192", "12,288", "16,384"});
  CHECK(labels(make_ticks(100000, 11)).back() == "100,000");
  CHECK(labels(make_ticks(1, 5)) == std::vector<std::string>{"0", "1"});
  CHECK(make_ticks(0, 5).empty());
}

TEST_CASE("there are never more ticks than asked for") {
  for (const std::int64_t tokens : {1, 7, 99, 100, 101, 999, 1024, 65536, 1000000, 2147483647}) {
    for (const int most : {2, 3, 8}) CHECK(make_ticks(tokens, most).size() <= static_cast<std::size_t>(most));
  }
}

TEST_CASE("a picture shows single pairs up to 512 tokens and tiles beyond, in a size that fits a screen") {
  CHECK(lay_out(full(200)).shows_pairs);
  CHECK(lay_out(full(200)).queries.pixels_per_cell == 5);
  CHECK_FALSE(lay_out(full(513)).shows_pairs);
  for (const std::int64_t tokens : {1, 200, 512, 513, 5000, 16384, 65536, 100000, 1048576, 2147483647}) {
    const PictureLayout layout = lay_out(full(tokens));
    CAPTURE(tokens);
    CHECK(layout.plot.width <= 1024);
    CHECK(layout.plot.height == layout.plot.width);
    if (tokens > 32) CHECK(layout.plot.width >= 512);
    CHECK(layout.width >= layout.plot.x + layout.plot.width);
    CHECK(layout.height > layout.plot.y + layout.plot.height);
  }
  CHECK(lay_out(full(16384)).queries.tokens_per_cell == 64);
}

TEST_CASE("the short axis of a flat pattern stays visible") {
  for (const std::int64_t rows : {1, 3, 100, 5000}) {
    const PictureLayout layout = lay_out(full(rows, 100000));
    CAPTURE(rows);
    CHECK(layout.plot.height >= 30);
    CHECK(layout.plot.height <= 256);
    CHECK(layout.queries.cells() * layout.queries.tokens_per_cell >= rows);
  }
}

TEST_CASE("a tile size that would burst the picture is an error") {
  CHECK_THROWS_AS(lay_out(full(1000000), 16), cobble::Error);
  CHECK(lay_out(full(1000000), 4096).queries.tokens_per_cell == 4096);
}

TEST_CASE("pairs are drawn where they are, in the colour of their tile's kind") {
  const Pattern pattern = causal(64);
  const PictureLayout layout = lay_out(pattern);
  RecordingPainter painter;
  paint(pattern, "causal(64)", layout, painter);
  const auto color_of = [&](int row, int column) {
    return painter.at(layout.plot.x + column * layout.keys.pixels_per_cell + 1,
                      layout.plot.y + row * layout.queries.pixels_per_cell + 1);
  };
  const Color in_full_tile = color_of(40, 3);
  const Color in_partial_tile = color_of(40, 40);
  CHECK(in_full_tile != in_partial_tile);
  CHECK(color_of(63, 47) == in_full_tile);
  CHECK(color_of(63, 48) == in_partial_tile);
  CHECK(color_of(40, 41) != in_partial_tile);
  CHECK(color_of(3, 60) != in_full_tile);
  CHECK(painter.texts.front().text == "causal(64)");
}

TEST_CASE("a diagonal of single pairs stays visible at 100,000 tokens") {
  const Pattern pattern = dilated(100000, 0, 1);
  const PictureLayout layout = lay_out(pattern);
  RecordingPainter painter;
  paint(pattern, "diagonal", layout, painter);
  const Color background = painter.at(layout.plot.x + 300, layout.plot.y);
  const Color diagonal = painter.at(layout.plot.x + 300, layout.plot.y + 300);
  const int difference = background.blue - diagonal.blue;
  CHECK(difference > 80);
}

TEST_CASE("shades darken from a single pair to a full tile") {
  CHECK(shade_of_fill(1.0 / 4096, 4096) == doctest::Approx(0));
  CHECK(shade_of_fill(1.0 / 64, 4096) == doctest::Approx(0.5));
  CHECK(shade_of_fill(1, 4096) == doctest::Approx(1));
  int last = 255;
  for (int i = 0; i <= 10; ++i) {
    const int green = shade_color(i / 10.0).green;
    CHECK(green < last);
    last = green;
  }
}

TEST_CASE("a title too long for the picture is shortened") {
  const Pattern pattern = full(16);
  RecordingPainter painter;
  const PictureLayout layout = lay_out(pattern);
  paint(pattern, std::string(500, 'm'), layout, painter);
  const Text& title = painter.texts.front();
  CHECK(title.text.size() < 500);
  CHECK(title.x + text_width(title.text, title.size) <= layout.width);
}

TEST_CASE("an empty matrix has a picture, too") {
  RecordingPainter painter;
  const Pattern pattern;
  paint(pattern, "nothing", lay_out(pattern), painter);
  CHECK_FALSE(painter.texts.empty());
}

TEST_CASE("a moved picture paints the same, further to the right") {
  const Pattern pattern = window(40, 3, 0);
  const PictureLayout layout = lay_out(pattern);
  RecordingPainter here;
  paint(pattern, "title", layout, here);
  RecordingPainter there;
  paint(pattern, "title", moved(layout, 700), there);
  REQUIRE(there.filled.size() == here.filled.size());
  for (std::size_t i = 0; i < here.filled.size(); ++i) {
    CHECK(there.filled[i].first.x == here.filled[i].first.x + 700);
    CHECK(there.filled[i].first.y == here.filled[i].first.y);
  }
  REQUIRE(there.texts.size() == here.texts.size());
  for (std::size_t i = 0; i < here.texts.size(); ++i) {
    CHECK(there.texts[i].x == doctest::Approx(here.texts[i].x + 700));
    CHECK(there.texts[i].text == here.texts[i].text);
  }
}
