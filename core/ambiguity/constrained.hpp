// inf of E_P x over D_f(P || p) <= rho, for a smooth divergence in normal form:
// sup over eta and w >= 0 of eta - w E f*((eta - x)/w) - w rho, concave in both.
#pragma once

#include "penalized.hpp"

namespace robustmdp {

// Balls of which one multiplier gives the other, for sweeps: Cressie-Read's with k > 1, and Kullback-Leibler's.

// k > 1: f*' is a power of r = (h - rise)_+, h = eta + w/(k-1). Of the dual, only
//     h - C E(r^k*)^(1/k*),  k* = k/(k-1), C^k = 1 + k(k-1) rho,
// is left, concave in h; its derivative is 1 - exp(g), g = log C + log E r^(k*-1) - log(E r^k*)/k.
template <class D, class T>
inline Solved<T> find_ceiling(const D& divergence, const Rows<T>& rows, T radius, T distance, T weight, Mask<T> done,
                              int limit) {
    const double k = divergence.k, a = 1.0 / (k - 1.0);
    const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0), stretch = fused(radius, k * (k - 1.0), one);
    const T log_scale = D::QUADRATIC ? zero : logarithm(stretch) / k;
    T h = a * weight - distance, low = zero, high = broadcast<T>(INFINITE), value = zero;
    for (int pass = 0; pass < limit && !all(done); ++pass) {
        // E r^(a-1), E r^a, E r^(a+1), and how far h is from the outcomes next to it
        T below = zero, mean = zero, above = zero, clearance = broadcast<T>(INFINITE), least = clearance;
        for (int64_t j = 0; j < rows.length; ++j) {
            if (pass == 0) rows.ahead.prefetch(j);
            const T p = rows.mass(j), r = h - rows.rise(j);
            const Powers<T> powers = divergence.powers(larger(r, zero));
            clearance = smaller(magnitude(r), clearance);
            if constexpr (!D::QUADRATIC) least = smaller(select(r > zero, r, broadcast<T>(INFINITE)), least);
            below = fused(p, powers.below, below);
            mean = fused(p, powers.mean, mean);
            above = fused(p, powers.above, above);
        }
        T step, found;
        Mask<T> good;
        if constexpr (D::QUADRATIC) {
            // Between two outcomes the best h has a closed form.
            const T share = 1.0 / below, centre = mean * share, variance = above * share - centre * centre;
            const T rest = fused(below, stretch, -one), reach = root(variance / rest);
            step = reach - centre;
            found = (h - centre) - reach * rest;
            good = (magnitude(step) < clearance) & (rest > broadcast<T>(LEAST_STRETCH)) & (variance > zero);
            weight = select(done, weight, below * reach);
        } else {
            const T log_mean = logarithm(larger(mean, broadcast<T>(1e-290)));
            const T g = log_scale + log_mean - logarithm(larger(above, broadcast<T>(1e-290))) / k;
            const T ratio = above / mean, slope = a * (below / mean - mean / above);
            const T newton = -g / slope, gain = -0.5 * g * newton;
            found = h - exponential(g) * ratio + gain;
            good = (magnitude(newton) < 0.125 * clearance) & (gain >= zero) &
                   (gain * magnitude(newton) <= FAST_ERROR * rows.spread * clearance) &
                   (stretch > broadcast<T>(1.0 + LEAST_STRETCH));
            step = kinked_step(k, newton, least);
            // E r^a at h + step
            weight = select(done, weight,
                            exponential(logarithm(larger(fused(a * below, step, mean), broadcast<T>(1e-290))) / a) / a);
            low = select(g < zero, h, low);
            high = select(g < zero, high, h);
        }
        value = select(done, value, found);
        const T next = h + step;
        const Mask<T> inside = (low < next) & (next < high);
        const T middle = select(high < broadcast<T>(INFINITE), 0.5 * (low + high), 2.0 * h);
        h = select(done, h, select(inside, next, middle));
        done |= good;
    }
    return {larger(value, zero), a * weight - h, weight, one, done, Room::SOME};
}

