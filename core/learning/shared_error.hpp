// The error that all values share, which learning by steps mends last: scalar extrapolation (Porteus 1971).
//
// Where Q = Q* - b, the same b at all pairs, targets lie (1 - discount) b above Q on average. Residuals r = target - Q
// therefore tell b, each pair with the same say (weights 1/visits), less what steps have moved since. Endings fix
// values by themselves, and those that decay on the way to them share no error: then nothing is extrapolated.
#pragma once

#include "../lanes.hpp"

namespace robustmdp {

struct SharedError {
    double residual, squares, cross, weights;  // sums of w r, (w r)^2, w^2 r and w^2, where w = 1/visits
    double weight;                             // sum of w
    double moved, ahead;                       // mean of Q's steps over all pairs, and sum of w times it until then
    double endings;                            // that were seen, ever

    void add(double r, double w, double step) {
        residual += w * r;
        squares += w * w * r * r;
        cross += w * w * r;
        weights += w * w;
        weight += w;
        ahead += w * moved;
        moved += step;
    }

    // b, shrunk by its variance (James and Stein's positive part), so that noise alone moves little.
    double estimate(double horizon) const {
        if (weight == 0.0 || endings > 0.0) return 0.0;
        const double mean = residual / weight, b = horizon * mean - (moved - ahead / weight), unit = horizon / weight;
        const double variance = larger(squares - mean * (2.0 * cross - mean * weights), 0.0) * unit * unit;
        return b * b > variance ? b - variance / b : 0.0;
    }

    void restart() { *this = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, endings}; }
};

}  // namespace robustmdp
