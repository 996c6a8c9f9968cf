# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning te kernels: what is measured is checked first, and records survive their writers."""

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from math import log2

import pytest
import torch

import weft
from weft import te, tune
from weft.te.building import module_of
from weft.tune import cores
from weft.tune.access import of_schedule
from weft.tune.measuring import Runner
from weft.tune.records import Record, Records
from weft.tune.tuning import compiler, target


def product(m=40, n=64, k=24):
    x, y = te.placeholder((m, k), name="x"), te.placeholder((k, n), name="y")
    r = te.reduce_axis((0, k), "r")
    z = te.compute((m, n), lambda i, j: te.sum(x[i, r] * y[r, j], axis=r), "z")
    return [x, y, z]


def test_a_kernel_is_tuned_and_built_from_its_records(tmp_path):
    args = product()
    records = tmp_path / "kernels.db"
    assert tune.best(args, records) is None
    f = te.build(te.create_schedule(args[-1]), args, "fmm")
    seen = []
    measured = tune.run(
        f, records=records, trials=4, patience=9, rounds=1, progress=lambda *each: seen.append(each)
    )
    assert [record for _, _, record in seen] == measured
    assert all(each.outcome == "right" and each.seconds > 0 for each in measured), measured
    latest = {each.steps: each for each in measured}  # the fastest are measured twice
    assert len(latest) == 4
    fastest = min(latest.values(), key=lambda each: each.seconds)
    assert tune.best(f, records).save() == fastest.steps
    # The same formula again finds them; another size does not.
    again = product()
    assert tune.best(again, records).save() == fastest.steps
    assert tune.best(product(m=41), records) is None
    built = tune.build(again[-1], again, "fmm", records=records)
    assert built.schedule.save() == fastest.steps
    x, y = torch.randn(40, 24), torch.randn(24, 64)
    torch.testing.assert_close(built(x, y), x @ y)
    # What was measured is not measured again.
    assert not tune.run(args, records=records, trials=4, patience=99, rounds=1)
    more = tune.run(args, records=records, trials=5, patience=99, rounds=1)
    assert more[0].steps not in latest


def test_candidates_are_different_and_right():
    args = product(13, 50, 7)
    (task,) = tune.tasks(args)
    assert len(tune.tasks(args, task, product(13, 50, 7))) == 1
    found = task.candidates()
    assert len({each.text for each in found} | {task.default().text}) == len(found) + 1 > 10
    assert [each.predicted for each in found] == sorted(each.predicted for each in found)
    x, y = torch.randn(13, 7), torch.randn(7, 50)
    for candidate in found[::6]:
        schedule = te.create_schedule(args[-1]).load(candidate.text)
        torch.testing.assert_close(te.build(schedule, args)(x, y), x @ y)


def request(module, args, schedule):
    plain = module_of(te.create_schedule(args[-1]), args)
    return {
        "module": module,
        "incumbent": schedule,
        "reference": plain,
        "inputs": [[t.shape, t.dtype] for t in args[:-1]],
        "results": [[args[-1].shape, args[-1].dtype]],
        "rounds": 1,
        "threads": 1,
    }


def test_wrong_hanging_and_dying_candidates_are_told_from_right_ones():
    args = product(4, 16, 3)
    right = module_of(te.default_schedule(args[-1]), args)
    start = "  %1 = memref.reinterpret_cast"
    assert right.count(start) == 1 and "dense<0x00000000>" in right
    endless = (
        "  %zero = arith.constant 0 : index\n  %one = arith.constant 1 : index\n"
        "  %far = arith.constant 4611686018427387904 : index\n"
        "  scf.for %n = %zero to %far step %one {\n"
        "    %v = memref.load %a2[%zero, %zero] : memref<4x16xf32>\n"
        "    %w = arith.addf %v, %v : f32\n"
        "    memref.store %w, %a2[%zero, %zero] : memref<4x16xf32>\n  }\n"
    )
    deadly = (
        "  %far = arith.constant 4611686018427387 : index\n"
        "  %v = memref.load %a0[%far, %far] : memref<4x3xf32>\n"
        "  memref.store %v, %a2[%far, %far] : memref<4x16xf32>\n"
    )
    with Runner(timeout=2) as runner:
        good = runner.measure(request(right, args, right))
        assert good["outcome"] == "right" and good["seconds"] > 0
        wrong = right.replace("dense<0x00000000>", "dense<0x3F800000>")
        found = runner.measure(request(wrong, args, right))
        assert (
            found["outcome"] == "wrong"
            and "differs from the reference by up to 1" in (found["note"])
        )
        found = runner.measure(request("module {", args, right))
        assert found["outcome"] == "failed"
        found = runner.measure(request(right.replace(start, endless + start), args, right))
        assert found == {"outcome": "timeout", "note": "no answer in 2 s"}
        found = runner.measure(request(right.replace(start, deadly + start), args, right))
        assert found["outcome"] == "failed" and "the worker ended with status" in found["note"]
        assert runner.measure(request(right, args, right))["outcome"] == "right"


