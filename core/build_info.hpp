// How this module was compiled, and what the processor supports.
#pragma once

#if defined(_WIN32) && defined(__x86_64__)
extern "C" __declspec(dllimport) int __stdcall IsProcessorFeaturePresent(unsigned long feature);
#endif

namespace robustmdp {

// The compiler's name and version; CMake knows both in the same form for every compiler.
inline constexpr const char* compiler = ROBUSTMDP_COMPILER;

inline constexpr const char* instruction_set =
#if defined(__AVX2__) && defined(__FMA__)
    "avx2";
#elif defined(__aarch64__)
    "arm64";
#else
    "generic";
#endif

// Whether the processor and the operating system can run the module compiled for x86-64-v3.
inline bool supports_avx2() {
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

}  // namespace robustmdp
