#include "../ambiguity/contamination.hpp"
#include "../ambiguity/euclidean.hpp"

#include "kept_arrays.hpp"
#include "sets.hpp"

namespace robustmdp {

void bind_mass_sets(nb::module_& m) {
    bind_set<IntervalArrays>(m, "Interval").def(nb::init<Table>());
    bind_set<WeightedL1Arrays>(m, "WeightedL1").def(nb::init<Numbers, Numbers>());
    bind_set<LargestChange>(m, "LargestChange").def(nb::init<>());
    bind_set<Euclidean>(m, "Euclidean").def(nb::init<>());
    bind_set<Moved>(m, "Moved").def(nb::init<>());
    bind_set<Tail>(m, "Tail").def(nb::init<>());
    bind_set<Contamination>(m, "Contamination").def(nb::init<>());
}

}  // namespace robustmdp
