// How a set of rows becomes one of states whose actions share the noise.
#pragma once

#include "../ambiguity/shared_noise.hpp"
#include "state_sets.hpp"

namespace robustmdp {

template <class Set> void bind_noise_set(nb::module_& m, const std::string& name) {
    bind_state_set<SharedNoise<Set>>(m, "Noise" + name);
    m.def("shared_noise", [](const Set& rows) { return SharedNoise<Set>(rows); });
}

template <class D> void bind_noise_divergence(nb::module_& m, const std::string& name) {
    bind_noise_set<Penalized<D>>(m, "Penalized" + name);
    bind_noise_set<Constrained<D>>(m, "Constrained" + name);
}

}  // namespace robustmdp
