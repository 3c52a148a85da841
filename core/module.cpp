// Python bindings of the core.
#include <nanobind/nanobind.h>

#include "build_info.hpp"

namespace nb = nanobind;

namespace robustmdp {

void bind_sorted_rows(nb::module_& m);
void bind_lanes(nb::module_& m);
void bind_chain(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_total_variation(nb::module_& m);
void bind_mass_sets(nb::module_& m);
void bind_wasserstein(nb::module_& m);
void bind_chi_square(nb::module_& m);
void bind_kullback_leibler(nb::module_& m);
void bind_burg(nb::module_& m);
void bind_power(nb::module_& m);
void bind_jensen_shannon(nb::module_& m);
void bind_own(nb::module_& m);
void bind_state_norms(nb::module_& m);
void bind_state_powers(nb::module_& m);
void bind_state_roots(nb::module_& m);
void bind_state_others(nb::module_& m);
void bind_state_noise(nb::module_& m);
void bind_state_noise_powers(nb::module_& m);
void bind_state_noise_roots(nb::module_& m);
void bind_learning(nb::module_& m);

}  // namespace robustmdp

NB_MODULE(ROBUSTMDP_MODULE, m) {
    m.doc() = "Compiled kernels of robustmdp.";
    nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no leak to a user

    m.def("supports_avx2", &robustmdp::supports_avx2, "Whether this processor can run the module compiled for AVX2.");
    m.def(
        "build_info",
        [] {
            nb::dict info;
            info["compiler"] = robustmdp::compiler;
            info["instruction_set"] = robustmdp::instruction_set;
            info["standard"] = static_cast<long>(__cplusplus);
            return info;
        },
        "How this module was compiled: compiler with version, instruction set, C++ standard (the value of "
        "__cplusplus).");

    robustmdp::bind_sorted_rows(m);

    robustmdp::bind_lanes(m);
    robustmdp::bind_chain(m);
    robustmdp::bind_graph(m);
    robustmdp::bind_total_variation(m);
    robustmdp::bind_mass_sets(m);
    robustmdp::bind_wasserstein(m);
    robustmdp::bind_chi_square(m);
    robustmdp::bind_kullback_leibler(m);
    robustmdp::bind_burg(m);
    robustmdp::bind_power(m);
    robustmdp::bind_jensen_shannon(m);
    robustmdp::bind_own(m);
    robustmdp::bind_state_norms(m);
    robustmdp::bind_state_powers(m);
    robustmdp::bind_state_roots(m);
    robustmdp::bind_state_others(m);
    robustmdp::bind_state_noise(m);
    robustmdp::bind_state_noise_powers(m);
    robustmdp::bind_state_noise_roots(m);
    robustmdp::bind_learning(m);
}
