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
    T bend;       // E f*'''
    T excess;     // E(f* - y)
    T clearance;  // how far the shift may move before an outcome meets a kink of f*'
    T least;      // how far the nearest of the outcomes is that have not met it
};

// The first pass over rows looks ahead, and does without the excess where that costs a logarithm: it is rarely the last.
enum class Pass { FIRST, LATER };

// sum of p log(inner(u)), in chunks of a loop of its own: processors do not see past one long chain of operations.
template <class T> class MeanLogarithm {
public:
    static constexpr int64_t CHUNK = 16;

    explicit MeanLogarithm(const Rows<T>& rows) : rows_(rows) {}

    [[gnu::always_inline]] void add(int64_t j, T inner) {
        waiting_[j % CHUNK] = inner;
        if (j % CHUNK == CHUNK - 1) settle(j + 1);
    }

    T total() {
        settle(rows_.length);
        return total_;
    }

private:
    [[gnu::always_inline]] void settle(int64_t end) {
        for (int64_t j = settled_; j < end; ++j) total_ = fused(rows_.mass(j), logarithm(waiting_[j % CHUNK]), total_);
        settled_ = end;
    }

    const Rows<T>& rows_;
    int64_t settled_ = 0;
    T waiting_[CHUNK];
    T total_ = broadcast<T>(0.0);
};

// E(f* - y) where it is E(u - log inner(u)) up to a constant.
template <class F, class T>
inline T logarithmic_excess(const Rows<T>& rows, T theta, T base, T shift, T mean_logarithm) {
    return (fused(rows.mean_rise, theta, shift) - mean_logarithm) - F::LOG_OFFSET * (1.0 - base);
}

template <Pass PASS, bool WITH_EXCESS, class F, class T>
inline Moments<T> dual_moments(const F& f, const Rows<T>& rows, T theta, T base, T shift) {
    const T zero = broadcast<T>(0.0);
    Moments<T> sum{zero, zero, zero, zero, broadcast<T>(INFINITE), broadcast<T>(INFINITE)};
    MeanLogarithm<T> logarithms(rows);
    for (int64_t j = 0; j < rows.length; ++j) {
        if (PASS == Pass::FIRST) rows.ahead.prefetch(j);
        const T p = rows.mass(j);
        const T u = fused(rows.rise(j), theta, shift);
        const Tilt<T> tilt = f.at(base, u);
        const T distance = f.clearance(u);
        sum.clearance = smaller(magnitude(distance), sum.clearance);
        if constexpr (F::HAS_KINK && !F::QUADRATIC)
            sum.least = smaller(select(distance > zero, distance, broadcast<T>(INFINITE)), sum.least);
        sum.miss = fused(p, tilt.growth, sum.miss);
        sum.slope = fused(p, tilt.curvature, sum.slope);
        if constexpr (!F::QUADRATIC) sum.bend = fused(p, tilt.bend, sum.bend);
        if constexpr (WITH_EXCESS && F::LOGARITHMIC)
            logarithms.add(j, f.inner(base, u));
        else if constexpr (WITH_EXCESS)
            sum.excess = fused(p, tilt.excess, sum.excess);
    }
    if constexpr (WITH_EXCESS && F::LOGARITHMIC)
        sum.excess = logarithmic_excess<F>(rows, theta, base, shift, logarithms.total());
    return sum;
}

// Newton's step for a threshold, made exact for the r^a that rules where r is the least, a = 1/(k-1) < 1: in r^a instead
// of r. It ends at the kink, r = 0.
template <class T> inline T kinked_step(double k, T newton, T r) {
    const double a = 1.0 / (k - 1.0);
    const T share = larger(newton / r, broadcast<T>(1.0 - k));
    return select(a * share > broadcast<T>(-1.0), newton * fused(share, 0.5 * (1.0 - a), 1.0), -r);
}

// Where E f*' = 1 may lie.
template <class T> struct Bracket {
    T low, high;
};

