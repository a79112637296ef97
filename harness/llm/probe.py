"""The probe sent to each model first: does it follow the answer schema, and does it grade the right way round?"""

from harness.llm.answer_schema import AnswerSchema, Choice
from harness.llm.prompter import Prompt, Task

PROBE = Prompt(
    "You grade how useful each passage is for answering the question: 0 off topic, 1 on topic but of no use, 2 part of "
    "the answer, 3 all of the answer. Passages stand between <<slot>> and <</slot>>.",
    "Question: At what temperature does water boil at sea level, in degrees Celsius?\n\n"
    "<<c01>>\nAt sea level water boils at 100 degrees Celsius.\n<</c01>>\n\n"
    "<<c02>>\nThe violin has four strings, tuned in fifths.\n<</c02>>",
    AnswerSchema((("grade", Choice((0, 1, 2, 3))),)),
    {"c01": Task("probe", ("1",)), "c02": Task("probe", ("2",))},
    output=30,
)
