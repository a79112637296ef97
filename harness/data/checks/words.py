"""Words of a text for comparisons: case, Unicode form and punctuation do not count; signs of Chinese and Japanese are
words of their own, as those write none apart.
"""

import re
import unicodedata

_SIGNS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_SIGNS}]|[^\W{_SIGNS}]+[+#]*")


def words(text: str) -> list[str]:
    """The words in order.

    >>> words("C++ isn't C#; 塩を"), words("Cafe\u0301") == words("café")
    (['c++', 'isn', 't', 'c#', '塩', 'を'], True)
    """
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())
