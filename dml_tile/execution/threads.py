"""Runs a plan on one or more threads. Idle helper threads are kept for reuse; they are created on first use.

A helper waits for a lock that the caller releases: that starts it in a fraction of the time that an executor's future
takes. A helper that wakes up after the caller has finished the work does nothing, and nobody waits for it.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable
from functools import cached_property, partial
from itertools import count
from threading import Lock, Thread
from typing import Any, Final

from numpy.typing import NDArray

from dml_tile.execution.numpy_calls import Region, make
from dml_tile.execution.plan import Plan
from dml_tile.execution.processors import processor_count
from dml_tile.execution.scratch import give_scratch, take_scratch
from dml_tile.execution.thresholds import LARGE

Progress = Callable[[int, int], object]
"""Is told how many of how many bytes are written: in the calling thread, after blocks that it wrote, and at the end."""

VARIABLE: Final = "DML_TILE_THREADS"

MAX_THREADS: Final = 64
MAX_KEPT_BLOCKS: Final = 256
"""The blocks of a plan whose calls are kept for the next run."""


Steps = tuple[partial[None], ...]
"""Calls of NumPy that move bytes; they may be made any number of times."""


class Work:
    """A plan between the memory of the two tensors that it was made for, which do not overlap.

    It may be run again, also by several threads at once.
    """

    def __init__(self, plan: Plan, source: Region, output: Region) -> None:
        self.plan = plan
        self._regions = source, output
        self._workers: deque[_Worker] = deque()

    @property
    def steps(self) -> Steps | None:
        """The calls for a plan of one block; None for any other."""
        return self._worker().all_steps if len(self.plan.blocks) == 1 else None

    def run(self, threads: int | None = None, progress: Progress | None = None) -> None:
        """Move the bytes.

        ``threads`` is the largest number of threads to use; by default DML_TILE_THREADS, else one for each CPU that the
        process may use. Small tiles take one. An exception, as from Ctrl-C, stops all of them within a block. Raises
        ValueError for a number of threads that is not positive.
        """
        number = thread_count(self.plan, threads)
        if number == 1 and progress is None:
            worker = self._worker()
            worker.do_all()
            self._workers.append(worker)
            return
        workers = [self._worker() for _ in range(number)]
        blocks = len(self.plan.blocks)
        share = _Share(blocks)
        jobs = [_Job(share, worker) for worker in workers[1:]]
        try:
            for job in jobs:
                _start(job)
            for i in share:
                workers[0].do(i)
                if progress is not None and share.given < blocks:
                    progress(share.given * self.plan.size // blocks, self.plan.size)
        finally:
            share.stop()
            for job in jobs:
                job.wait()
        self._workers.extend(workers)
        for job in jobs:
            if job.error is not None:
                raise job.error
        if progress is not None:
            progress(self.plan.size, self.plan.size)

    def free(self) -> None:
        """Give the scratch memory back, when nobody runs the work any more."""
        while self._workers:
            self._workers.pop().free()

    def _worker(self) -> _Worker:
        try:
            return self._workers.pop()
        except IndexError:
            return _Worker(self.plan, *self._regions)


def run(
    plan: Plan, source: Region, output: Region, threads: int | None = None, progress: Progress | None = None
) -> None:
    """Move the bytes of a plan once; see ``Work.run``."""
    if progress is not None or thread_count(plan, threads) > 1:
        work = Work(plan, source, output)
        work.run(threads, progress)
        work.free()
        return
    _run_alone(plan, *source, *output)


def run_once(plan: Plan, source: NDArray[Any], output: NDArray[Any]) -> None:
    """Move the bytes of a plan between contiguous arrays that do not overlap, from their first bytes on."""
    if plan.only_calls is not None:
        make(plan.only_calls, source, output)
    elif plan.size <= LARGE:
        _run_alone(plan, source, 0, output, 0)
    else:
        run(plan, Region(source), Region(output))


def _run_alone(plan: Plan, source: NDArray[Any], read_from: int, output: NDArray[Any], written_to: int) -> None:
    if len(plan.copies) == 1:
        for read, written, length in plan.blocks:
            make(plan.calls[length][0], source, output, read_from + read, written_to + written)
        return
    scratch = take_scratch(plan.scratch[-1])
    blocks = plan.staging.blocks_in(scratch)
    previous = None
    for read, written, length in plan.blocks:
        block = blocks[length]
        if previous != (read, length):
            block.fill(source, read_from + read)
            previous = read, length
        block.write(output, written_to + written)
    give_scratch(scratch)


def thread_count(plan: Plan, threads: int | None) -> int:
    """The number of threads that a plan is worth.

    Raises ValueError for a number below 1, be it asked for or in the environment.
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}; a positive integer was expected")
    if plan.size <= LARGE:
        return 1
    return min(threads or _threads_by_default(), len(plan.blocks), MAX_THREADS)