template <class T> struct Root {
    T shift;
    Moments<T> at;
    T gain;  // what one more step would add to the dual, where that is known
    Mask<T> converged;
};

constexpr double LEAST_STRETCH = 1e-6;  // of radii: below, powers of outcomes far off cancel
constexpr double FAST_ERROR = 1e-12;    // of the spread: what a sweep's value may miss

// The shift with E f*' = 1, inside a bracket. `size` is spread/w.
//
// Where the root is much nearer than the next singularity of f*, it is found from three derivatives, and what the dual
// gains on the way is known to fourth order: a FAST value includes it. Elsewhere, Newton's method on f'(E f*') = 0.
template <class D, class F, class T>
inline Root<T> find_shift(const D& divergence, const F& f, const Rows<T>& rows, T theta, T base, Bracket<T> bracket,
                          T shift, Accuracy accuracy, int limit) {
    const T zero = broadcast<T>(0.0), one = broadcast<T>(1.0);
    const T size = rows.spread * theta;
    Moments<T> at{};
    Mask<T> done{};
    T gain{};
    T before = broadcast<T>(INFINITE);
    for (int pass = 0; pass < limit; ++pass) {
        const bool is_last = pass > 0 || !F::LOGARITHMIC;
        at = pass == 0 ? dual_moments<Pass::FIRST, !F::LOGARITHMIC>(f, rows, theta, base, shift)
                       : dual_moments<Pass::LATER, true>(f, rows, theta, base, shift);
        const T miss = magnitude(at.miss);
        const T inverse = 1.0 / at.slope, newton = at.miss * inverse;
        // f*' may have a kink at some outcome, and a pole that the lowest one is next to.
        T step = newton, room = at.clearance;
        if (D::QUADRATIC) {
            gain = 0.5 * newton * at.miss;
        } else {
            step = fused(0.5 * newton * newton, at.bend * inverse, newton);
            gain = step * (at.miss - step * (0.5 * at.slope - step * at.bend * (1.0 / 6.0)));
            room = smaller(smaller(room, one), select(base == one, shift + divergence.edge, shift));
        }
        const Mask<T> close = magnitude(newton) < (D::QUADRATIC ? 1.0 : 0.125) * room;
        done = miss <= broadcast<T>(4.0 * EPS);
        if (accuracy == Accuracy::FAST) {
            done |= D::QUADRATIC ? close : close & (gain * step * step <= FAST_ERROR * size * room * room);
            gain = select(close, gain, zero);
        } else {
            const T left = 0.5 * miss * magnitude(newton);
            done |= (miss <= broadcast<T>(1e-9)) & (left <= 1e-18 * size) & (miss >= 0.25 * before);
        }
        before = miss;
        if (!is_last) done = Mask<T>{};
        if (all(done)) break;
        const Mask<T> falls = at.miss > zero;  // E f*' falls as the shift grows
        bracket.low = select(falls, shift, bracket.low);
        bracket.high = select(falls, bracket.high, shift);
        const T width = bracket.high - bracket.low;
        if (is_last) done |= width <= EPS * larger(magnitude(bracket.low), magnitude(bracket.high));
        if (all(done)) break;
        T next = shift + step;
        if (!all(close)) {
            T far = divergence.newton(at.miss + 1.0) * inverse;
            if constexpr (D::HAS_KINK && !D::QUADRATIC) {
                far = -kinked_step(divergence.k, -newton, at.least);
            }
            next = select(close, next, shift + far);
        }
        const Mask<T> inside = (bracket.low < next) & (next < bracket.high);
        if (pass > 50 || !all(inside)) {
            const Mask<T> wide = (bracket.low > zero) & (bracket.high > 16.0 * bracket.low);
            const T middle = select(wide, root(bracket.low) * root(bracket.high), bracket.low + 0.5 * width);
            next = pass > 50 ? middle : select(inside, next, middle);
        }
        shift = select(done, shift, next);
    }
    return {shift, at, gain, done};
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
