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

// At least the bounds that hold whatever the multipliers are: the minimum and the mean. NaN gives way to them, too.
template <class T> inline Bounds<T> within_trivial_bounds(const Rows<T>& rows, T terms, T lower, T upper) {
    const T zero = broadcast<T>(0.0);
    const T highest = rows.mean_rise + mean_slack(rows, terms);
    return {select(lower > zero, lower, zero), select(upper < highest, upper, highest)};
}

// What sets have in common whose dual value is a formula in the level: `solve` needs no search and nothing to start from.
template <class Set> struct ClosedForm {
    static constexpr int MEMORY = 0;

    double vertex_slack(const Rows<double>&, double, double) const { return 0.0; }
    bool runs_side_by_side(const Rows<Lanes>&, Lanes) const { return true; }
    bool answers_side_by_side(const Rows<Lanes>&, const Solved<Lanes>&) const { return true; }

    Solved<double> solve_alone(const Rows<double>& row, double level, Accuracy accuracy) const {
        return static_cast<const Set&>(*this).solve(row, level, static_cast<const double*>(nullptr), accuracy, 1);
    }

    template <class T> void remember(const Rows<T>&, const Solved<T>&, T*) const {}

    template <class T> Bounds<T> bounds(const Rows<T>& rows, T, const Solved<T>& solved, T terms) const {
        const T slack = mean_slack(rows, terms);
        return within_trivial_bounds(rows, terms, solved.value - slack, solved.value + slack);
    }
};

// NaN if either is, so that no bound is made of it.
template <class T> inline T larger_or_nan(T a, T b) { return select(a > b, a, b) + (a - a); }

}  // namespace robustmdp
