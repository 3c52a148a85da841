// Projections of rows: kappa(t), the least budget with which nature brings E(x - min x) down to t. The actions of a state
// share one budget through it.
//
// kappa(t) = sup over theta >= 0 of theta (price(1/theta) - t), price(w) = inf over P of E_P(x - min x) + w D(P, p):
// convex and falling in t with the slope -theta. Each set of this header also answers a price and bounds it.
#pragma once

#include "../response.hpp"
#include "constrained.hpp"
#include "euclidean.hpp"
#include "total_variation.hpp"
#include "weighted_l1.hpp"

namespace robustmdp {

// kappa at one t, with what `respond` needs to know of nature's answer there.
template <class T> struct Projected {
    T cost;   // kappa
    T theta;  // -dkappa/dt
    T bend;   // d^2 kappa/dt^2, 0 where it is piecewise linear
    T first, second, share;
    Mask<T> converged;
};

inline Projected<double> pick_lane(const Projected<Lanes>& at, int l) {
    return {at.cost[l], at.theta[l], at.bend[l], at.first[l], at.second[l], at.share[l], at.converged[l] != 0};
}

template <class T> inline Projected<T> not_projected() {
    const T zero = broadcast<T>(0.0);
    return {zero, zero, zero, zero, zero, zero, Mask<T>{}};
}

// What nature does at a price.
struct Priced {
    double value;  // a dual value of E_P(x - min x) + weight * cost
    double cost;
};

inline double mean_of(const Rows<double>& row, const double* p, int64_t stride) {
    double total = 0.0;
    for (int64_t j = 0; j < row.length; ++j) total += p[j * stride] * row.rise(j);
    return total;
}

// The smallest outcome above min x, less min x.
inline double second_rise(const Rows<double>& row) {
    double least = INFINITE;
    for (int64_t j = 0; j < row.length; ++j)
        if (const double d = row.rise(j); d > 0.0 && row.mass(j) > 0.0) least = smaller(d, least);
    return least;
}

// Smooth divergences: both multipliers by Newton's method, E f*' = 1 and E f*' (x - min x) = t.
template <class D> struct SmoothProjection : SetTraits {
    static constexpr int MEMORY = 2;  // theta in units of 1/spread, and the shift
    static constexpr bool IS_SMOOTH = true;

    Penalized<D> penalized;

    explicit SmoothProjection(const D& divergence) : penalized{divergence} {}
    double measure(const Rows<double>& row, const double* out) const { return divergence_of(penalized, row, out, 1); }
    void respond_to_vertex(const Rows<double>& row, double* out) const { keep_minimisers(row, out, 1); }

    // Rows that are `idle` need no answer.
    template <class T>
    Projected<T> project(const Rows<T>& rows, T target, Mask<T> idle, const T* start, Accuracy accuracy,
                         int limit) const {
        if constexpr (D::QUADRATIC)
            return project_quadratic(rows, target, idle, start, accuracy, limit);
        else
            return project_side_by_side(rows, target, idle, start, accuracy, limit);
    }

    template <class T> void remember(const Rows<T>& rows, const Projected<T>& at, T* memory) const {
        memory[0] = at.theta * rows.spread;
        memory[1] = D::QUADRATIC ? at.share / rows.spread : at.first;
    }

    // Newton's method on E_P = t in theta, around the price's solver, inside a bracket.
    Projected<double> project_alone(const Rows<double>& row, double target, double* scratch) const {
        double low = 0.0, high = INFINITE, theta = 1.0 / row.spread;
        Projected<double> best = not_projected<double>();
        for (int step = 0; step < 300; ++step) {
            const Solved<double> at = penalized.solve_alone(row, 1.0 / theta, Accuracy::EXACT);
            const Slopes<double> sum = slopes_at(row, theta, at.base, at.distance * theta);
            penalized.respond(row, 1.0 / theta, at, scratch, 1);  // whose mass is 1 where f*' is too steep for it
            const double miss = mean_of(row, scratch, 1) - target;
            const double determinant = sum.whole * sum.twice - sum.once * sum.once;
            const double bend = sum.whole / determinant, cost = theta * (at.value - target);
            if (cost >= best.cost || !best.converged)
                best = {larger(cost, 0.0), theta, bend, at.distance * theta, at.base, 0.0, true};
            if (magnitude(miss) <= 4.0 * EPS * row.spread || (high < INFINITE && high - low <= EPS * high)) break;
            (miss > 0.0 ? low : high) = theta;
            double next = theta + miss * bend;
            if (!(low < next && next < high) || step > 100)
                next = high == INFINITE ? 8.0 * theta : low > 0.0 ? root(low) * root(high) : 0.125 * high;
            next = smaller(next, 64.0 * theta);
            if (next * row.spread > 1e200) break;
            theta = next;
        }
        return best;
    }

    // At t = 0: all mass on the minimisers; theta there is f'(1/m) - f'(0) per unit of the next outcome.
    Projected<double> project_to_vertex(const Rows<double>& row) const {
        Projected<double> at = not_projected<double>();
        const double mass = lowest_mass(row);
        at.cost = penalized.largest_divergence(mass);
        const double k = penalized.divergence.k, slope_at_zero = k > 1.0 ? -1.0 / (k - 1.0) : -INFINITE;
        at.theta = (penalized.divergence.largest_y(mass) - slope_at_zero) / second_rise(row);
        at.converged = true;
        return at;
    }

    template <class T> T respond(const Rows<T>& rows, const Projected<T>& at, double* out, int64_t stride) const {
        return penalized.respond(rows, 1.0 / at.theta, solved(at), out, stride);
    }

    // A certified lower bound of the price at weight 1/theta, for which the shift need not be the best one.
    template <class T> T lower(const Rows<T>& rows, const Projected<T>& at, T terms) const {
        return penalized.bounds(rows, 1.0 / at.theta, solved(at), terms).lower;
    }

    Priced answer_price(const Rows<double>& row, double weight, double* out) const {
        const Solved<double> at = penalized.solve_alone(row, weight, Accuracy::EXACT);
        if (at.room != Room::SOME) keep_minimisers(row, out, 1);
        const double cost = at.room == Room::SOME ? penalized.respond(row, weight, at, out, 1)
                                                  : penalized.largest_divergence(lowest_mass(row));
        return {at.value, cost};
    }

    double lower_price(const Rows<double>& row, double weight, double terms) const {
        const Solved<double> at = penalized.solve_alone(row, weight, Accuracy::EXACT);
        return at.room == Room::SOME ? penalized.bounds(row, weight, at, terms).lower : 0.0;
    }

private:
    template <class T> struct Slopes {
        T miss, mean;          // E f*' - 1, E f*' d
        T whole, once, twice;  // E f*'', E f*'' d, E f*'' d^2
        T excess;              // E(f* - y)
    };

    template <class F, class T> static Slopes<T> add_up(const F& f, const Rows<T>& rows, T theta, T base, T shift) {
        const T zero = broadcast<T>(0.0);
        Slopes<T> sum{zero, zero, zero, zero, zero, zero};
        for (int64_t j = 0; j < rows.length; ++j) {
            const T p = rows.mass(j), d = rows.rise(j);
            const Tilt<T> tilt = f.at(base, fused(d, theta, shift));
            const T curvature = p * tilt.curvature, once = curvature * d;
            sum.miss = fused(p, tilt.growth, sum.miss);
            sum.mean = fused(p * tilt.slope, d, sum.mean);
            sum.whole += curvature;
            sum.once += once;
            sum.twice = fused(once, d, sum.twice);
            sum.excess = fused(p, tilt.excess, sum.excess);
        }
        return sum;
    }

    template <class T> Slopes<T> slopes_at(const Rows<T>& rows, T theta, T base, T shift) const {
        return penalized.runs_near(rows, 1.0 / theta) ? add_up(penalized.divergence.near, rows, theta, base, shift)
                                                      : add_up(penalized.divergence, rows, theta, base, shift);
    }

    template <class T> static Solved<T> solved(const Projected<T>& at) {
        return {broadcast<T>(0.0), at.first / at.theta, 1.0 / at.theta, at.second, at.converged, Room::SOME};
    }

    // From near the answer; rows that are not solved within `limit` passes are solved alone.
    template <class T>
    Projected<T> project_side_by_side(const Rows<T>& rows, T target, Mask<T> idle, const T* start, Accuracy accuracy,
                                      int limit) const {
        const D& divergence = penalized.divergence;
        const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0);
        T theta = start[0] / rows.spread, shift = start[1];
        const Mask<T> known = (theta > zero) & (theta * rows.spread < broadcast<T>(1e12)) &
                              (magnitude(shift) < broadcast<T>(INFINITE)) & negate(idle);
        Projected<T> at = not_projected<T>();
        at.converged = idle;
        if (!any(known)) return at;
        const T base = select(divergence.near_edge < 2.0 * rows.spread * theta, zero, one);
        const Mask<T> near = rows.spread * theta <= broadcast<T>(0.5 * divergence.reach);
        const bool is_near = all(near | negate(known));
        Mask<T> done{}, usable = known & (is_near ? near | negate(near) : negate(near));
        for (int pass = 0; pass < limit && !all(done | negate(usable)); ++pass) {
            const Slopes<T> sum = is_near ? add_up(divergence.near, rows, theta, base, shift)
                                          : add_up(divergence, rows, theta, base, shift);
            const T miss = sum.mean - target, determinant = sum.whole * sum.twice - sum.once * sum.once;
            const T further = (sum.twice * sum.miss - sum.once * miss) / determinant;
            const T steeper = (sum.whole * miss - sum.once * sum.miss) / determinant;
            const T gain = 0.5 * (sum.miss * further + miss * steeper);
            const T relative = larger(magnitude(sum.miss), magnitude(steeper) / theta);
            const Mask<T> sane = (determinant > zero) & (relative < broadcast<T>(0.025)) & (gain >= zero);
            const T cost = theta * (rows.mean_rise - target) - sum.excess;
            const T scale = theta * rows.spread;
            const Mask<T> good = accuracy == Accuracy::EXACT
                                     ? sane & (gain <= 1e-18 * scale) & (relative <= broadcast<T>(1e-13))
                                     : sane & (4.0 * gain * relative <= FAST_ERROR * scale);
            const Mask<T> finished = good & negate(done);
            at.cost = select(finished, larger(cost + gain, zero), at.cost);
            at.bend = select(finished, sum.whole / determinant, at.bend);
            done |= good;
            // theta never falls or grows by more than a factor of 4, nor the shift's distance from its limit.
            T share = one / larger(one, larger(-steeper, 0.3 * steeper) * (4.0 / 3.0) / theta);
            const T room = select(base == one, shift + broadcast<T>(divergence.top), shift);
            share = smaller(share, one / larger(one, -further * (4.0 / 3.0) / room));
            // A finished row takes its last step, too: its answer and its bounds are those of the better multipliers.
            theta = select(done & negate(finished), theta, theta + share * steeper);
            shift = select(done & negate(finished), shift, shift + share * further);
        }
        at.theta = theta, at.first = shift, at.second = base;
        done &= usable & (select(base == one, shift + divergence.top, shift) > zero);
        at.converged |= done;
        return at;
    }

