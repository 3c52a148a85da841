// What learners ask of a divergence, J(eta; x) = eta - w f*((eta - x)/w) = x - w (f*(y) - y).
#pragma once

#include "../divergences/own.hpp"

namespace robustmdp {

constexpr double LARGEST_LOG_RATIO = 690.0;

// A divergence in normal form whose f* and derivatives the core knows.
template <class D> struct SmoothPrice {
    static constexpr bool ROBUST = true, SMOOTH = true, WIDE = true;
    D divergence;

    double edge() const { return divergence.edge; }

    // f'(t) for t >= 1, the y at which f*'(y) = t
    template <class T> T slope(T t) const { return divergence.largest_y(1.0 / t); }

    template <class T> [[gnu::always_inline]] Tilt<T> at(T y) const {
        const T one = broadcast<T>(1.0), infinite = broadcast<T>(INFINITE);
        Tilt<T> tilt = divergence.at(one, -smaller(y, broadcast<T>(divergence.top)));
        if constexpr (!D::QUADRATIC && !D::EXACT_NEWTON) {
            const Mask<T> near = magnitude(y) <= broadcast<T>(divergence.reach);
            if (any(near)) tilt = select(near, divergence.near.at(one, -y), tilt);
        }
        const Mask<T> beyond = y >= broadcast<T>(divergence.edge);
        if (any(beyond)) tilt = select(beyond, {infinite, infinite, infinite, infinite, infinite, infinite}, tilt);
        return tilt;
    }
};

// A user's own, known by its functions alone; its f*'' is not.
struct OwnPrice {
    static constexpr bool ROBUST = true, SMOOTH = true, WIDE = false;
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
        return own_tilt(own, y + own.slope_at_one, y);
    }
};

// Total variation: J = min(x, min x + w), which follows from the lowest outcome alone.
struct KinkedPrice {
    static constexpr bool ROBUST = true, SMOOTH = false, WIDE = true;
};

struct NoPrice {
    static constexpr bool ROBUST = false, SMOOTH = false, WIDE = true;
};

}  // namespace robustmdp
