"""Words that carry little of a query's subject. They stay in the index: a query may hold nothing else."""

from __future__ import annotations

_ENGLISH = """
a about again all also am an and any are as at be been being but by can could did do does doing done dont for from
get had has have having he her here hers him his how i if im in into is it its just like may me might mine more most
much my no not of off on only or other our ours out over own please same shall she should so some such tell than that
the their theirs them then there these they this those to too under until up us use used very was we were what when
where whether which while who whom whose why will with would you your yours
"""
_CHINESE = """
我们 你们 他们 什么 怎么 如何 怎样 多少 哪些 哪个 哪里 为何 是否 可以 需要 这个 那个 一个 时候 以及 或者 并且 如果
"""

# Chinese is indexed in pairs of characters: a pair with one of these is more often the seam of two words than a word.
FUNCTION_CHARACTERS = frozenset("的了吗呢吧啊是在和与或及也都就而被把对从到为以于我你他她它们这那哪谁几个请要能会可")
STOP_WORDS = frozenset((_ENGLISH + _CHINESE).split()) | FUNCTION_CHARACTERS
