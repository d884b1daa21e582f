#include "stroke_font.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace cobble::program;

TEST_CASE("every printable character but the blank has a shape of its own") {
  const auto same = [](const Glyph& a, const Glyph& b) {
    return a.advance == b.advance && a.strokes.size() == b.strokes.size() &&
           std::equal(a.strokes.begin(), a.strokes.end(), b.strokes.begin(), [](const Stroke& s, const Stroke& t) {
             return s.x0 == t.x0 && s.y0 == t.y0 && s.x1 == t.x1 && s.y1 == t.y1;
           });
  };
  CHECK(glyph(' ').strokes.empty());
  for (char a = '!'; a <= '~'; ++a) {
    CAPTURE(a);
    CHECK_FALSE(glyph(a).strokes.empty());
    for (char b = '!'; b < a; ++b) {
      CAPTURE(b);
      CHECK_FALSE(same(glyph(a), glyph(b)));
    }
  }
}

TEST_CASE("characters outside ASCII are drawn as a question mark") {
  CHECK(&glyph('\n') == &glyph('?'));
  CHECK(&glyph('\xe4') == &glyph('?'));
}

TEST_CASE("the width of a text grows with its letters and its size") {
  CHECK(text_width("", 15) == 0);
  CHECK(text_width("ab", 15) == doctest::Approx(text_width("a", 15) + text_width("b", 15)));
  CHECK(text_width("mm", 15) > text_width("ii", 15));
  CHECK(text_width("abc", 30) == doctest::Approx(2 * text_width("abc", 15)));
}