def _threads_by_default() -> int:
    text = os.environ.get(VARIABLE)
    if text is None:
        return processor_count()
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise ValueError(f"{VARIABLE} is {text!r}; a positive integer was expected")
    return int(text)


class _Worker:
    """The steps of a plan's blocks for one thread, which has scratch memory of its own."""

    def __init__(self, plan: Plan, source: Region, output: Region) -> None:
        self._plan, self._source, self._output = plan, source, output
        self._scratch = take_scratch(plan.scratch[-1])
        self._steps: dict[int, tuple[Steps, Steps]] = {}
        self._in_scratch: tuple[int, int] | None = None

    @cached_property
    def all_steps(self) -> Steps:
        """The calls for all blocks, in order; what is in scratch memory already is not moved there again."""
        steps: list[partial[None]] = []
        previous = None
        for i, (read, _, length) in enumerate(self._plan.blocks):
            before, last = self._parts_of(i)
            steps += last if previous == (read, length) else before + last
            previous = read, length
        return tuple(steps)

    def do_all(self) -> None:
        """Write all blocks."""
        self._in_scratch = None
        if len(self._plan.blocks) <= MAX_KEPT_BLOCKS:
            for step in self.all_steps:
                step()
        else:
            for i in range(len(self._plan.blocks)):
                self.do(i)

    def do(self, i: int) -> None:
        """Write block ``i``; what it reads is left in scratch memory for the next block, which may read the same."""
        if (steps := self._steps.get(i)) is None:
            steps = self._parts_of(i)
            if len(self._steps) < MAX_KEPT_BLOCKS:
                self._steps[i] = steps
        read, _, count = self._plan.blocks[i]
        if self._in_scratch != (read, count):
            self._in_scratch = None
            for step in steps[0]:
                step()
            self._in_scratch = read, count
        for step in steps[1]:
            step()

    def free(self) -> None:
        """Give the scratch memory back; the worker is of no use any more."""
        give_scratch(self._scratch)

    def _parts_of(self, i: int) -> tuple[Steps, Steps]:
        read, written, count = self._plan.blocks[i]
        scratch = (Region(self._scratch, start) for start in self._plan.scratch[:-1])
        regions = [self._source.moved(read), *scratch, self._output.moved(written)]
        *before, last = [
            tuple(step for call in calls for step in call.bind(source, output))
            for calls, source, output in zip(self._plan.calls[count], regions, regions[1:], strict=False)
        ]
        return tuple(step for steps in before for step in steps), last


class _Share:
    """The numbers of a plan's blocks, each of which is given to one thread."""

    def __init__(self, count: int) -> None:
        self.given = 0
        self._count = count
        self._lock = Lock()

    def __iter__(self) -> _Share:
        return self

    def __next__(self) -> int:
        with self._lock:
            if self.given >= self._count:
                raise StopIteration
            self.given += 1
            return self.given - 1

    def stop(self) -> None:
        """Give no more blocks."""
        with self._lock:
            self._count = 0


class _Job:
    """Blocks for a helper to write, until there are no more."""

    def __init__(self, share: _Share, worker: _Worker) -> None:
        self.error: BaseException | None = None
        self._share, self._worker = share, worker
        self._is_taken, self._is_running = Lock(), Lock()
        self._is_running.acquire()

    def run(self) -> None:
        """Write them, unless the caller has given the job up."""
        if not self._is_taken.acquire(blocking=False):
            return
        try:
            for i in self._share:
                self._worker.do(i)
        except BaseException as error:
            self.error = error
            self._share.stop()
        finally:
            self._is_running.release()

    def wait(self) -> None:
        """Give the job up if no helper has begun it, else wait for its end."""
        if not self._is_taken.acquire(blocking=False):
            self._is_running.acquire()


class _Helper:
    """A thread that waits for jobs."""

    def __init__(self, number: int) -> None:
        self.job: _Job | None = None
        self.go = Lock()
        self.go.acquire()
        Thread(target=self._wait_for_jobs, name=f"dml_tile_{number}", daemon=True).start()

    def _wait_for_jobs(self) -> None:
        while True:
            self.go.acquire()
            job, self.job = self.job, None
            if job is not None:
                job.run()
            del job  # which holds on to the caller's memory
            _idle.append(self)


_idle: deque[_Helper] = deque()
_numbers = count(1)


def _start(job: _Job) -> None:
    """Have a helper do it; with too many of them at work, the caller does it all."""
    try:
        helper = _idle.pop()
    except IndexError:
        number = next(_numbers)
        if number >= MAX_THREADS:
            return
        helper = _Helper(number)
    helper.job = job
    helper.go.release()


def _forget_the_helpers() -> None:
    """A child process has no threads but the one that forked."""
    global _numbers
    _idle.clear()
    _numbers = count(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_the_helpers)
