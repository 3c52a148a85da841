// Algorithm 3's inner loops: gradient ascent on each pair's dual variable, then Q <- R + discount J(eta).
#pragma once

#include "rows.hpp"

namespace robustmdp {

// Chi-square as the paper writes it: f = (t-1)^2. eta may leave the range of the values: Theta of the paper.
struct PaperChiSquare {
    static constexpr bool LINE_SEARCH = false;
    static double conjugate(double s) {
        const double a = larger(0.5 * s + 1.0, 0.0);
        return a * a - 1.0;
    }
    static double slope(double s) { return larger(0.5 * s + 1.0, 0.0); }
};

// f = t log t. Its gradient is unbounded, so steps are halved until the dual rises by half of what it should.
struct PaperKullbackLeibler {
    static constexpr bool LINE_SEARCH = true;
    static double conjugate(double s) { return exponential(s - 1.0); }
    static double slope(double s) { return exponential(s - 1.0); }
};

template <class F> inline double dual_value(const double* p, const double* x, int64_t n, double eta, double weight) {
    double total = 0.0;
    for (int64_t j = 0; j < n; ++j) total += p[j] * F::conjugate((eta - x[j]) / weight);
    return eta - weight * total;
}

template <class F> inline double dual_slope(const double* p, const double* x, int64_t n, double eta, double weight) {
    double total = 0.0;
    for (int64_t j = 0; j < n; ++j) total += p[j] * F::slope((eta - x[j]) / weight);
    return 1.0 - total;
}

struct Ascent {
    int64_t inner_steps;
    double step;  // the paper's alpha; NaN stands for the weight
    bool warm_start;
    double discount, lowest_value, highest_value;
};

inline double clip(double x, double low, double high) { return smaller(larger(x, low), high); }

template <class F>
void ascend(const Model& model, const Ascent& settings, const double* weights, const double* v, double* eta,
            double* q) {
    std::vector<double> x(model.longest_row);
    for (int64_t pair = 0; pair < model.n_pairs; ++pair) {
        const int64_t first = model.indptr[pair], n = model.indptr[pair + 1] - first;
        const double* p = model.probabilities + first;
        double bottom = INFINITE, top = -INFINITE;
        for (int64_t j = 0; j < n; ++j) {
            x[j] = v[model.indices[first + j]];
            if (model.rewards_on_successors) x[j] += model.rewards[first + j] / settings.discount;
            bottom = smaller(x[j], bottom);
            top = larger(x[j], top);
        }
        const double weight = weights[pair], alpha = settings.step == settings.step ? settings.step : weight;
        double low = bottom + weight, high = top + weight;
        if (!F::LINE_SEARCH) {
            const bool by_row = model.rewards_on_successors;
            const double least = by_row ? bottom : settings.lowest_value, most = by_row ? top : settings.highest_value;
            low = least - 2.0 * weight;
            high = 2.0 * most - least + 2.0 * weight;
        }
        double at = settings.warm_start ? eta[pair] : 0.0;
        if (F::LINE_SEARCH) at = clip(at, low, high);
        for (int64_t t = 0; t < settings.inner_steps; ++t) {
            const double slope = dual_slope<F>(p, x.data(), n, at, weight);
            double next = clip(at + alpha * slope, low, high);
            if (F::LINE_SEARCH) {
                const double here = dual_value<F>(p, x.data(), n, at, weight);
                double size = alpha;
                for (int halving = 0; halving < 60; ++halving) {
                    if (dual_value<F>(p, x.data(), n, next, weight) >= here + 0.5 * slope * (next - at)) break;
                    size *= 0.5;
                    next = clip(at + size * slope, low, high);
                }
            }
            at = next;
        }
        eta[pair] = at;
        q[pair] = model.fixed_reward(pair) + settings.discount * dual_value<F>(p, x.data(), n, at, weight);
    }
}

}  // namespace robustmdp
