// Newton's step for the policy of a state whose actions share the noise.
//
// With c_j = -dP_j/dx_j at fixed multipliers, nature's answer to outcomes x + dx moves by -c_j (dx_j - eta), where the sum
// stays; in a ball it moves along the surface as well, which takes out what goes with x. The policy's value therefore
// has the slopes P z_a and the second derivatives -Cov_c(z_a, z_b).
#pragma once

#include "../simplex_step.hpp"
#include "shared_budget.hpp"

namespace robustmdp {

class NoiseStep {
public:
    NoiseStep(int64_t pairs, int64_t length)
        : stride_((length + WIDTH - 1) / WIDTH * WIDTH), most_(static_cast<int>(std::min(pairs, MOST_CANDIDATES))),
          step_(most_), sensitivity_(stride_), centred_((most_ + 1) * stride_), weighted_((most_ + 1) * stride_),
          along_(most_), candidate_(most_) {}

    // From one policy, whose mixed row is solved, to another, among its own actions and those that earn more than it:
    // what that gains, or NaN.
    template <class Set>
    double climb(const Set& set, const StateRows& rows, const Rows<double>& mixed, const Solved<double>& solved,
                 const double* payoff, double value, const std::vector<double>& from, std::vector<double>& to) {
        find_candidates(rows.count, payoff, value, from);
        for (int k = 0; k < count_; ++k) {
            step_.start[k] = from[candidate_[k]];
            step_.gradient[k] = payoff[candidate_[k]] - value;
        }
        set.sensitivity(mixed, solved, sensitivity_.data());
        bend(rows, mixed, !Set::PRICED);
        const double gain = step_.climb(count_);
        std::fill_n(to.data(), rows.count, 0.0);
        for (int k = 0; k < count_; ++k)
            if (step_.share[k] > EPS) to[candidate_[k]] = step_.share[k];
        return gain;
    }

private:
    static constexpr int64_t MOST_CANDIDATES = 64;
    static constexpr int MOST_JOINING = 8;  // at a time: those that earn most

    void find_candidates(int actions, const double* payoff, double value, const std::vector<double>& from) {
        count_ = 0;
        for (int a = 0; a < actions && count_ < most_; ++a)
            if (from[a] > 0.0) candidate_[count_++] = a;
        double last = INFINITE;
        int last_action = -1;
        for (int joined = 0; joined < MOST_JOINING && count_ < most_; ++joined) {
            int best = -1;
            for (int a = 0; a < actions; ++a) {
                if (from[a] > 0.0 || !(payoff[a] > value)) continue;
                const bool is_next = payoff[a] < last || (payoff[a] == last && a > last_action);
                if (is_next && (best < 0 || payoff[a] > payoff[best])) best = a;
            }
            if (best < 0) break;
            candidate_[count_++] = last_action = best;
            last = payoff[best];
        }
    }

    void bend(const StateRows& rows, const Rows<double>& mixed, bool in_ball) {
        for (int k = 0; k < count_; ++k) {
            const Rows<Lanes>& group = rows.side_by_side(candidate_[k] / WIDTH);
            const int l = candidate_[k] % WIDTH;
            centre(k, mixed.length, [&](int64_t j) { return group.x[j * WIDTH + l] - group.lowest[l]; });
        }
        centre(count_, mixed.length, [&](int64_t j) { return mixed.rise(j); });
        const double whole = covariance(count_, count_);
        for (int k = 0; k < count_; ++k) {
            along_[k] = in_ball ? covariance(k, count_) : 0.0;
            for (int l = 0; l <= k; ++l) {
                const double taken = whole > 0.0 ? along_[k] * along_[l] / whole : 0.0;
                step_.bend(k, l) = covariance(k, l) - taken;
            }
        }
    }

    template <class Outcome> void centre(int k, int64_t length, Outcome outcome) {
        double *centred = centred_.data() + k * stride_, *weighted = weighted_.data() + k * stride_;
        double total = 0.0, mean = 0.0;
        for (int64_t j = 0; j < length; ++j) {
            centred[j] = outcome(j);
            total += sensitivity_[j];
            mean = fused(sensitivity_[j], centred[j], mean);
        }
        mean /= total;
        for (int64_t j = 0; j < length; ++j) {
            centred[j] -= mean;
            weighted[j] = sensitivity_[j] * centred[j];
        }
        for (int64_t j = length; j < stride_; ++j) centred[j] = weighted[j] = 0.0;
    }

    double covariance(int k, int l) const {
        const double *a = centred_.data() + k * stride_, *b = weighted_.data() + l * stride_;
        Lanes sum = broadcast<Lanes>(0.0);
        for (int64_t j = 0; j < stride_; j += WIDTH) sum = fused(load_loose(a + j), load_loose(b + j), sum);
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    int64_t stride_;
    int most_, count_ = 0;
    SimplexStep step_;
    std::vector<double> sensitivity_, centred_, weighted_, along_;
    std::vector<int> candidate_;
};

}  // namespace robustmdp
