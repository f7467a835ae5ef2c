"""Constants of the text leg in one place, and the figures that chose them.

The figures are nDCG@10 of the text leg alone: BM25 with k1 = 1.2 and b = .75, chunks of about 200 tokens, a document's
rank that of its best chunk. In order: English product documentation (232 documents, 100 queries), an assistant's notes
(64, 38), six long articles (49 queries), Chinese documentation (1,460 queries), an agent's workspace in both languages
(150 queries), conversation turns in both languages (200 queries). The second and third are small: where sets disagree
the others decide. Optima are flat, and chunks of twice the size choose the same values.
"""

from __future__ import annotations

from types import MappingProxyType

# heading   0: .786 .662 .965 .577 .553 .431     .3: .817 .686 .957 .618 .564 .431     .6: .830 .697 .957 .621 .573 .431
#          .8: .836 .695 .957 .611 .570 .432      1: .835 .694 .957 .603 .567 .432    1.5: .810 .679 .957 .581 .563 .432
# Breadcrumb, path and file name as fields of their own give no more than this one, for twice the posting lists: at best
# .686 .972 .565 .431 .845 on notes, articles, workspace, conversation, documentation (mean .6996) beside
# .694 .972 .568 .431 .832 (.6994).
FIELD_BOOSTS = MappingProxyType({"body": 1.0, "heading": 0.6})

# The rows below were measured with .7 for headings: .836 .692 .957 .616 .573 .432.

# A stop word, beside 1 for any other word.
# .02: .836 .695 .957 .616 .574 .433     .3: .823 .682 .975 .615 .573 .433      1: .788 .595 .973 .613 .556 .400
STOP_WEIGHT = 0.05

# A part of an identifier, path or compound, as a share of the whole.
#  .1: .833 .697 .949 .605 .560 .429     .3: .839 .693 .949 .613 .568 .430      1: .835 .693 .957 .617 .576 .432
PART_WEIGHT = 0.5

# A pair of Chinese characters with a function character in it, see `stopwords`.
#  .1: .836 .692 .957 .615 .574 .433     .5: .836 .692 .957 .616 .572 .431      1: .836 .692 .957 .597 .572 .431
# Words from jieba's dictionary instead of pairs gave .633 where these pairs gave .630 on the Chinese set, and .430
# beside .432 on conversation: not worth 19 MB and a third of the speed.
SEAM_WEIGHT = 0.3

# A single character of a pair, as a share of the pair.
#   0: .836 .692 .957 .617 .574 .425     .3: .836 .692 .957 .611 .571 .437      1: .836 .692 .957 .561 .565 .448
CHARACTER_WEIGHT = 0.1

# How far all parts of a word count in `coverage` where the whole is not there. Not measured yet: half.
PART_COVERAGE = 0.5
