// Sets that hand out mass: beside what is fixed, successor j takes at most room_j, the smallest outcomes first.
//
// With d = x - min x and `rest` the mass to hand out, the worst case is
//   E_fixed d + sup over tau of rest tau - sum_j room_j (tau - d_j)_+,
// concave in tau and best at the outcome at which the mass runs out.
#pragma once

#include "solved.hpp"

namespace robustmdp {

// What nature cannot move at a successor, and what it may add there.
template <class T> struct Masses {
    T fixed, room;
};

struct FillingTraits : SetTraits {
    static constexpr int MEMORY = 1;      // the place in the row of the outcome at which the mass runs out
    static constexpr bool MOVES = false;  // whether what is not handed out goes to the minimisers
    template <class T> static T total(T) { return broadcast<T>(1.0); }  // the mass
    template <class T> static T unit(T) { return broadcast<T>(1.0); }   // in which it is measured
};

// lower <= P <= upper, for each transition.
struct IntervalMasses : FillingTraits {
    static constexpr int COLUMNS = 2;
    static constexpr bool CONTAINS_MODEL = false, USES_MODEL = false;
    const double *lower = nullptr, *upper = nullptr;

    static Room room(double) { return Room::SOME; }
    const double* column(int k) const { return k == 0 ? lower : upper; }
    template <class T> Masses<T> at(const Rows<T>& rows, int64_t j, T) const {
        const T low = rows.column(0, j);
        return {low, rows.column(1, j) - low};
    }
};

// |P - p| <= radius for each successor.
struct LargestChangeMasses : FillingTraits {
    static constexpr bool ADDS = true;

    static Room room(double level) { return level == 0.0 ? Room::NONE : Room::SOME; }
    template <class T> Masses<T> at(const Rows<T>& rows, int64_t j, T radius) const {
        const T zero = broadcast<T>(0.0), p = rows.mass(j);
        const T low = larger(p - radius, zero), high = smaller(p + radius, broadcast<T>(1.0));
        // An entry of probability 0 fills up a lane, unless the set may add it.
        return {low, rows.may_grow ? high - low : select(p > zero, high - low, zero)};
    }
};

// The lowest share of the outcomes: P <= p/share. Masses are measured in units of 1/share.
struct TailMasses : FillingTraits {
    static Room room(double share) { return share >= 1.0 ? Room::NONE : Room::SOME; }
    template <class T> static T total(T share) { return share; }
    template <class T> static T unit(T share) { return share; }
    template <class T> Masses<T> at(const Rows<T>& rows, int64_t j, T) const {
        return {broadcast<T>(0.0), rows.mass(j)};
    }
};

// sum |P - p| <= 2 moved: that much mass leaves the largest outcomes for the smallest, where d = 0.
struct MovedMasses : FillingTraits {
    static constexpr bool ADDS = true, MOVES = true;

