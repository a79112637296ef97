"""How often and when failed requests are repeated."""

from dataclasses import dataclass

from harness.llm.transport import LONGEST_WAIT, Refused


@dataclass(frozen=True)
class RetryPolicy:
    """Retries of failed requests: at most `attempts`, with pauses that double from `pause` to `longest` seconds.

    Rate-limit refusals have a larger limit of their own, `turns`, since the rate limiter delays them. In addition,
    a server that has not answered for `Prompter.give_up_after` seconds is given up.
    """

    attempts: int = 5
    turns: int = 40
    pause: float = 0.5
    longest: float = 30.0

    def ends(self, refused: Refused, failed: int, turns: int) -> bool:
        """Whether to stop after this refusal, given the number of failures and of rate-limit refusals so far."""
        if refused.kind == "rate_limit":
            return turns >= self.turns or (refused.wait or 0) > LONGEST_WAIT
        return failed >= (min(2, self.attempts) if refused.kind == "timeout" else self.attempts)

    def delay(self, failed: int) -> float:
        """Seconds to wait after `failed` failures, before random jitter."""
        return min(self.longest, self.pause * float(2 ** min(failed - 1, 30)))
