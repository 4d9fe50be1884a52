#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fits and prints the polynomials of simd_{math,trig}-inl.h and pointwise.cpp in src/kernel.

Each is a near-minimax fit (Lawson's iteratively reweighted least squares) of c0 + c1 u + ... in a
variable u(x). Float coefficients are rounded one by one, lowest first, and the rest fitted again.
Needs numpy. The last column of the header line is the largest weighted error left.
"""
import math

import numpy as np


def lawson(columns, target, weight, rounds=400):
    """Returns the coefficients that minimize max |weight * (columns @ c - target)|."""
    if columns.shape[1] == 0:
        return np.zeros(0)
    scale = np.abs(columns * weight[:, None]).max(axis=0)
    a = columns * weight[:, None] / scale
    b = target * weight
    w = np.ones(len(b)) / len(b)
    best, best_error = None, math.inf
    for _ in range(rounds):
        root = np.sqrt(w)
        c = np.linalg.lstsq(a * root[:, None], b * root, rcond=None)[0]
        error = np.abs(a @ c - b)
        if error.max() < best_error:
            best, best_error = c, error.max()
        w = w * (error + 1e-3 * error.max())
        w /= w.sum()
    return best / scale


def fit(name, lo, hi, degree, variable, target, weight, single=True, points=1500):
    x = (lo + hi) / 2 + (hi - lo) / 2 * np.cos(np.pi * (np.arange(points) + 0.5) / points)
    u = np.array([variable(t) for t in x])
    f = np.array([target(t) for t in x])
    w = np.array([weight(t) for t in x])
    columns = u[:, None] ** np.arange(degree + 1)
    fixed = []
    while single and len(fixed) <= degree:
        k = len(fixed)
        known = columns[:, :k] @ np.array(fixed) if k else 0.0
        fixed.append(float(np.float32(lawson(columns[:, k:], f - known, w)[0])))
    c = np.array(fixed) if single else lawson(columns, f, w)
    error = np.abs(w * (columns @ c - f)).max()
    print(f"{name}: degree {degree} on [{lo:.6g}, {hi:.6g}], error 2^{math.log2(error):.1f}")
    print("  " + ", ".join(f"{v:.9g}f" if single else f"{v:.17g}" for v in c))


def series(terms, x):
    """Returns the sum of terms(k) x^k, for targets that cancel near zero."""
    return sum(terms(k) * x**k for k in range(30))


def atanh_ratio(s2):
    """Returns (atanh(s) - s) / s^3 as a function of s^2."""
    return series(lambda k: 1 / (2 * k + 3), s2)


def main():
    half_ln2 = math.log(2) / 2 * 1.002
    ident = lambda t: t
    sq = lambda t: t * t

    # e^r = 1 + r + r^2 p(r); the weight makes it accurate for expm1 too.
    fit("exp", -half_ln2, half_ln2, 5, ident,
        lambda r: series(lambda k: 1 / math.factorial(k + 2), r), lambda r: abs(r) + 1e-9)
    # log(1 + f) = f - f^2/2 + f^3 p(f)
    cubic = lambda f: (series(lambda k: (-1)**k / (k + 3), f) if abs(f) < 0.2 else
                       (math.log1p(f) - f + f * f / 2) / f**3)
    fit("log", math.sqrt(0.5) - 1, math.sqrt(2) - 1, 8, ident, cubic, lambda f: f * f + 1e-9)
    # sin r = r + r^3 p(r^2), cos r = 1 - r^2/2 + r^4 p(r^2)
    quarter = math.pi / 4 * 1.01
    alternating = lambda first: (lambda t: series(
        lambda k: (-1)**(k + first[1]) / math.factorial(2 * k + first[0]), t * t))
    fit("sin", 1e-4, quarter, 2, sq, alternating((3, 1)), sq)
    fit("cos", 1e-4, quarter, 2, sq, alternating((4, 0)), lambda r: r**4)
    # atan x = x + x^3 p(x^2)
    atan3 = lambda x: (series(lambda k: (-1)**(k + 1) / (2 * k + 3), x * x) if x < 0.25 else
                       (math.atan(x) - x) / x**3)
    fit("atan", 1e-4, 1, 8, sq, atan3, lambda x: x**3 / math.atan(x))
    # erf x = x + x p(x^2) below 1; erf x = 1 - exp(-x - x p(x)) above
    fit("erf small", 1e-4, 1.0, 6, sq, lambda x: math.erf(x) / x - 1, lambda x: x / math.erf(x))
    fit("erf large", 1.0, 4, 6, ident, lambda x: -math.log(math.erfc(x)) / x - 1,
        lambda x: x * math.erfc(x) / math.erf(x))
    # pow, in double: log2 m = s p(s^2) with s = (m - 1) / (m + 1), and 2^r
    s_max = (math.sqrt(2) - 1) / (math.sqrt(2) + 1)
    fit("log2 (double)", 1e-4, s_max, 5, sq,
        lambda s: 2 / math.log(2) * (1 + s * s * atanh_ratio(s * s)), lambda s: 0.35, single=False)
    fit("exp2 (double)", -0.5, 0.5, 7, ident, lambda r: 2.0**r, lambda r: 2.0**-r, single=False)
    # WGSL only: log(1 + x) = 2 s + s^3 p(s^2), s = x / (2 + x)
    fit("log1p small", 1e-4, 0.25, 3, sq, lambda s: 2 * atanh_ratio(s * s), lambda s: s * s / 2)


if __name__ == "__main__":
    main()
