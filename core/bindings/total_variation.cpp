#include "sets.hpp"

namespace robustmdp {

// Total variation has a kink instead of a smooth conjugate, and sets of its own.
struct TotalVariation {};

void bind_total_variation(nb::module_& m) {
    bind_set<Nominal>(m, "Nominal").def(nb::init<>());
    bind_set<PenalizedTotalVariation>(m, "PenalizedTotalVariation");
    bind_set<ConstrainedTotalVariation>(m, "ConstrainedTotalVariation")
        .def("project", &project_row<ConstrainedTotalVariation>);
    nb::class_<TotalVariation>(m, "TotalVariation")
        .def(nb::init<>())
        .def("penalized", [](const TotalVariation&) { return PenalizedTotalVariation{}; })
        .def("constrained", [](const TotalVariation&) { return ConstrainedTotalVariation{}; });
}

}  // namespace robustmdp
