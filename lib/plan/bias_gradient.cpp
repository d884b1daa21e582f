#include "plan/bias_gradient.hpp"

#include "plan/tile_names.hpp"

namespace cobble::detail {
namespace {

void grad_score_row_panel(const PlanData& plan, const Head& head, std::int64_t row_panel, WalkVisitor& visitor) {
  const TileNames names(plan, head, plan.row_range(Product::backward_rows, row_panel));
  const Block resident[] = {names.rows(Operand::query, names.features()),
                            names.rows(Operand::grad_output, names.value_features()), names.statistic(Operand::lse),
                            names.statistic(Operand::delta)};
  for (const Block& block : resident) visitor.load(block);
  for (const PlanTile& tile : plan.tiles(Product::backward_rows, head).row(row_panel)) {
    visitor.drop(walk_grad_scores(plan, names, tile, visitor));
    visitor.drop(names.pairs(Operand::score, tile));
    visitor.drop(names.pairs(Operand::grad_score, tile));
  }
  for (const Block& block : resident) visitor.drop(block);
}

}  // namespace

void bias_gradient_phase(const PlanData& plan, const PhaseConsumer& consume) {
  consume({"bias", plan.row_panels(Product::backward_rows), [&plan](std::int64_t row_panel, WalkVisitor& visitor) {
             for (std::int64_t batch = 0; batch < plan.problem.batch; ++batch) {
               for (std::int64_t query = 0; query < plan.problem.query_heads; ++query) {
                 grad_score_row_panel(plan, {batch, query, query / plan.heads_per_group()}, row_panel, visitor);
               }
             }
           }});
}

}  // namespace cobble::detail
