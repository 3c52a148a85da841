// Algorithm 1's round at one pair, as printed: T' steps on the dual variable, then one on Q.
#pragma once

#include "printed.hpp"
#include "world.hpp"

namespace robustmdp {

// What a round holds fixed: V_t of each replication, (replications, n_states + 1), whose last entry is the end's.
struct Round {
    const double* v;
    double beta;
    bool fresh;     // does the dual variable start at 0 in each round, as printed?
    int64_t draws;  // of each pair, before this round
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
    RefinerOf(const Price& price, const LearnerSettings& settings, const LearnerState& tables, const Steps& eta_steps)
        : price_(price), settings_(settings), tables_(tables), eta_steps_(eta_steps),
          dual_(price_, settings_, tables_), eta_(tables.replications) {}

    const LearnerState& tables() const override { return tables_; }

    void refine(const Round& round, int64_t pair, int64_t inner_steps, const double* rewards,
                const int32_t* following) override {
        const double weight = dual_.weight(Places<double>{pair});
        const bool learns = Price::SMOOTH && weight > 0.0;
        const int64_t n = tables_.replications, first = learns || tables_.lowest ? 0 : inner_steps;
        start(pair, round.fresh && learns);
        for (int64_t inner = first; inner <= inner_steps; ++inner) {
            const bool is_last = inner == inner_steps;
            const double size = is_last ? 0.0 : eta_steps_.absolute(eta_steps_(inner), settings_.discount, weight);
            const Inner step{pair, weight, size, static_cast<double>(round.draws + inner), is_last};
            side_by_side<Price::WIDE>(n, [&](int64_t r, auto kind) {
                move<decltype(kind)>(round, step, r, rewards + inner * n + r, following + inner * n + r);
            });
        }
        for (int64_t r = 0; r < n; ++r) tables_.eta[r * tables_.n_pairs + pair] = eta_[r];
    }

private:
    // What all replications share in an inner step; the last one moves Q.
    struct Inner {
        int64_t pair;
        double weight, size, draws;
        bool is_last;
    };

    void start(int64_t pair, bool fresh) {
        for (int64_t r = 0; r < tables_.replications; ++r)
            eta_[r] = fresh ? clip(0.0, settings_.low, settings_.high) : tables_.eta[r * tables_.n_pairs + pair];
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
        const T target = dual_.move(eta, broadcast<T>(step.weight), x, least, broadcast<T>(step.size),
                                    broadcast<T>(step.draws));
        store_entries(eta_.data() + r, eta);
        if (!step.is_last) return;
        const T q = gather(tables_.q, cell);
        scatter(tables_.q, cell, (1.0 - round.beta) * q + round.beta * (reward - paid + target));
    }

    const Price price_;
    const LearnerSettings settings_;
    const LearnerState tables_;
    const Steps& eta_steps_;
    PrintedStep<Price> dual_;
    std::vector<double> eta_;  // of one pair in all replications, side by side
};

// A round over all pairs of a known world, from number `first` of each stream on.
inline void refine_all(Refiner& refiner, const World& world, const Round& round, int64_t first, int64_t inner_steps) {
    const int64_t draws = inner_steps + 1;
    std::vector<double> rewards(draws * world.replications());
    std::vector<int32_t> following(rewards.size());
    for (int64_t pair = 0; pair < world.n_pairs(); ++pair) {
        world.consult(first + pair * draws, pair, draws, rewards.data(), following.data());
        refiner.refine(round, pair, inner_steps, rewards.data(), following.data());
    }
}

// Section 4.1 alone: ascent over a piece of a stream of outcomes; values are J before each step.
struct StreamAscent {
    double eta, lowest, low, high, weight;

    template <class Price>
    void absorb(const Price& price, const Steps& steps, int64_t first, int64_t count, const double* outcomes,
                double* values) {
        for (int64_t t = 0; t < count; ++t) {
            const double x = outcomes[t];
            lowest = smaller(x, lowest);
            if (price.edge() < INFINITE)
                eta = smaller(eta, lowest + weight * price.slope(static_cast<double>(first + t) + 2.0));
            const Tilt<double> tilt = price.at((eta - x) / weight);
            values[t] = x - weight * tilt.excess;
            const double size = steps.absolute(steps(first + t), 1.0, weight);
            eta = clip(eta + size * -tilt.growth, low, high);
        }
    }
};

}  // namespace robustmdp
