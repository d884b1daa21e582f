#include "painter.hpp"

#include <doctest/doctest.h>
#include <png.h>

#include <algorithm>
#include <vector>

#include "color.hpp"

using namespace cobble::program;

namespace {

struct Image {
  std::size_t width = 0;
  std::size_t height = 0;
  std::vector<png_byte> bytes;

  Color at(std::size_t x, std::size_t y) const {
    const std::size_t first = (y * width + x) * 3;
    return {bytes[first], bytes[first + 1], bytes[first + 2]};
  }
};

Image decode(const std::string& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, file.data(), file.size()) != 0);
  image.format = PNG_FORMAT_RGB;
  Image decoded{image.width, image.height, std::vector<png_byte>(PNG_IMAGE_SIZE(image))};
  REQUIRE(png_image_finish_read(&image, nullptr, decoded.bytes.data(), 0, nullptr) != 0);
  return decoded;
}

constexpr Color kWhite = {255, 255, 255};
constexpr Color kRed = {200, 10, 20};

}  // namespace

TEST_CASE("a PNG holds the boxes at their places, clipped to the canvas") {
  const auto painter = make_png_painter(40, 30);
  painter->fill({10, 5, 3, 2}, kRed);
  painter->fill({-5, -5, 6, 6}, kRed);
  painter->fill({38, 28, 100, 100}, kRed);
  const Image image = decode(painter->finish());
  CHECK(image.width == 40);
  CHECK(image.height == 30);
  CHECK(image.at(10, 5) == kRed);
  CHECK(image.at(12, 6) == kRed);
  CHECK(image.at(13, 5) == kWhite);
  CHECK(image.at(10, 7) == kWhite);
  CHECK(image.at(0, 0) == kRed);
  CHECK(image.at(1, 0) == kWhite);
  CHECK(image.at(39, 29) == kRed);
}

TEST_CASE("text in a PNG stands on its line, on the side of its anchor") {
  const auto ink = [](const Text& text) {
    const auto painter = make_png_painter(100, 100);
    painter->write(text);
    const Image image = decode(painter->finish());
    Box box{100, 100, 0, 0};
    for (int y = 0; y < 100; ++y) {
      for (int x = 0; x < 100; ++x) {
        if (image.at(static_cast<std::size_t>(x), static_cast<std::size_t>(y)).green > 128) continue;
        box.width = std::max(box.width, x);  // here: the last column and row with ink
        box.height = std::max(box.height, y);
        box.x = std::min(box.x, x);
        box.y = std::min(box.y, y);
      }
    }
    return box;
  };
  const Box start = ink({50, 50, "Hx", 20, Anchor::start, {0, 0, 0}});
  CHECK(start.x >= 48);
  CHECK(start.height <= 51);
  CHECK(start.y >= 33);
  CHECK(start.y <= 37);
  const Box end = ink({50, 50, "Hx", 20, Anchor::end, {0, 0, 0}});
  CHECK(end.width <= 50);
  const Box upward = ink({50, 50, "Hx", 20, Anchor::start, {0, 0, 0}, false, true});
  CHECK(upward.height <= 51);
  CHECK(upward.width <= 51);
  CHECK(upward.x >= 33);
  CHECK(upward.y < 40);
}

TEST_CASE("an SVG escapes what markup would take for its own") {
  const auto painter = make_svg_painter(40, 30);
  painter->write({1, 2, "a<b & \"c\">\n\xff", 15, Anchor::middle, kRed});
  painter->fill({1, 2, 3, 4}, kRed);
  const std::string file = painter->finish();
  CHECK(file.find("a&lt;b &amp; &quot;c&quot;&gt;??"
                  "</text>") != std::string::npos);
  CHECK(file.find("M1 2h3v4h-3z") != std::string::npos);
  CHECK(file.find("fill=\"#c80a14\"") != std::string::npos);
  CHECK(file.find("text-anchor=\"middle\"") != std::string::npos);
}

TEST_CASE("colours mix from one end to the other") {
  constexpr Color kBlue = {0x1d, 0x4e, 0x9e};
  CHECK(mix(kBlue, kRed, 0) == kBlue);
  CHECK(mix(kBlue, kRed, 1) == kRed);
  CHECK(mix({kWhite, kBlue, kRed}, 0.5) == kBlue);
  CHECK(mix({kWhite, kBlue, kRed}, 2) == kRed);
  const Color grey = mix(kWhite, {0, 0, 0}, 0.5);
  CHECK(grey.red == grey.green);
  CHECK(grey.red == doctest::Approx(99).epsilon(0.02));  // half the lightness of OKLab
}
