"""Calculator questions and their split into training and held-out sets.

A question is a chain of one or two operations on single digits, left to right: `7*8`, `3*4+5`. The calculator
tool does one operation a call, so a chain of two needs two calls. The id is a digest of the content: two
questions with one content cannot have two ids.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from pilot_rl.records import Json, sha256

OPERATORS = "+-*"


@dataclass(frozen=True)
class Question:
    """A task: what is asked and what is right."""

    task_id: str
    question: str
    answer: str


def evaluate_operation(expression: str) -> str | None:
    """Result of one operation on two integers as the tool computes it, or None where it is malformed."""
    match = re.fullmatch(r"(-?\d{1,6})([+*-])(-?\d{1,6})", expression, re.ASCII)
    if match is None:
        return None
    left, operator, right = int(match[1]), match[2], int(match[3])
    return str({"+": left + right, "-": left - right, "*": left * right}[operator])


def make_question(text: str) -> Question:
    """The question with this text. Raises ValueError where it is none."""
    parts = re.fullmatch(r"(\d)([+*-])(\d)(?:([+*-])(\d))?", text, re.ASCII)
    if parts is None:
        raise ValueError(f"not a calculator question: {text!r}")
    answer = evaluate_operation("".join(parts.group(1, 2, 3)))
    if parts[4]:
        answer = evaluate_operation(f"{answer}{parts[4]}{parts[5]}")
    if answer is None:
        raise ValueError(f"no answer to {text!r}")
    return Question(f"calc-{sha256(text.encode())[:12]}", text, answer)


def split_questions(seed: int, train: int, held_out: int, retention: int) -> dict[str, list[Question]]:
    """Disjoint sets: `train` and `held_out` of both kinds, `retention` of single operations only."""
    rng = random.Random(seed)
    single = [f"{a}{o}{b}" for a in range(10) for o in OPERATORS for b in range(10)]
    double = [f"{a}*{b}{o}{c}" for a in range(1, 10) for b in range(1, 10) for o in "+-" for c in range(1, 10)]
    rng.shuffle(single)
    rng.shuffle(double)
    if retention + held_out // 2 + train // 2 > len(single):
        raise ValueError("more questions asked for than there are")
    kept = single[:retention]
    held = single[retention : retention + held_out // 2] + double[: held_out - held_out // 2]
    rest_single = single[retention + held_out // 2 :]
    rest_double = double[held_out - held_out // 2 :]
    half = train // 2
    taken = rest_single[:half] + rest_double[: train - half]
    rng.shuffle(taken)
    rng.shuffle(held)
    sets = {"train": taken, "held_out": held, "retention": kept}
    return {name: [make_question(text) for text in texts] for name, texts in sets.items()}


def to_json(question: Question) -> Json:
    """The question as stored."""
    return {"task_id": question.task_id, "question": question.question, "answer": question.answer}


def from_json(row: Json) -> Question:
    """The question of a stored row. Raises ValueError where id, text and answer do not belong together."""
    question = make_question(str(row["question"]))
    if to_json(question) != row:
        raise ValueError(f"question row {row} does not say what {question} says")
    return question


def shared_questions(left: list[Question], right: list[Question]) -> list[str]:
    """What two sets share by id or by content (case and spaces aside): empty where they are disjoint."""
    ids = {q.task_id for q in left}
    texts = {_content(q.question) for q in left}
    return sorted(q.question for q in right if q.task_id in ids or _content(q.question) in texts)


def _content(text: str) -> str:
    return "".join(text.split()).casefold()
