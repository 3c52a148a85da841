// What learners ask of a divergence, one number at a time: J(eta; x) = eta - w f*((eta - x)/w) = x - w (f*(y) - y).
#pragma once

#include "../divergences/own.hpp"
#include "../divergences/tilt.hpp"

namespace robustmdp {

constexpr double LARGEST_LOG_RATIO = 690.0;

// A divergence in normal form whose f* and derivatives the core knows.
template <class D> struct SmoothPrice {
    static constexpr bool ROBUST = true, SMOOTH = true;
    D divergence;

    double edge() const { return divergence.edge; }

    // f'(t) for t >= 1, the y at which f*'(y) = t
    double slope(double t) const { return divergence.largest_y(1.0 / t); }

    Tilt<double> at(double y) const {
        if (y >= divergence.edge) return {INFINITE, INFINITE, INFINITE, INFINITE, INFINITE, INFINITE};
        if constexpr (!D::QUADRATIC && !D::EXACT_NEWTON)
            if (magnitude(y) <= divergence.reach) return divergence.near.at(1.0, -y);
        return divergence.at(1.0, -smaller(y, divergence.top));
    }
};

// A user's own, known by its functions alone; its f*'' is not.
struct OwnPrice {
    static constexpr bool ROBUST = true, SMOOTH = true;
    OwnConjugate own;

    double edge() const { return own.slope_at_infinity - own.slope_at_one; }

    double slope(double t) const {
        double low = 0.0, high = 1.0;
        if (edge() < INFINITE) {
            high = edge();
        } else {
            while (own.derivative(high + own.slope_at_one) < t && high < LARGEST_LOG_RATIO) high *= 2.0;
        }
        for (int i = 0; i < 60; ++i) {
            const double middle = 0.5 * (low + high);
            (own.derivative(middle + own.slope_at_one) < t ? low : high) = middle;
        }
        return low;
    }

    Tilt<double> at(double y) const {
        if (y >= edge()) return {INFINITE, INFINITE, INFINITE, INFINITE, INFINITE, INFINITE};
        const double s = y + own.slope_at_one, t = bounded_slope(own.derivative, s), value = own.conjugate(s);
        const double half = 0.5 * (y * (t - 1.0)), bend = own.bend * (y * y * y);
        const bool is_near = magnitude(y) <= own.near;
        return {t,
                t - 1.0,
                NOT_A_NUMBER,
                NOT_A_NUMBER,
                is_near ? half - bend : value - s,
                is_near ? half + bend : y * t - (value - own.slope_at_one)};
    }
};

// Total variation: J = min(x, min x + w), which follows from the lowest outcome alone.
struct KinkedPrice {
    static constexpr bool ROBUST = true, SMOOTH = false;
};

struct NoPrice {
    static constexpr bool ROBUST = false, SMOOTH = false;
};

}  // namespace robustmdp