// KL: of the dual, only -w (log E exp(-rise/w) + rho) is left, in which theta = 1/w moves by factors exp(step): its
// derivatives there are w (rho - D), -w (rho - D) - w Var u and w (rho - D) + w times the third cumulant of u.
template <class T>
inline Solved<T> find_temperature(const Rows<T>& rows, T radius, T distance, T weight, Mask<T> done, int limit) {
    const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0);
    T shift = distance / weight, value = zero;
    for (int pass = 0; pass < limit && !all(done); ++pass) {
        const T theta = 1.0 / weight;
        T miss = zero, first = zero, second = zero, third = zero;  // E exp(-u) - 1, E u^n exp(-u)
        for (int64_t j = 0; j < rows.length; ++j) {
            if (pass == 0) rows.ahead.prefetch(j);
            const T p = rows.mass(j), u = fused(rows.rise(j), theta, shift);
            const Exponential<T> e = reduce_exponential(-u);
            miss = fused(p, fused(e.power, e.rest, e.power - 1.0), miss);
            const T moment = p * fused(e.power, e.rest, e.power) * u;
            first += moment;
            second = fused(moment, u, second);
            third = fused(moment, u * u, third);
        }
        const Mask<T> known = magnitude(miss) <= broadcast<T>(LARGEST_RATE);
        T log_mass = small_logarithm(miss);
        if (!all(known)) log_mass = select(known, log_mass, logarithm(one + miss));
        const T inverse = 1.0 / (one + miss), mean = first * inverse, square = second * inverse;
        const T variance = square - mean * mean;
        const T cumulant = third * inverse - mean * (3.0 * square - 2.0 * mean * mean);
        const T rise = radius + log_mass + mean;  // rho - D
        const T fall = rise + variance, bend = rise + cumulant, curve = 1.0 / fall;
        const T newton = rise * curve, step = fused(0.5 * newton * newton, bend * curve, newton);
        const T gain = step * (rise - step * (0.5 * fall - step * bend * (1.0 / 6.0)));
        const T log_mean = shift + log_mass, size = rows.spread * theta, share = newton * larger(size, one);
        value = select(done, value, weight * (gain - log_mean - radius));
        const Mask<T> close = (magnitude(share) < broadcast<T>(0.125)) & (fall > zero) & (gain >= zero);
        done |= close & (gain * share * share <= FAST_ERROR * size);
        if (all(done)) break;
        const T move = smaller(larger(select(close, step, newton), -one), one);
        const T factor = fused(move, fused(move, 0.5, -1.0), one);  // exp(-move), nearly
        // theta E rise = E u - shift moves with theta.
        const T next = log_mean + (mean - shift) * (1.0 - 1.0 / factor);
        weight = select(done, weight, weight * factor);
        shift = select(done, shift, next);
    }
    return {larger(value, zero), shift * weight, weight, one, done, Room::SOME};
}

// Derivatives of the dual in (distance, w), u = (x - min x + distance)/w.
template <class T> struct BallMoments {
    T miss;                      // E f*' - 1
    T slope, slope_u, slope_uu;  // E f*'', E f*'' u, E f*'' u^2
    T excess;                    // E(f* - y)
    T divergence;                // E f(f*')
};

template <class F, class T>
inline BallMoments<T> ball_moments(const F& f, const Rows<T>& rows, T theta, T base, T shift) {
    const T zero = broadcast<T>(0.0);
    BallMoments<T> sum{zero, zero, zero, zero, zero, zero};
    MeanLogarithm<T> logarithms(rows);
    for (int64_t j = 0; j < rows.length; ++j) {
        const T p = rows.mass(j), u = fused(rows.rise(j), theta, shift);
        const Tilt<T> tilt = f.at(base, u);
        const T growth = p * tilt.growth, curvature = p * tilt.curvature, curvature_u = curvature * u;
        sum.miss += growth;
        sum.slope += curvature;
        sum.slope_u += curvature_u;
        sum.slope_uu = fused(curvature_u, u, sum.slope_uu);
        if constexpr (F::LOGARITHMIC) {
            logarithms.add(j, f.inner(base, u));
            sum.divergence = fused(p, f.cost_less_logarithm(base, u, tilt), sum.divergence);
        } else {
            sum.excess = fused(p, tilt.excess, sum.excess);
            sum.divergence = fused(p, tilt.cost, sum.divergence);
        }
    }
    if constexpr (F::LOGARITHMIC) {
        const T mean = logarithms.total();
        sum.excess = logarithmic_excess<F>(rows, theta, base, shift, mean);
        sum.divergence += mean;
    }
    return sum;
}

