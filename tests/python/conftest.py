"""Lets the tests import the programs of the stages as the stages themselves do: from their own folders."""

import sys
from pathlib import Path

STAGES = Path(__file__).resolve().parents[2] / "stages"
sys.path += [str(STAGES / name) for name in ("base", "ppo-step", "reload", "evaluate", "audit", "accept")]
