// A user's own divergence: f* and f*' as functions in machine code.
//
// Their rows are solved in Python, many at a time (robustmdp.ambiguity); what takes the time is here. The same formulas,
// in the same order, stand in NumPy for functions of Python.
#pragma once

#include "../lanes.hpp"

namespace robustmdp {

using OwnFunction = double (*)(double);

struct OwnConjugate {
    OwnFunction conjugate, derivative;
    double slope_at_one;
    double slope_at_infinity;
    double near;  // |y| up to which f* - s is taken as y (f*' - 1)/2, because the plain formula cancels
};

// Infinite slopes become large ones, so that their product with zero is zero; what is no number is too far up.
inline double bounded_slope(OwnFunction derivative, double s) {
    constexpr double LARGEST = 1e307;
    const double slope = derivative(s);
    return slope < LARGEST ? larger(slope, 0.0) : LARGEST;
}

// Moments of `count` rows, entry j of row i at [j * count + i], at s = anchor - (rise theta + shift), t = f*'(s).
struct OwnMoments {
    double* miss;    // E t - 1
    double* excess;  // E(f*(s) - s)
    double* cost;    // E f(t)
    double* mean;    // E t rise
};

inline void own_moments(const OwnConjugate& own, const double* p, const double* rise, int64_t length, int64_t count,
                        const double* theta, const bool* at_edge, const double* shift, const OwnMoments& out) {
    for (int64_t i = 0; i < count; ++i) out.miss[i] = out.excess[i] = out.cost[i] = out.mean[i] = 0.0;
    for (int64_t j = 0; j < length; ++j) {
        for (int64_t i = 0; i < count; ++i) {
            const double mass = p[j * count + i], d = rise[j * count + i];
            if (mass == 0.0) continue;  // padding
            const double anchor = at_edge[i] ? own.slope_at_infinity : own.slope_at_one;
            const double s = anchor - (d * theta[i] + shift[i]);
            const double t = bounded_slope(own.derivative, s);
            const double y = s - own.slope_at_one, growth = t - 1.0, area = y * growth;
            const double excess = magnitude(y) <= own.near ? 0.5 * area : own.conjugate(s) - s;
            out.miss[i] += mass * growth;
            out.excess[i] += mass * excess;
            out.cost[i] += mass * (area - excess);
            out.mean[i] += mass * t * d;
        }
    }
}

}  // namespace robustmdp
