// Newton's step for the policy of a state whose actions share the noise.
//
// With c_j = -dP_j/dx_j at fixed multipliers, nature's answer to outcomes x + dx moves by -c_j (dx_j - eta), where the sum
// stays; in a ball it moves along the surface as well, which takes out what goes with x. The policy's value therefore
// has the slopes P z_a and the second derivatives -Cov_c(z_a, z_b).
#pragma once

#include "../state_rows.hpp"
#include "solved.hpp"

namespace robustmdp {

// One Newton step of a concave function over the simplex: max over shares s >= 0, sum s = 1 of
//     gradient (s - start) - (s - start) H (s - start)/2,
// by an active set: shares that would turn negative are left out, and the best of those that would gain comes back.
class SimplexStep {
public:
    explicit SimplexStep(int most) : most_(most), bend_(most * most), factor_(most * most), free_(most) {
        for (auto* numbers : {&start, &gradient, &share, &slope_, &by_slope_, &by_one_, &move_}) numbers->resize(most);
    }

    std::vector<double> start, gradient, share;                  // the first `count` numbers of each
    double& bend(int k, int l) { return bend_[k * most_ + l]; }  // H, the lower triangle

    // What the best `share` gains.
    double climb(int count) {
        free_count_ = 0;
        for (int k = 0; k < count; ++k) {
            share[k] = start[k], slope_[k] = gradient[k];
            if (share[k] > 0.0) free_[free_count_++] = k;
        }
        ridge_ = 0.0;
        for (int k = 0; k < count; ++k) ridge_ = larger(bend(k, k), ridge_);
        for (int pass = 0; pass < 4 * count + 8; ++pass) {
            const double level = solve_free();
            double length = 1.0;
            int leaving = -1;
            for (int i = 0; i < free_count_; ++i) {
                const int k = free_[i];
                if (share[k] + length * move_[i] < 0.0) length = -share[k] / move_[i], leaving = i;
            }
            advance(count, length);
            if (leaving >= 0) {
                share[free_[leaving]] = 0.0;
                free_[leaving] = free_[--free_count_];
                continue;
            }
            int entering = -1;
            double best = level + 4.0 * EPS * magnitude(level);
            for (int k = 0; k < count; ++k)
                if (share[k] == 0.0 && slope_[k] > best && !is_free(k)) entering = k, best = slope_[k];
            if (entering < 0) break;
            free_[free_count_++] = entering;
        }
        double total = 0.0, gain = 0.0;
        for (int k = 0; k < count; ++k) total += share[k];
        for (int k = 0; k < count; ++k) {
            share[k] /= total;
            gain += 0.5 * (gradient[k] + slope_[k]) * (share[k] - start[k]);
        }
        return gain;
    }

private:
    bool is_free(int k) const {
        for (int i = 0; i < free_count_; ++i)
            if (free_[i] == k) return true;
        return false;
    }

    double both(int k, int l) { return k > l ? bend(k, l) : bend(l, k); }

    void advance(int count, double length) {
        for (int i = 0; i < free_count_; ++i) share[free_[i]] += length * move_[i];
        for (int k = 0; k < count; ++k)
            for (int i = 0; i < free_count_; ++i) slope_[k] -= length * both(k, free_[i]) * move_[i];
    }

    // The move of the free shares, of sum 0, after which their slopes are all the same: that slope.
    double solve_free() {
        // Moves have the sum 0: a multiple of the matrix of ones makes H definite and changes nothing.
        const int n = free_count_;
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j <= i; ++j) {
                double sum = both(free_[i], free_[j]) + ridge_;
                for (int m = 0; m < j; ++m) sum = fused(-factor(i, m), factor(j, m), sum);
                factor(i, j) = i == j ? root(larger(sum, 1e-14 * ridge_ + 1e-300)) : sum / factor(j, j);
            }
        }
        double slopes = 0.0, ones = 0.0;
        for (int i = 0; i < n; ++i) by_slope_[i] = slope_[free_[i]], by_one_[i] = 1.0;
        for (auto* x : {&by_slope_, &by_one_}) {
            for (int i = 0; i < n; ++i) {
                for (int m = 0; m < i; ++m) (*x)[i] = fused(-factor(i, m), (*x)[m], (*x)[i]);
                (*x)[i] /= factor(i, i);
            }
            for (int i = n - 1; i >= 0; --i) {
                for (int m = i + 1; m < n; ++m) (*x)[i] = fused(-factor(m, i), (*x)[m], (*x)[i]);
                (*x)[i] /= factor(i, i);
            }
        }
        for (int i = 0; i < n; ++i) slopes += by_slope_[i], ones += by_one_[i];
        const double level = slopes / ones;
        for (int i = 0; i < n; ++i) move_[i] = by_slope_[i] - level * by_one_[i];
        return level;
    }

    double& factor(int i, int j) { return factor_[i * most_ + j]; }

    int most_, free_count_ = 0;
    double ridge_ = 0.0;
    std::vector<double> bend_, factor_;
    std::vector<int> free_;
    std::vector<double> slope_, by_slope_, by_one_, move_;
};

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
        Lanes total = broadcast<Lanes>(0.0);
        for (int64_t j = 0; j < stride_; j += WIDTH) total = fused(load<Lanes>(a + j), load<Lanes>(b + j), total);
        return sum(total);
    }

    int64_t stride_;
    int most_, count_ = 0;
    SimplexStep step_;
    std::vector<double> sensitivity_, centred_, weighted_, along_;
    std::vector<int> candidate_;
};

}  // namespace robustmdp
