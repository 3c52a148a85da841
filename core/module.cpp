// Python bindings of the core.
#include <nanobind/nanobind.h>

#if defined(_WIN32) && defined(__x86_64__)
extern "C" __declspec(dllimport) int __stdcall IsProcessorFeaturePresent(unsigned long feature);
#endif

namespace nb = nanobind;

namespace robustmdp {

void bind_sorted_rows(nb::module_& m);
void bind_model(nb::module_& m);
void bind_total_variation(nb::module_& m);
void bind_mass_sets(nb::module_& m);
void bind_wasserstein(nb::module_& m);
void bind_chi_square(nb::module_& m);
void bind_kullback_leibler(nb::module_& m);
void bind_powers(nb::module_& m);
void bind_jensen_shannon(nb::module_& m);
void bind_own(nb::module_& m);
void bind_learning(nb::module_& m);

namespace {

constexpr const char* INSTRUCTION_SET =
#if defined(__AVX2__) && defined(__FMA__)
    "avx2";
#elif defined(__aarch64__)
    "arm64";
#else
    "generic";
#endif

// Whether the processor and the operating system can run the module compiled for x86-64-v3.
bool supports_avx2() {
#if defined(_WIN32) && defined(__x86_64__)
    // clang-cl has no runtime library behind __builtin_cpu_supports; 40 is PF_AVX2_INSTRUCTIONS_AVAILABLE.
    return IsProcessorFeaturePresent(40) != 0;
#elif defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

}  // namespace

}  // namespace robustmdp

NB_MODULE(ROBUSTMDP_MODULE, m) {
    m.doc() = "Compiled kernels of robustmdp.";
    nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no leak to a user

    m.def("supports_avx2", &robustmdp::supports_avx2, "Whether this processor can run the module compiled for AVX2.");
    m.def(
        "build_info",
        [] {
            nb::dict info;
            info["compiler"] = ROBUSTMDP_COMPILER;  // in the same form for every compiler
            info["instruction_set"] = robustmdp::INSTRUCTION_SET;
            info["standard"] = static_cast<long>(__cplusplus);
            return info;
        },
        "How this module was compiled: compiler with version, instruction set, C++ standard (the value of "
        "__cplusplus).");

    robustmdp::bind_sorted_rows(m);
    robustmdp::bind_model(m);
    robustmdp::bind_total_variation(m);
    robustmdp::bind_mass_sets(m);
    robustmdp::bind_wasserstein(m);
    robustmdp::bind_chi_square(m);
    robustmdp::bind_kullback_leibler(m);
    robustmdp::bind_powers(m);
    robustmdp::bind_jensen_shannon(m);
    robustmdp::bind_own(m);
    robustmdp::bind_learning(m);
}
