#include "../divergences/cressie_read.hpp"

#include "sets.hpp"

namespace robustmdp {

void bind_powers(nb::module_& m) {
    bind_divergence<Burg>(m, "Burg");
    bind_divergence<Power, double>(m, "Power");
}

}  // namespace robustmdp
