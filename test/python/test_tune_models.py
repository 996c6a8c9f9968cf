# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning the kernels of a model: found, measured, used, and said so."""

import importlib.util
import io
import json
import signal
import subprocess
import sys
import time

import pytest
import torch

import weft
from weft import _core, errors, tune
from weft.cli.main import main
from weft.tune.learned import LearnedModel
from weft.tune.progress import Bars
from weft.tune.records import Record, Records
from weft.tune.search import Search
from weft.tune.task import Candidate, Task
from weft.tune.tuning import compiler, target

nn = torch.nn
pytestmark = pytest.mark.usefixtures("no_grad")


def network():
    torch.manual_seed(0)
    layers = [nn.Linear(48, 80), nn.GELU(), nn.Linear(80, 48), nn.LayerNorm(48), nn.Linear(48, 80)]
    return nn.Sequential(*layers).eval(), torch.randn(24, 48)


def report_of(compiled):
    text = io.StringIO()
    weft.report(compiled, text)
    return " ".join(text.getvalue().split())


def schedules_of(compiled):
    manifest = json.loads(_core.Artifact.load(str(weft.artifact_path(compiled))).manifest)
    return [each["schedule"] for each in manifest["entries"]["main"]["calls"]]


def test_a_model_is_tuned_and_compiled_from_its_records(tmp_path):
    model, x = network()
    tasks = tune.tasks(model, x)
    assert len({each.kernel for each in tasks}) == len(tasks)
    assert abs(sum(each.share for each in tasks) - 1) < 1e-6
    spaces = {each.name: len(each.candidates()) for each in tasks}
    varied = [each for each in tasks if each.candidates()]
    assert len(varied) == 3 and all(spaces[each.name] > 50 for each in varied), spaces

    records = tmp_path / "kernels.db"
    compiled = weft.compile(model, records=records)
    for _ in range(2):
        compiled(x)
    names = ", ".join(sorted(each.name for each in varied))
    assert f"fallback configuration: the records have nothing of {names};" in report_of(compiled)

    seen = []
    measured = tune.run(
        model, x, records=records, trials=3, rounds=1, progress=lambda *each: seen.append(each)
    )
    assert len(seen) == len(measured) and {each.outcome for each in measured} <= {"right", "failed"}
    assert {each.kernel for each in measured} == {each.kernel for each in tasks}
    compiled = weft.compile(model, records=records)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    assert "fallback configuration" not in report_of(compiled)
    # Nothing is left to measure for kernels that were measured as often as that.
    again = tune.run(*tasks, records=records, trials=0, rounds=1)
    assert {each.steps for each in again} <= {each.steps for each in measured}


def test_the_fastest_schedule_is_the_one_that_is_used(tmp_path):
    model, x = network()
    task = next(each for each in tune.tasks(model, x) if each.candidates())
    records = tmp_path / "kernels.db"
    usual = weft.compile(model)
    usual(x)
    rows = [each.get("rows") for each in schedules_of(usual)]
    with Records(records) as opened:
        for steps, outcome, seconds in [
            ("", "right", 3.0),
            ("rows=2,groups=1", "right", 2.0),
            ("rows=1,groups=1", "wrong", None),
        ]:
            opened.add(Record(task.kernel, target(), compiler(), steps, outcome, seconds))
    assert tune.best(task, records) == "rows=2,groups=1"
    compiled = weft.compile(model, records=records)
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    found = [each.get("rows") for each in schedules_of(compiled)]
    changed = [n for n, (old, new) in enumerate(zip(rows, found)) if old != new]
    assert [found[n] for n in changed] == [2] and rows[changed[0]] != 2
    # Another machine's records say nothing here.
    with Records(tmp_path / "other.db") as opened:
        opened.add(Record(task.kernel, "another", compiler(), "rows=2,groups=1", "right", 1.0))
    compiled = weft.compile(model, records=tmp_path / "other.db")
    compiled(x)
    assert [each.get("rows") for each in schedules_of(compiled)] == rows


