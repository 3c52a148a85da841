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
// ratio do not throw it. The visits of the lowest successor limit the likelihood ratio.
//
// Early on all values share most of their error: where nothing ends it is extrapolated at steps n_pairs * 2^k,
// and Q is averaged only after a few horizons 1/(1 - discount).
#pragma once

#include "learner.hpp"
#include "price.hpp"

namespace robustmdp {

template <class Price> class Follower final : public Learner {
public:
    Follower(const Price& price, const LearnerSettings& settings, const LearnerState& tables, const Steps& q_steps,
             const Steps& eta_steps)
        : Learner(settings, tables, tables.average), price_(price), q_steps_(q_steps), eta_steps_(eta_steps),
          range_(make_range(settings, tables.extent[0], tables.extent[1])), inverse_(inverse_of(settings.levels[0])),
          horizon_(1.0 / (1.0 - settings.discount)) {
        // Up to this distance above the lowest outcome, in weights, a ratio stays below 2, which four visits allow.
        if constexpr (Price::SMOOTH) {
            near_ = price.slope(2.0);
            has_pole_ = price.edge() < INFINITE;
        }
    }

    // A block of transitions of all replications, from step `first` on.
    void absorb(int64_t first, const Transitions& seen) override {
        const int64_t n = tables_.replications;
        for (int64_t step = 0; step < seen.length; ++step) {
            const Clock clock = read_clock(first + step);
            teach_replications<Price::WIDE>(tables_, [&](int64_t r, auto kind) {
                using T = decltype(kind);
                learn<T>(clock, r, seen.sample<T>(step * n + r));
            });
            if (clock.young && ends_epoch(clock.step + 1))
                for (int64_t r = 0; r < n; ++r) remove_shared_error(r);
        }
    }

private:
    static constexpr double LEAN = 0.25;    // how far the point of linearisation leans from the average to the iterate
    static constexpr double STEADY = 0.25;  // what same-sample steps lose to the noise of eta: step * gradient times it
    static constexpr double LATE = 0.3;     // weights of the average grow like visits^this: what came early is worse
    static constexpr double BEYOND = 1.5;   // how far a ratio may come to a pole: 1/frequency of the lowest times it
    static constexpr double DOUBT = 4.0;    // standard deviations by which that frequency may be larger
    static constexpr double SETTLED = 2.0;  // horizons of visits that the average leaves out
    static constexpr double YOUNG = 20.0;   // horizons of visits after which steps alone mend what values share
    static constexpr uint32_t EVEN = 8;     // how many times more often a pair may be visited for that
    static constexpr double FLATTEST = 0.05;   // the least curvature that a Newton step divides by
    static constexpr double NO_CHOICE = 1e12;  // a weight, in spreads of values, at which nature stays with the model
    static constexpr double SMALLEST_WEIGHT = 1e-6;  // in spreads: where the learned weight of a ball is held

    template <class T> struct Sizes {
        T alpha, beta;  // of the steps on the dual variable and on Q
    };

    // What all replications share in a step.
    struct Clock {
        int64_t step;
        bool averaging, young;
        double share;         // of a visit in the average, times the number of visits
        Sizes<double> sizes;  // where schedules count steps
    };

    template <class T> struct Visit {
        Range<T> range;
        Places<T> cell, rows, columns;  // of the pair, of the first pair and of the first state
        Places<T> before;               // visits
        T count;                        // with this one
        Mask<T> is_first;
        T paid, earned;      // the part of the reward in nature's hands, and the rest
        T average;           // of Q, before this visit
        T x, x_average, at;  // the outcome by the current Q, by its average, and between the two
        T level, weight, inverse;
        T least, fresh_least;  // the lowest outcome so far, by the average and by the current Q
        T lowest_count;        // visits that led to the lowest successor
    };

    template <class T> struct Values {
        T current, averaged;
    };

    Clock read_clock(int64_t step) const {
        const double now = static_cast<double>(step) + 1.0;
        const bool averaging = now - 1.0 >= settings_.burn_in;
        const bool young = now <= YOUNG * horizon_ * static_cast<double>(tables_.n_pairs);
        const double share = averaging ? (1.0 + LATE) * now / (now - settings_.burn_in) : INFINITE;
        if (settings_.by_visits) return {step, averaging, young, share, {}};
        return {step, averaging, young, share, {eta_steps_(step), q_steps_(step)}};
    }

    template <class T> [[gnu::always_inline]] Sizes<T> read_sizes(const Clock& clock, const Places<T>& visits) {
        if (!settings_.by_visits) return {broadcast<T>(clock.sizes.alpha), broadcast<T>(clock.sizes.beta)};
        if constexpr (lane_count<T> == 1) {
            // In turn, all pairs are visited equally often: the sizes of the last count serve again.
            if (visits[0] != last_count_) last_sizes_ = {eta_steps_.at(visits), q_steps_.at(visits)};
            last_count_ = visits[0];
            return last_sizes_;
        } else {
            return {eta_steps_.at(visits), q_steps_.at(visits)};
        }
    }

    template <class T>
    [[gnu::always_inline]] void learn(const Clock& clock, int64_t replication, const Sample<T>& seen) {
        Visit<T> visit = open(replication, seen);
        const Sizes<T> sizes = read_sizes(clock, visit.before);  // first, because values wait for the transition before
        read_outcome(visit, seen);
        T target = visit.x;
        if constexpr (Price::ROBUST) {
            set_level(visit, seen);
            find_lowest(visit, seen);
            target = teach(visit, sizes.alpha);
        }
        if (clock.young)
            for_lanes<T>(
                [&](int l) { tables_.shared_error[replication + l].endings += seen.successor[l] >= tables_.n_states; });
        move_q(clock, visit, visit.earned + target, sizes.beta, replication);
        if (tables_.mixture) return;
        for_lanes<T>(
            [&](int l) { renew_greedy(tables_, tables_.average, replication + l, seen.state[l], seen.pair[l]); });
    }

    bool ends_epoch(int64_t steps) const {
        const int64_t rounds = steps / tables_.n_pairs;
        return steps == rounds * tables_.n_pairs && (rounds & (rounds - 1)) == 0;
    }

    // Move all values by the error that they share, as estimated from the residuals since the last time.
    void remove_shared_error(int64_t replication) {
        const double shift = tables_.shared_error[replication].estimate(horizon_);
        tables_.shared_error[replication].restart();
        const int64_t first = replication * tables_.n_pairs, last = first + tables_.n_pairs;
        if (shift == 0.0 || tables_.diverged[replication] >= 0 || !visits_are_even(first, last)) return;
        const double* extent = tables_.extent + 2 * replication;
        const Range<double> range = make_range(settings_, extent[0], extent[1]);
        for (int64_t cell = first; cell < last; ++cell) {
            tables_.q[cell] = clip(tables_.q[cell] + shift, range.low, range.high);
            tables_.average[cell] = clip(tables_.average[cell] + shift, range.low, range.high);
        }
    }

    // Rarely visited pairs would have the same say and be moved by what others need.
    bool visits_are_even(int64_t first, int64_t last) const {
        const auto [least, most] = std::minmax_element(tables_.visits + first, tables_.visits + last);
        return *most <= EVEN * *least;
    }

    // Count the visit.
    template <class T> [[gnu::always_inline]] Visit<T> open(int64_t replication, const Sample<T>& seen) {
        Visit<T> visit;
        visit.range = range_of(replication, seen.reward);
        visit.rows = places<T>([&](int l) { return (replication + l) * tables_.n_pairs; });
        visit.columns = places<T>([&](int l) { return (replication + l) * tables_.n_states; });
        visit.cell = places<T>([&](int l) { return visit.rows[l] + seen.pair[l]; });
        const T before = gather(tables_.visits, visit.cell);
        visit.before = places<T>([&](int l) { return count_visit(tables_.visits[visit.cell[l]]); });
        visit.count = before + 1.0;
        visit.is_first = before == broadcast<T>(0.0);
        return visit;
    }

    template <class T> [[gnu::always_inline]] void read_outcome(Visit<T>& visit, const Sample<T>& seen) const {
        visit.average = gather(tables_.average, visit.cell);
        visit.paid = settings_.inside ? seen.reward : broadcast<T>(0.0);
        visit.earned = seen.reward - visit.paid;
        const Values<T> x = read_values(visit, seen.successor, visit.paid);
        visit.x = x.current;
        visit.x_average = x.averaged;
        visit.at = visit.x_average + LEAN * (visit.x - visit.x_average);
    }

    // What is possible; where nobody knows, by the rewards so far.
    template <class T> [[gnu::always_inline]] Range<T> range_of(int64_t replication, T reward) {
        if (!settings_.growing) return broadcast<T>(range_);
        const Places<T> low = places<T>([&](int l) { return 2 * (replication + l); });
        const Places<T> high = places<T>([&](int l) { return low[l] + 1; });
        const T least = smaller(reward, gather(tables_.extent, low));
        const T most = larger(reward, gather(tables_.extent, high));
        scatter(tables_.extent, low, least);
        scatter(tables_.extent, high, most);
        return make_range(settings_, least, most);
    }

    // paid + discount V of successors, by the current Q and by its average; V is that of the greedy action, 0 at the
    // end and where there is no successor.
    template <class T>
    [[gnu::always_inline]] Values<T> read_values(const Visit<T>& visit, const Places<T>& successor, T paid) const {
        if (tables_.mixture) return mix_values(visit, successor, paid);
        const auto goes_on = [&](int l) { return successor[l] >= 0 && successor[l] < tables_.n_states; };
        const Places<T> best = places<T>(
            [&](int l) { return visit.rows[l] + tables_.greedy[visit.columns[l] + (goes_on(l) ? successor[l] : 0)]; });
        T discount = broadcast<T>(settings_.discount);
        for_lanes<T>([&](int l) {
            if (!goes_on(l)) set_lane(discount, l, 0.0);
        });
        return {paid + discount * clip(gather(tables_.q, best), visit.range.low, visit.range.high),
                paid + discount * clip(gather(tables_.average, best), visit.range.low, visit.range.high)};
    }

    // The same where V is the mean of Q over the actions of a given policy.
    template <class T>
    [[gnu::noinline]] Values<T> mix_values(const Visit<T>& visit, const Places<T>& successor, T paid) const {
        Values<T> found{paid, paid};
        for_lanes<T>([&](int l) {
            if (successor[l] < 0 || successor[l] >= tables_.n_states) return;
            const double low = lane(visit.range.low, l), high = lane(visit.range.high, l);
            double current = 0.0, averaged = 0.0;
            const int64_t last = tables_.state_ptr[successor[l] + 1];
            for (int64_t pair = tables_.state_ptr[successor[l]]; pair < last; ++pair) {
                const double share = tables_.mixture[pair];
                current += share * clip(tables_.q[visit.rows[l] + pair], low, high);
                averaged += share * clip(tables_.average[visit.rows[l] + pair], low, high);
            }
            set_lane(found.current, l, lane(paid, l) + settings_.discount * current);
            set_lane(found.averaged, l, lane(paid, l) + settings_.discount * averaged);
        });
        return found;
    }

    // Nature's level at the pair; a ball's weight is learned and begins at the spread of the outcomes.
    template <class T> [[gnu::always_inline]] void set_level(Visit<T>& visit, const Sample<T>& seen) {
        visit.level = settings_.shared_level ? broadcast<T>(settings_.levels[0]) : gather(settings_.levels, seen.pair);
        visit.weight = visit.level;
        if (settings_.constrained) {
            const T weight = gather(tables_.weight, visit.cell), zero = broadcast<T>(0.0);
            const Mask<T> unset = Price::SMOOTH ? visit.is_first | (weight == zero) : visit.is_first;
            visit.weight = select(unset, first_weight(visit.level, spread(visit)), weight);
            scatter(tables_.weight, visit.cell, visit.weight);
        }
        const bool is_shared = settings_.shared_level && !settings_.constrained;
        visit.inverse = is_shared ? broadcast<T>(inverse_) : inverse_of(visit.weight);
    }

    template <class T> static T inverse_of(T weight) {
        return select(weight > broadcast<T>(0.0), 1.0 / weight, broadcast<T>(0.0));
    }

    template <class T> T spread(const Visit<T>& visit) const {
        const Range<T>& range = visit.range;
        const T rewards = settings_.inside ? range.most_reward - range.least_reward : broadcast<T>(0.0);
        return settings_.discount * (range.high - range.low) + rewards;
    }

    template <class T> static T first_weight(T radius, T spread) {
        const T zero = broadcast<T>(0.0), limited = select(radius < broadcast<T>(INFINITE), spread, zero);
        return select(radius == zero, NO_CHOICE * larger(spread, broadcast<T>(1.0)), limited);
    }

    // The lowest outcome so far, this one included, and how often its successor came.
    template <class T> [[gnu::always_inline]] void find_lowest(Visit<T>& visit, const Sample<T>& seen) {
        const Places<T> known = places<T>([&](int l) { return tables_.lowest[visit.cell[l]]; });
        const Mask<T> unknown = gather(tables_.lowest, visit.cell) < broadcast<T>(0.0);
        const Values<T> least =
            read_values(visit, known, settings_.inside ? lowest_reward(visit.cell) : broadcast<T>(0.0));
        const Mask<T> lower = unknown | (visit.x_average < least.averaged);
        if (tables_.lowest_count) count_lowest(visit, seen, known, least.averaged, lower);
        visit.least = select(lower, visit.x_average, least.averaged);
        visit.fresh_least = select(lower, visit.x, least.current);
        if (!any(lower)) return;
        for (int l = 0; l < lane_count<T>; ++l) {
            if (!holds(lower, l)) continue;
            tables_.lowest[visit.cell[l]] = static_cast<int32_t>(seen.successor[l]);
            if (settings_.inside) keep_lowest_reward(visit.cell[l], lane(seen.reward, l));
        }
    }

    template <class T>
    [[gnu::always_inline]] void count_lowest(Visit<T>& visit, const Sample<T>& seen, const Places<T>& known, T least,
                                             Mask<T> lower) {
        visit.lowest_count = collect<T>([&](int l) {
            const bool again = known[l] == seen.successor[l];
            const double now = lane(visit.x_average, l), before = lane(least, l);
            // Endings have one index but may pay differently: only those that pay as little count.
            const bool same =
                again && (seen.successor[l] < tables_.n_states || now <= before + 1e-6 * (1.0 + magnitude(before)));
            uint32_t& times = tables_.lowest_count[visit.cell[l]];
            const bool moves = known[l] < 0 || (holds(lower, l) && !again);
            times = moves ? 1 : times + (same && times < UINT32_MAX);
            return static_cast<double>(times);
        });
    }

    // The largest likelihood ratio: sqrt(visits), or 1/frequency of the lowest successor where that is sure to be more;
    // a little above 1/frequency where f*' has a pole, which no ratio may come near.
    template <class T> [[gnu::always_inline]] T largest_ratio(const Visit<T>& visit) const {
        const T times = visit.lowest_count;
        const T most = larger(root(visit.count), visit.count / (times + DOUBT * root(times)));
        return has_pole_ ? smaller(most, BEYOND * visit.count / times) : most;
    }

    // In single precision, around a typical reward, where it is a bound only and not the value itself.
    template <class T> T lowest_reward(const Places<T>& cell) const {
        return tables_.lowest_offset ? settings_.anchor + gather(tables_.lowest_offset, cell)
                                     : gather(tables_.lowest_reward, cell);
    }
    void keep_lowest_reward(int64_t cell, double reward) {
        if (tables_.lowest_offset)
            tables_.lowest_offset[cell] = static_cast<float>(reward - settings_.anchor);
        else
            tables_.lowest_reward[cell] = reward;
    }

    template <class T> [[gnu::always_inline]] T teach(const Visit<T>& visit, T alpha) {
        if constexpr (Price::SMOOTH) {
            const Mask<T> has_dual = visit.weight > broadcast<T>(0.0);
            if (all(has_dual)) return move_dual(visit, alpha, has_dual);
            const T cut = cut_at_ceiling(visit, alpha, negate(has_dual));
            return any(has_dual) ? select(has_dual, move_dual(visit, alpha, has_dual), cut) : cut;
        } else {
            return cut_at_ceiling(visit, alpha, visit.count > broadcast<T>(0.0));
        }
    }

    // Total variation, and a weight of 0: min(x, min x + w), where the weight of a ball is a quantile of x - min x.
    template <class T> [[gnu::always_inline]] T cut_at_ceiling(const Visit<T>& visit, T alpha, Mask<T> moves) {
        const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0);
        const Mask<T> above = visit.at > visit.least + visit.weight;
        const T target = select(above, visit.fresh_least + visit.weight, visit.x);
        if (!settings_.constrained) return target;
        const Mask<T> limited = visit.level < broadcast<T>(INFINITE);
        const T width = spread(visit), stride = 0.5 * smaller(alpha, one) * width;  // shorter than for a root
        const T weight = clip(visit.weight + stride * (select(above, one, zero) - visit.level), zero, width);
        scatter(tables_.weight, visit.cell, select(limited & moves, weight, visit.weight));
        return select(limited, target - visit.weight * visit.level, target);
    }

