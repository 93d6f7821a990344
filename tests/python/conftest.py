"""Runs a share of the tests: --share 2/4 takes every fourth, from the second on. ctest runs the shares side by side."""


def pytest_addoption(parser):
    parser.addoption("--share", default="1/1", help="PART/OF: run every OF-th test, beginning with the PART-th")


def pytest_collection_modifyitems(config, items):
    part, of = map(int, config.getoption("--share").split("/"))
    assert 1 <= part <= of
    items[:] = items[part - 1 :: of]
