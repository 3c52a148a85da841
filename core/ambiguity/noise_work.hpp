// The numbers of one state whose actions share the noise.
#pragma once

#include "noise_step.hpp"

#include <utility>

namespace robustmdp {

// Zero-sum games: max over random policies pi of min over columns i of sum_a pi_a M_ai, to which columns are added.
//
// With M > 0 it is the linear program max sum_i x_i, M x <= 1, x >= 0, of value 1/(sum x), mixture x value, and the
// policy that belongs to the rows' prices. A new column keeps x feasible, so that the simplex method goes on from there.
class MatrixGame {
public:
    MatrixGame(int64_t rows, int64_t columns)
        : stride_(rows + 1), table_(stride_ * (columns + 1)), row_names_(rows), column_names_(columns) {}

    void reset(int rows) {
        rows_ = rows, columns_ = 0, added_ = 0;
        for (int r = 0; r < rows; ++r) row_names_[r] = r, side()[r] = 1.0;
        side()[rows] = 0.0;
    }

    int added() const { return added_; }

    // All entries positive, and none of them far from 1.
    void add(const double* entries) {
        double* made = column(columns_);
        for (int r = 0; r < rows_; ++r) made[r] = row_names_[r] < rows_ ? entries[row_names_[r]] : 0.0;
        made[rows_] = -1.0;
        for (int c = 0; c < columns_; ++c) {
            if (column_names_[c] >= rows_) continue;
            const double entry = entries[column_names_[c]];
            for (int r = 0; r <= rows_; ++r) made[r] = fused(entry, column(c)[r], made[r]);
        }
        column_names_[columns_++] = rows_ + added_++;
    }

    // The value of the game.
    double solve() {
        for (int pivots = 0; pivots < 20 * (rows_ + added_); ++pivots) {
            int entering = -1, leaving = -1;
            double least = -TOLERANCE, shortest = INFINITE;
            const bool may_cycle = pivots > 4 * (rows_ + added_);  // the first column that helps then ends every cycle
            for (int c = 0; c < columns_ && !(may_cycle && entering >= 0); ++c)
                if (column(c)[rows_] < least) entering = c, least = column(c)[rows_];
            if (entering < 0) break;
            for (int r = 0; r < rows_; ++r) {
                if (!(column(entering)[r] > TOLERANCE)) continue;
                const double length = larger(side()[r], 0.0) / column(entering)[r];
                if (length < shortest) leaving = r, shortest = length;
            }
            if (leaving < 0) break;
            exchange(leaving, entering);
        }
        return 1.0 / side()[rows_];
    }

    // pi_a, (rows,)
    void policy(double* shares) const {
        for (int r = 0; r < rows_; ++r) shares[r] = 0.0;
        double total = 0.0;
        for (int c = 0; c < columns_; ++c)
            if (column_names_[c] < rows_) total += shares[column_names_[c]] = larger(column(c)[rows_], 0.0);
        for (int r = 0; r < rows_; ++r) shares[r] /= total;
    }

    // use(column in the order of adding, its share in the mixture)
    template <class Use> void mixture(Use use) const {
        double total = 0.0;
        for (int r = 0; r < rows_; ++r)
            if (row_names_[r] >= rows_) total += larger(side()[r], 0.0);
        for (int r = 0; r < rows_; ++r)
            if (row_names_[r] >= rows_ && side()[r] > 0.0) use(row_names_[r] - rows_, side()[r] / total);
    }

private:
    static constexpr double TOLERANCE = 1e-14;

    double* column(int64_t c) { return table_.data() + stride_ * (c + 1); }
    const double* column(int64_t c) const { return table_.data() + stride_ * (c + 1); }
    double* side() { return table_.data(); }
    const double* side() const { return table_.data(); }

    void exchange(int r, int c) {
        double* from = column(c);
        const double inverse = 1.0 / from[r];
        for (int other = -1; other < columns_; ++other) {
            if (other == c) continue;
            double* to = column(other);
            const double part = to[r] * inverse;
            if (part == 0.0) continue;
            for (int i = 0; i <= rows_; ++i) to[i] = fused(-part, from[i], to[i]);
            to[r] = part;
        }
        for (int i = 0; i <= rows_; ++i) from[i] *= -inverse;
        from[r] = inverse;
        std::swap(row_names_[r], column_names_[c]);
    }

    int64_t stride_;
    int rows_ = 0, columns_ = 0, added_ = 0;
    std::vector<double> table_;                  // the right-hand side, then columns; each ends with its reduced cost
    std::vector<int> row_names_, column_names_;  // below rows_: what is left of a row; from rows_ on: x
};

// OF_ROW numbers are what a set remembers of a row; KINKS policies are those whose answers nature mixed.
template <int OF_ROW, int KINKS> struct NoiseWork {
    explicit NoiseWork(const Model& model) : length(model.longest_row) {
        const int64_t pairs = model.most_actions();
        padded = (pairs + WIDTH - 1) / WIDTH * WIDTH;
        passes = static_cast<int>(40 + 4 * std::min(pairs, length));
        game = MatrixGame(pairs, passes);
        if (KINKS == 0) step = NoiseStep(pairs, length);
        is_useless.resize(pairs);
        row.resize(2 * length);
        for (auto* numbers : {&share, &known, &trial, &target, &entries, &mean}) numbers->resize(padded);
        kinks.resize(KINKS * padded);
        if (KINKS > 0) tried.resize(passes * padded);
        noise.resize((passes + 1) * length);
        payoff.resize((passes + 1) * padded);
        answers.resize(pairs * length);
    }

    double* noise_of(int cut) { return noise.data() + cut * length; }
    double* payoff_of(int cut) { return payoff.data() + cut * padded; }

    int64_t length, padded;
    int passes;  // policies that are tried at most
    double start[OF_ROW + 1];
    double lowest, size;                // of the outcomes of actions that can be of use
    std::vector<double> row;            // p and mixed outcomes
    std::vector<double> share, known;   // the policy, and that of the last sweep
    std::vector<double> trial, target;  // the policy that nature answers, and where a step leads
    std::vector<double> noise, payoff;  // nature's answers to trials, and what the actions earn under them
    std::vector<double> answers, mean;  // rows one after the other; their means less the minimum
    std::vector<double> entries;        // of a column of the game
    std::vector<double> kinks, tried;   // policies whose answers nature mixed in the last sweep, and all trials
    int kink_count = 0;
    std::vector<uint8_t> is_useless;  // whether another action's worst outcome is better than all of its own
    MatrixGame game{0, 0};
    NoiseStep step{0, 0};
};

}  // namespace robustmdp
