// What solving one row, or several side by side, leaves behind.
#pragma once

#include "../rows.hpp"

namespace robustmdp {

// FAST: values to 1e-11 of the spread, for sweeps. EXACT: multipliers to rounding, for bounds and distributions.
enum class Accuracy { FAST, EXACT };

// How much room the level leaves to nature: none (the model itself), some, or all (the minimum over the support).
enum class Room { NONE, SOME, ALL };

// Multipliers at which the dual value is (nearly) the worst case. eta = min x + weight * anchor - distance, the anchor
// being 0 (`base` 1) or f'(inf) (`base` 0).
template <class T> struct Solved {
    T value;  // the worst case less min x
    T distance;
    T weight;
    T base;
    Mask<T> converged;
    Room room = Room::SOME;
};

inline Solved<double> without_room(const Rows<double>& row) {
    return {row.mean_rise, 0.0, INFINITE, 1.0, true, Room::NONE};
}

inline Solved<double> with_all_room() { return {0.0, 0.0, 0.0, 1.0, true, Room::ALL}; }

// Certified lower <= worst case - min x <= upper.
template <class T> struct Bounds {
    T lower, upper;
};

inline Solved<double> pick_lane(const Solved<Lanes>& solved, int l) {
    return {solved.value[l], solved.distance[l],       solved.weight[l],
            solved.base[l],  solved.converged[l] != 0, solved.room};
}
inline Solved<double> pick_lane(const Solved<double>& solved, int) { return solved; }

// A bound on the rounding of E(x - min x): that of its sum, and of the probabilities' own, which is 1 to 1.5 n EPS.
template <class T> inline T mean_slack(const Rows<T>& rows, T terms) { return 4.0 * terms * EPS * rows.spread; }

// At least the bounds that hold whatever the multipliers are: the minimum and the mean. They replace NaN, too.
template <class T> inline Bounds<T> within_trivial_bounds(const Rows<T>& rows, T terms, T lower, T upper) {
    const T zero = broadcast<T>(0.0);
    const T highest = rows.mean_rise + mean_slack(rows, terms);
    return {select(lower > zero, lower, zero), select(upper < highest, upper, highest)};
}

// What sets have in common whose dual value is a formula in the level: `solve` needs no search and nothing to start from.
template <class Set> struct ClosedForm : SetTraits {
    Solved<double> solve_alone(const Rows<double>& row, double level, Accuracy accuracy) const {
        return static_cast<const Set&>(*this).solve(row, level, static_cast<const double*>(nullptr), accuracy, 1);
    }

    template <class T> Bounds<T> bounds(const Rows<T>& rows, T, const Solved<T>& solved, T terms) const {
        const T slack = mean_slack(rows, terms);
        return within_trivial_bounds(rows, terms, solved.value - slack, solved.value + slack);
    }
};

// The outcomes next to a threshold, less min x, and their places in the row.
template <class T> struct Neighbours {
    T up, down, up_place, down_place;

    void add(int64_t j, T d, Mask<T> over, Mask<T> under) {
        const T place = broadcast<T>(static_cast<double>(j));
        const Mask<T> nearest_up = over & (d < up), nearest_down = under & (d > down);
        up = select(nearest_up, d, up);
        up_place = select(nearest_up, place, up_place);
        down = select(nearest_down, d, down);
        down_place = select(nearest_down, place, down_place);
    }
};

// The outcome at a place, less min x; half the spread where the row has no such place.
template <class T> inline T rise_at(const Rows<T>& rows, T place) {
    T rise = 0.5 * rows.spread;
    for (int l = 0; l < lane_count<T>; ++l)
        if (const double j = lane(place, l); 0.0 <= j && j < static_cast<double>(rows.length))
            set_lane(rise, l, rows.x[static_cast<int64_t>(j) * rows.stride + l] - lane(rows.lowest, l));
    return rise;
}

// A line above a ball's dual g, which is concave in the price lam of the budget; it touches g at its own lam.
struct Tangent {
    double lam, value;
    double used;   // of the budget, by an answer that attains g
    double slope;  // used - radius
};

struct Meeting {
    double lam, value;
};

inline Meeting meet(const Tangent& left, const Tangent& right) {
    if (!(left.slope > right.slope)) return {left.lam, larger(left.value, right.value)};
    const double step = (right.value - left.value + right.slope * (left.lam - right.lam)) / (left.slope - right.slope);
    return {left.lam + step, left.value + left.slope * step};
}

// The share of the left one's answer in the mixture that uses the whole budget.
inline double left_share(const Tangent& left, const Tangent& right, double radius) {
    const double share = left.used > right.used ? (radius - right.used) / (left.used - right.used) : 1.0;
    return smaller(larger(share, 0.0), 1.0);
}

// NaN if either is, so that no bound is made of it.
template <class T> inline T larger_or_nan(T a, T b) { return select(a > b, a, b) + (a - a); }

}  // namespace robustmdp