template <class D> struct Constrained : SetTraits {
    // The distance of eta from its anchor, and the weight, in units of the spread: both grow with the outcomes.
    static constexpr int MEMORY = 2;

    D divergence;
    Penalized<D> penalized{divergence};

    explicit Constrained(const D& divergence) : divergence(divergence) {}

    static Room room(double level) { return level == 0.0 ? Room::NONE : level == INFINITE ? Room::ALL : Room::SOME; }

    // The ball contains the vertex up to the rounding of its D, which costs at most E(x - min x)/rho of it.
    double vertex_slack(const Rows<double>& row, double level, double terms) const {
        return level == INFINITE ? 0.0 : (terms + divergence.rounding) * EPS * row.spread;
    }
    double f(double t) const { return divergence.f(t); }

    bool answers_side_by_side(const Rows<Lanes>& rows, const Solved<Lanes>& solved) const {
        return penalized.runs_side_by_side(rows, solved.weight);
    }

    // Newton's method in both multipliers. It converges from near the answer; rows that it does not solve within
    // `limit` passes are solved alone.
    template <class T>
    Solved<T> solve(const Rows<T>& rows, T radius, const T* start, Accuracy accuracy, int limit) const {
        const T one = broadcast<T>(1.0), zero = broadcast<T>(0.0);
        T distance = start[0] * rows.spread, weight = start[1] * rows.spread;
        const Mask<T> known =
            (weight > zero) & (weight < 1e12 * rows.spread) & (magnitude(distance) < broadcast<T>(INFINITE));
        T base = select(divergence.near_edge < 2.0 * rows.spread / weight, zero, one);
        Mask<T> at_vertex{};
        if (!all(known)) {
            // The vertex leaves no multipliers to remember: it is found here in every sweep.
            if (accuracy == Accuracy::FAST)
                at_vertex = radius >= penalized.for_minimisers(
                                          rows, [&](double mass) { return penalized.largest_divergence(mass); });
            // What all divergences look like near the model: w = sqrt(Var x/(2 rho)), eta = E x.
            const T guess = root(0.5 * variance(rows) / radius), unknown = broadcast<T>(NOT_A_NUMBER);
            const Solved<T> first = penalized.solve(rows, guess, &unknown, Accuracy::FAST, 3);
            const Mask<T> far = negate(penalized.is_near(rows, guess));
            weight = select(known, weight, guess);
            distance = select(known, distance, select(far, first.distance, -rows.mean_rise));
            base = select(known, base, select(far, first.base, one));
        }
        const T size = rows.spread / weight;
        const Mask<T> near = size <= broadcast<T>(0.5 * divergence.reach);
        if (all(near & negate(at_vertex)) && !D::QUADRATIC)
            return ascend(divergence.near, rows, radius, distance, weight, base, at_vertex, accuracy, limit);
        Solved<T> solved = search(rows, radius, distance, weight, base, at_vertex, accuracy, limit);
        solved.converged &= negate(near);
        solved.converged |= at_vertex;
        solved.value = select(at_vertex, zero, solved.value);
        solved.weight = select(at_vertex, zero, solved.weight);
        return solved;
    }

    Solved<double> solve_alone(const Rows<double>& row, double radius, Accuracy accuracy) const {
        Solved<double> solved = find_weight(row, radius);
        if (solved.room != Room::SOME || accuracy == Accuracy::FAST) return solved;
        const double start[2] = {solved.distance / row.spread, solved.weight / row.spread};
        const Solved<double> polished = solve(row, radius, start, accuracy, 20);
        return polished.converged ? polished : solved;
    }

    template <class T> void remember(const Rows<T>& rows, const Solved<T>& solved, T* memory) const {
        memory[0] = solved.distance / rows.spread;
        memory[1] = solved.weight / rows.spread;
    }

    template <class T> Bounds<T> bounds(const Rows<T>& rows, T radius, const Solved<T>& solved, T terms) const {
        const T weight = solved.weight;
        const Mixture<T> at = penalized.mix_at(rows, weight, solved);
        const T value = rows.mean_rise - weight * (at.excess + radius);
        const T slack = penalized.dual_slack(rows, weight, solved, at, terms) + 4.0 * EPS * weight * radius;
        // The derivative in w at fixed eta is D - rho. The best weight is at most E(x - min x)/rho, beyond which the
        // dual is below min x; the best eta lies between min x and max x. Where eta was stopped by the largest y that
        // numbers allow, the distance of eta from that line takes its place.
        const T zero = broadcast<T>(0.0);
        const T eta = weight * penalized.anchor(solved.base) - solved.distance;
        const T top = penalized.largest_y(rows, weight, solved);
        const Mask<T> stopped = (at.miss < broadcast<T>(-1e-9)) & (top < broadcast<T>(INFINITE));
        T slope = at.divergence - radius, error = (terms + divergence.rounding) * EPS * (at.divergence_terms + radius);
        if (!penalized.runs_near(rows, weight)) error += 4.0 * EPS * (divergence.offset + at.divergence_terms + 1.0);
        slope = select(stopped, slope - top * at.miss, slope);
        error = select(stopped, error + top * penalized.miss_error(at, terms), error);
        const T highest = select(stopped, weight * top, rows.spread);
        const T up = (slope + error) * larger(rows.mean_rise / radius - weight, zero), down = (error - slope) * weight;
        const T gap = penalized.eta_gap(weight, eta, highest, at, terms) + larger_or_nan(up, larger_or_nan(down, zero));
        return within_trivial_bounds(rows, terms, value - slack, value + slack + gap);
    }

    template <class T> T respond(const Rows<T>& rows, T, const Solved<T>& solved, double* out, int64_t stride) const {
        return penalized.respond(rows, solved.weight, solved, out, stride);
    }

    double multiplier(const Solved<double>& solved) const { return penalized.multiplier(solved); }

    void sensitivity(const Rows<double>& row, const Solved<double>& solved, double* out) const {
        penalized.sensitivity(row, solved, out);
    }

private:
    template <class T> static T variance(const Rows<T>& rows) {
        T total = broadcast<T>(0.0);
        for (int64_t j = 0; j < rows.length; ++j) {
            const T d = rows.rise(j) - rows.mean_rise;
            total += rows.mass(j) * d * d;
        }
        return total;
    }

    // In sweeps, one multiplier is enough where it gives the other. Rows that are `done` stay as they are.
    template <class T>
    Solved<T> search(const Rows<T>& rows, T radius, T distance, T weight, T base, Mask<T> done, Accuracy accuracy,
                     int limit) const {
        if constexpr (D::HAS_KINK) {
            if (accuracy == Accuracy::FAST)
                return find_ceiling(divergence, rows, radius, distance, weight, done, limit);
        } else if constexpr (D::EXACT_NEWTON) {
            if (accuracy == Accuracy::FAST) return find_temperature(rows, radius, distance, weight, done, limit);
        }
        return ascend(divergence, rows, radius, distance, weight, base, done, accuracy, limit);
    }

    template <class F, class T>
    Solved<T> ascend(const F& f, const Rows<T>& rows, T radius, T distance, T weight, T base, Mask<T> done,
                     Accuracy accuracy, int limit) const {
        const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0);
        const T anchor = penalized.anchor(base);
        T value = zero;
        for (int pass = 0; pass < limit; ++pass) {
            const T theta = 1.0 / weight;
            const auto at = ball_moments(f, rows, theta, base, distance * theta);
            const T by_distance = at.miss;
            const T by_weight = at.divergence - radius - anchor * at.miss;
            const T determinant = at.slope * at.slope_uu - at.slope_u * at.slope_u;
            const T further = weight * (at.slope_uu * by_distance + at.slope_u * by_weight) / determinant;
            const T heavier = weight * (at.slope_u * by_distance + at.slope * by_weight) / determinant;
            const T gain = 0.5 * (by_distance * further + by_weight * heavier);
            const T relative = larger(magnitude(at.miss), magnitude(heavier) * theta);
            value = select(done, value, rows.mean_rise - weight * (at.excess + radius));
            Mask<T> sane = (gain >= zero) & (relative < broadcast<T>(0.025)) & (determinant > zero);
            // Outside of this f*' is not a number.
            const T shift = distance * theta;
            sane &= select(base == one, shift, shift - broadcast<T>(divergence.top + divergence.floor)) >=
                    broadcast<T>(-divergence.top);
            if (accuracy == Accuracy::EXACT) {
                done |= sane & (gain <= 1e-17 * rows.spread) & (relative <= broadcast<T>(1e-12));
            } else {
                const T error = gain * relative * 4.0;
                const Mask<T> good = sane & (error <= FAST_ERROR * rows.spread);
                value = select(good & negate(done), value + gain, value);
                done |= good;
            }
            if (all(done)) break;
            // Never to less than a quarter of the weight, nor of the distance from the edge.
            T share = one / larger(one, larger(-heavier * theta, 0.3 * heavier * theta) * (4.0 / 3.0));
            if (divergence.near_edge < INFINITE) {
                const T edge_share = one / larger(one, (-further / distance) * (4.0 / 3.0));
                share = select(base == zero, smaller(share, edge_share), share);
            }
            weight = select(done, weight, weight + share * heavier);
            distance = select(done, distance, distance + share * further);
        }
        return {larger(value, zero), distance, weight, base, done, Room::SOME};
    }

    // One row from anywhere: Newton on sqrt D(theta) = sqrt rho, theta = 1/w, inside a bracket; D rises with theta and
    // its square root is linear where theta is small.
    Solved<double> find_weight(const Rows<double>& row, double radius) const {
        if (row.spread < 1e-290 || radius >= penalized.largest_divergence(lowest_mass(row))) return with_all_room();
        const double relative = variance(row) / row.spread / row.spread;
        double theta = root(2.0 * radius / larger(smaller(relative, 0.25), 1e-12));
        theta = smaller(theta, 1e3) / row.spread;
        double low = 0.0, high = INFINITE;
        Solved<double> best = with_all_room();
        double least_miss = INFINITE;
        for (int step = 0; step < 200; ++step) {
            const Solved<double> inner = penalized.solve_alone(row, 1.0 / theta, Accuracy::EXACT);
            const double shift = inner.distance * theta;
            const bool near = row.spread * theta <= divergence.reach;
            const auto at = near ? ball_moments(divergence.near, row, theta, inner.base, shift)
                                 : ball_moments(divergence, row, theta, inner.base, shift);
            double cost = at.divergence;
            if (magnitude(at.miss) > SMALL_MISS) {
                const Mixture<double> mixed = penalized.mix_at(row, 1.0 / theta, inner);
                cost = mixed.divergence;
                if (mixed.rest > 0.0) cost += mixed.rest * penalized.largest_y(row, 1.0 / theta, inner);
            }
            cost = larger(cost, 0.0);
            const double miss = cost - radius;
            if (magnitude(miss) < least_miss) {
                const double value = row.mean_rise - (at.excess + radius) / theta;
                best = {larger(value, 0.0), inner.distance, 1.0 / theta, inner.base, true, Room::SOME};
                least_miss = magnitude(miss);
            }
            const double bend = at.slope_uu - at.slope_u * at.slope_u / at.slope;  // theta dD/dtheta
            if (magnitude(miss) <= 1e-14 * radius) break;
            (miss < 0.0 ? low : high) = theta;
            const double scale = root(cost);
            double next = theta * (1.0 + 2.0 * scale * (root(radius) - scale) / bend);
            if (!(bend > 0.0 && scale > 0.0 && low < next && next < high) || next > 32.0 * theta || step > 60)
                next = high == INFINITE ? 16.0 * theta : root(larger(low, high * 1e-8)) * root(high);
            if (theta > 1e150 / row.spread || next <= low || next >= high) break;
            theta = next;
        }
        return best;
    }
};

}  // namespace robustmdp
