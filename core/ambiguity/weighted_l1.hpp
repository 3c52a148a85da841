// sum_j w_j |P_j - p_j| <= radius: the homotopy of Ho, Petrik and Wiesemann (2018), from its dual.
//
// At a price lam of the budget, mass is worth moving from i to the receiver that attains h(lam) = min_j d_j + lam w_j,
// d = x - min x, if d_i - lam w_i > h(lam). The worst case is the maximum over lam >= 0 of
//   g(lam) = sum_i p_i min(d_i, h(lam) + lam w_i) - lam radius,
// concave and piecewise linear. Tangents from both sides meet above the maximum; they are moved inwards until they meet
// on g.
#pragma once

#include "solved.hpp"

namespace robustmdp {

struct WeightedL1 : SetTraits {
    static constexpr int COLUMNS = 1;
    static constexpr bool ADDS = true, ALONE = true;
    const double* weights = nullptr;        // one per transition; without them all are 1
    const double* state_weights = nullptr;  // of successors that are added

    static Room room(double radius) { return radius == 0.0 ? Room::NONE : Room::SOME; }
    const double* column(int) const { return weights; }
    double added_column(int, int32_t state) const { return state_weights[state]; }
    double multiplier(const Solved<double>&) const { return NOT_A_NUMBER; }

    // `distance` and `weight` are the prices of the two tangents.
    Solved<double> solve_alone(const Rows<double>& row, double radius, Accuracy) const {
        Touch left = touch(row, radius, 0.0);
        if (left.slope <= 0.0) return {0.0, 0.0, 0.0, 1.0, true, Room::SOME};
        double dearest = 0.0;
        for (int64_t j = 0; j < row.length; ++j) dearest = larger(dearest, 1.0 / row.column(0, j));
        Touch right = touch(row, radius, 0.5 * row.spread * dearest);
        double value = larger(left.value, right.value);
        for (int64_t pass = 0; pass < 4 * row.length + 8; ++pass) {
            const double lam = meet(left, right).lam;
            if (!(left.lam < lam && lam < right.lam)) break;
            const Touch middle = touch(row, radius, lam);
            value = larger(value, middle.value);
            if (middle.slope >= 0.0)
                left = middle;
            else
                right = middle;
        }
        return {larger(value, 0.0), left.lam, right.lam, 1.0, true, Room::SOME};
    }

    Bounds<double> bounds(const Rows<double>& row, double radius, const Solved<double>& solved, double terms) const {
        const double slack = mean_slack(row, terms) + 4.0 * terms * EPS * row.spread;
        if (solved.weight == 0.0) return within_trivial_bounds(row, terms, 0.0, slack);
        const Touch left = touch(row, radius, solved.distance), right = touch(row, radius, solved.weight);
        const double budget = 4.0 * terms * EPS * solved.weight * radius;
        return within_trivial_bounds(row, terms, solved.value - slack - budget,
                                     meet(left, right).value + slack + budget);
    }

    // The mixture of the two tangents' moves that uses the whole budget.
    double respond(const Rows<double>& row, double radius, const Solved<double>& solved, double* out,
                   int64_t stride) const {
        const Touch left = touch(row, radius, solved.distance), right = touch(row, radius, solved.weight);
        const double share = left_share(left, right, radius);
        for (int64_t j = 0; j < row.length; ++j) out[j * stride] = row.mass(j);
        move(row, left, share, out, stride);
        move(row, right, 1.0 - share, out, stride);
        return 0.0;
    }

    // How steeply the worst case falls with the budget; at budget 0 at most.
    double steepness(const Rows<double>& row, double radius, const Solved<double>& solved) const {
        if (radius == 0.0) return solve_alone(row, 0.0, Accuracy::EXACT).weight;
        return meet(touch(row, radius, solved.distance), touch(row, radius, solved.weight)).lam;
    }

    // The budget that moves all mass to the minimisers: to the cheapest of them.
    double cost_of_vertex(const Rows<double>& row) const {
        double cheapest = INFINITE, total = 0.0;
        for (int64_t j = 0; j < row.length; ++j)
            if (row.rise(j) == 0.0) cheapest = smaller(row.column(0, j), cheapest);
        for (int64_t j = 0; j < row.length; ++j)
            if (row.rise(j) > 0.0) total += row.mass(j) * (row.column(0, j) + cheapest);
        return total;
    }

    double distance(const Rows<double>& row, const double* out, int64_t stride) const {
        double total = 0.0;
        for (int64_t j = 0; j < row.length; ++j)
            total = fused(row.column(0, j), magnitude(out[j * stride] - row.mass(j)), total);
        return total;
    }

    // The budget used at a price; out = nature's answer.
    double respond_to_price(const Rows<double>& row, double price, double* out, int64_t stride) const {
        const Touch at = touch(row, 0.0, price);
        for (int64_t j = 0; j < row.length; ++j) out[j * stride] = row.mass(j);
        move(row, at, 1.0, out, stride);
        return at.used;
    }

    double lower_price(const Rows<double>& row, double price, double terms) const {
        return touch(row, 0.0, price).value - mean_slack(row, terms) - 4.0 * terms * EPS * row.spread;
    }

private:
    struct Touch : Tangent {
        double reach;  // h(lam)
        int64_t receiver;
    };

    static Touch touch(const Rows<double>& row, double radius, double lam) {
        Touch at{{lam, 0.0, 0.0, 0.0}, INFINITE, 0};
        double weight = INFINITE;
        for (int64_t j = 0; j < row.length; ++j) {
            const double w = row.column(0, j), height = row.rise(j) + lam * w;
            const bool better = height < at.reach || (height == at.reach && w < weight);
            at.receiver = better ? j : at.receiver;
            weight = better ? w : weight;
            at.reach = better ? height : at.reach;
        }
        double total = 0.0;
        for (int64_t j = 0; j < row.length; ++j) {
            const double w = row.column(0, j), d = row.rise(j), moved = at.reach + lam * w;
            total += row.mass(j) * smaller(moved, d);
            if (d > moved) at.used += row.mass(j) * (w + weight);
        }
        at.slope = at.used - radius;
        at.value = lam > 0.0 ? total - lam * radius : total;
        return at;
    }

    static void move(const Rows<double>& row, const Touch& at, double share, double* out, int64_t stride) {
        for (int64_t j = 0; j < row.length; ++j) {
            if (!(row.rise(j) > at.reach + at.lam * row.column(0, j))) continue;
            out[j * stride] = larger(out[j * stride] - share * row.mass(j), 0.0);  // two shares need not add up to 1
            out[at.receiver * stride] += share * row.mass(j);
        }
    }
};

}  // namespace robustmdp
