#include "kept_arrays.hpp"
#include "state_sets.hpp"

namespace robustmdp {

void bind_state_norms(nb::module_& m) {
    bind_state_divergence<TotalVariation, VariationProjection>(m, "TotalVariation");
    bind_state_set<SharedBudget<BallProjection<Euclidean>, false>>(m, "StateEuclidean").def(nb::init<>());
    using Weighted = BallProjection<WeightedL1Arrays>;
    bind_state_set<SharedBudget<Weighted, false>>(m, "StateWeightedL1")
        .def("__init__", [](SharedBudget<Weighted, false>* self, Numbers by_transition) {
            new (self) SharedBudget<Weighted, false>(Weighted{WeightedL1Arrays(by_transition, Numbers())});
        });
}

}  // namespace robustmdp
