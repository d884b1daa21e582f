#include "plan/walk.hpp"

namespace cobble::detail {

std::string_view to_string(Operand operand) noexcept {
  switch (operand) {
    case Operand::query: return "query";
    case Operand::key: return "key";
    case Operand::value: return "value";
    case Operand::output: return "output";
    case Operand::lse: return "lse";
    case Operand::row_maximum: return "row_maximum";
    case Operand::row_sum: return "row_sum";
    case Operand::grad_output: return "grad_output";
    case Operand::delta: return "delta";
    case Operand::grad_query: return "grad_query";
    case Operand::grad_key: return "grad_key";
    case Operand::grad_value: return "grad_value";
    case Operand::query_input: return "query_input";
    case Operand::value_input: return "value_input";
    case Operand::score_weights: return "score_weights";
    case Operand::value_weights: return "value_weights";
    case Operand::grad_score_weights: return "grad_score_weights";
    case Operand::grad_value_weights: return "grad_value_weights";
    case Operand::score: return "score";
    case Operand::grad_score: return "grad_score";
  }
  return "unknown";
}

std::string_view to_string(Operation operation) noexcept {
  switch (operation) {
    case Operation::scores: return "scores";
    case Operation::online_softmax: return "online_softmax";
    case Operation::row_statistics: return "row_statistics";
    case Operation::accumulate_output: return "accumulate_output";
    case Operation::finish_output: return "finish_output";
    case Operation::finish_lse: return "finish_lse";
    case Operation::delta: return "delta";
    case Operation::probabilities: return "probabilities";
    case Operation::grad_probabilities: return "grad_probabilities";
    case Operation::grad_scores: return "grad_scores";
    case Operation::grad_query: return "grad_query";
    case Operation::finish_grad_query: return "finish_grad_query";
    case Operation::grad_key: return "grad_key";
    case Operation::grad_value: return "grad_value";
    case Operation::project_query: return "project_query";
    case Operation::project_value: return "project_value";
    case Operation::fold_query: return "fold_query";
    case Operation::fold_value: return "fold_value";
    case Operation::add_score_weight_slice: return "add_score_weight_slice";
    case Operation::add_value_weight_slice: return "add_value_weight_slice";
    case Operation::add_key_slice: return "add_key_slice";
    case Operation::add_output_part: return "add_output_part";
    case Operation::add_query_part: return "add_query_part";
    case Operation::add_value_slice: return "add_value_slice";
  }
  return "unknown";
}

}  // namespace cobble::detail
