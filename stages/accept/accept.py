"""Judges the six criteria from evidence alone:
`python accept.py --base DIR --adapted DIR --repeated DIR --audit FILE --failed-worker FILE --aggregation FILE
--reload FILE --verdict FILE --out FILE`.

Each criterion is pass, fail, or not established, with what was measured and the sha256 of its evidence. The label is
given only where all six pass on captured rows: fixtures exercise the checks and satisfy none of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from pilot_rl.records import Json, read_json, sha256_file, write_json

LABEL = "supported agent-RL recipe"
EVIDENCE = ("base", "adapted", "repeated", "audit", "failed_worker", "aggregation", "reload", "verdict")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in (*EVIDENCE, "out"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=Path, required=True)
    evidence: dict[str, Path] = vars(parser.parse_args())
    out = evidence.pop("out")
    criteria = [judge(name, uses, check, evidence) for name, uses, check in CRITERIA]
    verdicts = {criterion["verdict"] for criterion in criteria}
    label = LABEL if verdicts == {"pass"} else "not supported" if "fail" in verdicts else "not established"
    lines = [f"{criterion['verdict']:<15} {criterion['name']}: {criterion['measured']}" for criterion in criteria]
    summary = (
        f"{label}: {sum(criterion['verdict'] == 'pass' for criterion in criteria)} of {len(criteria)} criteria pass"
    )
    write_json(out, {"summary": summary, "label": label, "criteria": criteria})
    print("\n".join([*lines, summary]))


def judge(
    name: str, uses: tuple[str, ...], check: Callable[[dict[str, Path]], tuple[bool, str]], evidence: dict[str, Path]
) -> Json:
    """One criterion. Evidence that is missing or of fixtures establishes nothing; what cannot be read is a failure."""
    digests = {use: digest_of(evidence[use]) for use in uses}
    sources = {str(read_json(evidence[use]).get("source", "captured")) for use in uses if evidence[use].is_file()}
    try:
        passed, measured = check(evidence)
    except (KeyError, TypeError, ValueError, OSError) as error:
        passed, measured = False, f"its evidence cannot be read: {type(error).__name__}: {error}"
    verdict = "fail" if not passed else "pass" if sources <= {"captured"} else "not established"
    return {"name": name, "verdict": verdict, "measured": measured, "evidence": digests, "sources": sorted(sources)}


def digest_of(path: Path) -> str:
    """sha256 of the file, or of a checkpoint's manifest."""
    return sha256_file(path / "manifest.json" if path.is_dir() else path)


def repeatable(evidence: dict[str, Path]) -> tuple[bool, str]:
    """Two clean runs, the same bytes, and they are not the baseline's."""
    base, first, second = (load_file(evidence[name] / "model.safetensors") for name in ("base", "adapted", "repeated"))
    changed = sum(not np.array_equal(base[name], first[name]) for name in base)
    finite = all(bool(np.isfinite(value).all()) for value in first.values())
    hashes = [sha256_file(evidence[name] / "model.safetensors") for name in ("adapted", "repeated")]
    same = hashes[0] == hashes[1]
    difference = max(float(np.abs(first[name] - second[name]).max()) for name in first)
    measured = (
        f"{changed} of {len(base)} tensors changed, two runs {'equal' if same else f'differ by {difference:.3e}'}"
    )
    return same and changed > 0 and finite, measured + ("" if finite else ", a value is not finite")


def exact_tokens(evidence: dict[str, Path]) -> tuple[bool, str]:
    """Every captured token scored again and joined with the sampler's own log."""
    section = read_json(evidence["audit"])["exact_token"]
    if section["faults"]:
        return False, section["faults"][0]
    return section["coverage"] == 1.0 and section["tokens"] > 0, (
        f"{section['tokens']} tokens, coverage {section['coverage']:.0%}, {section['joined']} of "
        f"{section['calls']} calls joined, largest |d logprob| {section['largest_rescore_difference']:.2e}"
    )


def tool_loss(evidence: dict[str, Path]) -> tuple[bool, str]:
    """No observation is trained, by mask and by gradient."""
    section = read_json(evidence["audit"])["tool_loss"]
    if section["faults"]:
        return False, section["faults"][0]
    return section["observation_tokens"] > 0, (
        f"{section['observation_tokens']} observation tokens, none trainable; "
        f"{section['gradient_test']['labels_changed']} labels changed, gradients bit for bit the same"
    )


def failed_worker(evidence: dict[str, Path]) -> tuple[bool, str]:
    """A killed worker is a diagnostic and nothing else."""
    report = read_json(evidence["failed_worker"])
    held = {
        "the worker had called the model": report["model_calls_before"] >= 1,
        "terminal in time": report["terminal_state"] == "failed" and report["in_time"],
        "a diagnostic": report["kind"] == "worker" and bool(report["diagnostic"]),
        "no reward and no row": report["rewards"] == 0 and report["victim"] not in report["scored"],
        "others unaffected": report["bystanders_unaffected"],
        "a replacement with an id of its own": report["replacement"] not in (None, report["victim"]),
        "no process and no port left": report["processes_left"] == [] and not report["port_held"],
    }
    broken = [name for name, holds in held.items() if not holds]
    return not broken, f"not so: {', '.join(broken)}" if broken else str(report["summary"])


def identity(evidence: dict[str, Path]) -> tuple[bool, str]:
    """One policy and one question a group, nothing held out, boundaries kept."""
    section, aggregation = read_json(evidence["audit"])["identity"], read_json(evidence["aggregation"])
    faults = [*section["faults"], *aggregation["faults"]]
    if section["unaccounted"]:
        faults.append(f"{section['unaccounted']} rollouts are neither row nor diagnostic")
    if faults:
        return False, str(faults[0])
    return section["groups"] > 0, (
        f"{section['groups']} groups by policy {section['policy_revision'][:12]}, {section['rollouts']} rollouts "
        f"accounted for, {section['held_out_prompts_found']} held-out prompts; "
        f"{aggregation['breaks']} rewritten contexts kept apart"
    )


def held_out(evidence: dict[str, Path]) -> tuple[bool, str]:
    """A matched evaluation with an interval and with what it cost. Whatever it says: no gain is asked for."""
    verdict, reloaded = read_json(evidence["verdict"]), read_json(evidence["reload"])
    low, high = verdict["interval"]
    measured = verdict["measured"]
    costs = [measured[side][name] for side in ("baseline", "adapted") for name in ("seconds", "peak_memory_bytes")]
    held = (
        low <= verdict["difference"] <= high
        and verdict["pairs"] > 0
        and all(cost > 0 for cost in costs)
        and verdict["policies"]["adapted"] == reloaded["policy_revision"]
        and verdict["policies"]["baseline"] != verdict["policies"]["adapted"]
    )
    return held, str(verdict["summary"])


CRITERIA: tuple[tuple[str, tuple[str, ...], Callable[[dict[str, Path]], tuple[bool, str]]], ...] = (
    ("repeatable update", ("base", "adapted", "repeated"), repeatable),
    ("exact tokens", ("audit",), exact_tokens),
    ("tool tokens out of the loss", ("audit",), tool_loss),
    ("recovery from a failed worker", ("failed_worker",), failed_worker),
    ("identity of policy and group", ("audit", "aggregation"), identity),
    ("held-out result", ("verdict", "reload"), held_out),
)


if __name__ == "__main__":
    main()
