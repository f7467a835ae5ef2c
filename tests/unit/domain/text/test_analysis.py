"""From bodies and headings to index terms."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.text import analyze, heading_terms

# Letters, joiners, marks, unspaced scripts, emoji and invisible characters: what the rules treat differently.
ALPHABET = "aAzZ019éÉeø-_./:@'’#+,&=\\ \n中文ーのカ한ไ🔭\u0301\u200d\u00ad™ßſµﬁｶ２"
TEXTS = st.one_of(st.text(), st.text(ALPHABET))


class TestIdentifiers:
    @pytest.mark.parametrize(
        ("text", "terms"),
        [
            ("DEC-0054", ["dec-0054", "dec", "0054"]),
            ("gpt-4", ["gpt-4", "gpt", "4"]),
            ("gpt4", ["gpt4", "gpt", "4"]),
            ("atomic_write_json", ["atomic_write_json", "atom", "write", "json"]),
            (r"atomic\_write", ["atomic_write", "atom", "write"]),
            ("src/lib/i18n.ts", ["src/lib/i18n.ts", "src", "lib", "i18n.ts", "i18n", "ts"]),
            ("@acme/tool-kit", ["acme/tool-kit", "acm", "tool-kit", "toolkit", "tool", "kit"]),
            ("2026.4.10", ["2026.4.10", "2026", "4", "10"]),
            ("v1.2.3", ["v1.2.3", "1.2.3", "1", "2", "3"]),
            ("2026-03-31", ["2026-03-31", "2026", "03", "31"]),
            ("getUserName", ["getusernam", "get", "user", "name"]),
            ("HTTPServer", ["httpserver", "http", "server"]),
            ("MAX_RETRIES", ["max_retries", "max", "retri"]),
            ("__init__", ["init"]),
            ("std::vector", ["std::vector", "std", "vector"]),
            ("C++", ["c++", "c"]),
            ("C#", ["c#", "c"]),
            (".NET", [".net", "net"]),
            ("R&D", ["r&d", "r", "d"]),
            ("1,000,000", ["1000000"]),
            ("9:15", ["9:15", "9", "15"]),
            ("a1b2c3d4e5f6", ["a1b2c3d4e5f6"]),
            ("james@acme.dev", ["james@acme.dev", "jame", "acme.dev", "acm", "dev"]),
            ("https://acme.dev/a?x", ["https://acme.dev/a", "https", "acme.dev", "acm", "dev", "a", "x"]),
            (r"C:\temp\x", ["c:\\temp\\x", "c", "temp", "x"]),
        ],
    )
    def test_whole_first_then_parts(self, text: str, terms: list[str]) -> None:
        assert analyze(text) == terms

    @pytest.mark.parametrize(
        "text",
        ["(DEC-0054)", '"DEC-0054".', "**DEC-0054**", "`DEC-0054`,", "#DEC-0054", "[DEC-0054](", "DEC\u20110054"],
    )
    def test_markup_around_is_no_part_of_it(self, text: str) -> None:
        assert analyze(text) == analyze("DEC-0054")

    def test_a_sentence_end_is_no_joiner(self) -> None:
        assert analyze("It ends. Next: go. .") == ["it", "end", "next", "go"]

    def test_a_blob_is_known_by_its_beginning(self) -> None:
        (term,) = analyze("aB3" * 10_000)
        assert len(term) == 128

    @pytest.mark.parametrize("text", ["a-", ".a", "a'", "aB", "A.b_c/", "1,000", "中", "é", "_", "C#", "a\u0301"])
    def test_a_line_of_a_megabyte(self, text: str) -> None:
        assert all(analyze(text * (1_000_000 // len(text))))


class TestWords:
    @pytest.mark.parametrize(
        "forms",
        [
            ["Working", "works", "worked", "WORK"],
            ["policy", "Policies"],
            ["Rod", "Rod's", "Rod’s", "ROD'S"],
            ["we", "we're", "we’ll", "we'd"],
            ["dont", "don't", "Don’t", "don´t"],
            ["Straße", "STRASSE", "strasse"],
            ["ＡＢＣ", "abc"],
            ["ﬁx", "fix"],
            ["ｶﾀｶﾅ", "カタカナ"],
            ["co\u00adoperate", "cooperate"],
        ],
    )
    def test_the_same_first_term(self, forms: list[str]) -> None:
        assert len({analyze(form)[0] for form in forms}) == 1

    @pytest.mark.parametrize(
        ("written", "asked"),
        [
            ("impôt", "impot"),
            ("l'impôt", "impôt"),
            ("O'Brien", "obrien"),
            ("O'Brien", "Brien"),
            ("e-mail", "email"),
            ("Øresund", "oresund"),
            ("Łódź", "lodz"),
            ("naïve", "naive"),
            ("Ёлка", "елка"),
            ("camelCase", "case"),
            ("phase2", "phase 2"),
            ("v1.2.3", "1.2.3"),
            ("release/v1.2.3", "1.2.3"),
            ("Telegram的配置", "Telegram"),
            ("Telegram的配置", "配置"),
            ("Saturday🔭", "🔭"),
        ],
    )
    def test_what_is_asked_is_among_the_terms(self, written: str, asked: str) -> None:
        assert set(analyze(asked)) <= set(analyze(written))

    def test_repeats_are_kept(self) -> None:
        assert analyze("work works 中文中文").count("work") == 2
        assert analyze("中文中文").count("中文") == 2

    def test_other_scripts_keep_their_marks(self) -> None:
        assert analyze("हिन्दी עברית العربية") == ["हिन्दी", "עברית", "العربية"]


class TestUnspacedScripts:
    @pytest.mark.parametrize(
        ("text", "terms"),
        [
            ("中文合約", ["中", "文", "合", "約", "中文", "文合", "合約"]),
            ("税", ["税"]),
            ("カー", ["カ", "ー", "カー"]),
            ("한국", ["한", "국", "한국"]),
            ("中文。合約", ["中", "文", "中文", "合", "約", "合約"]),
            ("用iMessage发", ["用", "imessag", "i", "messag", "发"]),
            ("2026年", ["2026", "年"]),
        ],
    )
    def test_characters_and_pairs(self, text: str, terms: list[str]) -> None:
        assert analyze(text) == terms


class TestHeadings:
    def test_breadcrumb_and_path_without_suffix(self) -> None:
        terms = heading_terms("Plans > Trips", "memory/2026-03-31-alps.md")
        assert terms[:2] == ["plan", "trip"]
        assert {"2026-03-31-alps", "2026", "alp", "memori"} <= set(terms)
        assert "md" not in terms

    def test_a_file_at_the_top_without_headings(self) -> None:
        assert heading_terms("", "TOOLS.md") == ["tool"]


@given(TEXTS)
def test_no_term_is_empty_or_holds_whitespace_or_is_long(text: str) -> None:
    assert all(term and term.split() == [term] and len(term) <= 512 for term in analyze(text))


@given(TEXTS)
def test_canonically_equal_texts_have_equal_terms(text: str) -> None:
    assert analyze(unicodedata.normalize("NFD", text)) == analyze(unicodedata.normalize("NFC", text))


@given(TEXTS, TEXTS)
def test_lines_are_independent(first: str, second: str) -> None:
    assert analyze(f"{first}\n{second}") == analyze(first) + analyze(second)
