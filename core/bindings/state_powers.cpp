#include "../divergences/cressie_read.hpp"

#include "state_sets.hpp"

namespace robustmdp {

void bind_state_powers(nb::module_& m) {
    bind_state_divergence<ChiSquare, SmoothProjection<ChiSquare>>(m, "ChiSquare");
    bind_state_divergence<KullbackLeibler, SmoothProjection<KullbackLeibler>>(m, "KullbackLeibler");
    bind_state_divergence<Burg, SmoothProjection<Burg>>(m, "Burg");
}

}  // namespace robustmdp
