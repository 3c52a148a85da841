// Our update: what one transition teaches, for Q, its average, the dual variable and the weight of a ball.
//
// The greedy action and nature's tilt t = f*' are chosen at the averages of Q, where they are steady; values flow
// through the current Q, where they are fresh: target = J(eta; x') + t (x - x'), x' near the average outcome. That
// removes the two biases of noisy iterates, from the maximum and from the concave J, without any lag. Where t > 1 and Q
// has left its average by more than the weight, the slope is no longer trusted: t is a density only on average, and
// discount * E t > 1 would amplify.
//
// The dual variable is kept as its distance from the average Q, so that it moves along when all values shift, and takes
// implicit Newton steps, scaled by a running mean of f*'' and by this sample's own, so that rare outcomes with a huge
// ratio do not throw it. No likelihood ratio may exceed what the visits of the lowest successor speak for.
//
// Early on the level of all values is most of the error: where nothing ends it is extrapolated at steps n_pairs * 2^k,
// and Q is averaged only after a few horizons 1/(1 - discount).
#pragma once

#include "price.hpp"
#include "state.hpp"

namespace robustmdp {

template <class Price> class Follower {
public:
    Follower(const Price& price, const LearnerSettings& settings, const LearnerState& tables, const Steps& q_steps,
             const Steps& eta_steps)
        : price_(price), settings_(settings), tables_(tables), q_steps_(q_steps), eta_steps_(eta_steps),
          range_(settings, tables.extent), inverse_(inverse_of(settings.levels[0])),
          horizon_(1.0 / (1.0 - settings.discount)), has_pole_(price.edge() < INFINITE) {
        // Up to this distance above the lowest outcome, in weights, a ratio stays below 2, which four visits allow.
        if constexpr (Price::SMOOTH) near_ = price.slope(2.0);
    }

    // A block of transitions of all replications, from step `first` on.
    void absorb(int64_t first, const Experience& seen) {
        const int64_t n = tables_.replications;
        const double youth = YOUNG * horizon_ * static_cast<double>(tables_.n_pairs);
        for (int64_t step = 0; step < seen.length; ++step) {
            const Clock clock(first + step, settings_.burn_in, youth);
            for (int64_t r = 0; r < n; ++r) {
                const int64_t at = step * n + r;
                learn(clock, r, {seen.states[at], seen.pairs[at], seen.following[at], seen.rewards[at]});
            }
            if (clock.young && ends_epoch(clock.step + 1))
                for (int64_t r = 0; r < n; ++r) shift_level(r);
        }
    }

private:
    static constexpr double LEAN = 0.25;    // how far the point of linearisation leans from the average to the iterate
    static constexpr double STEADY = 0.25;  // what same-sample steps lose to the noise of eta: step * gradient times it
    static constexpr double LATE = 0.3;     // weights of the average grow like visits^this: what came early is worse
    static constexpr double BEYOND = 1.5;   // how far a ratio may come to a pole: 1/frequency of the lowest times it
    static constexpr double DOUBT = 4.0;    // standard deviations by which that frequency may be larger
    static constexpr double SETTLED = 2.0;  // horizons of visits that the average leaves out
    static constexpr double YOUNG = 20.0;   // horizons of visits after which steps alone find the level
    static constexpr double FLATTEST = 0.05;   // the least curvature that a Newton step divides by
    static constexpr double NO_CHOICE = 1e12;  // a weight, in spreads of values, at which nature stays with the model
    static constexpr double SMALLEST_WEIGHT = 1e-6;  // in spreads: where the learned weight of a ball is held

    struct Clock {
        int64_t step;
        bool averaging, young;
        double share;  // of a visit in the average, times the number of visits

        Clock(int64_t step, double burn_in, double youth)
            : step(step), averaging(static_cast<double>(step) >= burn_in), young(static_cast<double>(step) < youth) {
            const double now = static_cast<double>(step) + 1.0;
            share = averaging ? (1.0 + LATE) * now / (now - burn_in) : INFINITE;
        }
    };

    struct Visit {
        explicit Visit(const Range& range) : range(range) {}

        Range range;
        int64_t cell, rows, columns;
        uint32_t before;          // visits
        double count;             // with this one
        double paid;              // the part of the reward in nature's hands
        double earned;            // and the rest
        double x, x_average, at;  // the outcome by the current Q, by its average, and between the two
        double level, weight, inverse;
        double least, fresh_least;  // the lowest outcome so far, by the average and by the current Q
        double lowest_count;        // visits that led to the lowest successor
    };

    void learn(const Clock& clock, int64_t replication, const Transition& seen) {
        if (tables_.diverged[replication] >= 0) return;
        Visit visit = open(replication, seen);
        double target = visit.x;
        const uint64_t n = settings_.by_visits ? visit.before : static_cast<uint64_t>(clock.step);
        if constexpr (Price::ROBUST) {
            set_level(visit, seen.pair);
            find_lowest(visit, seen);
            const double alpha = eta_steps_(n);
            target = teach(visit, alpha);
        }
        double q = visit.earned + target;
        if (clock.young) tables_.level[replication].endings += seen.successor >= tables_.n_states;
        if (visit.before > 0) {  // the first visit replaces a placeholder
            const double residual = q - tables_.q[visit.cell], step = q_steps_(n) * residual;
            if (clock.young)
                tables_.level[replication].add(residual, 1.0 / visit.count, step / static_cast<double>(tables_.n_pairs));
            q = tables_.q[visit.cell] + step;
        }
        q = clip(q, visit.range.low, visit.range.high);
        if (!(magnitude(q) < INFINITE)) {
            tables_.diverged[replication] = clock.step + 1;
            return;
        }
        tables_.q[visit.cell] = q;
        double& average = tables_.average[visit.cell];
        const double averaged = larger(1.0, visit.count - SETTLED * horizon_);  // visits in the average
        average = clock.averaging && visit.before > 0 ? average + smaller(1.0, clock.share / averaged) * (q - average) : q;
        renew_greedy(tables_, tables_.average, replication, seen.state, seen.pair);
    }

    bool ends_epoch(int64_t steps) const {
        const int64_t rounds = steps / tables_.n_pairs;
        return steps == rounds * tables_.n_pairs && (rounds & (rounds - 1)) == 0;
    }

    // Move all that was visited by the error of the level, as far as residuals since the last time tell it.
    void shift_level(int64_t replication) {
        const double shift = tables_.level[replication].error(horizon_);
        tables_.level[replication].restart();
        if (shift == 0.0 || tables_.diverged[replication] >= 0) return;
        const Range range(settings_, tables_.extent + 2 * replication);
        const int64_t first = replication * tables_.n_pairs;
        for (int64_t cell = first; cell < first + tables_.n_pairs; ++cell) {
            if (tables_.visits[cell] == 0) continue;
            tables_.q[cell] = clip(tables_.q[cell] + shift, range.low, range.high);
            tables_.average[cell] = clip(tables_.average[cell] + shift, range.low, range.high);
        }
    }

    // Count the visit and read the outcome.
    Visit open(int64_t replication, const Transition& seen) {
        double* extent = tables_.extent + 2 * replication;
        if (settings_.growing) {
            extent[0] = smaller(seen.reward, extent[0]);
            extent[1] = larger(seen.reward, extent[1]);
        }
        Visit visit(settings_.growing ? Range(settings_, extent) : range_);
        visit.rows = replication * tables_.n_pairs;
        visit.columns = replication * tables_.n_states;
        visit.cell = visit.rows + seen.pair;
        visit.before = count_visit(tables_.visits[visit.cell]);
        visit.count = static_cast<double>(visit.before) + 1.0;
        visit.paid = settings_.inside ? seen.reward : 0.0;
        visit.earned = seen.reward - visit.paid;
        read_values(visit, seen.successor, visit.paid, visit.x, visit.x_average);
        visit.at = visit.x_average + LEAN * (visit.x - visit.x_average);
        return visit;
    }

    // paid + discount V of a successor, by the current Q and by its average; V is that of the greedy action.
    void read_values(const Visit& visit, int64_t successor, double paid, double& current, double& averaged) const {
        current = averaged = paid;
        if (successor >= tables_.n_states) return;
        const int64_t best = visit.rows + tables_.greedy[visit.columns + successor];
        current += settings_.discount * clip(tables_.q[best], visit.range.low, visit.range.high);
        averaged += settings_.discount * clip(tables_.average[best], visit.range.low, visit.range.high);
    }

    // Nature's level at the pair; a ball's weight is learned and begins at the spread of the outcomes.
    void set_level(Visit& visit, int64_t pair) {
        visit.level = visit.weight = settings_.levels[settings_.shared_level ? 0 : pair];
        if (settings_.constrained) {
            double& weight = tables_.weight[visit.cell];
            if (visit.before == 0 || (Price::SMOOTH && weight == 0.0))
                weight = first_weight(visit.level, spread(visit));
            visit.weight = weight;
        }
        visit.inverse = settings_.shared_level && !settings_.constrained ? inverse_ : inverse_of(visit.weight);
    }

    static double inverse_of(double weight) { return weight > 0.0 ? 1.0 / weight : 0.0; }

    double spread(const Visit& visit) const {
        const Range& range = visit.range;
        return settings_.discount * (range.high - range.low) +
               (settings_.inside ? range.most_reward - range.least_reward : 0.0);
    }

    static double first_weight(double radius, double spread) {
        if (radius == 0.0) return NO_CHOICE * larger(spread, 1.0);
        return radius < INFINITE ? spread : 0.0;
    }

    // The lowest outcome so far, this one included, and how often its successor came.
    void find_lowest(Visit& visit, const Transition& seen) {
        int32_t& lowest = tables_.lowest[visit.cell];
        const int64_t known = lowest;
        visit.least = visit.x_average;
        visit.fresh_least = visit.x;
        if (known >= 0)
            read_values(visit, known, settings_.inside ? lowest_reward(visit.cell) : 0.0, visit.fresh_least,
                        visit.least);
        const bool lower = known < 0 || visit.x_average < visit.least;
        if (tables_.lowest_count) {
            // Endings have one index but may pay differently: only those that pay as little count.
            const bool same =
                known == seen.successor && (seen.successor < tables_.n_states ||
                                            visit.x_average <= visit.least + 1e-6 * (1.0 + magnitude(visit.least)));
            uint32_t& times = tables_.lowest_count[visit.cell];
            times = known < 0 || (lower && known != seen.successor) ? 1 : times + (same && times < UINT32_MAX);
            visit.lowest_count = static_cast<double>(times);
        }
        if (!lower) return;
        visit.least = visit.x_average;
        visit.fresh_least = visit.x;
        lowest = static_cast<int32_t>(seen.successor);
        if (settings_.inside) keep_lowest_reward(visit.cell, seen.reward);
    }

    // The largest likelihood ratio: sqrt(visits), or 1/frequency of the lowest successor where that is sure to be more;
    // a little above 1/frequency where f*' has a pole, which no ratio may come near.
    double largest_ratio(const Visit& visit) const {
        const double times = visit.lowest_count;
        const double most = larger(root(visit.count), visit.count / (times + DOUBT * root(times)));
        return has_pole_ ? smaller(most, BEYOND * visit.count / times) : most;
    }

    // In single precision, around a typical reward, where it is a bound only and not the value itself.
    double lowest_reward(int64_t cell) const {
        return tables_.lowest_offset ? settings_.anchor + static_cast<double>(tables_.lowest_offset[cell])
                                     : tables_.lowest_reward[cell];
    }
    void keep_lowest_reward(int64_t cell, double reward) {
        if (tables_.lowest_offset)
            tables_.lowest_offset[cell] = static_cast<float>(reward - settings_.anchor);
        else
            tables_.lowest_reward[cell] = reward;
    }

    double teach(Visit& visit, double alpha) {
        if constexpr (Price::SMOOTH)
            if (visit.weight > 0.0) return move_dual(visit, alpha);
        return cut_at_ceiling(visit, alpha);
    }

    // Total variation, and a weight of 0: min(x, min x + w), where the weight of a ball is a quantile of x - min x.
    double cut_at_ceiling(Visit& visit, double alpha) {
        const bool above = visit.at > visit.least + visit.weight;
        double target = above ? visit.fresh_least + visit.weight : visit.x;
        if (settings_.constrained && visit.level < INFINITE) {
            target -= visit.weight * visit.level;
            const double width = spread(visit), stride = 0.5 * smaller(alpha, 1.0) * width;  // shorter than for a root
            tables_.weight[visit.cell] = clip(visit.weight + stride * ((above ? 1.0 : 0.0) - visit.level), 0.0, width);
        }
        return target;
    }

    // J at the dual variable, which then takes its step.
    double move_dual(Visit& visit, double alpha) {
        const double weight = visit.weight;
        // At the first visit what the average will be; without a typical reward where it is not in the outcome.
        const double apart = settings_.inside ? 0.0 : settings_.anchor;
        const double base = (visit.before == 0 ? visit.earned + visit.x : tables_.average[visit.cell]) - apart;
        double eta = first_eta(visit, base);
        Tilt<double> tilt = price_.at((eta - visit.at) * visit.inverse);
        if (tilt.slope > 1.0 && tilt.slope > largest_ratio(visit)) {
            eta = visit.at + weight * price_.slope(largest_ratio(visit));
            tilt = price_.at((eta - visit.at) * visit.inverse);
        }
        const double gradient = -tilt.growth, relative = eta_steps_.relative(alpha, settings_.discount, visit.inverse);
        const double rate = smaller(1.0, relative);
        float& curvature = tables_.curvature[visit.cell];
        const double bent = curvature, bend = tilt.curvature == tilt.curvature ? tilt.curvature : tilt.slope;
        const double slower = larger(bent, FLATTEST) + relative * bend;
        const double stride = clip(relative * weight * gradient / slower, -weight, weight);
        const double trusted = tilt.slope > 1.0 ? weight : INFINITE;
        double target = visit.at - weight * tilt.excess;
        target += STEADY * stride * gradient + tilt.slope * clip(visit.x - visit.at, -trusted, trusted);
        curvature = static_cast<float>(bent + rate * (smaller(bend, visit.count) - bent));
        tables_.offset[visit.cell] = static_cast<float>(eta + stride - base);
        if (settings_.constrained) {
            target -= weight * visit.level;
            move_weight(visit, tilt.cost - visit.level, rate);
        }
        return target;
    }

    // The dual variable where it may be: a possible outcome, not below the lowest one, not above what visits allow.
    double first_eta(const Visit& visit, double base) const {
        const Range& range = visit.range;
        const double least = settings_.inside ? range.least_reward : 0.0,
                     most = settings_.inside ? range.most_reward : 0.0;
        const double floor = visit.least + LEAN * (visit.fresh_least - visit.least);  // as `at` is for this outcome
        double eta = visit.before == 0 ? visit.at : base + static_cast<double>(tables_.offset[visit.cell]);
        eta = clip(eta, settings_.discount * range.low + least, settings_.discount * range.high + most);
        eta = larger(eta, floor);
        const bool is_tight = visit.count < 4.0 || (has_pole_ && 2.0 * visit.lowest_count > BEYOND * visit.count);
        if (is_tight || (eta - floor) * visit.inverse > near_)
            eta = smaller(eta, floor + visit.weight * price_.slope(largest_ratio(visit)));
        return eta;
    }

    // Ascent on log weight along f(t) - radius, which has no bound: in units of its usual size, then projected.
    void move_weight(const Visit& visit, double excess, double rate) {
        if (!(visit.level > 0.0 && visit.level < INFINITE)) return;
        const double width = spread(visit);
        float& usual = tables_.excess[visit.cell];
        const double stride = clip(rate * excess / (visit.level + static_cast<double>(usual)), -0.5, 0.5);
        tables_.weight[visit.cell] =
            clip(visit.weight * exponential(stride), SMALLEST_WEIGHT * width, width / visit.level);
        usual = static_cast<float>(usual + rate * (magnitude(excess) - usual));
    }

    const Price price_;
    const LearnerSettings settings_;
    const LearnerState tables_;
    const Steps &q_steps_, &eta_steps_;
    const Range range_;     // where it is known
    const double inverse_;  // of the weight, where it is one for all
    const double horizon_;  // 1/(1 - discount)
    const bool has_pole_;   // of f*'
    double near_ = INFINITE;
};

}  // namespace robustmdp
