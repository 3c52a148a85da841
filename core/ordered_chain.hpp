// A slowly mixing chain, (I - discount P) v = cost, by van der Vorst's BiCGSTAB with a Gauss-Seidel sweep as its
// preconditioner. In a good order most successors of a state come before it: one sweep then carries news along whole
// paths. Falling values are such an order, since a good policy climbs; so is the graph's, where there are ends to go to.
#pragma once

#include "chain.hpp"
#include "graph.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace robustmdp {

// A = I - discount P in a given order of the states, split into L (with the diagonal) and U.
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
