// Moving mass at a cost per unit: inf over couplings of p and P with sum_ij c_ij <= radius of E_P x.
//
// At a price lam of a unit of cost, the mass of i goes to the receiver that attains min_j x_j + lam c_ij. The worst
// case is the maximum over lam >= 0 of
//   g(lam) = sum_i p_i min_j (x_j + lam c_ij) - lam radius,
// concave and piecewise linear. Only the lower convex hull of (c_ij, x_j) over j matters to i. Tangents from both sides
// meet above the maximum; they are moved inwards until they meet on g.
#pragma once

#include "../hulls.hpp"
#include "solved.hpp"

namespace robustmdp {

// The moves from source i, a state or a transition of the model: to states[indptr[i]:indptr[i+1]], by rising costs.
struct Moves {
    const int64_t* indptr;
    const int32_t* states;
    const double* costs;
    const uint8_t* receives;  // whether a state that the row does not have may get mass
    int64_t n_states;
    int64_t most;           // of a source
    bool by_transition;     // whether sources are transitions
    bool everywhere, adds;  // whether all states receive, or any
};

struct Wasserstein : SetTraits {
    static constexpr bool ALONE = true, TRANSPORTS = true;
    static constexpr int64_t ADDED_PER_SUCCESSOR = 2;         // two transports are mixed, see `move`
    static constexpr int64_t PASSES = 200, FAST_PASSES = 24;  // after so many, every second one halves the bracket
    Moves moves;
    std::vector<Hull> by_state;  // where a row has no outcomes of its own; the end is the last one

    static Room room(double) { return Room::SOME; }
    double multiplier(const Solved<double>&) const { return NOT_A_NUMBER; }

    bool shares_hulls(const Model& model) const {
        return moves.everywhere && !moves.by_transition && !model.rewards_on_successors;
    }

    // The hulls of states lo..hi at these outcomes, for all rows.
    void prepare(const Model& model, const double* outcome, int64_t lo, int64_t hi) {
        if (!shares_hulls(model)) return;
        for (int64_t i = lo; i < hi; ++i) {
            by_state[i].start(outcome[i]);
            for (int64_t at = moves.indptr[i]; at < moves.indptr[i + 1]; ++at)
                by_state[i].extend(moves.costs[at], outcome[moves.states[at]], moves.states[at]);
        }
    }

    // The hulls of a row of a model.
    void find_hulls(const Model& model, const double* outcome, int64_t pair, const double* x, int lane,
                    TransportSpace& space) const {
        const int32_t* successors = model.indices + model.indptr[pair];
        const int64_t length = model.indptr[pair + 1] - model.indptr[pair];
        space.make_room(model.longest_row, model.n_columns);
        Transport& row = space.rows[lane];
        if (shares_hulls(model)) {
            for (int64_t j = 0; j < length; ++j) {
                row.hulls[j] = &by_state[successors[j]];
                __builtin_prefetch(row.hulls[j]);
            }
        } else {
            find_own_hulls(model, outcome, pair, x, row, space.places.data());
        }
    }

    // The same for one row whose entry j is state j.
    Transport* find_hulls(const double* x, int64_t length, TransportSpace& space) const {
        space.make_room(length, length);
        Transport& row = space.rows[0];
        for (int64_t j = 0; j < length; ++j) space.places[j] = static_cast<int32_t>(j + 1);
        for (int64_t j = 0; j < length; ++j) {
            row.own[j].start(x[j]);
            extend(row.own[j], j, x, 1, space.places.data(), [](int32_t) { return INFINITE; });
            row.hulls[j] = &row.own[j];
        }
        return &row;
    }

    // Where mass arrives that is moved to a state: at the lowest of its entries.
    static void find_places(const int32_t* successors, int64_t length, const double* x, int64_t stride,
                            int32_t* places) {
        for (int64_t j = 0; j < length; ++j) {
            int32_t& place = places[successors[j]];
            if (place == 0 || x[j * stride] < x[(place - 1) * stride]) place = static_cast<int32_t>(j + 1);
        }
    }

    // `distance` and `weight` are the prices of the two tangents.
    Solved<double> solve_alone(const Rows<double>& row, double radius, Accuracy) const {
        row.transport->list_steps(row.p, row.x, row.length, row.stride, radius);
        Tangent left = touch(row, radius, 0.0);
        if (left.used <= radius) return {left.value, 0.0, 0.0, 1.0, true, Room::SOME};
        Tangent right = touch(row, radius, row.transport->highest_price);
        if (right.used >= radius) left = right;
        double value = larger(left.value, right.value);
        for (int64_t pass = 0; pass < PASSES; ++pass) {
            const double lam = pass < FAST_PASSES || pass % 2 ? meet(left, right).lam : 0.5 * (left.lam + right.lam);
            if (!(left.lam < lam && lam < right.lam)) break;
            const Tangent middle = touch(row, radius, lam);
            value = larger(value, middle.value);
            const bool ends = middle.used == left.used || middle.used == right.used;  // on both lines, if they met here
            if (middle.used >= radius)
                left = middle;
            else
                right = middle;
            if (middle.used == radius) right = middle;
            if (ends && pass < FAST_PASSES) break;
        }
        return {value, left.lam, right.lam, 1.0, true, Room::SOME};
    }

