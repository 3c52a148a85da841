// Algorithms 1 and 2 of the paper as printed, with the readings that keep them finite.
#pragma once

#include "learner.hpp"
#include "price.hpp"

namespace robustmdp {

// One step on the dual variable and the value J before it. Where f*' has a pole, the lowest outcome so far bounds the
// dual variable; total variation and a weight of 0 are learned from the lowest outcome directly.
template <class Price> class PrintedStep {
public:
    PrintedStep(const Price& price, const LearnerSettings& settings, const LearnerState& tables)
        : price_(price), settings_(settings), tables_(tables) {}

    template <class T> T weight(const Places<T>& pair) const {
        return settings_.shared_level ? broadcast<T>(settings_.levels[0]) : gather(settings_.levels, pair);
    }

    // J of the outcome x at the dual variable, which moves by `size` times the gradient. `least` is the lowest outcome
    // so far, where there is a table of it; `draws` counts the samples before this one.
    template <class T> [[gnu::always_inline]] T move(T& eta, T weight, T x, T least, T size, T draws) const {
        if constexpr (Price::SMOOTH) {
            const Mask<T> moves = weight > broadcast<T>(0.0);
            const T cut = smaller(x, least + weight);
            if (!any(moves)) return cut;
            const T now = tables_.lowest ? smaller(eta, least + weight * price_.slope(draws + 2.0)) : eta;
            const Tilt<T> tilt = price_.at((now - x) / weight);
            const T next = now + size * -tilt.growth;
            eta = select(moves, clip(next, broadcast<T>(settings_.low), broadcast<T>(settings_.high)), eta);
            // eta - w f*(y) in the form that loses least; to the letter, outcomes may be far off.
            const T plain = x - weight * tilt.excess, literal = now - tilt.slope * (now - x) + weight * tilt.cost;
            const T value = settings_.literal ? select(tilt.slope < broadcast<T>(0.5), literal, plain) : plain;
            return select(moves, value, cut);
        } else {
            return Price::ROBUST ? smaller(x, least + weight) : x;
        }
    }

    // The lowest outcome so far, x included; `value(l, successor)` gives V in a lane.
    template <class T, class Values>
    [[gnu::always_inline]] T renew_lowest(const Places<T>& cell, T x, const Places<T>& successor, T reward,
                                          Values value) const {
        if (!Price::ROBUST || !tables_.lowest) return broadcast<T>(-INFINITE);
        for (int l = 0; l < lane_count<T>; ++l) {
            const int64_t known = tables_.lowest[cell[l]];
            if (known >= 0) {
                const double paid = settings_.inside ? tables_.lowest_reward[cell[l]] : 0.0;
                const double least = settings_.discount * value(l, known) + paid;
                if (lane(x, l) >= least) {
                    set_lane(x, l, least);
                    continue;
                }
            }
            tables_.lowest[cell[l]] = static_cast<int32_t>(successor[l]);
            if (settings_.inside) tables_.lowest_reward[cell[l]] = lane(reward, l);
        }
        return x;
    }

private:
    const Price& price_;
    const LearnerSettings& settings_;
    const LearnerState& tables_;
};

// Algorithm 2. A replication that overflows stops.
template <class Price> class PrintedFollower final : public Learner {
public:
    PrintedFollower(const Price& price, const LearnerSettings& settings, const LearnerState& tables,
                    const Steps& q_steps, const Steps& eta_steps)
        : Learner(settings, tables, tables.q), price_(price), q_steps_(q_steps), eta_steps_(eta_steps),
          range_(make_range(settings, tables.extent[0], tables.extent[1])), dual_(price_, settings_, tables_) {}

    void absorb(int64_t first, const Transitions& seen) override {
        const int64_t n = tables_.replications;
        for (int64_t step = 0; step < seen.length; ++step) {
            const Clock clock = read_clock(first + step);
            teach_replications<Price::WIDE>(tables_, [&](int64_t r, auto kind) {
                using T = decltype(kind);
                learn<T>(clock, r, seen.sample<T>(step * n + r));
            });
        }
    }

private:
    // A step, with its sizes where they count steps.
    struct Clock {
        int64_t step;
        double alpha, beta;
    };

    Clock read_clock(int64_t step) const {
        return settings_.by_visits ? Clock{step, 0.0, 0.0} : Clock{step, eta_steps_(step), q_steps_(step)};
    }

    template <class T>
    [[gnu::always_inline]] void learn(const Clock& clock, int64_t replication, const Sample<T>& seen) {
        const auto row = [&](int l) { return (replication + l) * tables_.n_pairs; };
        const auto value = [&](int l, int64_t successor) {
            if (successor >= tables_.n_states) return 0.0;
            const double v = tables_.q[row(l) + tables_.greedy[(replication + l) * tables_.n_states + successor]];
            return settings_.literal ? v : clip(v, range_.low, range_.high);
        };
        const Places<T> cell = places<T>([&](int l) { return row(l) + seen.pair[l]; });
        const Places<T> before = places<T>([&](int l) { return count_visit(tables_.visits[cell[l]]); });
        const T alpha = settings_.by_visits ? eta_steps_.at(before) : broadcast<T>(clock.alpha);
        const T beta = settings_.by_visits ? q_steps_.at(before) : broadcast<T>(clock.beta);
        const T weight = dual_.weight(seen.pair), paid = settings_.inside ? seen.reward : broadcast<T>(0.0);
        const T x = paid + settings_.discount * collect<T>([&](int l) { return value(l, seen.successor[l]); });
        const T least = dual_.renew_lowest(cell, x, seen.successor, seen.reward, value);
        const T draws = collect<T>([&](int l) { return static_cast<double>(before[l]); });
        T eta = gather(tables_.eta, cell);
        const T target =
            dual_.move(eta, weight, x, least, eta_steps_.absolute(alpha, settings_.discount, weight), draws);
        scatter(tables_.eta, cell, eta);
        const T q = (1.0 - beta) * gather(tables_.q, cell) + beta * (seen.reward - paid + target);
        scatter(tables_.q, cell, q);
        for_lanes<T>([&](int l) {
            if (tables_.average)
                average_iterate(tables_, cell[l], static_cast<double>(clock.step) >= settings_.burn_in);
            if (magnitude(lane(q, l)) < INFINITE)
                renew_greedy(tables_, tables_.q, replication + l, seen.state[l], seen.pair[l]);
            else
                tables_.diverged[replication + l] = clock.step + 1;
        });
    }

    const Price price_;
    const Steps &q_steps_, &eta_steps_;
    const Range<double> range_;
    PrintedStep<Price> dual_;
};

// Algorithm 1's round at one pair: T' steps on the dual variable, then one on Q.

// What a round holds fixed: V_t of each replication, (replications, n_states + 1), whose last entry is the end's.
struct Round {
    const double* v;
    int64_t number;
    bool fresh;  // does the dual variable start at 0 in each round, as printed?
};

class Refiner {
public:
    virtual ~Refiner() = default;
    const LearnerState& tables() const { return tables_; }
    // One sample for each of `inner_steps` steps on the dual variable, then one for Q; (inner_steps + 1, replications).
    virtual void refine(const Round& round, int64_t pair, int64_t inner_steps, const double* rewards,
                        const int32_t* following) = 0;

protected:
    explicit Refiner(const LearnerState& tables) : tables_(tables) {}

    const LearnerState tables_;
};

template <class Price> class RefinerOf final : public Refiner {
public:
    RefinerOf(const Price& price, const LearnerSettings& settings, const LearnerState& tables, const Steps& q_steps,
              const Steps& eta_steps)
        : Refiner(tables), price_(price), settings_(settings), q_steps_(q_steps), eta_steps_(eta_steps),
          dual_(price_, settings_, tables_), eta_(tables.replications) {}

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
        const T reward = load<T>(rewards), paid = settings_.inside ? reward : broadcast<T>(0.0);
        const T x = paid + settings_.discount * collect<T>([&](int l) { return value(l, following[l]); });
        const T least = dual_.renew_lowest(cell, x, successor, reward, value);
        T eta = load<T>(eta_.data() + r);
        const T target =
            dual_.move(eta, broadcast<T>(step.weight), x, least, broadcast<T>(step.size), broadcast<T>(step.draws));
        store(eta_.data() + r, eta);
        if (!step.is_last) return;
        const T q = gather(tables_.q, cell);
        scatter(tables_.q, cell, (1.0 - step.beta) * q + step.beta * (reward - paid + target));
    }

    const Price price_;
    const LearnerSettings settings_;
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
