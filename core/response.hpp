// Nature's answer: the worst-case distributions, what they cost, and their multipliers.
#pragma once

#include "sweep.hpp"

#include <tuple>

namespace robustmdp {

// out = p restricted to the minimisers of x.
inline void keep_minimisers(const Rows<double>& row, double* out, int64_t stride) {
    const double mass = lowest_mass(row);
    for (int64_t j = 0; j < row.length; ++j) out[j * stride] = row.outcome(j) == row.lowest ? row.mass(j) / mass : 0.0;
}

// D_f(out || p); 0 for sets that are made of something else.
template <class Set>
inline double divergence_of(const Set& set, const Rows<double>& row, const double* out, int64_t stride) {
    double total = 0.0;
    if constexpr (requires { set.f(1.0); })
        for (int64_t j = 0; j < row.length; ++j)
            if (row.mass(j) > 0.0) total += row.mass(j) * set.f(out[j * stride] / row.mass(j));
    return total;
}

// out = the distribution of one solved row; returns D.
template <class Set>
inline double respond_row(const Set& set, const Rows<double>& row, double level, const Solved<double>& solved,
                          double* out, int64_t stride) {
    if (solved.room == Room::SOME) return set.respond(row, level, solved, out, stride);
    if (solved.room == Room::ALL) {
        keep_minimisers(row, out, stride);
        return row.spread == 0.0 ? 0.0 : divergence_of(set, row, out, stride);
    }
    for (int64_t j = 0; j < row.length; ++j) out[j * stride] = row.mass(j);
    return 0.0;
}

// eta - min x
template <class Set> inline double multiplier_of(const Set& set, const Solved<double>& solved) {
    return solved.room == Room::SOME ? set.multiplier(solved) : solved.value;
}

// to[0:room] = the masses of a solved row whose mass is transported; those of states that it does not have follow its
// own entries, in `successors` as well. `places` holds 0 for each state, before and after.
template <class Set>
void respond_with_transport(const Set& set, const Rows<double>& row, double level, const Solved<double>& solved,
                            int64_t room, double* to, int32_t* successors, int32_t* places) {
    std::fill_n(to, room, 0.0);
    Set::find_places(successors, row.length, row.x, row.stride, places);
    int64_t used = row.length;
    set.move(row, level, solved, [&](int64_t entry, int32_t receiver, double mass) {
        if (receiver == STAYS) {
            to[entry] += mass;
            return;
        }
        int32_t& place = places[receiver];
        if (place == 0) {
            successors[used] = receiver;
            place = static_cast<int32_t>(++used);
        }
        to[place - 1] += mass;
    });
    for (int64_t j = 0; j < used; ++j) places[successors[j]] = 0;
    std::fill_n(successors + used, room - used, successors[0]);
}

// data[starts[i]:starts[i + 1]] = the worst-case row of pair i, successors its states unless null,
// penalty[i] = level * D where nature pays, eta[i] its multiplier.
template <class Set>
void respond_pairs(const Set& set, const Model& model, Levels levels, const double* outcome, PairList list,
                   const int64_t* starts, int64_t lo, int64_t hi, const double* memory, double* data, double* penalty,
                   double* eta, int32_t* successors) {
    Block scratch(length_with_added<Set>(model, model.longest_row));
    double* out = scratch.room();
    std::vector<int32_t> places(Set::TRANSPORTS ? model.n_columns + 1 : 0), own(model.longest_row);
    const auto write = [&](const Group& group, int first, const auto& rows, const auto& level, const auto& solved) {
        using T = std::remove_cvref_t<decltype(rows.lowest)>;
        T cost{};
        if constexpr (std::is_same_v<T, Lanes>)
            cost = set.respond(rows, level, solved, out, WIDTH);
        else if constexpr (!Set::TRANSPORTS)
            cost = respond_row(set, rows, level, solved, out, WIDTH);
        for (int l = 0; l < group.lanes<T>(); ++l) {
            const int64_t pair = group.pairs[first + l], place = group.place(first + l);
            const int64_t length = model.indptr[pair + 1] - model.indptr[pair];
            double* to = data + starts[place];
            int32_t* states = successors ? successors + starts[place] : own.data();
            if (successors || Set::TRANSPORTS) std::copy_n(model.indices + model.indptr[pair], length, states);
            if constexpr (Set::TRANSPORTS) {
                const int64_t room = successors ? starts[place + 1] - starts[place] : length;
                respond_with_transport(set, rows, level, solved, room, to, states, places.data());
            } else {
                for (int64_t j = 0; j < length; ++j) to[j] = out[j * WIDTH + l];
            }
            if constexpr (Set::ADDS) {
                int64_t from = length;
                for (int64_t k = 0; k < model.added_count; ++k) {
                    to[length + k] = model.has_successor(pair, model.added[k]) ? 0.0 : out[from++ * WIDTH + l];
                    if (successors) states[length + k] = model.added[k];
                }
            }
            const double price = lane(level, l);
            penalty[place] = Set::PRICED && solved.room == Room::SOME ? model.sign * price * lane(cost, l) : 0.0;
            eta[place] = model.sign * (lane(rows.lowest, l) + multiplier_of(set, pick_lane(solved, l)));
        }
    };
    Block block = make_block<Set>(model);
    solve_pairs(set, model, levels, outcome, list, lo, hi, memory, Accuracy::EXACT, block, write);
}

// From a distribution with D = cost > level back towards p, until it lies in the ball. D is convex on the way: a first
// chord leads into the ball, a second one nearer to its surface.
template <class Set>
    requires requires(const Set& set) { set.f(1.0); }
inline void enter_ball(const Set& set, const Rows<double>& row, double level, double cost, double* out) {
    double share = level / cost, reached = 0.0;
    for (int64_t j = 0; j < row.length; ++j)
        if (row.mass(j) > 0.0) reached += row.mass(j) * set.f(1.0 + share * (out[j] / row.mass(j) - 1.0));
    if (reached < level) share += (1.0 - 1e-6) * (1.0 - share) * (level - reached) / (cost - reached);
    for (int64_t j = 0; j < row.length; ++j) out[j] = share * out[j] + (1.0 - share) * row.mass(j);
}

// Value, gap, eta and weight of one distribution p, x (n,) with a level of its own; out = nature's answer, in the ball
// to the last bit.
template <class Set>
std::tuple<double, double, double, double> worst_case(const Set& set, const double* p, const double* x, int64_t n,
                                                      double level, double* out) {
    Rows<double> row = make_rows<double>(p, x, n, 1);
    if constexpr (Set::COLUMNS > 0) row.columns = set.column(0), row.column_size = set.column(1) - set.column(0);
    row.may_grow = Set::ADDS;
    TransportSpace transports;
    if constexpr (Set::TRANSPORTS) row.transport = set.find_hulls(x, n, transports);
    const bool is_constant = row.spread == 0.0 && !Set::ADDS;
    const Room room = is_constant && Set::room(level) != Room::NONE ? Room::ALL : Set::room(level);
    const Solved<double> solved =
        room != Room::SOME ? trivial(row, room) : set.solve_alone(row, level, Accuracy::EXACT);
    respond_row(set, row, level, solved, out, 1);
    double cost = solved.room == Room::NONE ? 0.0 : divergence_of(set, row, out, 1);
    if constexpr (!Set::PRICED && requires { set.f(1.0); })
        if (room == Room::SOME && cost > level) enter_ball(set, row, level, cost, out);
    double primal = 0.0;
    for (int64_t j = 0; j < n; ++j) primal += out[j] * row.rise(j);
    if (Set::PRICED && room == Room::SOME) primal += level * cost;
    const double weight = room == Room::ALL && Set::PRICED ? level : solved.weight;
    const double value = smaller(solved.value, primal);  // the dual is never above, but for rounding
    return {row.lowest + value, primal - value, row.lowest + multiplier_of(set, solved), weight};
}

}  // namespace robustmdp
