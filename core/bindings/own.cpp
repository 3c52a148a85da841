#include "../divergences/own.hpp"

#include "learning.hpp"

namespace robustmdp {

namespace {

OwnFunction function_at(uintptr_t address) {
    require(address != 0, "a function must have an address");
    return reinterpret_cast<OwnFunction>(address);
}

}  // namespace

void bind_own(nb::module_& m) {
    m.def("call_function", [](uintptr_t address, Numbers s, Array<double> out) {
        const OwnFunction function = function_at(address);
        require(s.size() == out.size(), "s and out must be equally long");
        const nb::gil_scoped_release release;
        for (size_t i = 0; i < s.size(); ++i) out.data()[i] = function(s.data()[i]);
    });
    nb::class_<OwnConjugate> bound(m, "OwnConjugate");
    bound
        .def("__init__",
             [](OwnConjugate* self, uintptr_t conjugate, uintptr_t derivative, double slope_at_one,
                double slope_at_infinity, double near, double bend) {
                 new (self) OwnConjugate{
                     function_at(conjugate), function_at(derivative), slope_at_one, slope_at_infinity, near, bend};
             })
        .def("moments", [](const OwnConjugate& own, Table<const double> p, Table<const double> rise, Numbers theta,
                           Array<const bool> at_edge, Numbers shift, Array<double> miss, Array<double> excess,
                           Array<double> cost, Array<double> mean) {
            const auto count = static_cast<int64_t>(p.shape(1));
            require(rise.shape(0) == p.shape(0) && rise.shape(1) == p.shape(1), "p and rise must have the same shape");
            require_length(count, "there must be one entry per row", theta, at_edge, shift, miss, excess, cost, mean);
            const nb::gil_scoped_release release;
            own_moments(own, p.data(), rise.data(), static_cast<int64_t>(p.shape(0)), count, theta.data(),
                        at_edge.data(), shift.data(), OwnMoments{miss.data(), excess.data(), cost.data(), mean.data()});
        });
    bind_learners(bound, [](const OwnConjugate& own) { return OwnPrice{own}; });
}

}  // namespace robustmdp
