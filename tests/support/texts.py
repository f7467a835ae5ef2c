"""Texts of many lengths and scripts."""

from __future__ import annotations

_SENTENCES = (
    "The kettle on platform two has been broken since Tuesday, and nobody in the office admits to having touched it.",
    "def retry(call, attempts=3): return next(filter(None, (call() for _ in range(attempts))), None)",
    "会议改到周四下午三点，请提前把上个月的账单和合同发给财务部。",
    "Error 0x80070057: the parameter `--max-connections` must lie between 1 and 1,024 (got -1).",
    "- [ ] call the dentist\n- [x] renew the passport\n- [ ] ask Mara about the garden keys",
    "Die Wärmepumpe läuft nachts leiser, seit der Installateur die Rohre neu gedämmt hat.",
    "| host | port | owner |\n| --- | --- | --- |\n| db-3 | 5432 | platform |",
    "今天的晨跑是五公里～膝盖没事，不过鞋子该换了。",
)


def mixed_texts(count: int) -> list[str]:
    """Make different texts of 1 to 8 sentences, English, German, Chinese, code and tables."""
    return [
        " ".join(_SENTENCES[(number + step * step) % len(_SENTENCES)] for step in range(number % 8 + 1))
        + f" ({number})"
        for number in range(count)
    ]
