#include "feature_options.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cobble/error.hpp"

using namespace cobble;
using namespace cobble::program;

TEST_CASE("the model reads d as what a token stores; values keep theirs") {
  const Problem problem{.head_dim = 64, .query_heads = 4, .key_value_heads = 2, .batch = 3};
  const Problem dense = model_problem(problem, {});
  CHECK(dense.head_dim == 64);
  CHECK(dense.value_dim == 64);
  const Problem compressed = model_problem(problem, {8, "bsr"});
  CHECK(compressed.head_dim == 8);
  CHECK(compressed.value_dim == 64);
  CHECK(compressed.query_heads == 4);
  CHECK(compressed.key_value_heads == 2);
  CHECK(compressed.batch == 3);
  CHECK(model_problem({.head_dim = 64, .value_dim = 24}, {64, "csr"}).value_dim == 24);
}

TEST_CASE("a run's plan keeps d and knows how much of Q and K is stored") {
  const Problem stored = stored_problem({.head_dim = 64}, {8, "csr"});
  CHECK(stored.head_dim == 64);
  CHECK(stored.query_entries == 8);
  CHECK(stored.key_entries == 8);
  CHECK(stored.value_entries == 0);
  CHECK(stored_problem({.head_dim = 64}, {}).key_entries == 0);
  CHECK_THROWS_AS(stored_problem({.head_dim = 4}, {5, "csr"}), Error);
}

TEST_CASE("no token stores more features than there are") {
  CHECK_NOTHROW(require_features({64, "csr"}, 64));
  CHECK_NOTHROW(require_features({}, 1));
  CHECK_THROWS_WITH_AS(require_features({65, "csr"}, 64), "--features 65 exceeds the head dimension 64", Error);
  CHECK_THROWS_AS(model_problem({.head_dim = 4}, {5, "csr"}), Error);
}

TEST_CASE("reports name compressed inputs and leave dense ones out") {
  Json json = Json::object();
  add_features_json(json, {});
  CHECK(json.empty());
  CHECK(stored_text({}).empty());
  add_features_json(json, {8, "bsr"});
  CHECK(json == Json{{"features", 8}, {"feature_storage", "bsr"}});
  CHECK(stored_text({8, "bsr"}) == " of which 8 are stored in Q and K (bsr)");
}
