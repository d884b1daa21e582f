#include "cobble/pebble.hpp"

#include "pebble/pebble_machine.hpp"
#include "plan/schedules.hpp"

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
  detail::backward_phases(plan.data(), detail::BackwardTasks::heads, play(machine));
  machine.end_pass();
  return machine.count();
}

}  // namespace cobble
