// (1 - share) p + share Q for any Q: (1 - share) E x + share min x.
#pragma once

#include "solved.hpp"

namespace robustmdp {

struct Contamination {
    static constexpr int MEMORY = 0;
    static constexpr bool PRICED = false, ADDS = true;

    static Room room(double share) { return share == 0.0 ? Room::NONE : Room::SOME; }
    double vertex_slack(const Rows<double>&, double, double) const { return 0.0; }
    double multiplier(const Solved<double>&) const { return 0.0; }
    bool runs_side_by_side(const Rows<Lanes>&, Lanes) const { return true; }
    bool answers_side_by_side(const Rows<Lanes>&, const Solved<Lanes>&) const { return true; }

    template <class T> Solved<T> solve(const Rows<T>& rows, T share, const T*, Accuracy, int) const {
        const T zero = broadcast<T>(0.0);
        return {(1.0 - share) * rows.mean_rise, zero, zero, broadcast<T>(1.0), zero == zero, Room::SOME};
    }

    Solved<double> solve_alone(const Rows<double>& row, double share, Accuracy accuracy) const {
        return solve<double>(row, share, nullptr, accuracy, 1);
    }

    template <class T> void remember(const Rows<T>&, const Solved<T>&, T*) const {}

    template <class T> Bounds<T> bounds(const Rows<T>& rows, T, const Solved<T>& solved, T terms) const {
        const T slack = mean_slack(rows, terms);
        return within_trivial_bounds(rows, terms, solved.value - slack, solved.value + slack);
    }

    // The share goes to the minimisers, in proportion to p, or to the first one where none has mass.
    template <class T> T respond(const Rows<T>& rows, T share, const Solved<T>&, double* out, int64_t stride) const {
        for (int64_t j = 0; j < rows.length; ++j) store(out + j * stride, (1.0 - share) * rows.mass(j));
        give_to_minimisers(rows, share, out, stride);
        return broadcast<T>(0.0);
    }
};

}  // namespace robustmdp
