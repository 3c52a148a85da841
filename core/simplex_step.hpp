// One Newton step of a concave function over the simplex: max over shares s >= 0, sum s = 1 of
//     gradient (s - start) - (s - start) H (s - start)/2,
// by an active set: shares that would turn negative are left out, and the best of those that would gain comes back.
#pragma once

#include "lanes.hpp"

#include <vector>

namespace robustmdp {

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

}  // namespace robustmdp
