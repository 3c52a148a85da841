// What a worst case asks of a divergence: f* and its derivatives at y = anchor - u.
//
// Normal form: f(1) = f'(1) = 0. Adding c (t-1) to f changes neither D nor the worst case, and a factor moves into the
// level. Arguments of f* come as a distance u below an anchor, because digits are lost otherwise: the anchor is 0
// (`base` 1), or the edge of the domain, f'(inf) (`base` 0), where the row's minimum comes close to it.
#pragma once

#include "../lanes.hpp"

namespace robustmdp {

template <class T> struct Tilt {
    T slope;      // f*'(y)
    T growth;     // f*'(y) - 1
    T curvature;  // f*''(y)
    T bend;       // f*'''(y)
    T excess;     // f*(y) - y, which is never negative
    T cost;       // f(f*'(y)) = y f*'(y) - f*(y)
};

template <class T> inline Tilt<T> select(Mask<T> mask, const Tilt<T>& yes, const Tilt<T>& no) {
    return {select(mask, yes.slope, no.slope),         select(mask, yes.growth, no.growth),
            select(mask, yes.curvature, no.curvature), select(mask, yes.bend, no.bend),
            select(mask, yes.excess, no.excess),       select(mask, yes.cost, no.cost)};
}

// r^(a-1), r^a and r^(a+1) for r >= 0: 0 where r is.
template <class T> struct Powers {
    T below, mean, above;
};

// What most formulas of f* have in common.
struct FormulaTraits {
    static constexpr bool EXACT_NEWTON = false;  // does one step of Newton's method end at the root?
    static constexpr bool CANCELS = true;        // is the cost a difference of larger terms?
    static constexpr bool LOGARITHMIC = false;   // is f* - y = u - log inner(u) up to a constant?
    static constexpr bool QUADRATIC = false;     // is f* quadratic between kinks?
    static constexpr bool HAS_KINK = false;      // is it there for k > 1 only?

    // How far u may rise, or has risen, from the kink of f*' that is there for k > 1.
    template <class T> static T clearance(T) { return broadcast<T>(INFINITE); }
};

// Powers of y near 0, where the plain formulas cancel: f*'(y) = sum of b[j] y^j, b[0] = 1.
struct Series : FormulaTraits {
    static constexpr int TERMS = 12;
    static constexpr bool CANCELS = false;
    double b[TERMS + 1];

    template <class T> [[gnu::always_inline]] Tilt<T> at(T, T u) const {
        const T y = -u;
        T growth = broadcast<T>(b[TERMS]), curvature = broadcast<T>(TERMS * b[TERMS]);
        T excess = broadcast<T>(b[TERMS] / (TERMS + 1)), cost = broadcast<T>(TERMS * b[TERMS] / (TERMS + 1));
        for (int j = TERMS - 1; j >= 1; --j) {
            growth = fused(growth, y, broadcast<T>(b[j]));
            curvature = fused(curvature, y, broadcast<T>(j * b[j]));
            excess = fused(excess, y, broadcast<T>(b[j] / (j + 1)));
            cost = fused(cost, y, broadcast<T>(j * b[j] / (j + 1)));
        }
        return {growth * y + 1.0, growth * y, curvature, broadcast<T>(2.0 * b[2]), excess * y * y, cost * y * y};
    }
};

// The numbers of one divergence.
struct NormalForm : FormulaTraits {
    double edge;       // f'(inf)
    double top;        // y up to which f*' is a number, where there is no edge
    double floor;      // distance from the edge down to which it is one
    double near_edge;  // the edge, where y comes close to it: not as k tends to 1
    double reach;      // |y| up to which the series serves
    Series near;
    double rounding = 16.0;  // relative error of f*' and f, in units of EPS
    double offset = 0.0;     // size of what is subtracted from f* to bring it into normal form
};

constexpr double LEAST_SHIFT = 1e-290;  // nearer to the edge of its domain, f*' is not a number

constexpr double SERIES_REACH = 0.03;  // (reach)^TERMS is below rounding

// f(1 + d) from f'' = sum of c[j] d^j.
template <class Coefficients> inline double integrate_twice(Coefficients next, double d) {
    double total = 0.0, power = 1.0;
    for (int j = 0; j < 40; ++j) {
        const double term = next(j) * power / ((j + 1.0) * (j + 2.0));
        total += term;
        power *= d;
        if (magnitude(term) < 1e-19 * magnitude(total)) break;
    }
    return total * d * d;
}

}  // namespace robustmdp
