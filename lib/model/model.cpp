#include "cobble/model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "cobble/error.hpp"

namespace cobble {
namespace {

double checked_size(double value, const char* name) {
  if (!(value >= 0.0)) {
    throw Error(ErrorCode::invalid_argument,
                std::string(name) + " = " + std::to_string(value) + ", expected a size of at least 0");
  }
  return value;
}

double checked_fast_memory(double words) {
  if (!(words >= 1.0)) {
    throw Error(ErrorCode::invalid_argument,
                "fast_memory_words = " + std::to_string(words) + ", expected at least 1 word");
  }
  return words;
}

double words(std::int64_t rows, std::int64_t columns) {
  return static_cast<double>(rows) * static_cast<double>(columns);
}

}  // namespace

double input_words(const AttentionSize& size) noexcept {
  return std::max(
      {words(size.queries, size.head_dim), words(size.keys, size.head_dim), words(size.keys, size.value_dim)});
}

double density(const AttentionSize& size) noexcept {
  const double all_pairs = words(size.queries, size.keys);
  return all_pairs > 0.0 ? static_cast<double>(size.pairs) / all_pairs : 0.0;
}

std::string_view to_string(Regime regime) noexcept {
  return regime == Regime::small_fast_memory ? "small_fast_memory" : "large_fast_memory";
}

double split_point(double z_input, double z_qk) {
  checked_size(z_input, "z_input");
  checked_size(z_qk, "z_qk");
  if (z_qk == 0.0) return std::numeric_limits<double>::infinity();
  return z_input * z_input / z_qk;
}

double dense_split_point(double head_dim) {
  checked_size(head_dim, "head_dim");
  return head_dim * head_dim;
}

Regime regime(std::int64_t fast_memory_words, double split_point) {
  const double memory = checked_fast_memory(static_cast<double>(fast_memory_words));
  return memory >= split_point ? Regime::large_fast_memory : Regime::small_fast_memory;
}

double sparse_bound_large(double z_input, double z_qk, double fast_memory_words) {
  const double split = split_point(z_input, z_qk);
  checked_fast_memory(fast_memory_words);
  if (z_qk == 0.0) return z_input * z_input / fast_memory_words;
  return z_qk * (split / fast_memory_words);
}

double sparse_bound_small(double z_input, double z_qk, double fast_memory_words) {
  const double split = split_point(z_input, z_qk);
  checked_fast_memory(fast_memory_words);
  if (z_qk == 0.0) return 0.0;
  return z_qk * std::sqrt(split / fast_memory_words);
}

double sparse_bound(double z_input, double z_qk, std::int64_t fast_memory_words) {
  const double memory = static_cast<double>(fast_memory_words);
  return regime(fast_memory_words, split_point(z_input, z_qk)) == Regime::large_fast_memory
             ? sparse_bound_large(z_input, z_qk, memory)
             : sparse_bound_small(z_input, z_qk, memory);
}

double dense_bound_large(double tokens, double head_dim, double fast_memory_words) {
  checked_size(tokens, "tokens");
  return tokens * (tokens + head_dim) * (dense_split_point(head_dim) / checked_fast_memory(fast_memory_words));
}

double dense_bound_small(double tokens, double head_dim, double fast_memory_words) {
  checked_size(tokens, "tokens");
  return tokens * (tokens + head_dim) * std::sqrt(dense_split_point(head_dim) / checked_fast_memory(fast_memory_words));
}

double dense_bound(double tokens, double head_dim, std::int64_t fast_memory_words) {
  const double memory = static_cast<double>(fast_memory_words);
  return regime(fast_memory_words, dense_split_point(head_dim)) == Regime::large_fast_memory
             ? dense_bound_large(tokens, head_dim, memory)
             : dense_bound_small(tokens, head_dim, memory);
}

double weight_product_bound(double tokens, double head_dim, std::int64_t fast_memory_words) {
  checked_size(tokens, "tokens");
  const double split = dense_split_point(head_dim);
  const double ratio = split / checked_fast_memory(static_cast<double>(fast_memory_words));
  return tokens * head_dim * (ratio <= 1.0 ? ratio : std::sqrt(ratio));
}

double attention_bound(const AttentionSize& size, std::int64_t fast_memory_words) {
  return sparse_bound(input_words(size), static_cast<double>(size.pairs), fast_memory_words);
}

double parameter_gradients_bound(const AttentionSize& size, std::int64_t fast_memory_words) {
  return attention_bound(size, fast_memory_words) +
         weight_product_bound(static_cast<double>(std::max(size.queries, size.keys)),
                              static_cast<double>(size.head_dim), fast_memory_words);
}

double forward_compulsory(const AttentionSize& size) noexcept {
  const double read =
      words(size.queries, size.head_dim) + words(size.keys, size.head_dim) + words(size.keys, size.value_dim);
  const double written = words(size.queries, size.value_dim) + static_cast<double>(size.queries);
  return read + written;
}

double backward_compulsory(const AttentionSize& size, bool lse_gradient) noexcept {
  const double inputs =
      words(size.queries, size.head_dim) + words(size.keys, size.head_dim) + words(size.keys, size.value_dim);
  const double row_statistics = static_cast<double>(size.queries) * (lse_gradient ? 2.0 : 1.0);
  return 2.0 * inputs + 2.0 * words(size.queries, size.value_dim) + row_statistics;
}

double parameter_gradients_compulsory(const AttentionSize& size) noexcept {
  const double weights = words(size.head_dim, size.head_dim) + words(size.head_dim, size.value_dim);
  return words(size.queries, size.head_dim) + 2.0 * words(size.keys, size.head_dim) +
         words(size.queries, size.value_dim) + 2.0 * weights;
}

TrafficBound forward_bound(const AttentionSize& size, std::int64_t fast_memory_words) {
  return {attention_bound(size, fast_memory_words), forward_compulsory(size)};
}

TrafficBound backward_bound(const AttentionSize& size, std::int64_t fast_memory_words, bool lse_gradient) {
  return {attention_bound(size, fast_memory_words), backward_compulsory(size, lse_gradient)};
}

}  // namespace cobble