    // J at the dual variable, which then takes its step.
    template <class T> [[gnu::always_inline]] T move_dual(const Visit<T>& visit, T alpha, Mask<T> moves) {
        const T weight = visit.weight, infinite = broadcast<T>(INFINITE);
        const T offset = gather(tables_.offset, visit.cell), bent = gather(tables_.curvature, visit.cell);
        // At the first visit what the average will be; without a typical reward where it is not in the outcome.
        const double apart = settings_.inside ? 0.0 : settings_.anchor;
        const T base = select(visit.is_first, visit.earned + visit.x, visit.average) - apart;
        const T eta = limit_eta(visit, select(visit.is_first, visit.at, base + offset));
        const Tilt<T> tilt = price_.at((eta - visit.at) * visit.inverse);
        const T gradient = -tilt.growth, relative = eta_steps_.relative(alpha, settings_.discount, visit.inverse);
        const T rate = smaller(broadcast<T>(1.0), relative);
        const T bend = select(tilt.curvature == tilt.curvature, tilt.curvature, tilt.slope);
        const T slower = larger(bent, broadcast<T>(FLATTEST)) + relative * bend;
        const T stride = clip(relative * weight * gradient / slower, -weight, weight);
        const T trusted = select(tilt.slope > broadcast<T>(1.0), weight, infinite);
        const T target = visit.at - weight * tilt.excess +
                         (STEADY * stride * gradient + tilt.slope * clip(visit.x - visit.at, -trusted, trusted));
        const T mean_bend = bent + rate * (smaller(bend, visit.count) - bent);
        scatter(tables_.curvature, visit.cell, select(moves, mean_bend, bent));
        scatter(tables_.offset, visit.cell, select(moves, eta + stride - base, offset));
        if (!settings_.constrained) return target;
        move_weight(visit, tilt.cost - visit.level, rate, moves);
        return target - weight * visit.level;
    }

