// The level of all values, which learning by steps finds last: scalar extrapolation (Porteus 1971) from samples.
//
// Where Q = Q* + b, the same b at all pairs, targets lie (1 - discount) b below Q on average, endings b. Residuals
// r = target - Q therefore tell b, each pair with the same say (weights 1/visits), less what steps have moved since.
#pragma once

#include "../lanes.hpp"

namespace robustmdp {

struct Level {
    double residual, squares, cross, weights;  // sums of w r, (w r)^2, w^2 r and w^2, where w = 1/visits
    double weight, rate;                       // sums of w, and of w (1 - discount), or w at endings
    double moved, ahead;                       // mean of Q's steps over all pairs, and its sum weighted by w

    void add(double r, double w, double contraction, double step) {
        residual += w * r;
        squares += w * w * r * r;
        cross += w * w * r;
        weights += w * w;
        weight += w;
        rate += w * contraction;
        moved += step;
        ahead += w * moved;
    }

    // -b, shrunk by its variance (James and Stein's positive part), so that noise alone moves nothing.
    double shift() const {
        if (!(rate > 0.0)) return 0.0;
        const double mean = residual / weight, b = residual / rate - (moved - ahead / weight);
        const double variance = larger(squares - mean * (2.0 * cross - mean * weights), 0.0) / (rate * rate);
        return b * b > variance ? b - variance / b : 0.0;
    }
};

}  // namespace robustmdp
