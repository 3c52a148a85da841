#include "../divergences/cressie_read.hpp"

#include "sets.hpp"

namespace robustmdp {

void bind_power(nb::module_& m) { bind_divergence<Power, double>(m, "Power"); }

}  // namespace robustmdp
