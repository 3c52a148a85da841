#include "../divergences/cressie_read.hpp"

#include "state_sets.hpp"

namespace robustmdp {

void bind_state_roots(nb::module_& m) {
    bind_state_divergence<Hellinger, SmoothProjection<Hellinger>>(m, "Hellinger");
    bind_state_divergence<Cubic, SmoothProjection<Cubic>>(m, "Cubic");
}

}  // namespace robustmdp
