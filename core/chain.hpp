// One policy's Markov chain, v = cost + discount P v: products, sweeps and dot products. Column n_states is the end.
#pragma once

#include "rows.hpp"

namespace robustmdp {

struct Chain {
    const int64_t* indptr;
    const int32_t* indices;
    const double* data;
    int64_t n_states;

    double row_product(int64_t s, const double* v) const {
        double total = 0.0;
        for (int64_t j = indptr[s]; j < indptr[s + 1]; ++j) total += data[j] * v[indices[j]];
        return total;
    }
};

// The rows of `pairs` become rows of a policy's chain: indices, data scaled by the policy, cost per pair. Behind a
// row's own entries come those of other successors, whose indices are there already.
inline void chain_rows(const Model& model, const int64_t* pairs, const double* weights, const int64_t* starts,
                       int64_t lo, int64_t hi, int32_t* indices, double* data, const double* penalty, double* cost) {
    for (int64_t i = lo; i < hi; ++i) {
        const int64_t first = model.indptr[pairs[i]], length = model.indptr[pairs[i] + 1] - first;
        double total = penalty[i] + model.fixed_reward(pairs[i]);
        if (starts[i + 1] - starts[i] > length) {
            const double reward = model.added_reward(pairs[i]);
            for (int64_t at = starts[i] + length; at < starts[i + 1]; ++at) {
                total += data[at] * reward;
                data[at] *= weights[i];
            }
        }
        for (int64_t j = 0; j < length; ++j) {
            double& probability = data[starts[i] + j];
            if (model.rewards_on_successors) total += probability * model.rewards[first + j];
            probability *= weights[i];
            indices[starts[i] + j] = model.indices[first + j];
        }
        cost[i] = weights[i] * total;
    }
}

// out = x - discount P x, for x with the end's 0 last; the chain's own states are its columns from `first` on.
inline void residual_product(const Chain& chain, double discount, const double* x, int64_t first, double* out) {
    for (int64_t s = 0; s < chain.n_states; ++s) out[s] = x[first + s] - discount * chain.row_product(s, x);
}

// In a fixed order, so that it has the same bits whatever BLAS does; four sums do not wait for each other.
inline double dot(const double* a, const double* b, int64_t n) {
    Lanes total{};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) total = fused(load_loose(a + i), load_loose(b + i), total);
    double rest = (total[0] + total[1]) + (total[2] + total[3]);
    for (; i < n; ++i) rest = fused(a[i], b[i], rest);
    return rest;
}

struct SweepRecord {
    int64_t sweeps;
    double first_span, last_span;
};

// v <- cost + discount P v until the span of the change is at most `target`; ends span-corrected in v, which has the
// end's 0 last. `w` is scratch of its length.
inline SweepRecord chain_sweeps(const Chain& chain, const double* cost, double discount, bool can_end, double* v,
                                double* w, double target, int64_t limit) {
    const int64_t n = chain.n_states;
    double first = INFINITE, span = INFINITE, low = 0.0, high = 0.0;
    int64_t sweeps = 0;
    for (; sweeps < limit && span > target; ++sweeps) {
        low = can_end ? 0.0 : INFINITE;  // the end's own change is 0
        high = can_end ? 0.0 : -INFINITE;
        for (int64_t s = 0; s < n; ++s) {
            w[s] = cost[s] + discount * chain.row_product(s, v);
            const double d = w[s] - v[s];
            low = smaller(d, low);
            high = larger(d, high);
        }
        for (int64_t s = 0; s < n; ++s) v[s] = w[s];
        span = high - low;
        if (sweeps == 0) first = span;
    }
    const double shift = can_end ? 0.0 : 0.5 * (low + high) * discount / (1.0 - discount);
    for (int64_t s = 0; s < n; ++s) v[s] += shift;
    return {sweeps, first, span};
}

// One nominal Bellman sweep in place, which propagates values along the order of states; v has the end's 0 last.
inline void gauss_seidel(const Model& model, double discount, bool backwards, double* v) {
    for (int64_t i = 0; i < model.n_states; ++i) {
        const int64_t s = backwards ? model.n_states - 1 - i : i;
        double best = -INFINITE;
        for (int64_t pair = model.state_ptr[s]; pair < model.state_ptr[s + 1]; ++pair) {
            double total = model.fixed_reward(pair), back = 0.0;
            for (int64_t j = model.indptr[pair]; j < model.indptr[pair + 1]; ++j) {
                const double p = model.probabilities[j];
                if (model.rewards_on_successors) total += p * model.rewards[j];
                if (model.indices[j] == s)
                    back += p;
                else
                    total += discount * p * v[model.indices[j]];
            }
            best = larger(total / (1.0 - discount * back), best);
        }
        v[s] = best;
    }
}

}  // namespace robustmdp
