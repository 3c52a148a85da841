#include "../divergences/cressie_read.hpp"

#include "sets.hpp"

namespace robustmdp {

void bind_burg(nb::module_& m) { bind_divergence<Burg>(m, "Burg"); }

}  // namespace robustmdp
