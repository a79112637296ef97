"""How failing requests are repeated, and when a server is given up."""

from dataclasses import dataclass

from harness.llm.transport import LONGEST_WAIT, Refused


@dataclass(frozen=True)
class RetryPolicy:
    """How failing requests are repeated: `attempts` in all, pauses doubling from `pause` to at most `longest` seconds.

    Refusals as too fast have their own, larger number of `turns`: the gate paces them. Whatever is left of these, a
    server that has answered nothing for the seconds of `Prompter.give_up_after` is given up.
    """

    attempts: int = 5
    turns: int = 40
    pause: float = 0.5
    longest: float = 30.0

    def ends(self, refused: Refused, failed: int, turns: int) -> bool:
        """Whether it ends with this refusal, the `failed`-th failure or the `turns`-th "too fast"."""
        if refused.kind == "rate_limit":
            return turns >= self.turns or (refused.wait or 0) > LONGEST_WAIT
        return failed >= (min(2, self.attempts) if refused.kind == "timeout" else self.attempts)

    def delay(self, failed: int) -> float:
        """Seconds to wait after the `failed`-th failure."""
        return min(self.longest, self.pause * float(2 ** min(failed - 1, 30)))
