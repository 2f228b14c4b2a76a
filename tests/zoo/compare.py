"""Compares outputs with a reference: worst error in units of the tolerance, and a description of the worst element."""

import numpy as np

from tolerance import is_float, wide


def compare(reference, outputs):
    """`(ratio, message)`: the outputs agree where the ratio is at most 1; the message names the worst element."""
    if len(outputs) != len(reference.expected):
        return np.inf, f"{len(outputs)} outputs instead of {len(reference.expected)}"
    worst, message = 0.0, ""
    for i, (ours, expected) in enumerate(zip(outputs, reference.expected)):
        if ours.shape != expected.shape or ours.dtype != expected.dtype:
            return np.inf, f"output {i}: {ours.dtype}{list(ours.shape)} instead of {expected.dtype}{list(expected.shape)}"
        if ours.size == 0:
            continue
        ratio = ratios(ours, expected, reference.centre[i], reference.tolerance[i])
        at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        if ratio[at] > worst or not message:
            worst = max(worst, float(ratio[at]))
            wrong = int((ratio > 1).sum())
            message = (
                f"output {i} of {len(outputs)}, {expected.dtype}{list(expected.shape)}[{', '.join(map(str, at))}]: {ours[at]}"
                f" instead of {expected[at]} ({reference.centre[i][at]!s} in {reference.source}), tolerance"
                f" {float(reference.tolerance[i][at]):.2g}; {wrong} of {ratio.size} elements differ"
            )
    return worst, message


def ratios(ours, expected, centre, tolerance):
    """Error of each element in units of its tolerance; infinite where exactly one side is not finite."""
    if not is_float(expected):
        return np.where(ours == expected, 0.0, np.where(np.isinf(tolerance), 0.0, np.inf))
    ours, expected, centre = wide(ours), wide(expected), wide(centre)
    with np.errstate(all="ignore"):
        # The closer of XLA's result and the exact one counts: an element that equals XLA's is right.
        error = np.minimum(np.abs(ours - expected), np.where(np.isfinite(centre), np.abs(ours - centre), np.inf))
        ratio = error / tolerance
    same = (ours == expected) | (np.isnan(ours) & np.isnan(expected))
    unequal = ~(np.isfinite(ours) & np.isfinite(expected))
    return np.where(same, 0.0, np.where(unequal, np.inf, np.nan_to_num(ratio, nan=np.inf)))
