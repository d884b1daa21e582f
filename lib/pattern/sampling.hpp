#pragma once

#include <cstdint>
#include <vector>

#include "pattern/random.hpp"

namespace cobble::detail {

/// Draws distinct integers below a limit by Floyd's algorithm (Bentley and Floyd, CACM 30(9), 1987): one random number
/// for each that is wanted, however many that is. Keeps a bitmap of `limit` bits between draws.
class DistinctSampler {
 public:
  explicit DistinctSampler(std::int64_t limit);

  /// Appends `count` distinct integers of [0, limit), sorted; 0 <= count <= limit <= the constructor's.
  void append(std::int64_t count, std::int64_t limit, Random& random, std::vector<std::int32_t>& sample);

 private:
  /// Whether `value` was new.
  bool insert(std::int64_t value);

  std::vector<std::uint64_t> taken_;
};

}  // namespace cobble::detail
