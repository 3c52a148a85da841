#include "sets.hpp"

namespace robustmdp {

void bind_total_variation(nb::module_& m) {
    nb::class_<Nominal> nominal = bind_set<Nominal>(m, "Nominal").def(nb::init<>());
    bind_learners(nominal, [](const Nominal&) { return NoPrice{}; });
    bind_sets_of<TotalVariation, PenalizedTotalVariation, ConstrainedTotalVariation, VariationProjection>(
        m, "TotalVariation", [](const TotalVariation&) { return KinkedPrice{}; })
        .def(nb::init<>());
}

}  // namespace robustmdp