    static Room room(double moved) { return moved == 0.0 ? Room::NONE : Room::SOME; }
    template <class T> static T total(T moved) { return larger(1.0 - moved, broadcast<T>(0.0)); }
    template <class T> Masses<T> at(const Rows<T>& rows, int64_t j, T) const {
        return {broadcast<T>(0.0), rows.mass(j)};
    }
};

template <class M> struct Filling : M {
    double multiplier(const Solved<double>& solved) const { return solved.weight; }

    // From the last place to its neighbours among the outcomes, one by one.
    template <class T> Solved<T> solve(const Rows<T>& rows, T level, const T* start, Accuracy, int limit) const {
        T place = *start, tau = rise_at(rows, place), value = broadcast<T>(0.0);
        Mask<T> done{};
        for (int pass = 0; pass < limit && !all(done); ++pass) {
            const Look<T> at = look(rows, level, tau);
            value = select(done, value, at.value);
            const Mask<T> too_low = at.upto<at.rest, too_high = at.below> at.rest;
            done |=
                negate(too_low | too_high) | (too_low & (tau >= rows.spread)) | (too_high & (tau <= broadcast<T>(0.0)));
            place = select(done, place, select(too_low, at.up_place, at.down_place));
            tau = select(done, tau, select(too_low, at.up, at.down));
        }
        return found(level, value, tau, place, done);
    }

    // By bisection over the outcomes.
    Solved<double> solve_alone(const Rows<double>& row, double level, Accuracy) const {
        double low = -INFINITE, high = INFINITE, tau = 0.5 * row.spread, value = 0.0;
        for (int64_t pass = 0; pass < 2 * row.length + 2; ++pass) {
            const Look<double> at = look(row, level, tau);
            value = at.value;
            if (at.upto < at.rest && tau < row.spread)
                low = tau;
            else if (at.below > at.rest && tau > 0.0)
                high = tau;
            else
                break;
            tau = middle_rise(row, low, high);
        }
        int64_t place = 0;
        while (place + 1 < row.length && row.rise(place) != tau) ++place;
        return found<double>(level, value, tau, static_cast<double>(place), true);
    }

    template <class T> void remember(const Rows<T>&, const Solved<T>& solved, T* memory) const {
        *memory = solved.base;
    }

    // The dual has the one-sided derivatives rest - upto and rest - below.
    template <class T> Bounds<T> bounds(const Rows<T>& rows, T level, const Solved<T>& solved, T terms) const {
        const T zero = broadcast<T>(0.0), tau = solved.weight, total = M::total(level), unit = M::unit(level);
        const Look<T> at = look(rows, level, tau);
        const T rounding = 2.0 * terms * EPS, error = rounding * (unit + at.upto);
        const T slack = rounding * (2.0 * at.earned + 2.0 * (total + at.below) * tau);
        const T right = larger(at.rest - at.upto + error, zero) * larger(rows.spread - tau, zero);
        const T left = larger(at.below - at.rest + error, zero) * tau;
        const T lower = (at.value - slack) / unit, upper = (at.value + slack + larger(right, left)) / unit;
        if constexpr (M::CONTAINS_MODEL) return within_trivial_bounds(rows, terms, lower, upper);
        return {select(lower > zero, lower, zero), select(upper < rows.spread, upper, rows.spread)};
    }

    template <class T>
    T respond(const Rows<T>& rows, T level, const Solved<T>& solved, double* out, int64_t stride) const {
        const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0), tau = solved.weight, unit = M::unit(level);
        const Look<T> at = look(rows, level, tau);
        T share = select(at.upto > at.below, (at.rest - at.below) / (at.upto - at.below), zero);
        share = smaller(larger(share, zero), one);
        [[maybe_unused]] T moved = zero;
        for (int64_t j = 0; j < rows.length; ++j) {
            const Masses<T> mass = M::at(rows, j, level);
            const T d = rows.rise(j), taken = select(d < tau, one, select(d == tau, share, zero));
            const T kept = fused(taken, mass.room, mass.fixed) / unit;
            store(out + j * stride, kept);
            moved += rows.mass(j) - kept;
        }
        if constexpr (M::MOVES) give_to_minimisers(rows, moved, out, stride);
        return zero;
    }

private:
    template <class T> struct Look : Neighbours<T> {
        T rest;         // what there is to hand out
        T below, upto;  // the room at outcomes < tau and <= tau
        T earned;       // E_fixed d
        T value;
    };

    template <class T> static Solved<T> found(T level, T value, T tau, T place, Mask<T> done) {
        return {larger(value, broadcast<T>(0.0)) / M::unit(level), -tau, tau, place, done, Room::SOME};
    }

    template <class T> Look<T> look(const Rows<T>& rows, T level, T tau) const {
        const T zero = broadcast<T>(0.0);
        T fixed = zero, filled = zero;
        Look<T> at{{broadcast<T>(INFINITE), broadcast<T>(-1.0), zero, zero}, zero, zero, zero, zero, zero};
        for (int64_t j = 0; j < rows.length; ++j) {
            rows.ahead.prefetch(j);
            const Masses<T> mass = M::at(rows, j, level);
            const T d = rows.rise(j);
            const Mask<T> under = d<tau, over = d> tau;
            at.below += select(under, mass.room, zero);
            at.upto += select(over, zero, mass.room);
            at.add(j, d, over, under);
            filled = fused(mass.room, larger(tau - d, zero), filled);
            if constexpr (M::COLUMNS > 0 || M::ADDS) {
                fixed += mass.fixed;
                at.earned = fused(mass.fixed, d, at.earned);
            }
        }
        at.rest = M::total(level) - fixed;
        at.value = at.earned + (at.rest * tau - filled);
        return at;
    }
};

using Interval = Filling<IntervalMasses>;
using LargestChange = Filling<LargestChangeMasses>;
using Tail = Filling<TailMasses>;
using Moved = Filling<MovedMasses>;

// (1 - share) p + share Q for any Q: (1 - share) E x + share min x.
struct Contamination : ClosedForm<Contamination> {
    static constexpr bool ADDS = true;

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
