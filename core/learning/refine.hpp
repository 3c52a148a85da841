// Algorithm 1's round at one pair, as printed: T' steps on the dual variable, then one on Q.
#pragma once

#include "printed.hpp"
#include "world.hpp"

namespace robustmdp {

// What a round holds fixed: V_t of each replication, (replications, n_states + 1), whose last entry is the end's.
struct Round {
    const double* v;
    int64_t number;
    bool fresh;  // does the dual variable start at 0 in each round, as printed?
};

class Refiner {
public:
    virtual ~Refiner() = default;
    virtual const LearnerState& tables() const = 0;
    // One sample for each of `inner_steps` steps on the dual variable, then one for Q; (inner_steps + 1, replications).
    virtual void refine(const Round& round, int64_t pair, int64_t inner_steps, const double* rewards,
                        const int32_t* following) = 0;
};

template <class Price> class RefinerOf final : public Refiner {
public:
    RefinerOf(const Price& price, const LearnerSettings& settings, const LearnerState& tables, const Steps& q_steps,
              const Steps& eta_steps)
        : price_(price), settings_(settings), tables_(tables), q_steps_(q_steps), eta_steps_(eta_steps),
          dual_(price_, settings_, tables_) {}

    const LearnerState& tables() const override { return tables_; }

    void refine(const Round& round, int64_t pair, int64_t inner_steps, const double* rewards,
                const int32_t* following) override {
        const double weight = dual_.weight(pair);
        const int64_t n = tables_.replications, first = dual_.learns(weight) || tables_.lowest ? 0 : inner_steps;
        if (round.fresh && dual_.learns(weight))
            for (int64_t r = 0; r < n; ++r)
                tables_.eta[r * tables_.n_pairs + pair] = clip(0.0, settings_.low, settings_.high);
        for (int64_t inner = first; inner <= inner_steps; ++inner) {
            const bool is_last = inner == inner_steps;
            const double size = is_last ? 0.0 : eta_steps_.absolute(eta_steps_(inner), settings_.discount, weight);
            for (int64_t r = 0; r < n; ++r) {
                const int64_t cell = r * tables_.n_pairs + pair;
                const double drawn = tables_.visits[cell];
                const double* v = round.v + r * (tables_.n_states + 1);
                const Transition seen{0, pair, following[inner * n + r], rewards[inner * n + r]};
                const double paid = settings_.inside ? seen.reward : 0.0,
                             x = paid + settings_.discount * v[seen.successor];
                const double target = dual_.move(cell, weight, x, seen, size, drawn + static_cast<double>(inner),
                                                 [v](int64_t successor) { return v[successor]; });
                if (is_last) finish(cell, round.number, seen.reward - paid + target, inner_steps + 1);
            }
        }
    }

private:
    void finish(int64_t cell, int64_t round, double target, int64_t draws) {
        const double beta = q_steps_(round);
        double& q = tables_.q[cell];
        q = (1.0 - beta) * q + beta * target;
        const int64_t visits = tables_.visits[cell] + draws;
        tables_.visits[cell] = visits < UINT32_MAX ? static_cast<uint32_t>(visits) : UINT32_MAX;
        if (tables_.average) average_iterate(tables_, cell, static_cast<double>(round) >= settings_.burn_in);
    }

    const Price price_;
    const LearnerSettings settings_;
    const LearnerState tables_;
    const Steps &q_steps_, &eta_steps_;
    PrintedStep<Price> dual_;
};

// A round over all pairs of a known world, each with its number of inner steps, from number `first` of each stream on.
inline void refine_all(Refiner& refiner, const World& world, const Round& round, int64_t first,
                       const int64_t* inner_steps) {
    std::vector<double> rewards;
    std::vector<int32_t> following;
    for (int64_t pair = 0; pair < world.n_pairs(); ++pair) {
        const int64_t draws = inner_steps[pair] + 1;
        rewards.resize(draws * world.replications());
        following.resize(rewards.size());
        world.sample_pair(first, pair, draws, rewards.data(), following.data());
        refiner.refine(round, pair, inner_steps[pair], rewards.data(), following.data());
        first += draws;
    }
}

// Section 4.1 alone: ascent from `eta` over a stream of outcomes; values are J before each step. Returns the last eta.
template <class Price>
double ascend(const Price& price, const Steps& steps, double eta, double low, double high, double weight,
              int64_t count, const double* outcomes, double* values) {
    double lowest = INFINITE;
    for (int64_t t = 0; t < count; ++t) {
        const double x = outcomes[t];
        lowest = smaller(x, lowest);
        if (price.edge() < INFINITE) eta = smaller(eta, lowest + weight * price.slope(static_cast<double>(t) + 2.0));
        const Tilt<double> tilt = price.at((eta - x) / weight);
        values[t] = x - weight * tilt.excess;
        eta = clip(eta + steps.absolute(steps(t), 1.0, weight) * -tilt.growth, low, high);
    }
    return eta;
}

}  // namespace robustmdp
