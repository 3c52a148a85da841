// Nature's answers to the policy of one state whose actions share a budget or a price.
//
// At a price w of the budget, action a is answered at the price w/pi_a. The value of a policy pi is
//     sup over w >= 0 of sum_a pi_a price_a(w/pi_a) - w budget,
// and answers that cost too much are moved back towards the model, on the way to which their cost is convex.
#pragma once

#include "../state_rows.hpp"
#include "projection.hpp"

namespace robustmdp {

// A set P that projects rows answers for states. `level` is the budget, or the price where PRICED.
template <class P, bool PRICED> class StateAnswers {
public:
    StateAnswers() : set_() {}
    explicit StateAnswers(const P& set) : set_(set) {}
    const P& rows() const { return set_; }

    // Numbers of one state: what projections found, where they start, the policy, nature's answers.
    class Work {
    public:
        explicit Work(const Model& model) {
            const int64_t pairs = model.most_actions(), groups = (pairs + WIDTH - 1) / WIDTH;
            at.resize(groups);
            start.resize(groups * P::MEMORY);
            for (auto* numbers : {&below, &above, &share, &mean}) numbers->resize(groups * WIDTH);
            for (auto* numbers : {&answers, &others, &scratch}) numbers->resize(pairs * model.longest_row);
        }

        double theta(int a) const { return at[a / WIDTH].theta[a % WIDTH]; }
        double bend(int a) const { return at[a / WIDTH].bend[a % WIDTH]; }

        std::vector<Projected<Lanes>> at;
        std::vector<Lanes> start;
        std::vector<double> below, above;              // theta on the two sides of a kink
        std::vector<double> share;                     // the policy
        std::vector<double> answers, others, scratch;  // rows one after the other
        std::vector<double> mean;                      // of the answers, less the minimum
        double place = NOT_A_NUMBER;                   // u/top
    };

    // What the policy of work.share is worth, a dual value; nature's answer is left in work.answers.
    double solve_given(const StateRows& rows, double level, Accuracy accuracy, Work& work) const {
        return reply_to_policy(rows, level, accuracy, work).value;
    }

    // Bounds of that; nature's answer is left in work.answers and work.mean.
    Bounds<double> bound_given(const StateRows& rows, double level, Work& work) const {
        const Reply reply = reply_to_policy(rows, level, Accuracy::EXACT, work);
        double lower = 0.0, upper = 0.0, size = 0.0;
        if (!PRICED && 0.0 < reply.price && reply.price < INFINITE) lower = -reply.price * level, size = -lower;
        for (int a = 0; a < rows.count; ++a) {
            if (!(work.share[a] > 0.0)) continue;
            const Rows<double> row = rows.row(a);
            const double least = reply.price == INFINITE ? row.mean_rise - mean_slack(row, rows.terms(a))
                                 : reply.price == 0.0 || row.spread == 0.0
                                     ? 0.0
                                     : set_.lower_price(row, reply.price / work.share[a], rows.terms(a));
            lower += work.share[a] * (rows.base(a) + least);
            size += magnitude(work.share[a] * (rows.base(a) + least));
        }
        const double cost = settle(rows, level, work);
        for (int a = 0; a < rows.count; ++a)
            upper += work.share[a] * (rows.base(a) + work.mean[a] + mean_slack(rows.row(a), rows.terms(a)));
        if (PRICED && cost > 0.0) upper += level * cost;
        const double rounding = 4.0 * (rows.count + 4) * EPS * (size + magnitude(upper));
        return {lower - rounding, upper + rounding};
    }

    // The same without bounds.
    void answer_given(const StateRows& rows, double level, Work& work) const {
        reply_to_policy(rows, level, Accuracy::EXACT, work);
        settle(rows, level, work);
    }

    // What the answers of the last call cost.
    double paid(const StateRows& rows, const Work& work) const {
        double cost = 0.0;
        for (int a = 0; a < rows.count; ++a) cost += set_.measure(rows.row(a), work.answers.data() + rows.offset(a));
        return cost;
    }

protected:
    static constexpr int MOST_PASSES = 200;

    static bool is_nominal(double level) { return PRICED ? level == INFINITE : level == 0.0; }
    static bool is_free(double level) { return PRICED ? level < LEAST_WEIGHT : level == INFINITE; }

    // What nature does at a price of its budget.
    struct Reply {
        double price, value, cost;
    };

    // All actions at a price, each at price/pi_a.
    Reply reply_to_price(const StateRows& rows, double price, std::vector<double>& answers, const Work& work) const {
        Reply reply{price, 0.0, 0.0};
        for (int a = 0; a < rows.count; ++a) {
            const Rows<double> row = rows.row(a);
            double* out = answers.data() + rows.offset(a);
            double value = row.mean_rise;
            if (!(work.share[a] > 0.0) || price == INFINITE || row.spread == 0.0) {
                stay(row, out);
            } else if (price == 0.0) {
                value = 0.0;
                set_.respond_to_vertex(row, out);
                reply.cost += set_.project_to_vertex(row).cost;
            } else {
                const Priced priced = set_.answer_price(row, price / work.share[a], out);
                value = priced.value;
                reply.cost += priced.cost;
            }
            reply.value += work.share[a] * (rows.base(a) + value);
        }
        return reply;
    }

    Reply reply_to_policy(const StateRows& rows, double level, Accuracy accuracy, Work& work) const {
        if (is_nominal(level)) return reply_to_price(rows, INFINITE, work.answers, work);
        if (is_free(level)) return reply_to_price(rows, 0.0, work.answers, work);
        if constexpr (PRICED) return reply_to_price(rows, level, work.answers, work);
        return find_price(rows, level, accuracy, work);
    }

    // The dual of the budget, value(price) - price budget, is concave with the slope cost - budget. Its best price lies
    // between one at which the answers cost too much (`others`) and one at which they do not (`answers`): by the
    // intersection of the tangents, which ends at kinks, and of the secant of sqrt(cost) over 1/price, in turn.
    Reply find_price(const StateRows& rows, double budget, Accuracy accuracy, Work& work) const {
        Reply low = reply_to_price(rows, 0.0, work.answers, work);
        if (low.cost <= budget) return low;
        double size = 0.0;
        for (int a = 0; a < rows.count; ++a) size += work.share[a] * rows.mean_rise(a);
        work.others.swap(work.answers);
        Reply high = reply_to_price(rows, size / budget, work.answers, work);
        const double tolerance = (accuracy == Accuracy::FAST ? FAST_ERROR : 2.0 * EPS) * size;
        const auto dual = [&](const Reply& at) { return at.value - at.price * budget; };
        for (int pass = 0; pass < MOST_PASSES && high.cost < budget; ++pass) {
            const double width = high.price - low.price, fall = low.cost - budget, rise = budget - high.cost;
            const double meeting = (dual(high) - dual(low) + rise * width) / (fall + rise);  // from low.price
            const double gap = dual(low) + fall * meeting - larger(dual(low), dual(high));
            if ((low.cost < INFINITE && gap <= tolerance) || width <= 2.0 * EPS * high.price) break;
            double price = low.price + meeting;
            if (pass % 2 == 0 || !(low.cost < INFINITE)) {
                const double x = 1.0 / high.price, wanted = root(budget), reached = root(high.cost);
                price = low.price > 0.0
                            ? 1.0 / (x + (1.0 / low.price - x) * (wanted - reached) / (root(low.cost) - reached))
                            : high.price * reached / wanted;
            }
            if (!(low.price < price && price < high.price)) price = low.price + 0.5 * width;
            const Reply at = reply_to_price(rows, price, work.scratch, work);
            const bool dear = at.cost > budget;
            (dear ? low : high) = at;
            (dear ? work.others : work.answers).swap(work.scratch);
        }
        mix(rows, budget, low, high, work);
        Reply best = dual(low) > dual(high) ? low : high;
        best.value = dual(best);
        return best;
    }

    // The mixture of both answers that uses up the budget.
    static void mix(const StateRows& rows, double budget, const Reply& low, const Reply& high, Work& work) {
        const double spare = budget - high.cost;
        const double share = low.cost < INFINITE && spare > 0.0 ? spare / (low.cost - high.cost) : 0.0;
        for (int64_t j = 0; j < rows.offset(rows.count); ++j)
            work.answers[j] = share * work.others[j] + (1.0 - share) * work.answers[j];
    }

    static void stay(const Rows<double>& row, double* out) {
        for (int64_t j = 0; j < row.length; ++j) out[j] = row.mass(j);
    }

    // D(out, p) from above: a term's rounding is at most that of its ratio times the slope of f.
    double cost_of(const Rows<double>& row, const double* out, double terms) const {
        const double cost = larger(set_.measure(row, out), 0.0);
        return cost + 8.0 * EPS * ((terms + 16.0) * cost + root(cost));
    }

    // Answers in the budget; what they cost, from above. D is convex on the way back to the model, where a first step
    // leaves what costs more than numbers hold.
    double settle(const StateRows& rows, double level, Work& work) const {
        const bool is_bounded = !PRICED && !is_free(level) && !is_nominal(level);
        double cost = is_free(level) || is_nominal(level) ? 0.0 : total_cost(rows, work);
        for (double back = EPS; is_bounded && cost > 2.0 * level && back < 1.0; back *= 16.0) {
            move_back(rows, back, work);
            cost = total_cost(rows, work);
        }
        if (is_bounded && cost > level) {
            move_back(rows, 1.0 - level / cost, work);
            cost = level;
        }
        for (int a = 0; a < rows.count; ++a)
            work.mean[a] = mean_of(rows.row(a), work.answers.data() + rows.offset(a), 1);
        return cost;
    }

    double total_cost(const StateRows& rows, const Work& work) const {
        double cost = 0.0;
        for (int a = 0; a < rows.count; ++a)
            cost += cost_of(rows.row(a), work.answers.data() + rows.offset(a), rows.terms(a));
        return cost;
    }

    static void move_back(const StateRows& rows, double share, Work& work) {
        for (int a = 0; a < rows.count; ++a) {
            const Rows<double> row = rows.row(a);
            double* out = work.answers.data() + rows.offset(a);
            for (int64_t j = 0; j < row.length; ++j) out[j] = (1.0 - share) * out[j] + share * row.mass(j);
        }
    }

    P set_;
};

}  // namespace robustmdp
