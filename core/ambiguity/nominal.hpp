// No choice for nature: E x.
#pragma once

#include "solved.hpp"

namespace robustmdp {

struct Nominal {
    static constexpr int MEMORY = 0;

    static Room room(double) { return Room::NONE; }
    static constexpr bool PRICED = false;
    double vertex_slack(const Rows<double>&, double, double) const { return 0.0; }
    double f(double) const { return 0.0; }
    double multiplier(const Solved<double>& solved) const { return solved.value; }
    bool runs_side_by_side(const Rows<Lanes>&, Lanes) const { return true; }
    bool answers_side_by_side(const Rows<Lanes>&, const Solved<Lanes>&) const { return true; }

    template <class T> Solved<T> solve(const Rows<T>& rows, T, const T*, Accuracy, int) const {
        const T zero = broadcast<T>(0.0);
        return {rows.mean_rise, zero, broadcast<T>(INFINITE), broadcast<T>(1.0), zero == zero, Room::NONE};
    }

    Solved<double> solve_alone(const Rows<double>& row, double, Accuracy) const { return without_room(row); }

    template <class T> void remember(const Rows<T>&, const Solved<T>&, T*) const {}

    template <class T> Bounds<T> bounds(const Rows<T>& rows, T, const Solved<T>&, T terms) const {
        const T slack = mean_slack(rows, terms);
        return {rows.mean_rise - slack, rows.mean_rise + slack};
    }

    template <class T> T respond(const Rows<T>& rows, T, const Solved<T>&, double* out, int64_t stride) const {
        for (int64_t j = 0; j < rows.length; ++j) store(out + j * stride, rows.mass(j));
        return broadcast<T>(0.0);
    }
};

}  // namespace robustmdp
