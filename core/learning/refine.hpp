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
          dual_(price_, settings_, tables_), eta_(tables.replications) {}

    const LearnerState& tables() const override { return tables_; }

    void refine(const Round& round, int64_t pair, int64_t inner_steps, const double* rewards,
                const int32_t* following) override {
        const double weight = dual_.weight(Places<double>{pair});
        const bool learns = Price::SMOOTH && weight > 0.0;
        const double beta = q_steps_(round.number), drawn = tables_.visits[pair];  // as often in every replication
        const int64_t n = tables_.replications, first = learns || tables_.lowest ? 0 : inner_steps;
        start(pair, round.fresh && learns);
        for (int64_t inner = first; inner <= inner_steps; ++inner) {
            const bool is_last = inner == inner_steps;
            const double size = is_last ? 0.0 : eta_steps_.absolute(eta_steps_(inner), settings_.discount, weight);
            const Inner step{pair, weight, size, drawn + static_cast<double>(inner), beta, is_last};
            side_by_side<Price::WIDE>(n, [&](int64_t r, auto kind) {
                move<decltype(kind)>(round, step, r, rewards + inner * n + r, following + inner * n + r);
            });
        }
        finish(round, pair, inner_steps + 1);
    }

private:
    // What all replications share in an inner step; the last one moves Q.
    struct Inner {
        int64_t pair;
        double weight, size, draws, beta;
        bool is_last;
    };

    void start(int64_t pair, bool fresh) {
        for (int64_t r = 0; r < tables_.replications; ++r)
            eta_[r] = fresh ? clip(0.0, settings_.low, settings_.high) : tables_.eta[r * tables_.n_pairs + pair];
    }

    void finish(const Round& round, int64_t pair, int64_t draws) {
        const bool is_burnt_in = static_cast<double>(round.number) >= settings_.burn_in;
        for (int64_t r = 0; r < tables_.replications; ++r) {
            const int64_t cell = r * tables_.n_pairs + pair, visits = tables_.visits[cell] + draws;
            tables_.eta[cell] = eta_[r];
            tables_.visits[cell] = visits < UINT32_MAX ? static_cast<uint32_t>(visits) : UINT32_MAX;
            if (tables_.average) average_iterate(tables_, cell, is_burnt_in);
        }
    }

    template <class T>
    [[gnu::always_inline]] void move(const Round& round, const Inner& step, int64_t r, const double* rewards,
                                     const int32_t* following) {
        const double* v = round.v + r * (tables_.n_states + 1);
        const auto value = [&](int l, int64_t successor) { return v[l * (tables_.n_states + 1) + successor]; };
        const Places<T> cell = places<T>([&](int l) { return (r + l) * tables_.n_pairs + step.pair; });
        const Places<T> successor = places<T>([&](int l) { return following[l]; });
        const T reward = load_entries<T>(rewards), paid = settings_.inside ? reward : broadcast<T>(0.0);
        const T x = paid + settings_.discount * collect<T>([&](int l) { return value(l, following[l]); });
        const T least = dual_.renew_lowest(cell, x, successor, reward, value);
        T eta = load_entries<T>(eta_.data() + r);
        const T target =
            dual_.move(eta, broadcast<T>(step.weight), x, least, broadcast<T>(step.size), broadcast<T>(step.draws));
        store_entries(eta_.data() + r, eta);
        if (!step.is_last) return;
        const T q = gather(tables_.q, cell);
        scatter(tables_.q, cell, (1.0 - step.beta) * q + step.beta * (reward - paid + target));
    }

    const Price price_;
    const LearnerSettings settings_;
    const LearnerState tables_;
    const Steps &q_steps_, &eta_steps_;
    PrintedStep<Price> dual_;
    std::vector<double> eta_;  // of one pair in all replications, side by side
};

// A round over all pairs of a world, each with its number of inner steps, from number `first` of each stream on.
template <class Sampler>
void refine_all(Refiner& refiner, const World<Sampler>& world, const Round& round, int64_t first,
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
double ascend(const Price& price, const Steps& steps, double eta, double low, double high, double weight, int64_t count,
              const double* outcomes, double* values) {
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