    // The dual variable where it may be: a possible outcome, not below the lowest one, not above what visits allow.
    template <class T> [[gnu::always_inline]] T limit_eta(const Visit<T>& visit, T eta) const {
        const Range<T>& range = visit.range;
        const T zero = broadcast<T>(0.0), least = settings_.inside ? range.least_reward : zero,
                most = settings_.inside ? range.most_reward : zero;
        const T floor = visit.least + LEAN * (visit.fresh_least - visit.least);  // as `at` is for this outcome
        eta = clip(eta, settings_.discount * range.low + least, settings_.discount * range.high + most);
        eta = larger(eta, floor);
        const T lowest = smaller(floor, visit.at), y = (eta - lowest) * visit.inverse;
        // Four visits allow a ratio of 2, but next to a pole.
        const Mask<T> is_close = (visit.count < broadcast<T>(4.0)) | (y > broadcast<T>(near_));
        if (!any(is_close) && !(has_pole_ && any(2.0 * visit.lowest_count > BEYOND * visit.count))) return eta;
        const T largest = largest_ratio(visit);
        const Mask<T> exceeds = price_.at(y).slope > largest;
        if (any(exceeds)) eta = select(exceeds, lowest + visit.weight * price_.slope(largest), eta);
        return eta;
    }

    // Ascent on log weight along f(t) - radius, which has no bound: in units of its usual size, then projected.
    template <class T> [[gnu::always_inline]] void move_weight(const Visit<T>& visit, T excess, T rate, Mask<T> moves) {
        const T level = visit.level, width = spread(visit), usual = gather(tables_.excess, visit.cell);
        const Mask<T> limited = moves & (level > broadcast<T>(0.0)) & (level < broadcast<T>(INFINITE));
        const T half = broadcast<T>(0.5), stride = clip(rate * excess / (level + usual), -half, half);
        const T weight = clip(visit.weight * exponential(stride), SMALLEST_WEIGHT * width, width / level);
        scatter(tables_.weight, visit.cell, select(limited, weight, visit.weight));
        scatter(tables_.excess, visit.cell, select(limited, usual + rate * (magnitude(excess) - usual), usual));
    }

