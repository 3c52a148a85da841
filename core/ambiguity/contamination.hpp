// (1 - share) p + share Q for any Q: (1 - share) E x + share min x.
#pragma once

#include "solved.hpp"

namespace robustmdp {

struct Contamination : ClosedForm<Contamination> {
    static constexpr bool PRICED = false, ADDS = true;

    static Room room(double share) { return share == 0.0 ? Room::NONE : Room::SOME; }
    double multiplier(const Solved<double>&) const { return 0.0; }

    template <class T> Solved<T> solve(const Rows<T>& rows, T share, const T*, Accuracy, int) const {
        const T zero = broadcast<T>(0.0);
        return {(1.0 - share) * rows.mean_rise, zero, zero, broadcast<T>(1.0), zero == zero, Room::SOME};
    }

    // The share goes to the minimisers, in proportion to p, or to the first one where none has mass.
    template <class T> T respond(const Rows<T>& rows, T share, const Solved<T>&, double* out, int64_t stride) const {
        for (int64_t j = 0; j < rows.length; ++j) store(out + j * stride, (1.0 - share) * rows.mass(j));
        give_to_minimisers(rows, share, out, stride);
        return broadcast<T>(0.0);
    }
};

}  // namespace robustmdp
