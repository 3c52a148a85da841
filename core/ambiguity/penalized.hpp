// inf over P of E_P x + w D_f(P || p), for a smooth divergence in normal form: sup over eta of eta - w E f*((eta - x)/w).
#pragma once

#include "dual.hpp"

namespace robustmdp {

constexpr double LEAST_WEIGHT = 1e-290;  // the inverse of less is not a number
constexpr double LARGEST_SIZE = 1e280;   // of spread/w: beyond, the price is nothing beside rounding
constexpr double SMALL_MISS = 1e-12;     // a mean of f*' further from 1 than this is a jump, not rounding

template <class D> struct Penalized : SetTraits {
    static constexpr int MEMORY = 1;  // the distance of eta from its anchor
    static constexpr bool PRICED = true;

    D divergence;

    explicit Penalized(const D& divergence) : divergence(divergence) {}

    static Room room(double level) {
        return level == INFINITE ? Room::NONE : level < LEAST_WEIGHT ? Room::ALL : Room::SOME;
    }

    // What the vertex that keeps only the minimisers costs nature: a price of 0, or one below rounding.
    double vertex_slack(const Rows<double>& row, double level, double) const {
        return level == 0.0 ? 0.0 : level * largest_divergence(lowest_mass(row));
    }

    // D of that vertex: m f(1/m) + (1-m) f(0).
    double largest_divergence(double mass) const {
        const double rest = mass < 1.0 ? (1.0 - mass) * divergence.f(0.0) : 0.0;
        return mass * divergence.f(1.0 / mass) + rest;
    }

    // f(m) for the mass m of the minimisers of each row.
    template <class T, class Function> static T for_minimisers(const Rows<T>& rows, Function f) {
        const T mass = lowest_mass(rows);
        T out{};
        for (int l = 0; l < lane_count<T>; ++l) set_lane(out, l, f(lane(mass, l)));
        return out;
    }

    // Close to the model every divergence is a power series.
    template <class T> Mask<T> is_near(const Rows<T>& rows, T weight) const {
        return rows.spread <= divergence.reach * weight;
    }

    template <class T> bool runs_near(const Rows<T>& rows, T weight) const {
        if (D::QUADRATIC) return false;  // whose formulas are exact everywhere
        return all(is_near(rows, weight) | (rows.spread == broadcast<T>(0.0)));
    }

    // Rows side by side share one formula.
    bool runs_side_by_side(const Rows<Lanes>& rows, Lanes weight) const {
        return D::QUADRATIC || runs_near(rows, weight) || !any(is_near(rows, weight));
    }

    double f(double t) const { return divergence.f(t); }

    // eta - min x
    double multiplier(const Solved<double>& solved) const {
        return solved.weight * anchor(solved.base) - solved.distance;
    }

    template <class T> T anchor(T base) const {
        return select(base == broadcast<T>(1.0), broadcast<T>(0.0), broadcast<T>(divergence.edge));
    }

    // `start` is what an earlier solve remembered, NaN if nothing.
    template <class T>
    Solved<T> solve(const Rows<T>& rows, T weight, const T* start, Accuracy accuracy, int limit) const {
        return runs_near(rows, weight) ? solve_with(divergence.near, rows, weight, *start, accuracy, limit)
                                       : solve_with(divergence, rows, weight, *start, accuracy, limit);
    }

    Solved<double> solve_alone(const Rows<double>& row, double weight, Accuracy accuracy) const {
        const double unknown = NOT_A_NUMBER;
        if (row.spread > LARGEST_SIZE * weight) return with_all_room();
        return solve(row, weight, &unknown, accuracy, 300);
    }

    template <class T> void remember(const Rows<T>&, const Solved<T>& solved, T* memory) const {
        *memory = solved.distance;
    }

    template <class T> Bounds<T> bounds(const Rows<T>& rows, T weight, const Solved<T>& solved, T terms) const {
        const Mixture<T> at = mix_at(rows, weight, solved);
        const T value = rows.mean_rise - weight * at.excess;
        const T slack = dual_slack(rows, weight, solved, at, terms);
        const T eta = weight * anchor(solved.base) - solved.distance;
        const T highest = smaller(weight * largest_y(rows, weight, solved), rows.spread);
        return within_trivial_bounds(rows, terms, value - slack,
                                     value + slack + eta_gap(weight, eta, highest, at, terms));
    }

    template <class T> Mixture<T> mix_at(const Rows<T>& rows, T weight, const Solved<T>& solved) const {
        const T theta = 1.0 / weight, shift = solved.distance * theta, top = anchor(solved.base);
        return runs_near(rows, weight)
                   ? mix(divergence.near, rows, theta, solved.base, top, shift, divergence.floor, divergence.top)
                   : mix(divergence, rows, theta, solved.base, top, shift, divergence.floor, divergence.top);
    }

    // The largest y that the best eta can have: the edge of the domain, or f'(1/m) for minimisers of mass m.
    template <class T> T largest_y(const Rows<T>& rows, T weight, const Solved<T>& solved) const {
        const Mask<T> within = (solved.base == broadcast<T>(0.0)) | (-solved.distance < 0.9 * divergence.top * weight);
        if (all(within)) return broadcast<T>(divergence.edge);
        const T highest = for_minimisers(rows, [&](double m) { return divergence.largest_y(m); });
        return select(within, broadcast<T>(divergence.edge), highest);
    }

    // A bound on the rounding error of E f*' - 1.
    template <class T> T miss_error(const Mixture<T>& at, T terms) const {
        return (terms + divergence.rounding) * EPS * (2.0 + at.largest_miss);
    }

    // What a better eta - min x in [0, highest] can still add to the dual, which is concave.
    template <class T> T eta_gap(T weight, T eta, T highest, const Mixture<T>& at, T terms) const {
        const T zero = broadcast<T>(0.0), error = miss_error(at, terms);
        const T down = (at.miss + error) * larger(eta, zero), up = (error - at.miss) * larger(highest - eta, zero);
        return larger_or_nan(down, larger_or_nan(up, zero)) + weight * (at.low_shift - at.high_shift) * at.largest_miss;
    }

    // A bound on the rounding error of E(x - min x) - w E(f* - y).
    template <class T>
    T dual_slack(const Rows<T>& rows, T weight, const Solved<T>& solved, const Mixture<T>& at, T terms) const {
        const T moved = rows.spread + magnitude(solved.distance);  // w times the largest |u|
        T slack = (terms + divergence.rounding) * EPS * (rows.spread + weight * at.excess);
        // The probabilities' own sum is 1 to 1.5 n EPS.
        slack += 3.0 * terms * EPS * larger(rows.mean_rise - weight * at.excess, broadcast<T>(0.0));
        slack += 4.0 * EPS * (2.0 + at.largest_miss) * moved;
        // The plain formula of f* - y is exact to an ulp of its terms.
        if (!runs_near(rows, weight))
            slack += 4.0 * EPS * (weight * (at.excess + divergence.offset + 1.0) + 2.0 * moved);
        return slack;
    }

    // out = p f*', which sums to 1; returns D.
    template <class T>
    T respond(const Rows<T>& rows, T weight, const Solved<T>& solved, double* out, int64_t stride) const {
        return runs_near(rows, weight) ? fill(divergence.near, rows, weight, solved, out, stride)
                                       : fill(divergence, rows, weight, solved, out, stride);
    }

    // out = -dP_j/dx_j at fixed multipliers
    void sensitivity(const Rows<double>& row, const Solved<double>& solved, double* out) const {
        runs_near(row, solved.weight) ? differentiate(divergence.near, row, solved, out)
                                      : differentiate(divergence, row, solved, out);
    }

private:
    template <class F>
    static void differentiate(const F& f, const Rows<double>& row, const Solved<double>& solved, double* out) {
        const double theta = 1.0 / solved.weight, shift = solved.distance * theta;
        for (int64_t j = 0; j < row.length; ++j)
            out[j] = row.mass(j) * theta * f.at(solved.base, fused(row.rise(j), theta, shift)).curvature;
    }

    template <class F, class T>
    Solved<T> solve_with(const F& f, const Rows<T>& rows, T weight, T start, Accuracy accuracy, int limit) const {
        const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0);
        const T theta = 1.0 / weight;
        const T size = rows.spread * theta;
        T base = one, low = larger(-size, broadcast<T>(-divergence.top)), high = zero;
        T shift = start * theta;
        if (divergence.near_edge < INFINITE) {
            base = select(divergence.edge < 2.0 * size, zero, one);
            low = select(base == one, low, larger(divergence.edge - size, broadcast<T>(divergence.floor)));
            high = select(base == one, zero, broadcast<T>(divergence.edge));
        }
        const Mask<T> known = (low <= shift) & (shift <= high);
        if (!all(known)) {
            T cold = larger(-rows.mean_rise * theta, low);
            if (divergence.near_edge < INFINITE) {
                // f*' is convex there, so that E f*' >= f*'(E y); and the minimisers alone have a mass of at most 1.
                const T least = for_minimisers(rows, [&](double m) { return divergence.least_distance(m); });
                const T tight = larger(larger(divergence.edge - rows.mean_rise * theta, low), least);
                cold = select(base == one, cold, tight);
                low = select(base == one, low, select(known, low, tight));
            }
            shift = select(known, shift, cold);
        }
        if (D::EXACT_NEWTON && accuracy == Accuracy::FAST) {
            // E exp(-u) falls by what the shift rises: log(1 + miss) is all that is missing.
            const T miss = dual_moments<Pass::FIRST, false>(f, rows, theta, base, shift).miss;
            Mask<T> solved = magnitude(miss) <= broadcast<T>(LARGEST_RATE);
            T step = small_logarithm(miss);
            if (!all(solved)) {
                step = select(solved, step, logarithm_of_sum(one, miss));
                solved |= (miss > broadcast<T>(-0.999)) & (miss < broadcast<T>(1e3));
            }
            shift += step;
            solved &= shift > low;
            return {larger(-weight * shift, zero), shift * weight, weight, base, solved, Room::SOME};
        }
        auto root = find_shift(divergence, f, rows, theta, base, Bracket<T>{low, high}, shift, accuracy, limit);
        const T value = rows.mean_rise - weight * (root.at.excess - (accuracy == Accuracy::FAST ? root.gain : zero));
        root.converged &= size <= broadcast<T>(LARGEST_SIZE);
        return {larger(value, zero), root.shift * weight, weight, base, root.converged, Room::SOME};
    }

