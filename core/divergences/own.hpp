// A user's own divergence: f* and f*' as functions in machine code.
//
// Their rows are solved in Python, many at a time (robustmdp.ambiguity); what takes the time is here. The same
// formulas, in the same order, stand in NumPy for functions of Python.
#pragma once

#include "tilt.hpp"

namespace robustmdp {

using OwnFunction = double (*)(double);

struct OwnConjugate {
    OwnFunction conjugate, derivative;
    double slope_at_one;
    double slope_at_infinity;
    double near;  // |y| up to which f* - s is taken as y (f*' - 1)/2 - bend y^3, because the plain formula cancels
    double bend;
};

// Infinite slopes become large ones, so that their product with zero is zero; what is no number is too far up.
inline double bounded_slope(OwnFunction derivative, double s) {
    constexpr double LARGEST = 1e307;
    const double slope = derivative(s);
    return slope < LARGEST ? larger(slope, 0.0) : LARGEST;
}

// At s, y = s less the slope of f at 1; f*'' is not known.
inline Tilt<double> own_tilt(const OwnConjugate& own, double s, double y) {
    const double t = bounded_slope(own.derivative, s), growth = t - 1.0, value = own.conjugate(s);
    const double half = 0.5 * (y * growth), bend = own.bend * (y * y * y);
    const bool is_near = magnitude(y) <= own.near;
    const double excess = is_near ? half - bend : value - s;
    // f(t) = s t - f*(s), less its slope at 1
    const double cost = is_near ? half + bend : y * t - (value - own.slope_at_one);
    return {t, growth, NOT_A_NUMBER, NOT_A_NUMBER, excess, cost};
}

constexpr double LARGEST_COST = 1e300;  // what is no number was too large for one

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
            const Tilt<double> tilt = own_tilt(own, s, s - own.slope_at_one);
            out.miss[i] += mass * tilt.growth;
            out.excess[i] += mass * tilt.excess;
            out.cost[i] += mass * smaller(tilt.cost, LARGEST_COST);
            out.mean[i] += mass * tilt.slope * d;
        }
    }
}

}  // namespace robustmdp
