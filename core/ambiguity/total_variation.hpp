// Total variation, f = |t-1|/2: nature lowers the ceiling of the outcomes, min(x, ceiling). Ceilings are measured from
// min x; the weight of the constraint is the ceiling itself.
#pragma once

#include "solved.hpp"

namespace robustmdp {

// It has a kink instead of a smooth conjugate, and sets of its own.
struct TotalVariation {};

inline double variation_generator(double t) { return 0.5 * magnitude(t - 1.0); }

// A ceiling in the form of multipliers: f*(y) = max(y, -1/2), y <= 1/2, so eta = min x + ceiling/2.
template <class T> inline Solved<T> solved_by_ceiling(T value, T ceiling, Mask<T> converged) {
    return {value, -0.5 * ceiling, ceiling, broadcast<T>(1.0), converged, Room::SOME};
}

// out = p with `share` of what lies at the ceiling, and all above it, moved to the minimisers; returns the moved mass.
template <class T> inline T move_mass(const Rows<T>& rows, T ceiling, T share, double* out, int64_t stride) {
    const T zero = broadcast<T>(0.0);
    T moved = zero;
    for (int64_t j = 0; j < rows.length; ++j) {
        const T p = rows.mass(j), d = rows.rise(j);
        T taken = select(d > ceiling, p, zero);
        taken = select((d == ceiling) & (d > zero), share * p, taken);
        store(out + j * stride, p - taken);
        moved += taken;
    }
    share_among_minimisers(rows, moved, out, stride);
    return moved;
}

// E min(x, min x + w)
struct PenalizedTotalVariation : ClosedForm<PenalizedTotalVariation> {
    static Room room(double level) { return level == INFINITE ? Room::NONE : level == 0.0 ? Room::ALL : Room::SOME; }
    static constexpr bool PRICED = true;
    explicit PenalizedTotalVariation(const TotalVariation& = {}) {}
    double f(double t) const { return variation_generator(t); }
    double multiplier(const Solved<double>& solved) const { return 0.5 * solved.weight; }

    template <class T> Solved<T> solve(const Rows<T>& rows, T weight, const T*, Accuracy, int) const {
        T value = broadcast<T>(0.0);
        for (int64_t j = 0; j < rows.length; ++j) {
            rows.ahead.prefetch(j);
            value = fused(rows.mass(j), smaller(rows.rise(j), weight), value);
        }
        return solved_by_ceiling(value, weight, value == value);
    }

    template <class T> T respond(const Rows<T>& rows, T weight, const Solved<T>&, double* out, int64_t stride) const {
        return move_mass(rows, weight, broadcast<T>(0.0), out, stride);
    }
};

// E min(x, ceiling) - (ceiling - min x) rho at the outcome with P(x > ceiling) <= rho <= P(x >= ceiling).
struct ConstrainedTotalVariation : SetTraits {
    static constexpr int MEMORY = 1;  // the ceiling

    explicit ConstrainedTotalVariation(const TotalVariation& = {}) {}
    static Room room(double level) { return level == 0.0 ? Room::NONE : level == INFINITE ? Room::ALL : Room::SOME; }
    double f(double t) const { return variation_generator(t); }
    double multiplier(const Solved<double>& solved) const { return 0.5 * solved.weight; }

    // From the last ceiling to its neighbours among the outcomes, one by one.
    template <class T> Solved<T> solve(const Rows<T>& rows, T radius, const T* start, Accuracy, int limit) const {
        const T zero = broadcast<T>(0.0);
        T ceiling = select((*start >= zero) & (*start <= rows.spread), *start, rows.mean_rise);
        Mask<T> done{};
        T value = zero;
        for (int pass = 0; pass < limit && !all(done); ++pass) {
            const Place<T> at = look(rows, ceiling);
            value = select(done, value, at.capped - ceiling * radius);
            const Mask<T> too_low = at.above > radius;
            const Mask<T> too_high = at.from < radius;
            done |= (negate(too_low) & negate(too_high)) | (too_high & (ceiling <= zero));
            const T next = select(too_low, at.up, at.down);
            ceiling = select(done, ceiling, next);
        }
        return solved_by_ceiling(larger(value, zero), ceiling, done);
    }

    // By bisection over the outcomes.
    Solved<double> solve_alone(const Rows<double>& row, double radius, Accuracy) const {
        double low = -INFINITE, high = INFINITE, ceiling = row.mean_rise;
        for (int64_t pass = 0; pass < 2 * row.length + 2; ++pass) {
            const Place<double> at = look(row, ceiling);
            if (at.above > radius)
                low = ceiling;
            else if (at.from < radius && ceiling > 0.0)
                high = ceiling;
            else
                return solved_by_ceiling(larger(at.capped - ceiling * radius, 0.0), ceiling, true);
            ceiling = middle_rise(row, low, high);
        }
        return solved_by_ceiling(0.0, 0.0, true);
    }

    template <class T> void remember(const Rows<T>&, const Solved<T>& solved, T* memory) const {
        *memory = solved.weight;
    }

    // The dual is concave in the ceiling with one-sided derivatives P(x > ceiling) - rho and P(x >= ceiling) - rho.
    template <class T> Bounds<T> bounds(const Rows<T>& rows, T radius, const Solved<T>& solved, T terms) const {
        const T zero = broadcast<T>(0.0), ceiling = solved.weight;
        const Place<T> at = look(rows, ceiling);
        const T value = at.capped - ceiling * radius;
        const T slack = mean_slack(rows, terms) + terms * EPS * ceiling * (1.0 + radius);
        const T right = larger(at.above - radius + terms * EPS, zero) * larger(rows.spread - ceiling, zero);
        const T left = larger(radius - at.from + terms * EPS * (1.0 + radius), zero) * ceiling;
        return within_trivial_bounds(rows, terms, value - slack, value + slack + larger(right, left));
    }

    template <class T>
    T respond(const Rows<T>& rows, T radius, const Solved<T>& solved, double* out, int64_t stride) const {
        const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0);
        const Place<T> at = look(rows, solved.weight);
        const T equal = at.from - at.above;
        const T share = select(equal > zero, (radius - at.above) / equal, zero);
        return move_mass(rows, solved.weight, smaller(larger(share, zero), one), out, stride);
    }

private:
    template <class T> struct Place {
        T above, from;  // P(x > ceiling), P(x >= ceiling)
        T up, down;     // the nearest outcomes above and below
        T capped;       // E min(x, ceiling)
    };

    template <class T> static Place<T> look(const Rows<T>& rows, T ceiling) {
        const T zero = broadcast<T>(0.0);
        Place<T> at{zero, zero, rows.spread, zero, zero};
        for (int64_t j = 0; j < rows.length; ++j) {
            const T p = rows.mass(j), d = rows.rise(j);
            const Mask<T> over = d > ceiling, under = d < ceiling;
            at.above += select(over, p, zero);
            at.from += select(under, zero, p);
            at.up = smaller(at.up, select(over, d, rows.spread));
            at.down = larger(at.down, select(under, d, zero));
            at.capped += p * select(over, ceiling, d);
        }
        return at;
    }
};

}  // namespace robustmdp
