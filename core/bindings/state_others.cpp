#include "../divergences/cressie_read.hpp"
#include "../divergences/jensen_shannon.hpp"

#include "state_sets.hpp"

namespace robustmdp {

void bind_state_others(nb::module_& m) {
    bind_state_divergence<Power, SmoothProjection<Power>>(m, "Power");
    bind_state_divergence<JensenShannon, SmoothProjection<JensenShannon>>(m, "JensenShannon");
}

}  // namespace robustmdp
