#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "cobble/isa.hpp"

// Every instruction set that this machine has, one after another.

namespace cobble::test {

/// Runs `check` on every instruction set, then goes back to the one before.
template <class Check>
void on_every_isa(Check check) {
  struct Restore {
    Isa before = isa();
    ~Restore() { set_isa(before); }
  } restore;
  for (const Isa other : available_isas()) {
    set_isa(other);
    CAPTURE(std::string(to_string(other)));
    check();
  }
}

/// Runs `check` on one instruction set; says so where the machine does not have it.
template <class Check>
bool on_isa(Isa wanted, Check check) {
  bool found = false;
  on_every_isa([&] {
    if (isa() != wanted) return;
    found = true;
    check();
  });
  if (!found) MESSAGE("this machine has no ", std::string(to_string(wanted)));
  return found;
}

/// |x - exact| in units of x's last place.
template <class T>
long double ulps(T x, long double exact) {
  const T up = std::nextafter(std::abs(x), std::numeric_limits<T>::infinity());
  return std::abs(static_cast<long double>(x) - exact) / static_cast<long double>(up - std::abs(x));
}

}  // namespace cobble::test
