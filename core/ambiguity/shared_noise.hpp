// One state whose actions share the noise: nature picks one distribution of it for all of them.
//
// Entry k of every row is what noise value k leads to, and all rows have the same p. Then
//     max over random policies pi of min over P of sum_a pi_a P z_a
// is the worst case of one row, the mixture of outcomes, inside a concave maximisation over policies: (P z_a) is its
// slope. Every P met on the way bounds the value from above by max over a of P z_a, and so do mixtures of them, the best
// of which is found by a matrix game. Where the worst case is smooth, Newton's method finds the policy. Where it has
// kinks, the game does: its policy is tried next, and its mixture is nature's answer.
#pragma once

#include "noise_work.hpp"
#include "nominal.hpp"
#include "projection.hpp"

namespace robustmdp {

// Whether the set has derivatives of its answer with respect to the outcomes.
template <class Set> constexpr bool is_smooth() {
    return requires(const Set& set, const Rows<double>& row, double* out) {
        set.sensitivity(row, Solved<double>{}, out);
    };
}

template <class Set> class SharedNoise {
public:
    using RowSet = Nominal;  // what a set keeps for each noise value belongs to no row
    static constexpr bool IS_PRICED = Set::PRICED;
    static constexpr int KINKS = is_smooth<Set>() ? 0 : 8;
    // Of the mixed row, at the state's first action; the policy; and those whose answers nature mixed.
    static constexpr int MEMORY = Set::MEMORY + 1 + KINKS;

    explicit SharedNoise(const Set& set) : set_(set) {}
    static Nominal rows() { return {}; }

    using Work = NoiseWork<Set::MEMORY, KINKS>;

    void recall(const StateRows& rows, const Model& model, const double* memory, Work& work) const {
        const double* kept = memory + rows.first_pair;
        for (int m = 0; m < Set::MEMORY; ++m) work.start[m] = kept[m * model.n_pairs];
        std::copy_n(kept + Set::MEMORY * model.n_pairs, rows.count, work.known.data());
        int& count = work.kink_count;
        for (count = 0; count < KINKS; ++count) {
            const double* policy = kept + (Set::MEMORY + 1 + count) * model.n_pairs;
            if (*policy != *policy) break;
            std::copy_n(policy, rows.count, work.kinks.data() + count * work.padded);
        }
    }

    void remember(const StateRows& rows, const Model& model, const Work& work, double* memory) const {
        double* kept = memory + rows.first_pair;
        for (int m = 0; m < Set::MEMORY; ++m) kept[m * model.n_pairs] = work.start[m];
        std::copy_n(work.share.data(), rows.count, kept + Set::MEMORY * model.n_pairs);
        for (int k = 0; k < KINKS; ++k) {
            double* policy = kept + (Set::MEMORY + 1 + k) * model.n_pairs;
            if (k < work.kink_count)
                std::copy_n(work.kinks.data() + k * work.padded, rows.count, policy);
            else
                *policy = NOT_A_NUMBER;
        }
    }

    // A policy's value, and nature's answer that it meets: that to one trial, or the game's mixture.
    static constexpr int MIXED = -1;
    struct Saddle {
        double value;
        Solved<double> solved;
        int cut;                // or MIXED
        bool is_closed = true;  // whether that answer gives no action more than the value
    };

    // The best policy against nature, in work.share.
    Saddle solve(const StateRows& rows, double level, Accuracy accuracy, Work& work) const {
        const double floor = rows.base(rows.best_minimum()), top = rows.mean(rows.best_mean());
        begin(rows, floor, work);
        const int best = rows.best_mean();
        const bool is_known = work.known[0] == work.known[0];
        for (int a = 0; a < rows.count; ++a) work.trial[a] = is_known ? work.known[a] : a == best;
        if (Set::CONTAINS_MODEL && (Set::room(level) == Room::NONE || !(top > floor))) {
            choose_action(rows, best, work);
            std::copy_n(work.row.data(), work.length, work.noise_of(0));
            work.kink_count = 0;
            return {top, without_room(mix(rows, work.share, work)), 0};
        }
        Saddle found = search(rows, level, accuracy, top - floor, work);
        // From the best policy again: answers to policies far from it mislead the game.
        for (int again = 0; again < 3 && accuracy == Accuracy::EXACT && !found.is_closed; ++again) {
            std::copy_n(work.share.data(), rows.count, work.trial.data());
            found = search(rows, level, accuracy, top - floor, work);
        }
        return found;
    }

    // Bounds of the state's value; nature's answer is left in work.answers and work.mean.
    Bounds<double> bound(const StateRows& rows, double level, const Saddle& at, Work& work) const {
        const double charge = answer(rows, level, at, work);
        double highest = -INFINITE;
        for (int a = 0; a < rows.count; ++a)
            highest = std::max(highest, rows.base(a) + work.mean[a] + mean_slack(rows.row(a), rows.terms(a)));
        return widen(rows, bound_policy(rows, level, at.solved, work), highest + charge, work);
    }

    // What the policy of work.share is worth, a dual value.
    double solve_given(const StateRows& rows, double level, Accuracy accuracy, Work& work) const {
        return reply_given(rows, level, accuracy, work).value;
    }

    // Bounds of that; nature's answer is left in work.answers and work.mean.
    Bounds<double> bound_given(const StateRows& rows, double level, Work& work) const {
        const Saddle at = reply_given(rows, level, Accuracy::EXACT, work);
        double upper = answer(rows, level, at, work);
        for (int a = 0; a < rows.count; ++a)
            upper += work.share[a] * (rows.base(a) + work.mean[a] + mean_slack(rows.row(a), rows.terms(a)));
        return widen(rows, bound_policy(rows, level, at.solved, work), upper, work);
    }

    // Nature's answer into work.answers and work.mean, in the set up to rounding: what it pays, at most.
    double answer(const StateRows& rows, double level, const Saddle& at, Work& work) const {
        double* chosen = work.noise_of(work.passes);
        if (at.cut == MIXED) {
            std::fill_n(chosen, work.length, 0.0);
            work.game.mixture([&](int cut, double share) {
                const double* noise = work.noise_of(cut);
                for (int64_t j = 0; j < work.length; ++j) chosen[j] = fused(share, noise[j], chosen[j]);
            });
        } else {
            std::copy_n(work.noise_of(at.cut), work.length, chosen);
        }
        const double cost = enter_set(rows, level, chosen, work);
        for (int a = 0; a < rows.count; ++a) {
            work.mean[a] = mean_of(rows.row(a), chosen, 1);
            std::copy_n(chosen, work.length, work.answers.data() + rows.offset(a));
        }
        return Set::PRICED && Set::room(level) == Room::SOME ? level * cost : 0.0;
    }

    void answer_given(const StateRows& rows, double level, Work& work) const {
        answer(rows, level, reply_given(rows, level, Accuracy::EXACT, work), work);
    }

    // What the last answer costs, once for all actions.
    double paid(const StateRows&, Work& work) const {
        const double cost = divergence_of(set_, summarise(work), work.answers.data(), 1);
        return cost < INFINITE ? cost : 0.0;  // at a price of 0
    }

private:
    static constexpr int MOST_SHORTENED = 3;     // times that one step is
    static constexpr double LARGEST_GAP = 1e-3;  // at which a step is trusted to lead to the policy

    // What does not change with the policy.
    void begin(const StateRows& rows, double floor, Work& work) const {
        const Rows<double> first = rows.row(0);
        work.length = rows.length(0);
        for (int64_t j = 0; j < work.length; ++j) work.row[j] = first.mass(j);
        std::fill(work.trial.begin(), work.trial.end(), 0.0);
        double lowest = INFINITE, highest = -INFINITE;
        for (int a = 0; a < rows.count; ++a) {
            const double best = rows.base(a) + rows.side_by_side(a / WIDTH).spread[a % WIDTH];
            work.is_useless[a] = best < floor;
            if (best >= floor) lowest = smaller(rows.base(a), lowest), highest = larger(best, highest);
        }
        work.lowest = lowest, work.size = larger(highest - lowest, 1e-290);
    }

    Rows<double> summarise(Work& work) const {
        Rows<double> row = make_rows<double>(work.row.data(), work.row.data() + work.length, work.length, 1);
        if constexpr (Set::COLUMNS > 0) row.columns = set_.column(0), row.column_size = set_.column(1) - set_.column(0);
        return row;
    }

    // The row of a policy's outcomes, less the mean of the actions' minima.
    Rows<double> mix(const StateRows& rows, const std::vector<double>& policy, Work& work) const {
        double* x = work.row.data() + work.length;
        for (int64_t j = 0; j < work.length; ++j) x[j] = 0.0;
        for (int g = 0; g < rows.groups; ++g) {
            Lanes share = broadcast<Lanes>(0.0);
            for (int l = 0; l < WIDTH && WIDTH * g + l < rows.count; ++l) share[l] = policy[WIDTH * g + l];
            if (!any(share > broadcast<Lanes>(0.0))) continue;
            const Rows<Lanes>& group = rows.side_by_side(g);
            for (int64_t j = 0; j < work.length; ++j) x[j] += sum(share * group.rise(j));
        }
        return summarise(work);
    }

    static double base_of(const StateRows& rows, const std::vector<double>& policy) {
        double total = 0.0;
        for (int a = 0; a < rows.count; ++a) total = fused(policy[a], rows.base(a), total);
        return total;
    }

    // What nature does about one policy.
    struct Reply {
        Solved<double> solved;
        double value;    // of the policy, a dual value
        double highest;  // what the best action earns under nature's answer, the price included
        double spread;   // of the mixed outcomes
    };

    Reply reply_to(const StateRows& rows, double level, Accuracy accuracy, int cut, const std::vector<double>& policy,
                   Work& work) const {
        const Rows<double> row = mix(rows, policy, work);
        const Solved<double> solved = solve_row(set_, row, level, work.start, Accuracy::EXACT);
        double* out = work.noise_of(cut);
        double cost = respond_row(set_, row, level, solved, out, 1);
        if (Set::PRICED && accuracy == Accuracy::EXACT) cost = divergence_of(set_, row, out, 1);
        if (solved.room == Room::SOME) set_.remember(row, solved, work.start);
        const double charge = Set::PRICED && solved.room == Room::SOME ? level * cost : 0.0;
        double* payoff = work.payoff_of(cut);
        double highest = -INFINITE;
        for (int g = 0; g < rows.groups; ++g) {
            const Rows<Lanes>& group = rows.side_by_side(g);
            Lanes even = broadcast<Lanes>(0.0), odd = even;
            int64_t j = 0;
            for (; j + 1 < work.length; j += 2) {
                even = fused(group.rise(j), out[j], even);
                odd = fused(group.rise(j + 1), out[j + 1], odd);
            }
            if (j < work.length) even = fused(group.rise(j), out[j], even);
            store(payoff + WIDTH * g, rows.bases(g) + (even + odd) + charge);
        }
        for (int a = 0; a < rows.count; ++a) highest = larger(payoff[a], highest);
        return {solved, base_of(rows, policy) + (row.lowest + solved.value), highest, row.spread};
    }

    Saddle reply_given(const StateRows& rows, double level, Accuracy accuracy, Work& work) const {
        begin(rows, rows.base(rows.best_minimum()), work);
        const Reply at = reply_to(rows, level, accuracy, 0, work.share, work);
        return {at.value, at.solved, 0};
    }

    // Where a search has come to.
    struct Search {
        Saddle best{-INFINITE, {}, 0};
        double upper = INFINITE, scale = 0.0, tolerance = 0.0;
        int centre = 0;                               // the answer to the best policy
        double gap = INFINITE;                        // of that policy to what the best action earns
        double last_gap = INFINITE, last_gain = 0.0;  // where Newton's method last went on from
        int shortened = MOST_SHORTENED, plays = 0;

        bool is_done() const { return upper - best.value <= tolerance; }
    };

    Saddle search(const StateRows& rows, double level, Accuracy accuracy, double size, Work& work) const {
        const double error = accuracy == Accuracy::FAST ? FAST_ERROR : 2.0 * rows.terms(0) * EPS;
        Search so_far;
        work.game.reset(rows.count);
        if (work.kink_count > 0) std::copy_n(work.kinks.data(), rows.count, work.trial.data());
        for (int cut = 0; cut < work.passes; ++cut) {
            const Reply at = reply_to(rows, level, accuracy, cut, work.trial, work);
            if (KINKS > 0) std::copy_n(work.trial.data(), rows.count, work.tried.data() + cut * work.padded);
            so_far.scale = larger(at.spread, size), so_far.tolerance = error * so_far.scale;
            const bool rose = take(rows, at, cut, so_far, work);
            if (so_far.is_done() || rows.count == 1) break;
            if (cut + 1 < work.kink_count) {
                std::copy_n(work.kinks.data() + (cut + 1) * work.padded, rows.count, work.trial.data());
                continue;
            }
            Next next = Next::GAME;
            if constexpr (is_smooth<Set>()) next = follow_slope(rows, accuracy, at, cut, rose, so_far, work);
            if (next == Next::GAME) next = play(rows, cut, so_far, work);
            if (next == Next::END) break;
        }
        find_kinks(rows, so_far.best, work);
        so_far.best.is_closed = so_far.upper - so_far.best.value <= 64.0 * so_far.tolerance;
        return so_far.best;
    }

    // Whether the trial is the best policy so far; among equals the one that comes closer to what actions earn is.
    static bool take(const StateRows& rows, const Reply& at, int cut, Search& so_far, Work& work) {
        Saddle& best = so_far.best;
        const double gap = at.highest - at.value;
        if (at.highest < so_far.upper) so_far.upper = at.highest, best.cut = cut;
        if (!(at.value > best.value || (gap < so_far.gap && at.value > best.value - 8.0 * EPS * so_far.scale)))
            return false;
        best.value = larger(at.value, best.value), best.solved = at.solved;
        so_far.gap = gap, so_far.centre = cut;
        std::copy_n(work.trial.data(), rows.count, work.share.data());
        return true;
    }

    enum class Next { TRIAL, GAME, END };

    // Newton's method. Steps that do not close the gap lead to a kink: the game is next then.
    Next follow_slope(const StateRows& rows, Accuracy accuracy, const Reply& at, int cut, bool rose, Search& so_far,
                      Work& work) const {
        const bool has_slope = at.solved.room == Room::SOME && 0.0 < at.solved.weight && at.solved.weight < INFINITE;
        double gain = NOT_A_NUMBER;
        if (rose && has_slope && so_far.gap < 0.5 * so_far.last_gap)
            gain = work.step.climb(set_, rows, summarise(work), at.solved, work.payoff_of(cut), at.value, work.trial,
                                   work.target);
        if (rose) so_far.last_gap = gain >= 0.0 ? so_far.gap : INFINITE;
        if (gain >= 0.0) {  // gains of a sequence that converges quadratically shrink faster than this
            const bool is_last = gain * smaller(root(gain / so_far.last_gain), 1.0) <= so_far.tolerance;
            if (accuracy == Accuracy::FAST && is_last && so_far.gap <= LARGEST_GAP * so_far.scale) {
                so_far.best.value += gain;
                work.share.swap(work.target);
                return Next::END;
            }
            so_far.last_gain = gain, so_far.shortened = 0;
            work.trial.swap(work.target);
            return Next::TRIAL;
        }
        if (rose || so_far.shortened >= MOST_SHORTENED) return Next::GAME;
        ++so_far.shortened;
        shorten(rows, work.payoff_of(so_far.centre), work.payoff_of(cut), work);
        return Next::TRIAL;
    }

    // The best mixture of nature's answers so far, and the policy that it meets, which is tried next.
    static Next play(const StateRows& rows, int cut, Search& so_far, Work& work) {
        while (work.game.added() <= cut) add_to_game(rows, work.game.added(), work);
        const double value = work.lowest + (work.game.solve() - 1.0) * work.size;
        const bool fell = value < so_far.upper - so_far.tolerance;
        if (value < so_far.upper) so_far.upper = value, so_far.best.cut = MIXED;
        if (so_far.is_done()) return Next::END;
        work.game.policy(work.target.data());
        if (std::equal(work.target.data(), work.target.data() + rows.count, work.trial.data())) return Next::END;
        work.trial.swap(work.target);
        // The game's policy moves too far while few of nature's answers are known: those to policies half-way help more.
        if (fell && so_far.plays > 0)
            for (int a = 0; a < rows.count; ++a) work.trial[a] = 0.5 * (work.trial[a] + work.share[a]);
        ++so_far.plays;
        return Next::TRIAL;
    }

    // The policies whose answers nature mixes, the greatest shares first.
    static void find_kinks(const StateRows& rows, const Saddle& best, Work& work) {
        work.kink_count = 0;
        if (KINKS == 0 || best.cut != MIXED) return;
        double shares[KINKS + 1];
        int cuts[KINKS + 1];
        work.game.mixture([&](int cut, double share) {
            int place = work.kink_count;
            for (; place > 0 && shares[place - 1] < share; --place)
                if (place < KINKS) shares[place] = shares[place - 1], cuts[place] = cuts[place - 1];
            if (place < KINKS) shares[place] = share, cuts[place] = cut;
            work.kink_count = std::min(work.kink_count + 1, KINKS);
        });
        for (int k = 0; k < work.kink_count; ++k)
            std::copy_n(work.tried.data() + cuts[k] * work.padded, rows.count, work.kinks.data() + k * work.padded);
    }

    // A useless action gets an entry below those of all others.
    static void add_to_game(const StateRows& rows, int cut, Work& work) {
        const double* payoff = work.payoff_of(cut);
        for (int a = 0; a < rows.count; ++a)
            work.entries[a] = work.is_useless[a] ? 0.5 : 1.0 + (payoff[a] - work.lowest) / work.size;
        work.game.add(work.entries.data());
    }

    // From a step's end back towards its start, to where the slope on the way is zero if it falls evenly.
    static void shorten(const StateRows& rows, const double* at_start, const double* at_end, Work& work) {
        double first = 0.0, last = 0.0;
        for (int a = 0; a < rows.count; ++a) {
            const double move = work.trial[a] - work.share[a];
            first += at_start[a] * move;
            last += at_end[a] * move;
        }
        double kept = first / (first - last);
        if (!(0.05 < kept && kept < 0.95)) kept = 0.5;
        for (int a = 0; a < rows.count; ++a) work.trial[a] = kept * work.trial[a] + (1.0 - kept) * work.share[a];
    }

    // A lower bound of the policy in work.share, whose row is solved.
    double bound_policy(const StateRows& rows, double level, const Solved<double>& solved, Work& work) const {
        const Rows<double> row = mix(rows, work.share, work);
        const double terms = rows.terms(0);
        double least = 0.0;
        if (solved.room == Room::SOME) least = set_.bounds(row, level, solved, terms).lower;
        if (solved.room == Room::NONE) least = row.mean_rise - mean_slack(row, terms);
        return base_of(rows, work.share) + (row.lowest + least);
    }

    // Back towards the model where the answer has left the set; what it costs, from above.
    double enter_set(const StateRows& rows, double level, double* out, Work& work) const {
        const Rows<double> row = summarise(work);
        double cost = 0.0;
        if constexpr (requires { set_.f(1.0); })
            cost = larger(divergence_of(set_, row, out, 1), 0.0);
        else if constexpr (requires { set_.distance(row, out, 1); })
            cost = set_.distance(row, out, 1);
        cost += 8.0 * EPS * ((rows.terms(0) + 16.0) * cost + root(cost));
        if (Set::PRICED || !(cost > level)) return cost;
        const double kept = level / cost;
        for (int64_t j = 0; j < work.length; ++j) out[j] = kept * out[j] + (1.0 - kept) * row.mass(j);
        return level;
    }

    // The rounding of what is mixed of all actions.
    Bounds<double> widen(const StateRows& rows, double lower, double upper, const Work& work) const {
        double size = magnitude(lower) + magnitude(upper);
        for (int a = 0; a < rows.count; ++a) {
            const double spread = rows.side_by_side(a / WIDTH).spread[a % WIDTH];
            size += work.share[a] * (magnitude(rows.base(a)) + spread);
        }
        const double rounding = 2.0 * (rows.count + 4) * EPS * size;
        return {lower - rounding, upper + rounding};
    }

    Set set_;
};

}  // namespace robustmdp
