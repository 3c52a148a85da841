// Projection: kappa(u), the least D_f(P || p) with E_P x <= u. s-rectangular sets share a budget through it.
//
// kappa(u) = sup over theta >= 0 of theta (penalized(1/theta) - u), concave in theta with the derivative
// E_P(theta) x - u, where P(theta) is the worst case at weight 1/theta.
#pragma once

#include "constrained.hpp"
#include "total_variation.hpp"

#include <algorithm>
#include <numeric>

namespace robustmdp {

template <class D> double project(const Constrained<D>& set, const Rows<double>& row, double target) {
    const double u = target - row.lowest;
    if (u >= row.mean_rise) return 0.0;
    if (u < 0.0) return INFINITE;
    if (u == 0.0) return set.penalized.largest_divergence(lowest_mass(row));
    std::vector<double> worst(row.length);
    double low = 0.0, high = INFINITE, theta = 1.0 / row.spread, best = 0.0;
    for (int step = 0; step < 300; ++step) {
        const Solved<double> at = set.penalized.solve_alone(row, 1.0 / theta, Accuracy::EXACT);
        best = larger(best, theta * (at.value - u));
        const bool near = row.spread * theta <= set.divergence.reach;
        const double shift = at.distance * theta;
        const auto sum = near ? ball_moments(set.divergence.near, row, theta, at.base, shift)
                              : ball_moments(set.divergence, row, theta, at.base, shift);
        set.penalized.respond(row, 1.0 / theta, at, worst.data(), 1);
        double mean = 0.0;
        for (int64_t j = 0; j < row.length; ++j) mean += worst[j] * row.rise(j);
        const double bend = (sum.slope_uu - sum.slope_u * sum.slope_u / sum.slope) / theta;
        const double miss = mean - u;
        if (magnitude(miss) <= 4.0 * EPS * row.spread || (high < INFINITE && high - low <= EPS * high)) break;
        (miss > 0.0 ? low : high) = theta;
        double next = theta + miss / bend * theta;
        if (!(low < next && next < high) || step > 100)
            next = high == INFINITE ? 8.0 * theta : low > 0.0 ? root(low) * root(high) : 0.125 * high;
        next = smaller(next, 64.0 * theta);
        if (next * row.spread > 1e200) break;
        theta = next;
    }
    return best;
}

// Mass moves from the largest outcomes to the smallest until the mean has come down to u.
inline double project(const ConstrainedTotalVariation&, const Rows<double>& row, double target) {
    double left = row.mean_rise - (target - row.lowest);
    if (left <= 0.0) return 0.0;
    if (target < row.lowest) return INFINITE;
    std::vector<int64_t> order(row.length);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row.outcome(a) > row.outcome(b); });
    double moved = 0.0;
    for (const int64_t j : order) {
        const double gain = row.mass(j) * row.rise(j);
        if (gain >= left) return moved + left / row.rise(j);
        left -= gain;
        moved += row.mass(j);
    }
    return 1.0 - lowest_mass(row);
}

}  // namespace robustmdp
