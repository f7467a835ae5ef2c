"""Words that carry little of a query's subject. They stay in the index: a query may hold nothing else.

A word of one language may be the subject in another (`die`, `sin`, `son`): the words of languages that are written in
Latin letters, English excepted, count only in a query that is in that language. Lists by script need no such care.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

_ENGLISH = """
a about again all also am an and any are as at be been being but by can could did do does doing done dont for from
get had has have having he her here hers him his how i if im in into is it its just like may me might mine more most
much my no not of off on only or other our ours out over own please same shall she should so some such tell than that
the their theirs them then there these they this those to too under until up us use used very was we were what when
where whether which while who whom whose why will with would you your yours
"""
_CHINESE = """
我们 你们 他们 什么 怎么 如何 怎样 多少 哪些 哪个 哪里 为何
是否 可以 需要 这个 那个 一个 时候 以及 或者 并且 如果
"""
# Of Japanese and Korean, as of Chinese, pairs of characters: particles, endings, question words.
_JAPANESE = """
です ます でし した ました ませ せん から まで いつ どこ だれ なに 何が 何を
何の 何で どう どの どれ なぜ ない こと もの ため という して する
ください 教え えて てく くだ さい について つい いて
"""
_KOREAN = """
무엇 언제 어디 누가 누구 어떤 어떻 떻게 얼마 어느 그리 리고 하지 지만 입니 니다 니까
습니 인가 가요 나요 해요 했나 있나 있는 하는 했는 대해 에서 에게 까지 부터 으로
"""
_ARABIC = """
في من على إلى الى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا متى أين
اين كيف لماذا هل كم أو او ثم أن ان إن كان كانت هو هي هم
نحن أنا انا أنت لا لم لن قد كل بعض بعد قبل عند أي اي و ف ب ل
"""
_LATIN = {
    "spanish": """
    a al algo ante como cómo con cual cuál cuales cuáles cuando cuándo cuanto cuánto cuantos cuántos de del desde donde
    dónde e el él ella ellas ellos en entre era es esa ese eso esta está están este esto fue ha hace hay la las le les
    lo los más me mi mis muy nos nosotros o para pero por porque que qué quien quién quienes quiénes se ser si sin sobre
    son su sus también te tiene tu tus un una unas unos y ya yo
    """,
    "portuguese": """
    a ao aos aquela aquele as até com como da das de dela dele do dos e ela elas ele eles em entre era essa esse esta
    está este eu foi há isso isto já la lhe mais mas me meu minha muito na nas não no nos nós o onde os ou para pela
    pelo por porque qual quais quando quanto quantos que quem se sem ser seu sua são também te tem um uma você vocês
    """,
    "french": """
    à au aux avec c'est ce ces cette combien comment dans de des du elle elles en est et étaient était être eu il ils
    j'ai je la le les leur leurs lui mais me mes mon ma ne nos notre nous on ont ou où par pas plus pour pourquoi qu'est
    quand que quel quelle quelles quels qui quoi sa sans se ses son sont sur ta te tes ton tu un une vos votre vous y
    """,
    "german": """
    aber als am an auch auf aus bei bin bis das dass dem den der des die doch du durch ein eine einem einen einer er es
    für haben hat hatte ich ihr ihre im in ist ja kann mein meine mit nach nicht noch nur oder sein sich sie sind so
    über um und uns unser unsere vom von vor wann war waren warum was welche welcher welches wem wen wenn wer werden wie
    wir wird wo wurde zu zum zur
    """,
}
_OF_LATIN = {language: frozenset(words.split()) for language, words in _LATIN.items()}
_OF_ENGLISH = frozenset(_ENGLISH.split())

# Chinese is indexed in pairs of characters: a pair with one of these is more often the seam of two words than a word.
# The same holds for Japanese particles, and for Korean ones where they end a run.
FUNCTION_CHARACTERS = frozenset(
    "的了吗呢吧啊是在和与或及也都就而被把对从到为以于我你他她它们这那哪谁几个请要能会可はがをにとものへで"
)
KOREAN_PARTICLES = frozenset("은는이가을를에의도로와과")
STOP_WORDS = (
    frozenset((_ENGLISH + _CHINESE + _JAPANESE + _KOREAN + _ARABIC).split()) | FUNCTION_CHARACTERS | KOREAN_PARTICLES
)


def foreign_stop_words(words: Sequence[str]) -> AbstractSet[str]:
    """Give the stop words of the language that a query is in, beside English.

    Args:
        words: the query's, in lower case.

    It is in the language that knows most of its words, if that is more than English knows, and at least two, or one
    that English does not write.
    """
    best: AbstractSet[str] = frozenset()
    most = sum(word in _OF_ENGLISH for word in words)
    for known in _OF_LATIN.values():
        held = [word for word in words if word in known]
        if len(held) > most and (len(held) > 1 or not held[0].isascii()):
            best, most = known, len(held)
    return best
