#include "../ambiguity/contamination.hpp"
#include "../ambiguity/euclidean.hpp"

#include "kept_arrays.hpp"
#include "noise_sets.hpp"

namespace robustmdp {

void bind_state_noise(nb::module_& m) {
    bind_noise_set<PenalizedTotalVariation>(m, "PenalizedTotalVariation");
    bind_noise_set<ConstrainedTotalVariation>(m, "ConstrainedTotalVariation");
    bind_noise_set<Moved>(m, "Moved");
    bind_noise_set<WeightedL1Arrays>(m, "WeightedL1");
    bind_noise_set<LargestChange>(m, "LargestChange");
    bind_noise_set<Euclidean>(m, "Euclidean");
    bind_noise_set<Tail>(m, "Tail");
    bind_noise_set<Contamination>(m, "Contamination");
    bind_noise_set<IntervalArrays>(m, "Interval");
}

}  // namespace robustmdp