def test_a_worker_ends_with_the_one_who_asks():
    """One that hangs, too: here its input stays open."""
    code = (
        "import os, subprocess, sys\n"
        "command = [sys.executable, '-m', 'weft.tune.worker', str(os.getpid())]\n"
        "subprocess.Popen(command).wait()\n"
    )
    asked = {"threads": 1, "inputs": [], "module": "module {"}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    ) as tuner:
        tuner.stdin.write(json.dumps(asked).encode() + b"\n")
        tuner.stdin.flush()
        assert json.loads(tuner.stdout.readline())["outcome"] == "failed"
        tuner.kill()
        ended, _, _ = select.select([tuner.stdout], [], [], 60)
        assert ended and tuner.stdout.read() == b""  # nobody holds it any more


def test_workers_keep_to_as_many_cores_as_they_have_threads():
    pairs = {0: "0,4", 4: "0,4", 1: "1,5", 5: "1,5", 6: "6"}
    assert cores.chosen(1, pairs, pairs.get) == {6}
    assert cores.chosen(3, pairs, pairs.get) == {6, 5, 4}
    assert cores.chosen(4, pairs, pairs.get) == {6, 5, 4, 1}
    assert cores.chosen(9, pairs, pairs.get) == set(pairs)
    args = product(4, 16, 3)
    right = module_of(te.default_schedule(args[-1]), args)
    with Runner(timeout=30) as runner:
        assert runner.measure(request(right, args, right))["outcome"] == "right"
        assert os.sched_getaffinity(runner._process.pid) == cores.chosen(1, os.sched_getaffinity(0))


def test_one_process_measures_at_a_time(monkeypatch):
    both = threading.Barrier(2)

    def answered(runner, request):
        try:
            both.wait(0.2)
        except threading.BrokenBarrierError:
            return {"alone": True}
        return {"alone": False}

    monkeypatch.setattr(Runner, "_answered", answered)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda runner: runner.measure({}), [Runner(), Runner()]))
    assert found == [{"alone": True}] * 2


def test_candidates_know_what_their_tiles_access():
    (task,) = tune.tasks(product())
    found = task.candidates()
    assert len({len(each.features()) for each in found}) == 1
    by_tile = {
        (e.numbers["rows"], e.numbers["registers"]): e for e in found if not e.numbers["packs"]
    }
    short, tall = by_tile[2, 2].access, by_tile[6, 2].access
    # x: six rows of one element in place of two, each for all lanes; along k they are neighbours.
    assert tall[0] > short[0] and tall[1] == short[1] and tall[2] == 0 and tall[3] == log2(1 + 4)
    # y: as many bytes, for six rows in place of two; a row of 64 floats from step to step.
    assert tall[4] == short[4] and tall[5] > short[5]
    assert tall[6:8] == (log2(1 + 4), log2(1 + 64 * 4))
    args = product()
    fused = te.create_schedule(args[-1])
    fused[args[-1]].fuse(*args[-1].op.axis)
    assert len(of_schedule(fused, args)) == len(tall)


def record(number, seconds=1.0, outcome="right"):
    return Record("kernel", target(), compiler(), f"step {number}", outcome, seconds, "")