    // P = p (tau - d)_+/c, c = E (tau - d)_+: between two outcomes tau has a closed form, E (tau - d)_+ (d - t) = 0. That
    // is convex in tau where it rises, so that steps from above its root stay there.
    template <class T>
    Projected<T> project_quadratic(const Rows<T>& rows, T target, Mask<T> idle, const T* start, Accuracy accuracy,
                                   int limit) const {
        const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0), above_all = 2.0 * rows.spread;
        T tau = start[1] * rows.spread;
        tau = select(tau > target, tau, above_all);  // also where it is NaN
        Projected<T> at = not_projected<T>();
        at.converged = idle;
        T mass = zero, once = zero, twice = zero;
        for (int pass = 0; pass < limit && !all(at.converged); ++pass) {
            T clearance = broadcast<T>(INFINITE), m0 = zero, m1 = zero, m2 = zero;
            for (int64_t j = 0; j < rows.length; ++j) {
                const T d = rows.rise(j), room = tau - d, p = select(room > zero, rows.mass(j), zero), first = p * d;
                clearance = smaller(magnitude(room), clearance);
                m0 += p;
                m1 += first;
                m2 = fused(first, d, m2);
            }
            const T slope = m1 - target * m0, next = (m2 - target * m1) / slope;
            const Mask<T> rises = slope > zero, stays = (tau > rows.spread) & (next > rows.spread);
            const Mask<T> found = rises & ((magnitude(next - tau) < clearance) | stays) & negate(at.converged);
            mass = select(found, m0, mass), once = select(found, m1, once), twice = select(found, m2, twice);
            tau = select(at.converged, tau, select(rises, next, above_all));
            at.converged |= found;
        }
        const T slope = once - target * mass, c = mass * tau - once, centre = tau - c;
        T squares = fused(mass * centre, centre, fused(-2.0 * centre, once, twice)) + (one - mass) * c * c;
        if (accuracy == Accuracy::EXACT) {  // the same without cancellation
            squares = zero;
            for (int64_t j = 0; j < rows.length; ++j) {
                const T d = rows.rise(j), growth = select(d < tau, centre - d, -c);
                squares = fused(rows.mass(j) * growth, growth, squares);
            }
        }
        at.theta = one / c;
        at.cost = 0.5 * larger(squares, zero) * at.theta * at.theta;
        at.bend = at.theta * at.theta * mass * (mass * twice - once * once) / (slope * slope);
        at.first = one - tau * at.theta;
        at.second = one;
        at.share = tau;
        at.converged &= idle | (c > zero);
        return at;
    }
};

