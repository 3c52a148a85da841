#include "../divergences/cressie_read.hpp"

#include "noise_sets.hpp"

namespace robustmdp {

void bind_state_noise_powers(nb::module_& m) {
    bind_noise_divergence<ChiSquare>(m, "ChiSquare");
    bind_noise_divergence<KullbackLeibler>(m, "KullbackLeibler");
    bind_noise_divergence<Burg>(m, "Burg");
}

}  // namespace robustmdp
