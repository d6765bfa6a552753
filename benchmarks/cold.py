"""What a first call costs in a fresh process, with nothing compiled before.

Run as a module (``python -m benchmarks.cold``) this is that process.
"""

import json
import time

from benchmarks.common import Column, Table, best_and_median, in_fresh_process

STEPS = {
    "import_jax": "`import jax`",
    "import_land": "`import land`, beyond JAX",
    "first_log": "first `log_map`, 300 targets",
    "second_log": "second `log_map`",
    "first_exp": "first `exp_map`, 3000 tangents",
    "second_exp": "second `exp_map`",
}


def run(quick: bool) -> list[Table]:
    """Median and best over a few processes."""
    runs = [in_fresh_process("cold") for _ in range(1 if quick else 3)]
    table = Table(
        title="First calls in a fresh process",
        columns=[
            Column("step", "step"),
            Column("median_s", "s", ".2f"),
            Column("best_s", "best", ".2f"),
        ],
        notes=(
            "Half-ellipse, 300 data points, sigma 0.3, in this order, with NumPy "
            "imported before; JAX's compilation cache on disk is off. Fresh "
            f"processes: {len(runs)}."
        ),
    )
    for key, title in STEPS.items():
        best, median = best_and_median([times[key] for times in runs])
        table.rows.append({"step": title, "median_s": median, "best_s": best})
    return [table]


def main() -> None:
    """The fresh process: time every step once."""
    times = {}
    clock = [time.perf_counter()]

    def lap(name: str) -> None:
        now = time.perf_counter()
        times[name] = now - clock[0]
        clock[0] = time.perf_counter()

    import jax  # noqa: F401

    lap("import_jax")
    import land

    lap("import_land")
    from benchmarks import workload

    data = workload.half_ellipse()
    metric = workload.half_ellipse_metric(data, sigma=0.3)
    base, tangents = workload.top_of_arc(data), workload.tangents(3000)
    clock[0] = time.perf_counter()
    for count in ("first", "second"):
        land.log_map(metric, base, data)
        lap(f"{count}_log")
    for count in ("first", "second"):
        land.exp_map(metric, base, tangents)
        lap(f"{count}_exp")
    print(json.dumps(times))


if __name__ == "__main__":
    main()