def test_equal_kernels_are_one_task_and_keep_their_digest():
    torch.manual_seed(0)
    x = torch.randn(24, 48)
    twice = nn.Sequential(nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU()).eval()
    (task,) = [each for each in tune.tasks(twice, x) if each.candidates()]
    assert task.share > 0.5
    # By the compiler's costs. 24 rows are three tiles of 8, or four of 6 for two threads.
    first = task.candidates()[0]
    assert first.predicted <= task.default().predicted and first.numbers["rows"] in (6, 8)
    assert first.numbers["groups"] == task.default().numbers["groups"]
    once = nn.Sequential(nn.Linear(48, 48), nn.ReLU()).eval()
    (same,) = [each for each in tune.tasks(once, x) if each.candidates()]
    assert same.kernel == task.kernel
    with (
        pytest.warns(errors.WeftWarning, match="PyTorch runs this call"),
        pytest.raises(errors.NotCompiledError, match="the model is not compiled"),
    ):
        tune.tasks(lambda x: x + x.sum().item(), x)


def test_a_corrupted_file_is_named_and_kept(tmp_path):
    path = tmp_path / "kernels.db"
    path.write_bytes(b"no records at all " * 100)
    model, x = network()
    with pytest.raises(tune.RecordsError, match=r"kernels\.db holds no records"):
        weft.compile(model, records=path)
    with pytest.raises(tune.RecordsError, match=r"kernels\.db holds no records"):
        tune.run(model, x, records=path)
    assert path.read_bytes() == b"no records at all " * 100


class Simulated(Task):
    """The time depends on two numbers, with its least at 7 and 3."""

    def __init__(self):
        self.name = self.kernel = "simulated"

    def default(self):
        return Candidate("", {"a": 1, "b": 1}, 1.0)

    def candidates(self):
        pairs = [(a, b) for a in range(1, 13) for b in range(1, 7) if (a, b) != (1, 1)]
        # The analytical model has it the wrong way round.
        return [Candidate(f"a={a},b={b}", {"a": a, "b": b}, 1.0) for a, b in reversed(pairs)]

    def request(self, candidate):
        return dict(candidate.numbers)


class Laboratory:
    def __init__(self):
        self.requests = []

    @staticmethod
    def seconds(a, b):
        return 1.0 + abs(a - 7) * 0.2 + abs(b - 3) * 0.3

    def measure(self, request):
        self.requests.append(request)
        seconds = self.seconds(request["a"], request["b"])
        if request["a"] == 12:
            note = "te:1: error: schedule: expected rows of at most 11, found 12"
            return {"outcome": "failed", "note": note}
        ratio = seconds / self.seconds(1, 1)
        return {"outcome": "right", "seconds": seconds, "ratio": ratio, "note": ""}


def search(task, records, laboratory, trials, patience=99):
    return Search(task, records, laboratory, ("here", "this"), trials, patience, 1, 1)


def test_the_learned_model_finds_what_ranks_do_not(tmp_path):
    laboratory = Laboratory()
    with Records(tmp_path / "r.db") as records:
        list(search(Simulated(), records, laboratory, 30).run())
        found = records.of("simulated", "here", "this")
    assert found[0].seconds < 1.35, found[:3]  # of 72 candidates from 1.0 to 3.1
    assert found[-1].outcome == "failed"
    model = LearnedModel(
        [(Candidate(str(a), {"a": a}, 1.0), 1.0 + abs(a - 7)) for a in range(1, 13)]
    )
    times = model.seconds([Candidate("", {"a": a}, 1.0) for a in (2, 7)])
    assert times[1] < times[0]


def test_searches_end_by_patience_and_go_on_where_they_were(tmp_path):
    task, laboratory = Simulated(), Laboratory()
    with Records(tmp_path / "r.db") as records:
        first = list(search(task, records, laboratory, 5).run())
        count = len(laboratory.requests)
        for trials in (0, 5):
            again = list(search(task, records, laboratory, trials).run())
            assert not again and len(laboratory.requests) == count
        # One that is interrupted leaves the rest of its trials to the next; refusals do not count.
        running = search(task, records, laboratory, 20).run()
        for _ in range(4):
            next(running)
        running.close()
        list(search(task, records, laboratory, 20).run())
        rows = {each.steps: each.outcome for each in records.all()}
    assert len(first) >= 5 and list(rows.values()).count("right") == 20
    task.share = 0.0001  # nothing that it could bring is worth a measurement
    laboratory = Laboratory()
    with Records(tmp_path / "s.db") as records:
        list(search(task, records, laboratory, 60).run())
    assert len(laboratory.requests) < 20