    Bounds<double> bounds(const Rows<double>& row, double radius, const Solved<double>& solved, double terms) const {
        const double span = row.lowest + row.spread - smaller(row.transport->lowest, row.lowest);
        // A vertex may lie above the hull by the rounding of each step that led to it; then all steps are summed.
        const auto steps = static_cast<double>(8 * moves.most + static_cast<int64_t>(row.transport->prices.size()));
        const double slack = (8.0 * terms + steps) * EPS * span;
        const double highest = row.mean_rise + mean_slack(row, terms);
        const Tangent left = touch(row, radius, solved.distance), right = touch(row, radius, solved.weight);
        if (solved.weight == 0.0) return {left.value - slack, smaller(left.value + slack, highest)};
        const double budget = 4.0 * terms * EPS * solved.weight * radius;
        return {solved.value - slack - budget, smaller(meet(left, right).value + slack + budget, highest)};
    }

    // Call emit(entry, receiver, mass) for all masses of the row: the mixture of the two tangents' transports that uses
    // the whole budget.
    template <class Emit>
    void move(const Rows<double>& row, double radius, const Solved<double>& solved, Emit emit) const {
        const Tangent left = touch(row, radius, solved.distance), right = touch(row, radius, solved.weight);
        const double share = left_share(left, right, radius);
        for (int64_t j = 0; j < row.length; ++j) {
            const double mass = row.mass(j), part = share * mass;
            const Hull& hull = *row.transport->hulls[j];
            const int32_t far = hull.best(left.lam, mass, radius).state,
                          near = hull.best(right.lam, mass, radius).state;
            emit(j, far, far == near ? mass : part);
            if (far != near) emit(j, near, mass - part);
        }
    }

    // Nature's answer in a row whose entry j is state j.
    double respond(const Rows<double>& row, double radius, const Solved<double>& solved, double* out,
                   int64_t stride) const {
        for (int64_t j = 0; j < row.length; ++j) out[j * stride] = 0.0;
        move(row, radius, solved, [&](int64_t entry, int32_t receiver, double mass) {
            out[(receiver == STAYS ? entry : receiver) * stride] += mass;
        });
        return 0.0;
    }

private:
    void find_own_hulls(const Model& model, const double* outcome, int64_t pair, const double* x, Transport& row,
                        int32_t* places) const {
        const int64_t first = model.indptr[pair], length = model.indptr[pair + 1] - first;
        const int32_t* successors = model.indices + first;
        const double reward = model.sign * model.added_reward(pair);
        find_places(successors, length, x, WIDTH, places);
        for (int64_t j = 0; j < length; ++j) {
            Hull& hull = row.own[j];
            hull.start(x[j * WIDTH]);
            if (successors[j] < moves.n_states)
                extend(hull, moves.by_transition ? first + j : successors[j], x, WIDTH, places,
                       [&](int32_t state) { return outcome[state] + reward; });
            row.hulls[j] = &hull;
        }
        for (int64_t j = 0; j < length; ++j) places[successors[j]] = 0;
    }

    template <class Outcome>
    void extend(Hull& hull, int64_t source, const double* x, int64_t stride, const int32_t* places,
                Outcome outcome) const {
        for (int64_t at = moves.indptr[source]; at < moves.indptr[source + 1]; ++at) {
            const int32_t state = moves.states[at], place = places[state];
            if (place)
                hull.extend(moves.costs[at], x[(place - 1) * stride], state);
            else if (moves.receives[state])
                hull.extend(moves.costs[at], outcome(state), state);
        }
    }

    static Tangent touch(const Rows<double>& row, double radius, double lam) {
        const Transport& steps = *row.transport;
        const Lanes price = broadcast<Lanes>(lam), zero{};
        Lanes costs{}, gains{};
        for (size_t k = 0; k < steps.prices.size(); k += WIDTH) {
            const Mask<Lanes> taken = load<Lanes>(steps.prices.data() + k) > price;
            costs += select(taken, load<Lanes>(steps.costs.data() + k), zero);
            gains += select(taken, load<Lanes>(steps.gains.data() + k), zero);
        }
        const double used = sum(costs);
        const double total = row.mean_rise - steps.free_gain - sum(gains);
        const double slope = used - radius;
        return {lam, lam > 0.0 ? total + lam * slope : total, used, slope};
    }
};

}  // namespace robustmdp
