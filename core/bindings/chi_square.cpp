#include "../divergences/cressie_read.hpp"

#include "sets.hpp"

namespace robustmdp {

void bind_chi_square(nb::module_& m) {
    bind_divergence<ChiSquare>(m, "ChiSquare");
    bind_divergence<Cubic>(m, "Cubic");
}

}  // namespace robustmdp