def test_only_right_candidates_are_adopted(tmp_path):
    args = product()
    (task,) = tune.tasks(args)
    with Records(tmp_path / "r.db") as records:
        for outcome in ("wrong", "timeout", "failed"):
            records.add(Record(task.kernel, target(), compiler(), "bad", outcome, None, "why"))
        assert tune.best(args, tmp_path / "r.db") is None
        records.add(Record(task.kernel, target(), compiler(), "unroll z r\n", "right", 2.0, ""))
        records.add(Record(task.kernel, target(), compiler(), "", "right", 3.0, ""))
        records.add(Record(task.kernel, "another", compiler(), "split", "right", 1.0, ""))
    assert tune.best(args, tmp_path / "r.db").save() == "unroll z r\n"


WRITER = """
import sys
from weft.tune.records import Record, Records
with Records(sys.argv[1]) as records:
    for number in range(int(sys.argv[2]), 100000):
        records.add(Record("kernel", "target", "compiler", f"step {number}", "right", 1.0, ""))
        print(number, flush=True)
        if number == int(sys.argv[3]):
            break
"""


def writer(path, first, last):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, path, str(first), str(last)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )


def test_a_killed_writer_loses_at_most_one_record(tmp_path):
    path = tmp_path / "r.db"
    process = writer(path, 0, 99999)
    written = [int(process.stdout.readline()) for _ in range(20)]
    process.send_signal(signal.SIGKILL)
    written += [int(line) for line in process.stdout.read().split()]
    process.wait()
    with Records(path) as records:
        kept = [each.steps for each in records.all()]
    assert len(kept) - len(written) in (0, 1)
    assert kept[: len(written)] == [f"step {number}" for number in written]


def test_two_writers_lose_nothing(tmp_path):
    path = tmp_path / "r.db"
    processes = [writer(path, 0, 60), writer(path, 1000, 1060)]
    for process in processes:
        process.communicate()
    with Records(path) as records:
        steps = {each.steps for each in records.all()}
    assert steps == {f"step {n}" for n in (*range(61), *range(1000, 1061))}


def test_another_file_is_refused_and_kept(tmp_path):
    for name, content in [("text.db", b"these are no records, but a text" * 40), ("v9.db", None)]:
        path = tmp_path / name
        if content is None:
            database = sqlite3.connect(path)
            database.execute("CREATE TABLE mine (x)")
            database.execute("PRAGMA user_version=9")
            database.close()
            content = path.read_bytes()
        else:
            path.write_bytes(content)
        with pytest.raises(tune.RecordsError, match="holds no records"):
            tune.run(product(), records=path)
        assert path.read_bytes() == content
    assert issubclass(tune.RecordsError, weft.errors.Error)


def test_several_make_one_file_at_once(tmp_path):
    start = threading.Barrier(6)

    def open_one(path):
        start.wait()
        Records(path).close()

    with ThreadPoolExecutor(6) as threads:
        for number in range(40):  # each of the two races showed in one of ten, or of a thousand
            list(threads.map(open_one, [tmp_path / f"{number}.db"] * 6))


def test_records_are_exported_and_imported(tmp_path):
    first, second, text = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "records.jsonl"
    with Records(first) as records:
        for number in range(3):
            records.add(record(number, seconds=3.0 - number))
        records.add(record(9, seconds=None, outcome="wrong"))
    assert tune.export_records(first, text) == 4
    assert json.loads(text.read_text().splitlines()[0])["steps"] == "step 0"
    assert tune.import_records(text, second) == 4
    assert tune.import_records(text, second) == 0
    with Records(second) as records:
        found = records.of("kernel", target(), compiler())
    assert [each.steps for each in found] == ["step 2", "step 1", "step 0", "step 9"]
    text.write_text(text.read_text() + "{}\n")
    with pytest.raises(tune.RecordsError, match="line 5 is no record"):
        tune.import_records(text, tmp_path / "c.db")
    with pytest.raises(tune.RecordsError, match="does not exist"):
        tune.export_records(tmp_path / "none.db", text)
