// Balls of which one multiplier gives the other, for sweeps: Cressie-Read's with k > 1, and Kullback-Leibler's.
#pragma once

#include "penalized.hpp"

namespace robustmdp {

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

}  // namespace robustmdp
