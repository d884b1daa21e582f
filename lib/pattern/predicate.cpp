#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pattern/arguments.hpp"
#include "pattern/pattern_node.hpp"

namespace cobble {
namespace detail {
namespace {

class PredicateNode final : public PatternNode {
 public:
  PredicateNode(std::int32_t n_q, std::int32_t n_k, std::function<bool(std::int64_t, std::int64_t)> predicate,
                std::string name)
      : PatternNode(n_q, n_k), predicate_(std::move(predicate)), name_(std::move(name)) {}

  void append_runs(std::int32_t row, std::int32_t begin, std::int32_t end,
                   std::vector<ColumnRun>& runs) const override {
    const std::size_t first = runs.size();
    for (std::int32_t column = begin; column < end; ++column) {
      if (predicate_(row, column)) append_clipped(column, std::int64_t{column} + 1, begin, end, first, runs);
    }
  }
  std::string describe() const override { return name_ + "(" + size_text(rows(), columns()) + ")"; }

 private:
  std::function<bool(std::int64_t, std::int64_t)> predicate_;
  std::string name_;
};

}  // namespace
}  // namespace detail

Pattern from_predicate(std::int64_t n_q, std::int64_t n_k, std::function<bool(std::int64_t, std::int64_t)> predicate,
                       std::string name) {
  if (!predicate) throw Error(ErrorCode::invalid_argument, "predicate is empty, expected a function");
  return Pattern(std::make_shared<detail::PredicateNode>(checked_index(n_q, "n_q"), checked_index(n_k, "n_k"),
                                                         std::move(predicate), std::move(name)));
}

}  // namespace cobble
