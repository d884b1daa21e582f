#include "bench_json.hpp"

#include <nlohmann/json.hpp>

namespace cobble::program {
namespace {

template <class T>
Json number_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json fraction_or_null(double gflops, const std::optional<double>& gemm_gflops) {
  return gemm_gflops ? Json(gflops / *gemm_gflops) : Json(nullptr);
}

Json counterpart_json(const std::optional<Counterpart>& counterpart) {
  if (!counterpart) return nullptr;
  return {{"name", counterpart->name},
          {"plan_ms", counterpart->plan_ms},
          {"forward_ms", counterpart->forward.median_ms},
          {"forward_mad_ms", counterpart->forward.mad_ms},
          {"backward_ms", counterpart->backward.median_ms},
          {"backward_mad_ms", counterpart->backward.mad_ms},
          {"forward_traffic_bytes", counterpart->forward_traffic_bytes},
          {"backward_traffic_bytes", counterpart->backward_traffic_bytes},
          {"tensor_bytes", counterpart->tensor_bytes}};
}

}  // namespace

Json case_json(const CaseResult& result) {
  const BenchCase& measured = result.measured;
  Json json = {{"name", measured.name},
               {"pattern", measured.pattern},
               {"shuffled", measured.shuffled},
               {"sweep", to_string(measured.sweep)},
               {"rows", result.rows},
               {"columns", result.columns},
               {"pairs", result.pairs},
               {"head_dim", measured.head_dim},
               {"value_dim", measured.value_dim == 0 ? measured.head_dim : measured.value_dim},
               {"features_per_token", result.features_per_token},
               {"feature_storage", measured.compressed() ? measured.features.storage : "dense"},
               {"heads", measured.heads},
               {"batch", measured.batch},
               {"dtype", measured.dtype},
               {"threads", result.threads},
               {"schedule", result.schedule},
               {"plan", result.plan},
               {"plan_ms", result.plan_ms},
               {"forward_ms", result.forward.median_ms},
               {"forward_mad_ms", result.forward.mad_ms},
               {"forward_repetitions", result.forward.repetitions},
               {"backward_ms", result.backward.median_ms},
               {"backward_mad_ms", result.backward.mad_ms},
               {"backward_repetitions", result.backward.repetitions},
               {"forward_gflops", result.forward_gflops()},
               {"backward_gflops", result.backward_gflops()},
               {"gemm_gflops", number_or_null(result.gemm_gflops)},
               {"gemm_mad_gflops", result.gemm_mad_gflops},
               {"forward_fraction_of_gemm", fraction_or_null(result.forward_gflops(), result.gemm_gflops)},
               {"backward_fraction_of_gemm", fraction_or_null(result.backward_gflops(), result.gemm_gflops)},
               {"flop_bound_speedup", result.flop_bound_speedup},
               {"dense_speedup", result.dense_speedup},
               {"dense_estimated", result.dense_estimated},
               {"dense_measured_tokens", result.dense_measured},
               {"fast_memory_bytes", result.fast_memory_bytes},
               {"forward_traffic_bytes", result.forward_traffic_bytes},
               {"backward_traffic_bytes", result.backward_traffic_bytes},
               {"tensor_bytes", result.tensor_bytes},
               {"workspace_bytes", result.workspace_bytes},
               {"peak_bytes", result.peak_bytes}};
  json["reordering"] = result.order ? plan_order_json(*result.order) : Json(nullptr);
  json["counterpart"] = counterpart_json(result.counterpart);
  json["counterpart_speedup"] = number_or_null(result.counterpart_speedup());
  json["max_error"] = nullptr;
  if (result.check) {
    json["max_error"] = result.check->worst().relative;
    for (const TensorError& error : result.check->errors) json["errors"][error.name] = error.relative;
  }
  json["regret"] = number_or_null(result.regret());
  json["candidates"] = Json::array();
  for (const CandidateTime& candidate : result.candidates) {
    json["candidates"].push_back({{"name", candidate.name},
                                  {"forward_ms", candidate.forward_ms},
                                  {"backward_ms", candidate.backward_ms},
                                  {"chosen", candidate.chosen}});
  }
  json["peers"] = Json::array();
  for (const PeerResult& peer : result.peers) {
    json["peers"].push_back({{"name", peer.name},
                             {"version", peer.version},
                             {"forward_ms", number_or_null(peer.forward_ms)},
                             {"backward_ms", number_or_null(peer.backward_ms)},
                             {"max_difference", number_or_null(peer.max_difference)}});
  }
  return json;
}

Json roofs_json(const std::vector<Roof>& roofs) {
  Json json = Json::array();
  for (const Roof& roof : roofs) {
    json.push_back({{"dtype", roof.dtype},
                    {"threads", roof.threads},
                    {"gemm_gflops", number_or_null(roof.gemm_gflops)},
                    {"detected_gemm_gflops", number_or_null(roof.detected_gemm_gflops)},
                    {"copy_gb_per_second", roof.copy_bytes_per_second / 1e9}});
  }
  return json;
}

}  // namespace cobble::program
