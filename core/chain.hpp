// One policy's Markov chain, v = cost + discount P v: products, sweeps, and van der Vorst's BiCGSTAB where it mixes
// slowly. Column n_states is the end.
#pragma once

#include "graph.hpp"

#include <tuple>

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
        prefetch_listed(model, pairs, i, hi);
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
    for (; i + WIDTH <= n; i += WIDTH) total = fused(load<Lanes>(a + i), load<Lanes>(b + i), total);
    double rest = sum(total);
    for (; i < n; ++i) rest = fused(a[i], b[i], rest);
    return rest;
}

// v <- cost + discount P v until the span of the change is at most `target`; ends span-corrected in v, which has the
// end's 0 last. `w` is scratch of its length. Returns the number of sweeps and the first and the last span.
inline std::tuple<int64_t, double, double> chain_sweeps(const Chain& chain, const double* cost, double discount,
                                                        bool can_end, double* v, double* w, double target,
                                                        int64_t limit) {
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

// A = I - discount P in a given order of the states, split into L (with the diagonal) and U: the preconditioner is a
// Gauss-Seidel sweep. In a good order most successors of a state come before it, so that one sweep propagates values
// along whole paths. Falling values are such an order, since a good policy climbs; so is the graph's, where there are
// ends to go to.
class OrderedChain {
public:
    OrderedChain(const Chain& chain, double discount, const std::vector<int64_t>& order) {
        const int64_t n = chain.n_states;
        std::vector<int64_t> place(n);
        for (int64_t i = 0; i < n; ++i) place[order[i]] = i;
        for (int64_t i = 0; i < n; ++i) {
            double diagonal = 1.0;
            for (int64_t j = chain.indptr[order[i]]; j < chain.indptr[order[i] + 1]; ++j) {
                if (chain.indices[j] == n) continue;  // the end
                const int64_t at = place[chain.indices[j]];
                if (at == i)
                    diagonal -= discount * chain.data[j];
                else
                    (at < i ? before_ : after_).add(at, -discount * chain.data[j]);
            }
            before_.end_row();
            after_.end_row();
            inverse_.push_back(1.0 / diagonal);
        }
    }

    // z = L^-1 y, out = A z = y + U z: each entry of A is touched once (Eisenstat).
    void apply(const std::vector<double>& y, std::vector<double>& z, std::vector<double>& out) const {
        const auto n = static_cast<int64_t>(inverse_.size());
        for (int64_t i = 0; i < n; ++i) z[i] = (y[i] - before_.row_product(i, z.data())) * inverse_[i];
        for (int64_t i = 0; i < n; ++i) out[i] = y[i] + after_.row_product(i, z.data());
    }

private:
    struct Part {
        std::vector<int64_t> indptr{0};
        std::vector<int32_t> indices;
        std::vector<double> data;

        void add(int64_t at, double value) {
            indices.push_back(static_cast<int32_t>(at));
            data.push_back(value);
        }
        void end_row() { indptr.push_back(static_cast<int64_t>(data.size())); }
        double row_product(int64_t i, const double* z) const {
            double total = 0.0;
            for (int64_t j = indptr[i]; j < indptr[i + 1]; ++j) total += data[j] * z[indices[j]];
            return total;
        }
    };

    Part before_, after_;
    std::vector<double> inverse_;
};

// The span of a residual; where episodes end, it includes the end's 0.
inline double span_of(const std::vector<double>& residual, bool can_end) {
    double low = can_end ? 0.0 : INFINITE, high = can_end ? 0.0 : -INFINITE;
    for (const double r : residual) {
        low = smaller(r, low);
        high = larger(r, high);
    }
    return high - low;
}

inline std::vector<int64_t> falling_order(const double* v, int64_t n) {
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return v[a] > v[b]; });
    return order;
}

// Steps from v, which has the end's 0 last, until the span of the residual is at most `target`; the best v so far is
// left in v, and its span returned.
inline double climb_chain(const Chain& chain, const double* cost, double discount, bool can_end, double* v,
                          double target, int64_t limit, bool by_graph) {
    const int64_t n = chain.n_states;
    const std::vector<int64_t> order =
        by_graph ? order_by_graph({chain.indptr, chain.indices, chain.data, n}) : falling_order(v, n);
    const OrderedChain matrix(chain, discount, order);
    std::vector<double> x(n), r(n), shadow, direction(n), moved(n), towards(n), correction(n), image(n), best;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t s = order[i];
        x[i] = v[s];
        r[i] = cost[s] - (v[s] - discount * chain.row_product(s, v));
    }
    best = x;
    shadow = r;
    double least = span_of(r, can_end), rho = 1.0, alpha = 1.0, omega = 1.0;
    for (int64_t step = 0; step < limit && least > target; ++step) {
        double next = dot(shadow.data(), r.data(), n);
        if (next == 0.0 || omega == 0.0) {  // it broke down: begin again from here
            shadow = r;
            next = dot(r.data(), r.data(), n);
            rho = alpha = omega = 1.0;
            std::fill(direction.begin(), direction.end(), 0.0);
            std::fill(moved.begin(), moved.end(), 0.0);
        }
        const double share = (next / rho) * (alpha / omega);
        rho = next;
        for (int64_t i = 0; i < n; ++i) direction[i] = r[i] + share * (direction[i] - omega * moved[i]);
        matrix.apply(direction, towards, moved);
        alpha = rho / dot(shadow.data(), moved.data(), n);
        for (int64_t i = 0; i < n; ++i) r[i] -= alpha * moved[i];
        matrix.apply(r, correction, image);
        const double size = dot(image.data(), image.data(), n);
        omega = size > 0.0 ? dot(image.data(), r.data(), n) / size : 0.0;
        for (int64_t i = 0; i < n; ++i) {
            x[i] += alpha * towards[i] + omega * correction[i];
            r[i] -= omega * image[i];
        }
        const double now = span_of(r, can_end);
        if (!(now < INFINITE)) break;
        if (now < least) {
            least = now;
            best = x;
        }
    }
    for (int64_t i = 0; i < n; ++i) v[order[i]] = best[i];
    return least;
}

}  // namespace robustmdp
