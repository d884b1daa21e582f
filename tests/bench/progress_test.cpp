#include "progress.hpp"

#include <doctest/doctest.h>

using namespace cobble::program;

TEST_CASE("a bar shows the share done and what is left of the time") {
  CHECK(progress_line("reading", 1, 2, 10, 200) == "reading [###############...............]  50 % 10 s, 10 s left");
}

TEST_CASE("a bar makes no estimate from the first few percent") {
  CHECK(progress_line("reading", 1, 100, 10, 200).find("left") == std::string::npos);
}

TEST_CASE("a bar never passes 100 %") {
  CHECK(progress_line("t", 300, 200, 1, 200) == "t [##############################] 100 % 1 s");
}

TEST_CASE("without a total only the time is shown") {
  CHECK(progress_line("checking", 5, 0, 125, 200) == "checking 2:05 min");
}

TEST_CASE("a bar fits the terminal") { CHECK(progress_line("reading a file", 1, 2, 10, 20).size() == 20); }
