#include "cobble/pebble.hpp"

#include "cobble/error.hpp"
#include "pebble/pebble_machine.hpp"
#include "plan/parameters.hpp"

namespace cobble {
namespace {

using detail::PebbleMachine;

detail::PhaseConsumer play(PebbleMachine& machine) {
  return [&machine](const detail::Phase& phase) {
    for (std::int64_t task = 0; task < phase.tasks; ++task) {
      phase.walk(task, machine);
      machine.end_task();
    }
  };
}

}  // namespace

PebbleCount count_forward(const Plan& plan) {
  PebbleMachine machine(plan.data(), PebbleMachine::Pass::forward);
  detail::forward_phases(plan.data(), play(machine));
  machine.end_pass();
  return machine.count();
}

PebbleCount count_backward(const Plan& plan) {
  PebbleMachine machine(plan.data(), PebbleMachine::Pass::backward);
  detail::backward_phases(plan.data(), play(machine));
  machine.end_pass();
  return machine.count();
}

PebbleCount count_parameter_gradients(const Plan& plan) {
  if (!plan.data().parameter_gradients) {
    throw Error(ErrorCode::invalid_argument, "the plan was not made with PlanOptions::parameter_gradients");
  }
  PebbleMachine machine(plan.data(), PebbleMachine::Pass::parameter_gradients);
  detail::parameter_gradient_phases(plan.data(), play(machine));
  machine.end_pass();
  return machine.count();
}

}  // namespace cobble
