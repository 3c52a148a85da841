// Step sizes: min(cap, scale * (offset + growth n)^-power), where n counts from 0.
#pragma once

#include "cells.hpp"

#include <vector>

namespace robustmdp {

class Steps {
public:
    double per_weight;  // where positive, the size is multiplied by it and by the pair's weight in normal form

    Steps(double scale, double offset, double growth, double power, double cap, double per_weight)
        : per_weight(per_weight), scale_(scale), offset_(offset), growth_(growth), power_(power), cap_(cap),
          first_(TABULATED) {
        for (uint64_t n = 0; n < TABULATED; n += WIDTH)
            store_loose(first_.data() + n, formula(static_cast<double>(n) + Lanes{0.0, 1.0, 2.0, 3.0}));
    }

    double operator()(uint64_t n) const { return n < TABULATED ? first_[n] : formula(static_cast<double>(n)); }

    // The same for the count of each lane.
    double at(const Places<double>& n) const { return (*this)(static_cast<uint64_t>(n[0])); }
    Lanes at(const Places<Lanes>& n) const {
        if (static_cast<uint64_t>(n[0] | n[1] | n[2] | n[3]) < TABULATED) return gather<Lanes>(first_.data(), n);
        return formula(Lanes{static_cast<double>(n[0]), static_cast<double>(n[1]), static_cast<double>(n[2]),
                             static_cast<double>(n[3])});
    }

    template <class T> T formula(T n) const {
        const T base = offset_ + growth_ * n;
        return smaller(scale_ / raise(base), broadcast<T>(cap_));
    }

    // The size for a dual variable in units of its weight: alpha/weight, discounted where it does not grow with it.
    template <class T> T relative(T size, double discount, T inverse_weight) const {
        return per_weight > 0.0 ? size * per_weight : discount * size * inverse_weight;
    }

    // The same in units of outcomes.
    template <class T> T absolute(T size, double discount, T weight) const {
        return per_weight > 0.0 ? size * per_weight * weight : discount * size;
    }

private:
    static constexpr uint64_t TABULATED = 1 << 16;

    // base^power; the usual powers by square roots
    template <class T> T raise(T base) const {
        if (power_ == 1.0) return base;
        if (power_ == 0.5) return root(base);
        if (power_ == 0.75) return root(base) * root(root(base));
        return power_ == 0.0 ? broadcast<T>(1.0) : exponential(power_ * logarithm(base));
    }

    double scale_, offset_, growth_, power_, cap_;
    std::vector<double> first_;
};

}  // namespace robustmdp
