"""Words of a text for comparisons, ignoring case, Unicode form and punctuation.

Each Chinese or Japanese character is a word, as these scripts do not separate words.
"""

import re
import unicodedata

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+[+#]*")


def words(text: str) -> list[str]:
    """The words of a text in order, in lower case and Unicode form NFC.

    >>> words("C++ isn't C#; 塩を"), words("Cafe\u0301") == words("café")
    (['c++', 'isn', 't', 'c#', '塩', 'を'], True)
    """
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())
