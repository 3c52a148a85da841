#include "sets.hpp"

namespace robustmdp {

void bind_total_variation(nb::module_& m) {
    nb::class_<Nominal> nominal = bind_set<Nominal>(m, "Nominal");
    nominal.def(nb::init<>());
    bind_learners(nominal, [](const Nominal&) { return NoPrice{}; });
    bind_set<PenalizedTotalVariation>(m, "PenalizedTotalVariation");
    bind_set<ConstrainedTotalVariation>(m, "ConstrainedTotalVariation")
        .def("project", [](const ConstrainedTotalVariation&, Numbers p, Numbers x, double target) {
            return project_row(VariationProjection{}, p, x, target);
        });
    nb::class_<TotalVariation> bound(m, "TotalVariation");
    bound.def(nb::init<>())
        .def("penalized", [](const TotalVariation&) { return PenalizedTotalVariation{}; })
        .def("constrained", [](const TotalVariation&) { return ConstrainedTotalVariation{}; });
    bind_learners(bound, [](const TotalVariation&) { return KinkedPrice{}; });
}

}  // namespace robustmdp
