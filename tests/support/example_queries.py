"""Questions that the files of `examples/workspace` answer, with the lines of the answer.

For end-to-end checks, not a measure of quality: five were reworded after a trial ranking.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExampleQuery:
    """A query and where its answer stands: workspace path, first and last line, 1-based, inclusive."""

    text: str
    path: str
    start_line: int
    end_line: int


# Exact identifiers, natural questions, paraphrases, Chinese, and the last two across languages.
EXAMPLE_QUERIES: tuple[ExampleQuery, ...] = (
    ExampleQuery("FW-E22 meaning", "memory/runbooks/cold-room-failure.md", 32, 32),
    ExampleQuery("0048_split_lots", "memory/2026-04-28.md", 10, 10),
    ExampleQuery("@skarrow/label-press 3.4.3", "memory/2026-04-14-label-reprint.md", 23, 23),
    ExampleQuery("src/barcode/check_digit.ts", "memory/2026-04-14-label-reprint.md", 15, 15),
    ExampleQuery("FROSTWATCH_PAGE_URL", "memory/projects/frostwatch.md", 29, 29),
    ExampleQuery("lotSuffix", "memory/2026-06-23.md", 15, 15),
    ExampleQuery(
        "what do we do if a cold room is warming up in the middle of the night?",
        "memory/runbooks/cold-room-failure.md",
        11,
        18,
    ),
    ExampleQuery(
        "how do I restore the seedledger database from a backup?",
        "memory/runbooks/restore-seedledger.md",
        11,
        35,
    ),
    ExampleQuery("what is Ragna allergic to?", "USER.md", 21, 21),
    ExampleQuery("why did the compressor become more expensive?", "memory/2026-04-28.md", 7, 7),
    ExampleQuery("when is the Primula trip now?", "memory/2026-06-23.md", 9, 9),
    ExampleQuery(
        "the packets lost their labels in the cold, what do we print with instead?",
        "memory/2026-04-14-label-reprint.md",
        9,
        11,
    ),
    ExampleQuery(
        "why was nobody called when the south room got warm in February?",
        "memory/2026-02-17-south-room.md",
        24,
        26,
    ),
    ExampleQuery("may I write down where endangered flowers grow?", "SOUL.md", 15, 15),
    ExampleQuery("青岚有急事应该找谁？", "memory/partners/青岚实验室.md", 20, 20),
    ExampleQuery("次氯酸钠消毒要摇多久？", "memory/protocols/发芽试验.md", 13, 13),
    ExampleQuery("箱子在机场停留超过三天怎么办？", "memory/partners/清关.md", 31, 31),
    ExampleQuery("Ragna 什么时候去昆明？", "memory/2026-05-14-视频会议.md", 27, 27),
    ExampleQuery("冷库停电，发电机的燃料能用多少小时？", "memory/runbooks/cold-room-failure.md", 37, 37),
    ExampleQuery(
        "orchid seed viability staining with TTC: temperature and duration", "memory/protocols/发芽试验.md", 35, 35
    ),
)
