#include "cobble/aligned_buffer.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <utility>

#include "support/error_of.hpp"

using namespace cobble;
using cobble::test::error_of;

TEST_CASE("a buffer's memory is aligned to 64 bytes and all of it can be written") {
  for (const std::int64_t size : {1, 3, 16, 1000}) {
    AlignedBuffer<float> buffer(size);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
    CHECK(buffer.size() == size);
    std::iota(buffer.begin(), buffer.end(), 1.0F);
    CHECK(buffer[0] == 1.0F);
    CHECK(buffer[size - 1] == static_cast<float>(size));
  }
}

TEST_CASE("so can a large one, of whatever size") {
  AlignedBuffer<float> buffer((std::int64_t{5} << 18) + 1);  // a little more than 5 MiB
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
  std::iota(buffer.begin(), buffer.end(), 1.0F);
  CHECK(buffer[buffer.size() - 1] == static_cast<float>(buffer.size()));
}

TEST_CASE("an empty buffer holds no memory") {
  CHECK(AlignedBuffer<double>().data() == nullptr);
  CHECK(AlignedBuffer<double>(0).data() == nullptr);
  CHECK(AlignedBuffer<double>(0).size() == 0);
}

TEST_CASE("moving hands the memory over") {
  AlignedBuffer<int> a(4);
  a[2] = 7;
  const int* memory = a.data();
  AlignedBuffer<int> b(std::move(a));
  CHECK(b.data() == memory);
  CHECK(a.data() == nullptr);  // NOLINT(bugprone-use-after-move): what is left is specified
  CHECK(a.size() == 0);
  AlignedBuffer<int> c(9);
  c = std::move(b);
  CHECK(c.data() == memory);
  CHECK(c.size() == 4);
  CHECK(c[2] == 7);
}

TEST_CASE("a size that is negative or does not fit is an error, not an allocation") {
  CHECK(error_of([] { AlignedBuffer<double>(-1); }) == "invalid_argument: buffer size = -1 is negative");
  CHECK(error_of([] { AlignedBuffer<double>(std::int64_t{1} << 60); }) ==
        "overflow: buffer size in bytes does not fit 64 bits");
}
