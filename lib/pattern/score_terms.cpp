#include "cobble/score_terms.hpp"

#include <cmath>

#include "pattern/arguments.hpp"
#include "pattern/stored_values.hpp"

namespace cobble {

std::int64_t bias_values(const Pattern& structure) { return detail::StoredValues(structure, "structure").size(); }

std::vector<double> alibi_slopes(std::int64_t heads) {
  detail::require_at_least(heads, 0, "heads");
  std::vector<double> slopes(static_cast<std::size_t>(heads));
  for (std::size_t head = 0; head < slopes.size(); ++head) {
    slopes[head] = std::exp2(-8 * static_cast<double>(head + 1) / static_cast<double>(heads));
  }
  return slopes;
}

}  // namespace cobble
