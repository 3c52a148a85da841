#include "../divergences/jensen_shannon.hpp"

#include "sets.hpp"

namespace robustmdp {

void bind_jensen_shannon(nb::module_& m) { bind_divergence<JensenShannon>(m, "JensenShannon"); }

}  // namespace robustmdp
