from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.errors import InvalidInputError
from memoryd.evaluation.known_items import load_or_make, make
from memoryd.evaluation.sets import RetrievalSet
from tests.support.sets import write_odd_set

RUNBOOK = """---
title: Cold room runbook
aliases: [what frost does to the store, what to do about frost]
description: [not, a, text]
---
# When the cold room fails

Keep the door shut.

## Power cut at night

The generator starts by itself.


## Notes

Nothing.
"""
LOG = """# Decision log for seeds

Who is phoned when a cold room warms up stands in [the runbook](runbooks/cold-room.md#x). Not here.
The [[cold-room|first steps]] and the [[log]] differ, and nobody knows [why that is so](https://example.com/a.md).

## Notes

```
In a fence a link to [the cold room runbook](runbooks/cold-room.md) is code, not a link.
```

种子低温运输的注意事项都写在[[cold-room]]里。 See [it](/runbooks/cold-room.md).
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks" / "cold-room.md").write_text(RUNBOOK)
    (tmp_path / "log.md").write_text(LOG)
    (tmp_path / ".hidden.md").write_text("# A heading that nobody reads\n\ntext\n")
    return tmp_path


def asked(data: RetrievalSet) -> dict[str, tuple[str, tuple[int, int] | None]]:
    found = {}
    for query in data.queries:
        (document,) = data.relevant[query.id]
        ((_, *lines),) = data.spans.get(query.id, ((document,),))
        found[query.text] = (document, (lines[0], lines[1]) if lines else None)
    return found


def test_headings_front_matter_and_links_become_queries(folder: Path) -> None:
    data = make(folder)
    runbook = "runbooks/cold-room.md"
    assert asked(data) == {
        "Cold room runbook": (runbook, None),
        "what frost does to the store": (runbook, None),
        "When the cold room fails": (runbook, (6, 17)),
        "Power cut at night": (runbook, (10, 12)),
        "Decision log for seeds": ("log.md", (1, 12)),
        "Who is phoned when a cold room warms up stands in the runbook.": (runbook, None),
        "The first steps and the log differ, and nobody knows why that is so.": (runbook, None),
        "种子低温运输的注意事项都写在cold-room里。": (runbook, None),
    }
    by_text = {query.text: query.id for query in data.queries}
    assert data.ignored == {
        by_text[text]: frozenset({"log.md"}) for text in by_text if text.startswith(("Who", "The first", "种子"))
    }
    assert {document.path for document in data.documents} == {"log.md", runbook}
    assert make(folder) == data


def test_what_two_files_say_asks_for_neither(folder: Path) -> None:
    (folder / "other.md").write_text("# POWER  cut, at night\n\nAnother one.\n")
    texts = asked(make(folder))
    assert "Power cut at night" not in texts
    assert "When the cold room fails" in texts


def test_a_set_is_read_and_a_folder_without_queries_refused(tmp_path: Path, folder: Path) -> None:
    assert load_or_make(write_odd_set(tmp_path / "odd")).queries[0].id == "q1"
    assert load_or_make(folder).queries
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "note.md").write_text("Nothing but text.\n")
    for name, message in (("bare", "no query can be made from its 1"), ("absent", "absent does not exist")):
        with pytest.raises(InvalidInputError, match=message):
            make(tmp_path / name)