    // For the estimate of the shared error; those of a first visit are about a placeholder.
    template <class T> void note_residuals(const Visit<T>& visit, T residual, T step, int64_t replication) {
        const double share = 1.0 / static_cast<double>(tables_.n_pairs);
        for_lanes<T>([&](int l) {
            if (!holds(visit.is_first, l))
                tables_.shared_error[replication + l].add(lane(residual, l), 1.0 / lane(visit.count, l),
                                                          lane(step, l) * share);
        });
    }

    // Q and its average; the first visit replaces a placeholder. A replication whose Q is no longer finite stops.
    template <class T>
    [[gnu::always_inline]] void move_q(const Clock& clock, const Visit<T>& visit, T target, T beta,
                                       int64_t replication) {
        const T last = gather(tables_.q, visit.cell), residual = target - last, step = beta * residual;
        if (clock.young) note_residuals(visit, residual, step, replication);
        T q = select(visit.is_first, target, last + step);
        q = clip(q, visit.range.low, visit.range.high);
        T average = q;
        if (clock.averaging) {
            const T one = broadcast<T>(1.0), averaged = larger(one, visit.count - SETTLED * horizon_);
            const T share = smaller(one, clock.share / averaged);
            average = select(visit.is_first, q, visit.average + share * (q - visit.average));
        }
        const Mask<T> is_finite = magnitude(q) < broadcast<T>(INFINITE);
        for (int l = 0; l < lane_count<T> && !all(is_finite); ++l)
            if (!holds(is_finite, l)) tables_.diverged[replication + l] = clock.step + 1;
        scatter(tables_.q, visit.cell, select(is_finite, q, last));
        scatter(tables_.average, visit.cell, select(is_finite, average, visit.average));
    }

    const Price price_;
    const Steps &q_steps_, &eta_steps_;
    const Range<double> range_;  // where it is known
    const double inverse_;       // of the weight, where it is one for all
    const double horizon_;       // 1/(1 - discount)
    double near_ = INFINITE;
    bool has_pole_ = false;    // of f*'
    int64_t last_count_ = -1;  // of visits, and its step sizes
    Sizes<double> last_sizes_{};
};

}  // namespace robustmdp
