// The dual function of a smooth divergence and its derivatives.
//
// With y = (eta - x)/w = anchor - u, u = (x - min x)/w + shift, the dual value eta - w E f*(y) is
//     min x + E(x - min x) - w E(f*(y) - y),
// which cancels nowhere: both terms are non-negative and of the size of the spread. It is concave in eta with the
// derivative -E(f*'(y) - 1).
#pragma once

#include "../divergences/tilt.hpp"
#include "solved.hpp"

namespace robustmdp {

template <class T> struct Moments {
    T miss;       // E f*' - 1
    T slope;      // E f*''
    T excess;     // E(f* - y)
    T clearance;  // how far the shift may move before f*'' jumps
};

// Without the excess, which costs most of them a logarithm, for steps that will not be the last.
template <bool WITH_EXCESS = true, class F, class T>
inline Moments<T> dual_moments(const F& f, const Rows<T>& rows, T theta, T base, T shift) {
    const T zero = broadcast<T>(0.0);
    Moments<T> sum{zero, zero, zero, broadcast<T>(INFINITE)};
    for (int64_t j = 0; j < rows.length; ++j) {
        const T p = rows.mass(j);
        const T u = rows.rise(j) * theta + shift;
        const Tilt<T> tilt = f.at(base, u);
        sum.clearance = smaller(f.clearance(u), sum.clearance);
        sum.miss += p * tilt.growth;
        sum.slope += p * tilt.curvature;
        if (WITH_EXCESS) sum.excess += p * tilt.excess;
    }
    return sum;
}

// Where E f*' = 1 may lie.
template <class T> struct Bracket {
    T low, high;
};

template <class T> struct Root {
    T shift;
    Moments<T> at;
    T gain;  // what one more step would add to the dual, where that can be told
    Mask<T> converged;
};

constexpr double FAST_ERROR = 1e-12;       // of the spread: what a sweep's value may miss
constexpr double UNTRUSTED_ERROR = 1e-11;  // the same where nothing is known about third derivatives

// The shift with E f*' = 1: Newton's method on f'(E f*') = 0 inside a bracket. `size` is spread/w.
//
// One more step would gain about miss^2/(2 slope), known up to third derivatives: a FAST value includes that gain.
template <class D, class F, class T>
inline Root<T> find_shift(const D& divergence, const F& f, const Rows<T>& rows, T theta, T base, Bracket<T> bracket,
                          T shift, Accuracy accuracy, int limit) {
    const T size = rows.spread * theta;
    Moments<T> at{};
    Mask<T> done{};
    T predicted{};
    T before = broadcast<T>(INFINITE);
    for (int pass = 0; pass < limit; ++pass) {
        const bool is_last = pass > 0 || accuracy == Accuracy::EXACT || D::CHEAP_EXCESS;
        at = is_last ? dual_moments(f, rows, theta, base, shift) : dual_moments<false>(f, rows, theta, base, shift);
        const T miss = magnitude(at.miss);
        const T gain = 0.5 * miss * miss / at.slope;
        done = miss <= broadcast<T>(4.0 * EPS);
        const Mask<T> predictable =
            divergence.bend < INFINITE
                ? (miss * divergence.bend <= broadcast<T>(0.1)) & (gain * miss * divergence.bend <= FAST_ERROR * size)
                : ((miss <= broadcast<T>(0.01)) & (gain <= UNTRUSTED_ERROR * size)) |
                      ((at.clearance < broadcast<T>(INFINITE)) & (miss < at.clearance * at.slope));
        predicted = select(predictable, gain, broadcast<T>(0.0));
        if (accuracy == Accuracy::FAST)
            done |= predictable;
        else
            done |= (miss <= broadcast<T>(1e-9)) & (gain <= 1e-18 * size) & (miss >= 0.25 * before);
        before = miss;
        const Mask<T> falls = at.miss > broadcast<T>(0.0);  // E f*' falls as the shift grows
        bracket.low = select(falls, shift, bracket.low);
        bracket.high = select(falls, bracket.high, shift);
        const T width = bracket.high - bracket.low;
        done |= width <= EPS * larger(magnitude(bracket.low), magnitude(bracket.high));
        if (!is_last) done = Mask<T>{};
        if (all(done)) break;
        T next = shift + divergence.newton(at.miss + 1.0) / at.slope;
        const Mask<T> inside = (bracket.low < next) & (next < bracket.high);
        const Mask<T> wide = (bracket.low > broadcast<T>(0.0)) & (bracket.high > 16.0 * bracket.low);
        const T middle = select(wide, root(bracket.low) * root(bracket.high), bracket.low + 0.5 * width);
        next = pass > 50 ? middle : select(inside, next, middle);
        shift = select(done, shift, next);
    }
    return {shift, at, predicted, done};
}

// The dual on both sides of a root of E f*' = 1, and the mixture of the two whose f*' has the mean 1.
//
// Where f*' jumps over 1, or is too steep for neighbouring numbers to resolve, no single shift will do. Gradients of a
// concave function at two points bound it as well as one: what counts is their mixture. Each argument is exact for
// outcomes that differ by a rounding, and the worst case follows those by no more.
template <class T> struct Mixture {
    T high_shift, low_shift;  // where E f*' >= 1 and where E f*' <= 1
    T share;                  // of the first
    T miss;                   // what is left of E f*' - 1
    T largest_miss;           // on either side
    T excess;                 // E(f* - y), the smaller one: that of the better dual value
    T divergence;             // E f(f*'), mixed
    T divergence_terms;       // the size of the terms in it
    T rest;                   // mass for the minimisers that no f*' in the range of numbers can give
};

template <class F, class T>
inline Mixture<T> mix(const F& f, const Rows<T>& rows, T theta, T base, T anchor, T shift, double floor, double top) {
    const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0);
    const T step = 8.0 * EPS * magnitude(shift);
    const T shifts[2] = {shift - step, shift + step};
    T miss[2] = {zero, zero}, excess[2] = {zero, zero}, divergence[2] = {zero, zero}, terms = zero;
    for (int64_t j = 0; j < rows.length; ++j) {
        const T p = rows.mass(j), size = rows.rise(j) * theta;
        for (int side = 0; side < 2; ++side) {
            const T u = size + shifts[side];
            const Tilt<T> tilt = f.at(base, u);
            miss[side] += p * tilt.growth;
            excess[side] += p * tilt.excess;
            divergence[side] += p * tilt.cost;
            terms += p * magnitude(tilt.cost);
            if (F::CANCELS) terms += p * 2.0 * magnitude((anchor - u) * tilt.slope);
        }
    }
    const T share = smaller(larger(-miss[1] / (miss[0] - miss[1]), zero), one);
    const T other = one - share, left = share * miss[0] + other * miss[1];
    const Mask<T> at_edge = (base == zero) & (shift <= broadcast<T>(4.0 * floor));
    const Mask<T> at_top = (base == one) & (shift <= broadcast<T>(-0.99 * top));
    const T rest = select(at_edge | at_top, larger(-left, zero), zero);
    return {shifts[0],
            shifts[1],
            share,
            left,
            larger(magnitude(miss[0]), magnitude(miss[1])),
            smaller(excess[0], excess[1]),
            share * divergence[0] + other * divergence[1],
            terms,
            rest};
}

}  // namespace robustmdp