    template <class F, class T>
    T fill(const F& f, const Rows<T>& rows, T weight, const Solved<T>& solved, double* out, int64_t stride) const {
        const T theta = 1.0 / weight, shift = solved.distance * theta, top = anchor(solved.base);
        T miss = broadcast<T>(0.0), cost = miss;
        for (int64_t j = 0; j < rows.length; ++j) {
            const T p = rows.mass(j), u = rows.rise(j) * theta + shift;
            const Tilt<T> tilt = f.at(solved.base, u);
            store(out + j * stride, p * tilt.slope);
            miss += p * tilt.growth;
            cost += p * tilt.cost;
        }
        const Mask<T> jumps = magnitude(miss) > broadcast<T>(SMALL_MISS);
        if (any(jumps)) {
            const Mixture<T> at = mix(f, rows, theta, solved.base, top, shift, divergence.floor, divergence.top);
            T total = broadcast<T>(0.0);
            for (int64_t j = 0; j < rows.length; ++j) {
                const T p = rows.mass(j), size = rows.rise(j) * theta;
                const T high = f.at(solved.base, size + at.high_shift).slope;
                const T low = f.at(solved.base, size + at.low_shift).slope;
                const T mixed = p * (at.share * high + (1.0 - at.share) * low);
                store(out + j * stride, select(jumps, mixed, load<T>(out + j * stride)));
                total += mixed;
            }
            if (any(at.rest > broadcast<T>(0.0))) {
                share_among_minimisers(rows, select(jumps, at.rest, broadcast<T>(0.0)), out, stride);
                total += at.rest;
            }
            miss = select(jumps, total - 1.0, miss);
            cost = select(jumps, at.divergence, cost);
        }
        const T scale = 1.0 / (1.0 + miss);
        for (int64_t j = 0; j < rows.length; ++j) store(out + j * stride, load<T>(out + j * stride) * scale);
        return larger(cost, broadcast<T>(0.0));
    }
};

}  // namespace robustmdp