// Total variation: mass moves from the largest outcomes to the smallest until the mean has come down to t. `first` is the
// outcome at which it stops, less min x, and `share` what moves of it.
struct VariationProjection : SetTraits {
    static constexpr int MEMORY = 1;  // the place in the row of that outcome
    static constexpr bool IS_SMOOTH = false;

    VariationProjection() = default;
    explicit VariationProjection(const TotalVariation&) {}

    double measure(const Rows<double>& row, const double* out) const {
        return divergence_of(PenalizedTotalVariation{}, row, out, 1);
    }
    void respond_to_vertex(const Rows<double>& row, double* out) const { keep_minimisers(row, out, 1); }

    template <class T>
    Projected<T> project(const Rows<T>& rows, T target, Mask<T> idle, const T* start, Accuracy, int limit) const {
        T place = *start, ceiling = rise_at(rows, place);
        Projected<T> at = not_projected<T>();
        at.converged = idle;
        for (int pass = 0; pass < limit && !all(at.converged); ++pass) {
            const Look<T> look = look_at(rows, ceiling);
            const Mask<T> too_low = look.upto<target, too_high = look.below> target;
            const Mask<T> good = negate(too_low | too_high) & (look.upto > look.below);
            take(look, target, ceiling, place, good & negate(at.converged), at);
            at.converged |= good;
            place = select(at.converged, place, select(too_low, look.up_place, look.down_place));
            ceiling = select(at.converged, ceiling, select(too_low, look.up, look.down));
        }
        return at;
    }

