import ast
import statistics

from tests.repo.checkout import ROOT, modules


def line_count(text: str) -> int:
    return len(text.splitlines())


def test_no_module_is_longer_than_400_lines() -> None:
    sizes = {str(path.relative_to(ROOT)): line_count(path.read_text()) for path in modules()}
    assert {name: size for name, size in sizes.items() if size > 400} == {}


def test_half_of_the_product_s_modules_have_fewer_than_120_lines() -> None:
    sizes = [line_count(path.read_text()) for path in modules("memoryd", "services") if path.name != "__init__.py"]
    assert statistics.median(sizes) < 120


def test_every_package_says_what_lives_there() -> None:
    packages = {path.parent for path in modules()}
    silent = []
    for package in sorted(packages):
        init = package / "__init__.py"
        if not init.exists() or not ast.get_docstring(ast.parse(init.read_text())):
            silent.append(str(package.relative_to(ROOT)))
    assert silent == []
