// One state whose actions share nature's budget, or its price.
//
// max over random policies of min over P of sum_a pi_a E_{P_a} z_a = min over P of max over a of E_{P_a} z_a: the value is
// the least u with K(u) = sum_a kappa_a(u) <= budget, or the least of u + price K(u). K is convex and falls with the slope
// -sum_a theta_a(u), so that Newton's steps for the budget,
//     u + (K(u) - budget)/sum_a theta_a(u),
// never pass the root: they are dual values, those of the policy pi_a = theta_a/sum theta.
#pragma once

#include "state_answers.hpp"

namespace robustmdp {

// Sums over the actions at one u.
struct Shares {
    double cost, theta, bend;
};

// The value of a state and the policy that earns it.
enum class Place { INSIDE, FLOOR, MODEL };

struct Saddle {
    double value;
    double u;  // where nature brings the actions down to
    Place place;
};

// A set P that projects rows makes one for states. `level` is the budget, or the price where PRICED.
template <class P, bool PRICED> class SharedBudget : public StateAnswers<P, PRICED> {
    using Answers = StateAnswers<P, PRICED>;
    using Answers::is_free, Answers::is_nominal, Answers::MOST_PASSES, Answers::set_, Answers::settle, Answers::stay;

public:
    using Answers::Answers;
    using typename Answers::Work;
    using RowSet = P;
    static constexpr bool IS_PRICED = PRICED;
    static constexpr int MEMORY = P::MEMORY + 1;  // of each row, and of the state: where u lay

    void recall(const StateRows& rows, const Model& model, const double* memory, Work& work) const {
        for (int m = 0; m < P::MEMORY; ++m)
            for (int a = 0; a < WIDTH * rows.groups; ++a)
                work.start[P::MEMORY * (a / WIDTH) + m][a % WIDTH] =
                    memory[m * model.n_pairs + rows.first_pair + std::min(a, rows.count - 1)];
        work.place = memory[P::MEMORY * model.n_pairs + rows.first_pair];
    }

    void remember(const StateRows& rows, const Model& model, const Work& work, double* memory) const {
        for (int m = 0; m < P::MEMORY; ++m)
            for (int a = 0; a < rows.count; ++a)
                memory[m * model.n_pairs + rows.first_pair + a] = work.start[P::MEMORY * (a / WIDTH) + m][a % WIDTH];
        memory[P::MEMORY * model.n_pairs + rows.first_pair] = work.place;
    }

    // The best policy against nature, in work.share, and the projections at u.
    Saddle solve(const StateRows& rows, double level, Accuracy accuracy, Work& work) const {
        const double top = rows.mean(rows.best_mean());
        if (is_nominal(level) || !(top > 0.0)) {
            choose_action(rows, rows.best_mean(), work);
            return {top, top, Place::MODEL};
        }
        if (is_free(level)) {
            settle_at_floor(rows, work);
            return {0.0, 0.0, Place::FLOOR};
        }
        const Saddle found =
            PRICED ? find_least(rows, level, top, accuracy, work) : find_root(rows, level, top, accuracy, work);
        work.place = found.u / top;
        return found;
    }

    // Bounds of the state's value; nature's answer is left in work.answers and work.mean.
    Bounds<double> bound(const StateRows& rows, double level, const Saddle& at, Work& work) const {
        const double lower = bound_policy(rows, level, at, work), cost = answer(rows, level, at, work);
        double upper = -INFINITE;
        for (int a = 0; a < rows.count; ++a)
            upper = std::max(upper, rows.base(a) + work.mean[a] + mean_slack(rows.row(a), rows.terms(a)));
        if (PRICED && !is_nominal(level)) upper += level * cost;
        const double rounding = 4.0 * (rows.count + 2) * EPS * (magnitude(lower) + magnitude(upper));
        return {lower - rounding, upper + rounding};
    }

    // Nature's answer to the projections at u, moved back into the budget, in work.answers and work.mean; what it costs,
    // from above.
    double answer(const StateRows& rows, double level, const Saddle& at, Work& work) const {
        for (int a = 0; a < rows.count; ++a) {
            const Rows<double> row = rows.row(a);
            const double target = at.u - rows.base(a);
            double* out = work.answers.data() + rows.offset(a);
            if (at.place == Place::MODEL || target >= rows.mean_rise(a)) {
                stay(row, out);
            } else if (target <= 0.0) {
                set_.respond_to_vertex(row, out);
            } else {
                set_.respond(row, pick_lane(work.at[a / WIDTH], a % WIDTH), out, 1);
            }
        }
        return settle(rows, level, work);
    }

private:
    // kappa of all rows at u.
    Shares project(const StateRows& rows, double u, Accuracy accuracy, Work& work) const {
        const Lanes zero = broadcast<Lanes>(0.0);
        Lanes cost = zero, theta = zero, bend = zero;
        for (int g = 0; g < rows.groups; ++g) {
            const Lanes target = u - rows.bases(g);
            LaneBits idle = target >= rows.mean_rises(g);
            for (int l = rows.count - WIDTH * g; l < WIDTH; ++l) idle[l] = -1;
            Projected<Lanes>& at = work.at[g];
            at = not_projected<Lanes>();
            if (!all(idle)) {
                if constexpr (!P::ALONE)
                    at = set_.project(rows.side_by_side(g), target, idle | (target <= zero), &work.start[P::MEMORY * g],
                                      accuracy, WARM_PASSES);
                finish(rows, g, target, idle, work);
                if constexpr (P::MEMORY > 0) {
                    Lanes renewed[P::MEMORY];
                    set_.remember(rows.side_by_side(g), at, renewed);
                    for (int m = 0; m < P::MEMORY; ++m)
                        work.start[P::MEMORY * g + m] =
                            select(idle | (target <= zero), work.start[P::MEMORY * g + m], renewed[m]);
                }
                at.cost = select(idle, zero, at.cost);
                at.theta = select(idle, zero, at.theta);
                at.bend = select(idle, zero, at.bend);
            }
            cost += at.cost, theta += at.theta, bend += at.bend;
        }
        return {sum(cost), sum(theta), sum(bend)};
    }

    // The rows that were not solved side by side.
    void finish(const StateRows& rows, int g, Lanes target, LaneBits idle, Work& work) const {
        Projected<Lanes>& at = work.at[g];
        for (int l = 0; l < WIDTH; ++l) {
            const bool at_vertex = target[l] <= 0.0;
            if (idle[l] || (!at_vertex && at.converged[l])) continue;
            const Rows<double> row = rows.row(WIDTH * g + l);
            const Projected<double> one =
                at_vertex ? set_.project_to_vertex(row) : set_.project_alone(row, target[l], work.scratch.data());
            at.cost[l] = one.cost, at.theta[l] = one.theta, at.bend[l] = one.bend;
            at.first[l] = one.first, at.second[l] = one.second, at.share[l] = one.share;
        }
    }

    // All rows at the floor, the policy that is best there.
    Shares settle_at_floor(const StateRows& rows, Work& work) const {
        choose_action(rows, rows.best_minimum(), work);
        return project(rows, 0.0, Accuracy::EXACT, work);
    }

    Saddle find_root(const StateRows& rows, double budget, double top, Accuracy accuracy, Work& work) const {
        const double tolerance = (accuracy == Accuracy::FAST ? FAST_ERROR : 4.0 * EPS) * top;
        double low = 0.0, high = top, u = first_place(work, top), value = 0.0, before = INFINITE;
        bool looked_at_floor = false;
        for (int pass = 0; pass < MOST_PASSES; ++pass) {
            if (u == 0.0) {
                if (settle_at_floor(rows, work).cost <= budget) return {0.0, 0.0, Place::FLOOR};
                looked_at_floor = true;
                u = between(low, high);
            }
            const Shares at = project(rows, u, accuracy, work);
            const double step = (at.cost - budget) / at.theta, next = u + step;
            value = larger(next, value);
            (step > 0.0 ? low : high) = u;
            // What is left is of second order in the step, where the bend is known.
            const bool close = P::IS_SMOOTH && accuracy == Accuracy::FAST &&
                               magnitude(step) * at.bend < 0.125 * at.theta &&
                               0.5 * step * step * at.bend <= tolerance * at.theta;
            // Near the root steps become smaller and smaller, until they are rounding.
            const bool rounds = magnitude(step) <= 1e-12 * u && magnitude(step) >= 0.5 * before;
            const bool exact = accuracy == Accuracy::FAST || magnitude(step) <= 4.0 * EPS * u;
            if (close || rounds || (exact && magnitude(step) <= tolerance) || high - low <= EPS * high) break;
            before = magnitude(step);
            const bool inside = low < next && next < high;
            u = inside ? next : low == 0.0 && !looked_at_floor ? 0.0 : between(low, high);
        }
        share_evenly(rows, work);
        return {value, u, Place::INSIDE};
    }

    static double first_place(const Work& work, double top) {
        const double u = top * work.place;
        return 0.0 <= u && u < top ? u : 0.5 * top;
    }

    // Roots can be as near to the floor as exp(-budget).
    static double between(double low, double high) { return low > 0.0 ? 0.5 * (low + high) : 0.0625 * high; }

    // One side of the least of h(u) = u + price K(u).
    struct Side {
        double u, h, slope;
    };

    Saddle find_least(const StateRows& rows, double price, double top, Accuracy accuracy, Work& work) const {
        const double tolerance = (accuracy == Accuracy::FAST ? FAST_ERROR : 4.0 * EPS) * top;
        Side low{0.0, INFINITE, -INFINITE}, high{top, top, 1.0};
        std::fill(work.above.begin(), work.above.end(), 0.0);
        std::fill(work.below.begin(), work.below.end(), 0.0);
        const double most_slope = accuracy == Accuracy::FAST ? 0.1 : 1e-6;
        double u = first_place(work, top), predicted = -INFINITE;
        bool looked_at_floor = false;
        for (int pass = 0; pass < MOST_PASSES; ++pass) {
            looked_at_floor |= u == 0.0;
            const Shares sum = project(rows, u, accuracy, work);
            const Side at{u, u + price * sum.cost, 1.0 - price * sum.theta};
            if (u == 0.0 && at.slope >= 0.0) {
                share_out(rows, [&](int a) { return price * work.theta(a); }, rows.best_minimum(), work);
                return {at.h, 0.0, Place::FLOOR};
            }
            // Two tangents that meet on h, or between neighbouring numbers, have found its least value.
            const bool is_known = predicted > -INFINITE && (u == low.u || u == high.u);
            if (at.h - predicted <= tolerance || is_known) {
                share_mixture(rows, price, rows.best_mean(), work);
                return {at.h, u, Place::INSIDE};
            }
            const double curvature = price * sum.bend, gain = 0.5 * at.slope * at.slope / curvature;
            const double error = accuracy == Accuracy::FAST ? 4.0 * gain * magnitude(at.slope) : gain;
            if (P::IS_SMOOTH && magnitude(at.slope) < most_slope && error <= 0.25 * tolerance) {
                // theta where the slope is 0
                const double move = -at.slope / curvature;
                share_out(
                    rows, [&](int a) { return price * larger(work.theta(a) - move * work.bend(a), 0.0); },
                    rows.best_minimum(), work);
                return {at.h - gain, u, Place::INSIDE};
            }
            std::vector<double>& side = at.slope < 0.0 ? work.below : work.above;
            for (int a = 0; a < rows.count; ++a) side[a] = work.theta(a);
            (at.slope < 0.0 ? low : high) = at;
            if (high.u - low.u <= 2.0 * EPS * high.u || high.u < 1e-290) break;
            const double newton = u - at.slope / curvature;
            if (P::IS_SMOOTH && low.u < newton && newton < high.u) {
                u = newton;
            } else if (low.slope > -INFINITE) {
                const double width = high.u - low.u;
                const double move = (high.h - high.slope * width - low.h) / (low.slope - high.slope);
                const bool inside = 0.0 < move && move < width;  // not where rounding is all that is left
                u = low.u + (inside ? move : 0.5 * width);
                predicted = inside ? low.h + low.slope * move : -INFINITE;
            } else {
                u = looked_at_floor ? between(low.u, high.u) : 0.0;
            }
        }
        // Nothing is left between both sides.
        share_mixture(rows, price, low.u == 0.0 ? rows.best_minimum() : rows.best_mean(), work);
        project(rows, high.u, accuracy, work);
        return {high.h, high.u, Place::INSIDE};
    }

    // The policy of both sides' theta, mixed so that they sum to 1/price; the left one's may be infinite at the floor.
    static void share_mixture(const StateRows& rows, double price, int rest, Work& work) {
        double below = 0.0, above = 0.0;
        for (int a = 0; a < rows.count; ++a) below += work.below[a], above += work.above[a];
        double left = 0.0;
        if (below > above && below < INFINITE)
            left = smaller(larger((1.0 / price - above) / (below - above), 0.0), 1.0);
        const auto mixed = [&](int a) {
            return price * ((left > 0.0 ? left * work.below[a] : 0.0) + (1.0 - left) * work.above[a]);
        };
        share_out(rows, mixed, rest, work);
    }

    static void share_evenly(const StateRows& rows, Work& work) {
        double total = 0.0;
        for (int a = 0; a < rows.count; ++a) total += work.theta(a);
        // Nearer to the floor than numbers resolve, only the action with that floor matters.
        if (!(total < INFINITE)) return choose_action(rows, rows.best_minimum(), work);
        for (int a = 0; a < rows.count; ++a) work.share[a] = work.theta(a) / total;
    }

    // The policy of these shares, whose rest goes to one action.
    template <class Part> static void share_out(const StateRows& rows, Part part, int rest, Work& work) {
        double total = 0.0;
        for (int a = 0; a < rows.count; ++a) total += part(a);
        const double scale = total > 1.0 ? 1.0 / total : 1.0;
        for (int a = 0; a < rows.count; ++a) work.share[a] = scale * part(a);
        work.share[rest] += larger(1.0 - scale * total, 0.0);
    }

    // sum_a pi_a price_a(weight/pi_a), less what the budget is worth: below the state's value for every policy pi.
    double bound_policy(const StateRows& rows, double level, const Saddle& at, const Work& work) const {
        if (at.place == Place::MODEL) {
            const int best = rows.best_mean();
            return rows.mean(best) - mean_slack(rows.row(best), rows.terms(best));
        }
        if (is_free(level) || (!PRICED && at.place == Place::FLOOR)) return 0.0;
        double weight = level, lower = 0.0, size = 0.0;
        if (!PRICED) {
            double total = 0.0;
            for (int a = 0; a < rows.count; ++a) total += work.theta(a);
            weight = 1.0 / total;
            lower = -weight * level;
            size = weight * level;
        }
        for (int a = 0; a < rows.count; ++a) {
            if (!(work.share[a] > 0.0)) continue;
            const double part =
                work.share[a] * (rows.base(a) + bound_price(rows, a, weight / work.share[a], at.u, work));
            lower += part;
            size += magnitude(part);
        }
        return lower - 2.0 * (rows.count + 4) * EPS * size;
    }

    double bound_price(const StateRows& rows, int a, double weight, double u, const Work& work) const {
        const Rows<double> row = rows.row(a);
        const double target = u - rows.base(a);
        if (row.spread == 0.0) return 0.0;
        Projected<double> at = pick_lane(work.at[a / WIDTH], a % WIDTH);
        const bool is_near = magnitude(at.theta * weight - 1.0) < 1e-6;  // so that its other multiplier serves
        if (!(0.0 < target && is_near)) return set_.lower_price(row, weight, rows.terms(a));
        at.theta = 1.0 / weight;
        return set_.lower(row, at, rows.terms(a));
    }
};

}  // namespace robustmdp