def test_bars_follow_the_search(capsys):
    first, second = Simulated(), Simulated()
    second.kernel, second.name = "other", "other"
    with Bars([first, second], 3) as bars:
        bars(first, 0, Record("simulated", "here", "this", "", "right", 2e-6))
        bars(first, 1, Record("simulated", "here", "this", "a=2", "failed", None, "why"))
        bars(second, 0, Record("other", "here", "this", "", "right", 1e-6))
    shown = capsys.readouterr().out
    assert "model" in shown and "other 1.0 µs" in shown and "4/6" in shown


KILLED = """
import sys
import torch
from weft import tune
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(48, 80), torch.nn.ReLU()).eval()
said = lambda task, number, record: print(record.steps, flush=True)
tune.run(model, torch.randn(24, 48), records=sys.argv[1], trials=50, rounds=1, progress=said)
"""


def tuner(path):
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, path],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"},
    )


@pytest.mark.at_length
def test_a_killed_tuner_loses_at_most_one_record_and_two_share_a_file(tmp_path):
    path = tmp_path / "kernels.db"
    first, second = tuner(path), tuner(path)
    said = [first.stdout.readline().strip() for _ in range(3)]
    first.send_signal(signal.SIGKILL)
    said += [line.strip() for line in first.stdout.read().splitlines()]
    first.wait()
    theirs = [second.stdout.readline().strip() for _ in range(2)]
    second.send_signal(signal.SIGKILL)
    theirs += [line.strip() for line in second.stdout.read().splitlines()]
    second.wait()
    time.sleep(0.1)
    with Records(path) as records:
        kept = [each.steps for each in records.all()]
    assert set(said) | set(theirs) <= set(kept)
    assert len(kept) - len(said) - len(theirs) in (0, 1, 2)


FACTORY = """
import torch
def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(48, 80), torch.nn.ReLU()).eval(), torch.randn(24, 48)
"""


def test_the_command_line_tunes(tmp_path, capsys):
    (tmp_path / "model.py").write_text(FACTORY)
    records = tmp_path / "kernels.db"
    arguments = ["tune", f"{tmp_path}/model.py:make", "--records", str(records), "--rounds", "1"]
    assert main([*arguments, "--trials", "2"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "dot_general_0" in out and f"measurements more in {records}" in out
    assert main([*arguments, "--trials", "0"]) == 1
    assert "expected trials of at least 1, found 0" in capsys.readouterr().err


@pytest.mark.at_length
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_two_workers_of_a_ray_cluster(tmp_path):
    from weft.tune import fleet, tuning

    model, x = network()
    records = tmp_path / "kernels.db"
    tasks = [each for each in tune.tasks(model, x) if each.candidates()][:2]
    with fleet.RayRunner(workers=2) as runner:
        assert len(runner.lanes) == 2
        found = []
        tuning._searched(
            tasks,
            runner.lanes,
            records,
            lambda task, opened, lane: Search(
                task, opened, lane, (target(), compiler()), 2, 8, 1, 1
            ),
            lambda task, number, record: found.append(record),
        )
    assert {each.kernel for each in found} == {each.kernel for each in tasks}
    with Records(records) as opened:
        assert len(opened.all()) == len(found)
    with pytest.raises(errors.ConfigError, match="expected the runner 'local' or 'ray'"):
        tune.run(*tasks, records=records, runner="cloud")


def test_the_layers_of_bert(tmp_path):
    from examples import bert_layers
    from transformers import BertConfig

    config = BertConfig(
        hidden_size=48, num_attention_heads=3, intermediate_size=80, attn_implementation="sdpa"
    )
    parts = bert_layers.parts(16, config)
    assert [each.name for each in parts][-1] == "layer" and len(parts) == 6
    records = tmp_path / "kernels.db"
    tune.run(parts[3].module, *parts[3].inputs, records=records, trials=1, rounds=1)
    times = bert_layers.measured(parts[3], records, rounds=1, seconds=0.001)
    assert list(times) == ["PyTorch", "untuned", "tuned"] and min(times.values()) > 0
    (row,) = bert_layers.table_of([("up", times)]).rows
    assert row is not None
