// Algorithms 1 and 2 of the paper as printed, with the readings that keep them finite.
#pragma once

#include "price.hpp"
#include "state.hpp"

namespace robustmdp {

// One step on the dual variable and the value J before it. Where f*' has a pole, the lowest outcome so far bounds the
// dual variable; total variation and a weight of 0 are learned from the lowest outcome directly.
template <class Price> class PrintedStep {
public:
    PrintedStep(const Price& price, const LearnerSettings& settings, const LearnerState& tables)
        : price_(price), settings_(settings), tables_(tables) {}

    double weight(int64_t pair) const { return settings_.levels[settings_.shared_level ? 0 : pair]; }

    bool learns(double weight) const { return Price::SMOOTH && weight > 0.0; }

    // J of the outcome x at a cell's dual variable, which moves by `size` times the gradient. `v` gives V of a
    // successor, `draws` counts the samples before this one.
    template <class Values>
    double move(int64_t cell, double weight, double x, const Transition& seen, double size, double draws, Values v) {
        if constexpr (!Price::ROBUST) return x;
        const double least = tables_.lowest ? renew_lowest(cell, x, seen, v) : -INFINITE;
        if (!learns(weight)) return smaller(x, least + weight);
        if constexpr (Price::SMOOTH) {
            double eta = tables_.eta[cell];
            if (tables_.lowest) eta = smaller(eta, least + weight * price_.slope(draws + 2.0));
            const Tilt<double> tilt = price_.at((eta - x) / weight);
            tables_.eta[cell] = clip(eta + size * -tilt.growth, settings_.low, settings_.high);
            // eta - w f*(y) in the form that loses least; to the letter, outcomes may be far off.
            return settings_.literal && tilt.slope < 0.5 ? eta - tilt.slope * (eta - x) + weight * tilt.cost
                                                         : x - weight * tilt.excess;
        }
        return x;
    }

private:
    template <class Values> double renew_lowest(int64_t cell, double x, const Transition& seen, Values v) {
        const int64_t known = tables_.lowest[cell];
        if (known >= 0) {
            const double least = settings_.discount * v(known) + (settings_.inside ? tables_.lowest_reward[cell] : 0.0);
            if (x >= least) return least;
        }
        tables_.lowest[cell] = static_cast<int32_t>(seen.successor);
        if (settings_.inside) tables_.lowest_reward[cell] = seen.reward;
        return x;
    }

    const Price& price_;
    const LearnerSettings& settings_;
    const LearnerState& tables_;
};

// Algorithm 2. A replication that overflows stops.
template <class Price> class PrintedFollower {
public:
    PrintedFollower(const Price& price, const LearnerSettings& settings, const LearnerState& tables,
                    const Steps& q_steps, const Steps& eta_steps)
        : price_(price), settings_(settings), tables_(tables), q_steps_(q_steps), eta_steps_(eta_steps),
          range_(settings, tables.extent), dual_(price_, settings_, tables_) {}

    void absorb(int64_t first, const Experience& seen) {
        const int64_t n = tables_.replications;
        for (int64_t step = 0; step < seen.length; ++step) {
            for (int64_t r = 0; r < n; ++r) {
                const int64_t at = step * n + r;
                learn(first + step, r, {seen.states[at], seen.pairs[at], seen.following[at], seen.rewards[at]});
            }
        }
    }

private:
    void learn(int64_t step, int64_t replication, const Transition& seen) {
        if (tables_.diverged[replication] >= 0) return;
        const int64_t rows = replication * tables_.n_pairs, columns = replication * tables_.n_states;
        const int64_t cell = rows + seen.pair;
        const auto value = [&](int64_t successor) {
            if (successor >= tables_.n_states) return 0.0;
            const double v = tables_.q[rows + tables_.greedy[columns + successor]];
            return settings_.literal ? v : clip(v, range_.low, range_.high);
        };
        const uint32_t before = count_visit(tables_.visits[cell]);
        const uint64_t n = settings_.by_visits ? before : static_cast<uint64_t>(step);
        const double weight = dual_.weight(seen.pair), paid = settings_.inside ? seen.reward : 0.0;
        const double x = paid + settings_.discount * value(seen.successor), beta = q_steps_(n);
        const double size = eta_steps_.absolute(eta_steps_(n), settings_.discount, weight);
        const double target = dual_.move(cell, weight, x, seen, size, before, value);
        const double q = (1.0 - beta) * tables_.q[cell] + beta * (seen.reward - paid + target);
        tables_.q[cell] = q;
        if (tables_.average) average_iterate(tables_, cell, static_cast<double>(step) >= settings_.burn_in);
        if (magnitude(q) < INFINITE)
            renew_greedy(tables_, tables_.q, replication, seen.state, seen.pair);
        else
            tables_.diverged[replication] = step + 1;
    }

    const Price price_;
    const LearnerSettings settings_;
    const LearnerState tables_;
    const Steps &q_steps_, &eta_steps_;
    const Range range_;
    PrintedStep<Price> dual_;
};

}  // namespace robustmdp
