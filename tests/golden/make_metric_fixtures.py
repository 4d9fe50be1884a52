# SPDX-License-Identifier: MIT
"""Writes metrics of scikit-learn, and learning-rate searches by numpy: metrics.safetensors. Needs
tools/metric-requirements.txt; run it in this folder.

N/labels [n], N/scores [n, classes]: predictions; N/counts, N/accuracy, N/precision, N/recall, N/f1, N/macro_f1: what
scikit-learn makes of them, NaN if undefined. In case 1, a class is never predicted, another is no label, and one is
neither.
search/N: the learning rates of gradient descent on w^2 from w = 3, its losses, their running mean as a weighted
average, and the rate at which numpy.gradient() of it is lowest.
"""

import numpy as np
from sklearn import metrics

import fixture_file


def classified(generator, n, classes, labels, predicted):
    """Scores whose largest one is in the columns `predicted`, of labels in `labels`."""
    scores = generator.normal(size=(n, classes)).astype(np.float32)
    truth = generator.choice(labels, n)
    guess = np.where(generator.random(n) < 0.6, truth, generator.choice(predicted, n))
    guess = np.where(np.isin(guess, predicted), guess, predicted[0])
    scores[np.arange(n), guess] = 9
    every = list(range(classes))
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(truth, guess, labels=every, zero_division=np.nan)
    return {"labels": truth, "scores": scores, "counts": metrics.confusion_matrix(truth, guess, labels=every),
            "accuracy": [metrics.accuracy_score(truth, guess)], "precision": precision, "recall": recall, "f1": f1,
            "macro_f1": [metrics.f1_score(truth, guess, average="macro")]}


def search(first, last, updates, smoothing, divergence):
    rates, losses, smoothed, w = [], [], [], 3.0
    for rate in np.geomspace(first, last, updates):
        weights = smoothing ** np.arange(len(losses), -1, -1.0)
        mean = np.average(losses + [w * w], weights=weights)
        if smoothed and mean > divergence * min(smoothed):
            break
        rates.append(rate)
        losses.append(w * w)
        smoothed.append(mean)
        w -= rate * 2 * w
    slopes = np.gradient(smoothed, np.log(rates))[1:-1]
    return {"rates": rates, "losses": losses, "smoothed": smoothed, "suggested": [rates[1 + np.argmin(slopes)]]}


def main():
    generator = np.random.default_rng(3)
    cases = {"0": classified(generator, 200, 4, range(4), range(4)),
             "1": classified(generator, 60, 6, [0, 1, 2, 3], [0, 1, 2, 4]),
             "search/0": search(1e-7, 10, 100, 0.9, 4), "search/1": search(1e-3, 1, 20, 0, 2)}
    tensors = []
    for case, values in cases.items():
        for name, value in values.items():
            array = np.asarray(value)
            integers = array.dtype.kind == "i"
            tensors.append((f"{case}/{name}", "I32" if integers else "F32", array.shape,
                            array.astype("<i4" if integers else "<f4").tobytes()))
    fixture_file.write("metrics.safetensors", tensors)


if __name__ == "__main__":
    main()
