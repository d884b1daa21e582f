#include "kernels/lines_ahead.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <vector>

using namespace cobble::kernels;

namespace {

/// How often each line of `memory` is asked for when the queue is emptied in loops of `steps` steps. A walk that is
/// shorter than its loop stays at its last line, which counts once.
std::map<std::int64_t, int> asked_for(LinesAhead& ahead, const char* memory, std::int64_t steps) {
  std::map<std::int64_t, int> count;
  while (!ahead.empty()) {
    LineWalk walk = ahead.take(steps);
    const char* before = nullptr;
    for (std::int64_t step = 0; step < steps; ++step) {
      if (walk.next != before) ++count[walk.next - memory];
      before = walk.next;
      walk.fetch();
    }
    CHECK(walk.next == walk.last);
  }
  return count;
}

}  // namespace

TEST_CASE("every line of what is expected is asked for once") {
  alignas(64) static char memory[1 << 14];
  for (const std::int64_t steps : {1, 5, 64, 1000}) {
    for (const std::int64_t row_bytes : {64, 192, 256}) {
      for (const std::int64_t row_distance : {row_bytes, row_bytes + 64, row_bytes + 320, -row_bytes - 64}) {
        INFO(steps, " steps, rows of ", row_bytes, " bytes, ", row_distance, " apart");
        LinesAhead ahead;
        ahead.add(memory + 4096, 7, row_bytes, row_distance);
        ahead.add(memory + 10240, 2, row_bytes, row_distance);
        std::map<std::int64_t, int> expected;
        for (const auto& [first, rows] : {std::pair{4096, 7}, std::pair{10240, 2}}) {
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t byte = 0; byte < row_bytes; byte += 64) expected[first + row * row_distance + byte] = 1;
          }
        }
        CHECK(asked_for(ahead, memory, steps) == expected);
      }
    }
  }
}

TEST_CASE("what does not fit into the queue is left out, and clearing empties it") {
  static char memory[64 * 100];
  LinesAhead ahead;
  ahead.add(memory, 0, 64, 64);
  CHECK(ahead.empty());
  for (int block = 0; block < 100; ++block) ahead.add(memory + 64 * block, 1, 64, 64);
  const std::map<std::int64_t, int> asked = asked_for(ahead, memory, 1);
  CHECK(asked.size() >= 6);
  CHECK(asked.size() < 100);
  CHECK(asked.rbegin()->first == 64 * (std::ssize(asked) - 1));  // the first ones
  ahead.add(memory, 3, 64, 64);
  ahead.take(1);
  ahead.clear();
  CHECK(ahead.empty());
  ahead.add(memory + 640, 1, 64, 64);  // begins anew, not within what was cleared
  CHECK(ahead.take(1).next == memory + 640);
}

TEST_CASE("a loop with nothing to ask for stays at what it has at hand") {
  const char near[1] = {};
  LineWalk walk = walk_ahead(nullptr, 3, near);
  walk.fetch();
  walk.fetch();
  CHECK(walk.next == near);
  LinesAhead empty;
  CHECK(walk_ahead(&empty, 3, near).next == near);
  empty.add(near, 1, 1, 1);
  CHECK(walk_ahead(&empty, 0, near).next == near);
  CHECK_FALSE(empty.empty());
}
