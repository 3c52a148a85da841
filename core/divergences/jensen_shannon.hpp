// Jensen-Shannon: f(t) = t log t - (t+1) log((t+1)/2), f*(y) = -log(2 - exp y), y < log 2.
#pragma once

#include "tilt.hpp"

namespace robustmdp {

struct JensenShannon : NormalForm {
    static constexpr double k = 1.0;                 // t^k = t in bounds of t/E t
    static constexpr double RENORMALISATION = LOG2;  // |u f'(u) - f(u)| = |log((u+1)/2)| where u < 1
    static constexpr bool LOGARITHMIC = true;
    static constexpr double LOG_OFFSET = 2.0 * LOG2;

    JensenShannon() : NormalForm{{}, LOG2, LOG2, LEAST_SHIFT, LOG2, 0.02, {}} {
        // f*'' = f*' + f*'^2
        near.b[0] = 1.0;
        for (int j = 0; j < Series::TERMS; ++j) {
            double square = 0.0;
            for (int i = 0; i <= j; ++i) square += near.b[i] * near.b[j - i];
            near.b[j + 1] = (near.b[j] + square) / (j + 1.0);
        }
    }

    // base + 1 - exp(-u)
    template <class T> T inner(T base, T u) const { return base - exponential_less_one(-u); }
    template <class T> T cost_less_logarithm(T base, T u, const Tilt<T>& tilt) const {
        const T anchor = (1.0 - base) * LOG2;
        return fused(anchor - u, tilt.slope, anchor);
    }

    template <class T> [[gnu::always_inline]] Tilt<T> at(T base, T u) const {
        const Exponential<T> e = reduce_exponential(-u);
        const T fallen = -fused(e.power, e.rest, e.power - 1.0);  // 1 - exp(-u)
        const T slope = fused(e.power, e.rest, e.power) / (base + fallen);
        const T conjugate = (base - 1.0) * LOG2 - logarithm(base + fallen);
        const T y = (1.0 - base) * LOG2 - u;
        const T curvature = fused(slope, slope, slope);
        return {slope,         slope - 1.0,
                curvature,     fused(slope, 2.0, 1.0) * curvature,
                conjugate - y, fused(y, slope, -conjugate)};
    }

    template <class T> T newton(T mass) const { return logarithm(2.0 * mass / (mass + 1.0)) * mass * (mass + 1.0); }

    double f(double t) const {
        if (t == 0.0) return LOG2;
        if (t == INFINITE) return INFINITE;
        const double d = t - 1.0;
        if (magnitude(d) < 0.1) {
            // f'' = 1/(t (1+t)) = 1/t - 1/(1+t), each a geometric series in d
            double sign = -1.0, half = 1.0;
            const auto next = [&](int) {
                sign = -sign;
                half *= 0.5;
                return sign * (1.0 - half);
            };
            return integrate_twice(next, d);
        }
        return t * logarithm(2.0 / (1.0 + 1.0 / t)) - logarithm(0.5 * (t + 1.0));
    }

    template <class T> T largest_y(T mass) const { return logarithm(2.0 / (1.0 + mass)); }
    double conjugate_at_edge() const { return INFINITE; }

    double least_distance(double mass) const { return logarithm_of_sum(1.0, mass); }
};

}  // namespace robustmdp