    template <class T> void remember(const Rows<T>&, const Projected<T>& at, T* memory) const { *memory = at.second; }

    // By bisection over the outcomes.
    Projected<double> project_alone(const Rows<double>& row, double target, double*) const {
        Projected<double> at = not_projected<double>();
        double low = 0.0, high = INFINITE, ceiling = middle_rise(row, low, high);
        for (int64_t pass = 0; pass < 2 * row.length + 2; ++pass) {
            const Look<double> look = look_at(row, ceiling);
            take(look, target, ceiling, -1.0, true, at);
            if (look.upto < target)
                low = ceiling;
            else if (look.below > target)
                high = ceiling;
            else
                break;
            const double next = middle_rise(row, low, high);
            if (!(low < next && next < high)) break;
            ceiling = next;
        }
        at.converged = true;
        return at;
    }

    Projected<double> project_to_vertex(const Rows<double>& row) const {
        Projected<double> at = not_projected<double>();
        at.cost = larger(1.0 - lowest_mass(row), 0.0);
        at.theta = 1.0 / second_rise(row);
        at.converged = true;
        return at;
    }

    template <class T> T respond(const Rows<T>& rows, const Projected<T>& at, double* out, int64_t stride) const {
        return move_mass(rows, at.first, at.share, out, stride);
    }

    template <class T> T lower(const Rows<T>& rows, const Projected<T>& at, T terms) const {
        const T value = PenalizedTotalVariation{}.solve<T>(rows, 1.0 / at.theta, nullptr, Accuracy::EXACT, 1).value;
        return larger(value - mean_slack(rows, terms), broadcast<T>(0.0));
    }

    Priced answer_price(const Rows<double>& row, double weight, double* out) const {
        const double cost = move_mass(row, weight, 0.0, out, 1);
        return {PenalizedTotalVariation{}.solve_alone(row, weight, Accuracy::EXACT).value, cost};
    }

