"""Questions: sets are disjoint by id and by content, and an edited row is refused."""

import pytest

from pilot_rl.questions import from_json, make_question, shared_questions, split_questions, to_json


def test_the_sets_share_nothing() -> None:
    sets = split_questions(7, 240, 40, 16)

    assert [len(sets[name]) for name in ("train", "held_out", "retention")] == [240, 40, 16]
    assert shared_questions(sets["train"], sets["held_out"]) == []
    assert shared_questions(sets["train"], sets["retention"]) == []
    assert shared_questions(sets["held_out"], sets["retention"]) == []


def test_a_shared_question_is_found() -> None:
    asked = make_question("1+2")

    assert shared_questions([asked, make_question("3+4")], [asked]) == ["1+2"]


def test_a_row_whose_answer_was_edited_is_refused() -> None:
    row = to_json(make_question("7*8"))

    assert from_json(row).answer == "56"
    with pytest.raises(ValueError, match="does not say"):
        from_json({**row, "answer": "57"})
