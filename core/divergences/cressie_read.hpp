// Cressie-Read: f(t) = (t^k - 1 - k (t-1))/(k (k-1)), f*' = q^(1/(k-1)), f*'' = f*'/q with q = 1 + (k-1) y.
//
// `Power` serves any k; the named members have cheaper formulas. For k < 1 the domain of f* ends at 1/(1-k).
#pragma once

#include "tilt.hpp"

namespace robustmdp {

// (t^h - 1)/h, which tends to log t as h tends to 0.
template <class T> inline T power_growth(double h, T log_t) {
    return h == 0.0 ? log_t : exponential_less_one(h * log_t) / h;
}

// f of Cressie-Read's family at one t >= 0.
inline double power_generator(double k, double t) {
    if (t == 0.0) return k > 0.0 ? 1.0 / k : INFINITE;
    if (t == INFINITE) return INFINITE;
    if (k == 2.0) return 0.5 * (t - 1.0) * (t - 1.0);
    if (magnitude(t - 1.0) * (1.0 + magnitude(k)) < 0.1) {
        double binomial = 1.0;
        const auto next = [&](int j) {
            const double coefficient = binomial;
            binomial *= (k - 2.0 - j) / (j + 1.0);
            return coefficient;
        };
        return integrate_twice(next, t - 1.0);
    }
    const double log_t = logarithm(t);
    // Each form is exact in its limit: the first as k tends to 1, the second as k tends to 0.
    const double h = magnitude(k - 1.0) < magnitude(k) ? k - 1.0 : k;
    if (h * log_t > LARGEST_EXPONENT) return INFINITE;
    if (h != k) return (t * power_growth(h, log_t) - (t - 1.0)) / k;
    return (power_growth(h, log_t) - (t - 1.0)) / (k - 1.0);
}

inline Series power_series(double k) {
    Series series;
    series.b[0] = 1.0;
    for (int j = 0; j < Series::TERMS; ++j) series.b[j + 1] = series.b[j] * (1.0 - j * (k - 1.0)) / (j + 1.0);
    return series;
}

constexpr double LOG_LARGEST = 700.0;  // of f*': products with y remain numbers

// f'(t) at the largest t
inline double largest_argument(double k) {
    return (k - 1.0) * LOG_LARGEST < LARGEST_EXPONENT ? power_growth(k - 1.0, LOG_LARGEST) : exponential(LOG_LARGEST);
}

// What all members share.
struct PowerFamily : NormalForm {
    double k;

    explicit PowerFamily(double k)
        : NormalForm{{},
                     k < 1.0 ? 1.0 / (1.0 - k) : INFINITE,
                     largest_argument(k),
                     k < 1.0 ? larger(LEAST_SHIFT, exponential((k - 1.0) * LOG_LARGEST) / (1.0 - k)) : 0.0,
                     INFINITE,
                     SERIES_REACH / (1.0 + magnitude(k)),
                     power_series(k)},
          k(k) {
        if (top > 0.5 * edge) near_edge = edge;
    }

    static constexpr double RENORMALISATION = 0.0;  // D(t/E t) <= (E t)^-k E f(t) needs no other term

    double f(double t) const { return power_generator(k, t); }

    double conjugate_at_edge() const { return k < 0.0 ? -1.0 / k : INFINITE; }

    // f'(1/m): E f*' <= 1 needs a y of at most this at outcomes of mass m.
    template <class T> T largest_y(T mass) const { return power_growth(k - 1.0, -logarithm(mass)); }

    // The same as a distance from the edge: E f*' <= 1 needs u >= this at outcomes of this mass.
    double least_distance(double mass) const { return exponential((1.0 - k) * logarithm(mass)) / (1.0 - k); }
};

struct Power : PowerFamily {
    double exponent;  // 1/(k-1)

    // A power's exponent is at most 709 and exact to EPS.
    explicit Power(double k) : PowerFamily(k), exponent(1.0 / (k - 1.0)) { rounding = 1600.0; }

    template <class T> T clearance(T u) const { return k > 1.0 ? exponent - u : broadcast<T>(INFINITE); }

    template <class T> [[gnu::always_inline]] Tilt<T> at(T base, T u) const {
        const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0), least = broadcast<T>(1e-290);
        const T s = (1.0 - k) * u;
        const Mask<T> inside = base + s > zero;
        const T q = larger(base + s, least);
        // Near k = 1, q is close to 1 and its logarithm needs the digits that q has lost.
        const bool delicate = magnitude(k - 1.0) < 0.1;
        const T log_slope = (delicate ? logarithm_of_sum(base, select(inside, s, one)) : logarithm(q)) * exponent;
        const T slope = exponential(log_slope);
        // f* = (q^(k/(k-1)) - 1)/k
        const T conjugate = magnitude(k) > 0.3 ? (q * slope - 1.0) / k : power_growth(k, log_slope);
        const T y = select(base == one, zero, broadcast<T>(edge)) - u;
        const T excess = conjugate - y, cost = y * slope - conjugate;
        const T kept = k < 1.0 ? slope : select(inside, slope, zero);
        const T curvature = kept / q, bend = (2.0 - k) * curvature / q;
        if (k < 1.0) return {slope, slope - 1.0, curvature, bend, excess, cost};
        return {kept,
                kept - 1.0,
                curvature,
                bend,
                select(inside, excess, u - 1.0 / k),
                select(inside, cost, broadcast<T>(1.0 / k))};
    }

