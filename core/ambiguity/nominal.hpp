// No choice for nature: E x.
#pragma once

#include "solved.hpp"

namespace robustmdp {

struct Nominal : SetTraits {
    static constexpr bool ALONE = true;  // a mean needs no solving

    static Room room(double) { return Room::NONE; }
    double multiplier(const Solved<double>& solved) const { return solved.value; }

    Solved<double> solve_alone(const Rows<double>& row, double, Accuracy) const { return without_room(row); }

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
