#include "pattern/expression_kinds.hpp"

#include <limits>
#include <utility>

#include "core/checked.hpp"

namespace cobble::detail {
namespace {

Pattern make_documents(Arguments& in) {
  std::vector<std::int64_t> query_offsets{0};
  std::vector<std::int64_t> key_offsets{0};
  while (!in.empty()) {
    const Arguments::Size length = in.size();
    query_offsets.push_back(query_offsets.back() + length.n_q);
    key_offsets.push_back(key_offsets.back() + length.n_k);
    checked_index(query_offsets.back(), "the sum of the lengths");
    checked_index(key_offsets.back(), "the sum of the lengths");
  }
  return documents_from_offsets(query_offsets, key_offsets);
}

Pattern make_global_tokens(Arguments& in) {
  const Arguments::Size n = in.size();
  if (!in.next_is_list()) return global_tokens(n.n_q, n.n_k, in.integer("count"));
  if (n.n_q != n.n_k) {
    throw Error(ErrorCode::invalid_argument, "global tokens at given positions are square, expected one number n");
  }
  return global_tokens(n.n_q, in.list("positions"));
}

constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

constexpr ExpressionKind kKinds[] = {
    {"full", "full(n)", 1, 1,
     [](Arguments& in) {
       const auto n = in.size();
       return full(n.n_q, n.n_k);
     }},
    {"causal", "causal(n)", 1, 1,
     [](Arguments& in) {
       const auto n = in.size();
       return causal(n.n_q, n.n_k);
     }},
    {"window", "window(n,left,right)", 3, 3,
     [](Arguments& in) {
       const auto n = in.size();
       const auto left = in.integer("left");
       return window(n.n_q, n.n_k, left, in.integer("right"));
     }},
    {"dilated", "dilated(n,window,step)", 3, 3,
     [](Arguments& in) {
       const auto n = in.size();
       const auto window = in.integer("window");
       return dilated(n.n_q, n.n_k, window, in.integer("step"));
     }},
    {"strided", "strided(n,stride)", 2, 2,
     [](Arguments& in) {
       const auto n = in.length();
       return strided(n, in.integer("stride"));
     }},
    {"fixed", "fixed(n,stride,summary)", 3, 3,
     [](Arguments& in) {
       const auto n = in.length();
       const auto stride = in.integer("stride");
       return fixed(n, stride, in.integer("summary"));
     }},
    {"global_tokens", "global_tokens(n,count) or global_tokens(n,[positions])", 2, 2, make_global_tokens},
    {"leading_tokens", "leading_tokens(n,count)", 2, 2,
     [](Arguments& in) {
       const auto n = in.size();
       return leading_tokens(n.n_q, n.n_k, in.integer("count"));
     }},
    {"longformer", "longformer(n,window,globals)", 3, 3,
     [](Arguments& in) {
       const auto n = in.length();
       const auto window = in.integer("window");
       return longformer(n, window, in.integer("globals"));
     }},
    {"bigbird", "bigbird(n,block,window_blocks,global_blocks,random_blocks[,seed])", 5, 6,
     [](Arguments& in) {
       const auto n = in.length();
       const auto block = in.integer("block");
       const auto window_blocks = in.integer("window_blocks");
       const auto global_blocks = in.integer("global_blocks");
       const auto random_blocks = in.integer("random_blocks");
       return bigbird(n, block, window_blocks, global_blocks, random_blocks, in.seed());
     }},
    {"documents", "documents(length,...)", 0, kAnyNumber, make_documents},
    {"prefix", "prefix(n,prefix)", 2, 2,
     [](Arguments& in) {
       const auto n = in.length();
       return prefix(n, in.integer("prefix"));
     }},
    {"vertical_slash", "vertical_slash(n,[verticals],[slashes])", 3, 3,
     [](Arguments& in) {
       const auto n = in.length();
       auto verticals = in.list("verticals");
       return vertical_slash(n, std::move(verticals), in.list("slashes"));
     }},
    {"blocks", "blocks(n,block,per_row[,seed])", 3, 4,
     [](Arguments& in) {
       const auto n = in.length();
       const auto block = in.integer("block");
       const auto per_row = in.integer("per_row");
       return random_blocks(n, block, per_row, in.seed());
     }},
    {"random", "random(n,per_row[,seed])", 2, 3,
     [](Arguments& in) {
       const auto n = in.size();
       const auto per_row = in.integer("per_row");
       return random_pairs(n.n_q, n.n_k, per_row, in.seed());
     }},
    {"graph", "graph(n,mean_degree[,seed])", 2, 3,
     [](Arguments& in) {
       const auto n = in.length();
       const auto mean_degree = in.real("mean_degree");
       return power_law_graph(n, mean_degree, in.seed());
     }},
};

std::int64_t signed_value(const Argument& argument, std::string_view what) {
  if (argument.magnitude > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw ArgumentFault{argument.position, std::string(what) + " does not fit 64 bits"};
  }
  const auto value = static_cast<std::int64_t>(argument.magnitude);
  return argument.negative ? -value : value;
}

}  // namespace

Arguments::Size Arguments::size() {
  const Argument& argument = take();
  if (argument.form == Argument::Form::size) {
    return {checked_index(argument.n_q, "n_q"), checked_index(argument.n_k, "n_k")};
  }
  if (argument.form != Argument::Form::integer) {
    throw ArgumentFault{argument.position, "expected n, or n_q x n_k, in whole numbers"};
  }
  const std::int64_t n = checked_index(signed_value(argument, "n"), "n");
  return {n, n};
}

std::int64_t Arguments::length() {
  const Argument& argument = arguments_[next_];
  if (argument.form == Argument::Form::size && argument.n_q != argument.n_k) {
    throw ArgumentFault{argument.position, "this kind is square, expected one number n"};
  }
  return size().n_q;
}

std::int64_t Arguments::integer(std::string_view what) {
  const Argument& argument = take();
  if (argument.form != Argument::Form::integer) {
    throw ArgumentFault{argument.position, "expected a whole number for " + std::string(what)};
  }
  return signed_value(argument, what);
}

double Arguments::real(std::string_view what) {
  const Argument& argument = arguments_[next_];
  if (argument.form == Argument::Form::real) return take().real;
  if (argument.form != Argument::Form::integer) {
    throw ArgumentFault{argument.position, "expected a number for " + std::string(what)};
  }
  return static_cast<double>(integer(what));
}

std::vector<std::int32_t> Arguments::list(std::string_view what) {
  const Argument& argument = take();
  if (argument.form != Argument::Form::list) {
    throw ArgumentFault{argument.position, "expected a list such as [0,5,9] for " + std::string(what)};
  }
  return argument.list;
}

std::uint64_t Arguments::seed() {
  if (empty()) return default_seed_;
  const Argument& argument = take();
  if (argument.form != Argument::Form::integer || argument.negative) {
    throw ArgumentFault{argument.position, "expected a whole number of at least 0 for seed"};
  }
  return argument.magnitude;
}

std::span<const ExpressionKind> expression_kinds() { return kKinds; }

}  // namespace cobble::detail