    double lower_price(const Rows<double>& row, double weight, double terms) const {
        const double value = PenalizedTotalVariation{}.solve_alone(row, weight, Accuracy::EXACT).value;
        return larger(value - mean_slack(row, terms), 0.0);
    }

private:
    template <class T> struct Look : Neighbours<T> {
        T above, from;  // P(d > ceiling), P(d >= ceiling)
        T below, upto;  // E d of what is below the ceiling, and of what is not above it
    };

    template <class T> static Look<T> look_at(const Rows<T>& rows, T ceiling) {
        const T zero = broadcast<T>(0.0);
        Look<T> at{{broadcast<T>(INFINITE), zero, zero, zero}, zero, zero, zero, zero};
        for (int64_t j = 0; j < rows.length; ++j) {
            const T p = rows.mass(j), d = rows.rise(j), part = p * d;
            const Mask<T> over = d > ceiling, under = d < ceiling;
            at.above += select(over, p, zero);
            at.from += select(under, zero, p);
            at.below += select(under, part, zero);
            at.upto += select(over, zero, part);
            at.add(j, d, over, under);
        }
        return at;
    }

    template <class T>
    static void take(const Look<T>& look, T target, T ceiling, T place, Mask<T> mask, Projected<T>& at) {
        const T zero = broadcast<T>(0.0), equal = look.from - look.above;
        const T part = smaller(larger((look.upto - target) / ceiling, zero), equal);
        at.cost = select(mask, look.above + part, at.cost);
        at.theta = select(mask, 1.0 / ceiling, at.theta);
        at.first = select(mask, ceiling, at.first);
        at.second = select(mask, place, at.second);
        at.share = select(mask, select(equal > zero, part / equal, zero), at.share);
    }
};

// Balls whose rows are solved one by one: the worst case V(radius) is convex and falls, so that Newton's method on
// V(radius) = t rises from 0 to kappa(t). `first` is the radius.
template <class Ball> struct BallProjection : SetTraits {
    static constexpr int COLUMNS = Ball::COLUMNS;
    static constexpr bool ALONE = true, IS_SMOOTH = false;

    Ball ball;

    explicit BallProjection(const Ball& ball = {}) : ball(ball) {}
    const double* column(int k) const { return ball.column(k); }
    size_t column_length() const { return ball.column_length(); }

    double measure(const Rows<double>& row, const double* out) const { return ball.distance(row, out, 1); }
    void respond_to_vertex(const Rows<double>& row, double* out) const { respond(row, project_to_vertex(row), out, 1); }

    Projected<double> project_alone(const Rows<double>& row, double target, double*) const {
        Projected<double> at = not_projected<double>();
        at.converged = true;
        double value = row.mean_rise;
        Solved<double> solved{};
        for (int64_t pass = 0; pass < 4 * row.length + 40; ++pass) {
            const double slope = ball.steepness(row, at.cost, solved);
            if (!(slope > 0.0)) break;
            at.theta = 1.0 / slope;
            const double step = (value - target) * at.theta;
            if (!(step > 2.0 * EPS * at.cost)) break;
            at.cost += step;
            solved = ball.solve_alone(row, at.cost, Accuracy::EXACT);
            value = solved.value;
        }
        at.first = at.cost;
        return at;
    }

    Projected<double> project_to_vertex(const Rows<double>& row) const {
        Projected<double> at = not_projected<double>();
        at.cost = at.first = ball.cost_of_vertex(row);
        at.theta = INFINITE;
        at.converged = true;
        return at;
    }

    double respond(const Rows<double>& row, const Projected<double>& at, double* out, int64_t stride) const {
        const Solved<double> solved = ball.solve_alone(row, at.first, Accuracy::EXACT);
        ball.respond(row, at.first, solved, out, stride);
        return at.first;
    }

    double lower(const Rows<double>& row, const Projected<double>& at, double terms) const {
        return lower_price(row, 1.0 / at.theta, terms);
    }

    Priced answer_price(const Rows<double>& row, double weight, double* out) const {
        const double cost = ball.respond_to_price(row, weight, out, 1);
        return {mean_of(row, out, 1) + weight * cost, cost};
    }

    // E_P d + w |P - p| >= min over j of (d_j + w q_j) - w q p for every q whose dual norm is at most 1.
    double lower_price(const Rows<double>& row, double weight, double terms) const {
        return larger(ball.lower_price(row, weight, terms), 0.0);
    }
};

}  // namespace robustmdp
