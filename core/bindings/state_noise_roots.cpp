#include "../divergences/cressie_read.hpp"
#include "../divergences/jensen_shannon.hpp"

#include "noise_sets.hpp"

namespace robustmdp {

void bind_state_noise_roots(nb::module_& m) {
    bind_noise_divergence<Hellinger>(m, "Hellinger");
    bind_noise_divergence<Cubic>(m, "Cubic");
    bind_noise_divergence<Power>(m, "Power");
    bind_noise_divergence<JensenShannon>(m, "JensenShannon");
}

}  // namespace robustmdp