    // f'(t)/f''(t): Newton on f'(E f*') = 0 is exact where one successor carries all the mass.
    template <class T> T newton(T mass) const {
        const T log_mass = logarithm(mass);
        return power_growth(k - 1.0, log_mass) * exponential((2.0 - k) * log_mass);
    }
};

struct ChiSquare : PowerFamily {
    ChiSquare() : PowerFamily(2.0) {
        reach = -1.0;  // the formulas are exact everywhere
        rounding = 4.0;
    }

    static constexpr bool CANCELS = false;
    static constexpr bool QUADRATIC = true;
    static constexpr bool HAS_KINK = true;
    template <class T> static T clearance(T u) { return 1.0 - u; }
    template <class T> [[gnu::always_inline]] static Powers<T> powers(T r) {
        return {select(r > broadcast<T>(0.0), broadcast<T>(1.0), broadcast<T>(0.0)), r, r * r};
    }

    template <class T> [[gnu::always_inline]] Tilt<T> at(T, T u) const {
        const T one = broadcast<T>(1.0), zero = broadcast<T>(0.0);
        const T fallen = smaller(u, one);
        return {one - fallen,         -fallen, select(u < one, one, zero), zero, fallen * fused(fallen, -0.5, u),
                0.5 * fallen * fallen};
    }

    template <class T> T newton(T mass) const { return mass - 1.0; }
};

struct KullbackLeibler : PowerFamily {
    KullbackLeibler() : PowerFamily(1.0) {}

    static constexpr bool EXACT_NEWTON = true;

    template <class T> [[gnu::always_inline]] Tilt<T> at(T, T u) const {
        const Exponential<T> e = reduce_exponential(-u);
        const T growth = fused(e.power, e.rest, e.power - 1.0);
        const T slope = fused(e.power, e.rest, e.power);
        return {slope, growth, slope, slope, growth + u, -fused(u, slope, growth)};
    }

    template <class T> T newton(T mass) const { return mass * logarithm(mass); }
};

struct Burg : PowerFamily {
    Burg() : PowerFamily(0.0) {}

    static constexpr bool LOGARITHMIC = true;
    static constexpr double LOG_OFFSET = 1.0;  // what is missing of the excess at the edge
    template <class T> T inner(T base, T u) const { return base + u; }
    template <class T> T cost_less_logarithm(T, T, const Tilt<T>& tilt) const { return tilt.growth; }

    template <class T> [[gnu::always_inline]] Tilt<T> at(T base, T u) const {
        const T inverse = 1.0 / (base + u);
        const T growth = inverse - 1.0, log_q = logarithm(inner(base, u));
        const T square = inverse * inverse;
        return {inverse, growth, square, 2.0 * square * inverse, (u + base - 1.0) - log_q, log_q + growth};
    }

    template <class T> T newton(T mass) const { return mass * (mass - 1.0); }
};

struct Hellinger : PowerFamily {
    Hellinger() : PowerFamily(0.5) {}

    static constexpr bool CANCELS = false;

    template <class T> [[gnu::always_inline]] Tilt<T> at(T base, T u) const {
        const T inverse = 1.0 / (base + 0.5 * u);
        const T slope = inverse * inverse;
        const T fallen = inverse - 1.0;
        return {slope,
                slope - 1.0,
                slope * inverse,
                1.5 * slope * slope,
                fused(inverse, 2.0, (2.0 * base - 4.0) + u),
                2.0 * fallen * fallen};
    }

    template <class T> T newton(T mass) const { return 2.0 * mass * (root(mass) - 1.0); }
};

// k = 3, whose powers are square roots.
struct Cubic : PowerFamily {
    Cubic() : PowerFamily(3.0) {}

    static constexpr bool HAS_KINK = true;
    template <class T> static T clearance(T u) { return 0.5 - u; }
    template <class T> [[gnu::always_inline]] static Powers<T> powers(T r) {
        const T s = root(r);
        return {select(r > broadcast<T>(1e-290), 1.0 / s, broadcast<T>(0.0)), s, r * s};
    }

    template <class T> [[gnu::always_inline]] Tilt<T> at(T, T u) const {
        const T zero = broadcast<T>(0.0);
        const T q = 1.0 - 2.0 * u;
        const Mask<T> inside = q > broadcast<T>(1e-290);
        const T kept = select(inside, q, zero), slope = root(kept);
        const T conjugate = fused(kept, slope, broadcast<T>(-1.0)) * (1.0 / 3.0);
        const T curvature = select(inside, 1.0 / slope, zero);
        return {slope,         slope - 1.0,
                curvature,     -curvature * curvature * curvature,
                conjugate + u, -fused(u, slope, conjugate)};
    }

    template <class T> T newton(T mass) const { return 0.5 * (mass - 1.0 / mass); }
};

}  // namespace robustmdp
