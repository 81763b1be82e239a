"""Training runs: early stopping, ranks, checkpoints, kills, signals and refusals, mostly through the command line."""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas
import pytest
import yaml

from nplm.arrays import read_arrays, write_arrays
from nplm.errors import InputError
from nplm.neural.checkpoint import Progress, read_checkpoint, write_checkpoint
from nplm.neural.encoders.feed_forward import Shape
from nplm.neural.model import read_model
from nplm.neural.network import JoinedArchitecture
from nplm.neural.ranks import SingleRank
from nplm.neural.shared_memory import SharedMemoryTraining
from nplm.neural.training import Interrupted, Settings, stopping_epoch
from nplm.scores import score
from nplm.streams import Split, read_split, write_split

V = 23
ARCHITECTURE = JoinedArchitecture(Shape(V, 3, 4, 3, True))
MPIEXEC = Path(sys.executable).with_name("mpiexec")


@pytest.fixture(scope="module")
def splits(tmp_path_factory) -> Path:
    """A stream with something to learn: every word is drawn near twice the word before it."""
    folder = tmp_path_factory.mktemp("splits")
    random = np.random.default_rng(1)
    words = [0]
    for noise in random.integers(0, 4, 4999):
        words.append((2 * words[-1] + int(noise)) % V)
    stream = np.array(words, dtype=np.uint8)
    for name, start, end in (("train", 0, 4000), ("valid", 4000, 5000)):
        history = stream[max(0, start - 64) : start]
        write_split(folder / f"{name}.safetensors", Split(name, stream[start:end], history, "hash", V))
    return folder


def command(splits: Path, folder: Path, *options: str, ranks: int = 1, **keys: object) -> list[str]:
    """The command line of a small training that writes into `folder`. keys: those of the row that are others."""
    shape = {"n": 3, "h": 4, "m": 3, "direct": True}
    learning = {"epsilon_0": 0.05, "K": 16, "epochs": 3, "patience": None, "precision": "float64", "device": "cpu"}
    row = {"kind": "nplm", **shape, **learning, **keys}
    launch = [str(MPIEXEC), "-n", str(ranks), sys.executable, "-m", "mpi4py"] if ranks > 1 else [sys.executable]
    arguments = {
        "--row": yaml.safe_dump(row, default_flow_style=True, sort_keys=False, width=math.inf).strip(),
        "--train": splits / "train.safetensors",
        "--valid": splits / "valid.safetensors",
        "--output": folder / "model.safetensors",
        "--history": folder / "history.csv",
        "--checkpoints": folder / "checkpoints",
        "--seed": 1,
        "--ranks": ranks,
    }
    words = [str(word) for pair in arguments.items() for word in pair]
    return [*launch, "-m", "nplm", "train-network", *words, *options]


def train(splits: Path, folder: Path, *options: str, ranks: int = 1, **keys: object) -> subprocess.CompletedProcess:
    words = command(splits, folder, *options, ranks=ranks, **keys)
    return subprocess.run(words, capture_output=True, text=True, timeout=3000, check=False)


@pytest.fixture(scope="module")
def undisturbed(splits, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    run = train(splits, folder)
    assert run.returncode == 0, run.stderr
    return folder


def model_bytes(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_training_learns_and_writes_its_history(splits, undisturbed):
    history = pandas.read_csv(undisturbed / "history.csv")
    assert list(history["epoch"]) == [1, 2, 3]
    assert list(history["examples"]) == [4000, 8000, 12000]
    assert history["valid_perplexity"].iloc[-1] < 8 < V, "the stream's perplexity is 4; unlearned it is 23"
    assert history["best"].sum() == 1
    assert history["valid_perplexity"].idxmin() == history["best"].idxmax()
    phases = [name for name in history if name.startswith("seconds_") and name not in ("seconds_validation",)]
    assert {"seconds_communication", "seconds_output_product", "seconds_feature_update"} < set(phases)
    assert (history[phases] >= 0).all().all()


def test_validation_perplexity_of_the_history_is_that_of_the_written_model(splits, undisturbed):
    history = pandas.read_csv(undisturbed / "history.csv").set_index("best")
    stream = score(read_model(undisturbed / "model.safetensors"), read_split(splits / "valid.safetensors"), "MLP")
    assert math.exp(-stream.ln_prob.mean()) == pytest.approx(history.loc[1, "valid_perplexity"], rel=1e-9)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_under_mpiexec_agree_with_one_process(splits, undisturbed, tmp_path, ranks):
    run = train(splits, tmp_path, ranks=ranks)
    assert run.returncode == 0, run.stderr
    alone, together = (read_model(folder / "model.safetensors").parameters for folder in (undisturbed, tmp_path))
    assert together.keys() == alone.keys()
    for name, tensor in alone.items():
        np.testing.assert_allclose(together[name].numpy(), tensor.numpy(), rtol=1e-8, atol=1e-10, err_msg=name)


def test_same_seed_same_bits_other_seed_other_bits(splits, undisturbed, tmp_path):
    assert train(splits, tmp_path).returncode == 0
    assert model_bytes(tmp_path) == model_bytes(undisturbed)
    other = tmp_path / "other"
    assert train(splits, other, "--seed", "2").returncode == 0
    assert model_bytes(other) != model_bytes(undisturbed)


@pytest.mark.parametrize("ranks, precision", [(1, "bfloat16"), (2, "float32"), (2, "float64")])
def test_killed_at_a_random_moment_it_continues_to_the_same_bits(splits, tmp_path, ranks, precision):
    """kill -9 again and again, each time after a checkpoint within an epoch; then to the end."""
    six = {"epochs": 6, "precision": precision}
    frequent = ("--checkpoint-minutes", "0")
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    assert train(splits, undisturbed, ranks=ranks, **six).returncode == 0
    random = np.random.default_rng()
    for _ in range(2):
        process = subprocess.Popen(
            command(splits, killed, *frequent, ranks=ranks, **six),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_for(lambda: list(killed.glob("checkpoints/*/checkpoint.safetensors")), process)
        time.sleep(random.uniform(0, 0.3))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    end = train(splits, killed, *frequent, ranks=ranks, **six)
    assert end.returncode == 0, end.stderr
    assert "continuing" in end.stdout
    assert model_bytes(killed) == model_bytes(undisturbed)


def wait_for(condition, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 300
    while not condition() and process.poll() is None:
        assert time.monotonic() < deadline, "nothing happened within five minutes"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_writes_a_checkpoint_and_stops(splits, tmp_path, number):
    process = subprocess.Popen(command(splits, tmp_path, epochs=10000), stdout=subprocess.PIPE, text=True)
    wait_for(lambda: list(tmp_path.glob("checkpoints/*/checkpoint.safetensors")), process)
    [checkpoint] = tmp_path.glob("checkpoints/*/checkpoint.safetensors")
    before = checkpoint.stat().st_mtime_ns
    process.send_signal(number)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 143
    assert "run the same command again" in output
    assert checkpoint.stat().st_mtime_ns > before
    assert not (tmp_path / "model.safetensors").exists()


def test_more_epochs_go_on_and_fewer_start_anew(splits, undisturbed, tmp_path):
    assert train(splits, tmp_path, epochs=2).returncode == 0
    more = train(splits, tmp_path)
    assert "continuing in epoch 3" in more.stdout
    assert model_bytes(tmp_path) == model_bytes(undisturbed)
    fewer = train(splits, tmp_path, epochs=1)
    assert "starting anew" in fewer.stdout
    assert len(pandas.read_csv(tmp_path / "history.csv")) == 1


def test_ranks_end_together_when_the_checkpoint_cannot_be_read(splits, tmp_path):
    """Rank 0 alone reads it; the others must not wait for what it cannot send."""
    assert train(splits, tmp_path, ranks=2, epochs=1).returncode == 0
    [checkpoint] = tmp_path.glob("checkpoints/*/checkpoint.safetensors")
    checkpoint.write_bytes(b"")
    run = train(splits, tmp_path, ranks=2)
    assert run.returncode != 0
    assert run.stderr.count("cannot be read as a checkpoint") == 1
    assert "Traceback" not in run.stderr


def write_other_shape(path: Path) -> None:
    write_checkpoint(path, Progress(), JoinedArchitecture(Shape(V, 3, 5, 3, True)).initial_parameters(1), None)


def write_other_progress(path: Path) -> None:
    arrays, header = read_arrays(path, "checkpoint")
    write_arrays(path, "checkpoint", arrays, progress=header["progress"].replace("position", "place"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(bytes(path.stat().st_size)),
        lambda path: write_arrays(path, "scores", {"ln_prob": np.zeros(3)}),
        lambda path: write_arrays(path, "checkpoint", {}, progress="{}"),
        write_other_shape,
        write_other_progress,
    ],
    ids=["empty", "truncated", "zeros", "other kind", "no parameters", "other shape", "other progress"],
)
def test_what_is_no_checkpoint_of_the_training_is_refused(tmp_path, damage):
    path, sizes = tmp_path / "checkpoint.safetensors", ARCHITECTURE.sizes
    parameters = ARCHITECTURE.initial_parameters(1)
    write_checkpoint(path, Progress(best_epoch=1), parameters, parameters)
    assert read_checkpoint(path, sizes)[0] == Progress(best_epoch=1)
    damage(path)
    with pytest.raises(InputError, match=r"checkpoint\.safetensors: cannot be read .*; remove it"):
        read_checkpoint(path, sizes)


@pytest.mark.parametrize(
    "perplexities, epochs, patience, end",
    [
        ([9.0, 8.0], 5, 2, None),
        ([9.0, 8.0], 2, 2, 2),
        ([9.0, 8.0, 8.5], 5, 2, None),
        ([9.0, 8.0, 8.5, 8.1], 5, 2, 4),
        ([9.0, 8.0, 8.5, 7.9, 8.0], 9, 2, None),
        ([9.0, 9.1, 9.2, 9.3], 9, 0, None),
        ([9.0, 9.0], 9, 1, 2),
        ([], 5, 2, None),
    ],
)
def test_early_stopping(perplexities, epochs, patience, end):
    assert stopping_epoch(perplexities, epochs, patience) == end


def test_another_number_of_ranks_than_expected_is_refused(splits, tmp_path):
    run = train(splits, tmp_path, "--ranks", "3", ranks=2)
    assert run.returncode != 0
    assert "--ranks 3 was asked for but the MPI world has 2" in run.stderr
    assert not (tmp_path / "model.safetensors").exists()


def test_many_worlds_of_one_process_are_refused(splits, tmp_path):
    run = train(splits, tmp_path, "--ranks", "1", ranks=2)
    assert run.returncode != 0
    assert "launcher started 2 processes" in run.stderr
    run = subprocess.run(command(splits, tmp_path, "--ranks", "2"), capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "the MPI world has 1 process(es)" in run.stderr
    assert not (tmp_path / "model.safetensors").exists()


def run_with_rank_1(does: str, splits: Path, folder: Path, *options: str) -> subprocess.CompletedProcess:
    """Two ranks; in the first update rank 1 runs this line while rank 0 waits for it in a collective."""
    script = folder / "rank_1.py"
    script.write_text(
        "import time\n"
        "from mpi4py import MPI\n"
        "from nplm.neural.network import JoinedNetwork\n"
        "def update(self, *arguments):\n"
        f"    {does}\n"
        "if MPI.COMM_WORLD.Get_rank() == 1:\n"
        "    JoinedNetwork.update = update\n"
        "from nplm.cli import main\n"
        "main()\n"
    )
    words = command(splits, folder, *options, ranks=2)
    words[words.index("nplm") - 1 : words.index("nplm") + 1] = [str(script)]
    return subprocess.run(words, capture_output=True, text=True, timeout=1000, check=False)


def test_a_rank_that_raises_ends_all_ranks_with_its_traceback(splits, tmp_path):
    run = run_with_rank_1("raise RuntimeError('rank 1 fails on purpose')", splits, tmp_path)
    assert run.returncode != 0
    assert "RuntimeError: rank 1 fails on purpose" in run.stderr
    assert not (tmp_path / "model.safetensors").exists()


def test_ranks_that_wait_in_vain_give_up_and_say_where(splits, tmp_path):
    run = run_with_rank_1("time.sleep(10_000)", splits, tmp_path, "--stall-minutes", "0.3")
    assert run.returncode != 0
    assert "no progress for 0.3 minutes: the ranks wait for one another in vain" in run.stderr
    assert "(most recent call first)" in run.stderr
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize("epsilon_0", [20, 1e200])  # ln P that is only too small for exp, and none at all
def test_divergence_is_an_error_that_names_the_learning_rate(splits, tmp_path, epsilon_0):
    run = train(splits, tmp_path, epsilon_0=epsilon_0, weight_decay=0)
    assert run.returncode == 1
    assert "lower epsilon_0" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "key, value, message",
    [
        ("epsilon_0", -1, "--row.epsilon_0: -1 is not allowed; allowed: number > 0"),
        ("epsilon_0", math.nan, "training setting epsilon_0 = nan is out of range"),
        ("K", 0, "--row.K: 0 is not allowed; allowed: whole number ≥ 1"),
    ],
)
def test_settings_out_of_range_are_refused(splits, tmp_path, key, value, message):
    run = train(splits, tmp_path, **{key: value})
    assert run.returncode == 1
    assert message in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "option, value, message",
    [
        ("h", 10**12, "GiB or more, and this machine has"),
        ("K", 10**12, "GiB or more, and this machine has"),
        ("n", 66, "--row.n: 66 is not allowed; allowed: whole number ≥ 2 and ≤ 65"),
        ("--seed", 2**64, "less than or equal to"),
        ("--threads", 100_000, "less than or equal to 1024"),
        ("--train", "empty.safetensors", "holds no token"),
        ("--output", "train.safetensors", "is an input as well"),
        ("--history", "model.safetensors", "is another output as well"),
        ("--checkpoints", "train.safetensors", "cannot be written"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_the_training(
    tmp_path, monkeypatch, run, capsys, option, value, message
):
    monkeypatch.chdir(tmp_path)
    splits = {"train": [0, 1, 2], "valid": [2, 1], "empty": []}
    for name, tokens in splits.items():
        write_split(f"{name}.safetensors", Split(name, np.array(tokens, np.uint8), np.empty(0, np.uint8), "hash", V))
    options, keys = ((option, str(value)), {}) if option.startswith("--") else ((), {option: value})
    _, _, _, *arguments = command(tmp_path, tmp_path, *options, **keys)
    status = run(*arguments)
    said = capsys.readouterr()
    assert status in (1, 2) and message in said.err.splitlines()[-1]
    assert "free parameters" not in said.out, "the training has begun"
    assert {path.stem for path in tmp_path.rglob("*") if path.is_file()} == splits.keys()


def test_splits_of_different_vocabularies_are_refused(splits, tmp_path):
    stream = np.zeros(50, np.uint8)
    write_split(tmp_path / "valid.safetensors", Split("valid", stream, stream[:0], "another", V))
    run = train(splits, tmp_path, "--valid", str(tmp_path / "valid.safetensors"))
    assert run.returncode == 1
    assert "another" in run.stderr and "hash" in run.stderr


def test_one_example_per_update_is_the_papers_own_algorithm(splits, tmp_path):
    run = train(splits, tmp_path, K=1, epochs=1)
    assert run.returncode == 0, run.stderr
    assert pandas.read_csv(tmp_path / "history.csv")["valid_perplexity"][0] < V


def test_one_process_on_shared_memory_is_the_output_parallel_training(splits, undisturbed, tmp_path):
    run = train(splits, tmp_path, strategy="shared-memory")
    assert run.returncode == 0, run.stderr
    expected, history = (pandas.read_csv(folder / "history.csv") for folder in (undisturbed, tmp_path))
    np.testing.assert_allclose(history["train_perplexity"], expected["train_perplexity"], rtol=1e-9)
    np.testing.assert_allclose(history["valid_perplexity"], expected["valid_perplexity"], rtol=1e-9)


def test_processes_on_shared_memory_learn_together(splits, undisturbed, tmp_path):
    """All examples are learned once an epoch, each process's updates reach the model, and a rerun finds it done."""
    run = train(splits, tmp_path, "--ranks", "2", strategy="shared-memory")
    assert run.returncode == 0, run.stderr
    expected, history = (pandas.read_csv(folder / "history.csv") for folder in (undisturbed, tmp_path))
    assert list(history["ranks"]) == [2, 2, 2]
    np.testing.assert_allclose(history["valid_perplexity"], expected["valid_perplexity"], rtol=0.1)
    again = train(splits, tmp_path, "--ranks", "2", strategy="shared-memory")
    assert again.returncode == 0, again.stderr
    assert "continuing in epoch 4 after 0 examples" in again.stderr + again.stdout


def start_endless(splits: Path, folder: Path) -> subprocess.Popen:
    """A training on shared memory with two updates per process and epoch."""
    keys = {"strategy": "shared-memory", "epochs": 100000, "patience": None, "K": 1000, "epsilon_0": 0.001}
    return subprocess.Popen(
        command(splits, folder, "--ranks", "2", **keys),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def said_until_second_epoch(run: subprocess.Popen) -> str:
    said = ""
    while "epoch 1:" not in said:
        line = run.stdout.readline()
        assert line, said
        said += line
    return said


def test_a_signal_to_all_processes_on_shared_memory_stops_them(splits, tmp_path):
    run = start_endless(splits, tmp_path)
    said = said_until_second_epoch(run)
    os.killpg(run.pid, signal.SIGTERM)
    said += run.communicate(timeout=300)[0]
    assert run.returncode == 143, said
    assert "to continue after epoch" in said.splitlines()[-1]
    assert "Traceback" not in said


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_processes_on_shared_memory_leave_signals_to_the_first_from_their_start(splits, tmp_path):
    run, found = start_endless(splits, tmp_path), []

    def one_starts() -> bool:
        for child in Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(Path(f"/proc/{child}/status").read_text())
        return bool(found)

    wait_for(one_starts, run)
    os.killpg(run.pid, signal.SIGINT)
    said = run.communicate(timeout=300)[0]
    assert run.returncode == 130, said
    assert "Traceback" not in said
    blocked = int(found[0].split("SigBlk:")[1].split()[0], base=16)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        assert blocked >> number - 1 & 1, number


def test_processes_on_shared_memory_end_with_the_first(splits, tmp_path):
    run = start_endless(splits, tmp_path)
    said_until_second_epoch(run)
    run.kill()
    assert "Traceback" not in run.communicate(timeout=300)[0], "returns once no process holds its end of the pipe"


class Interference:
    """A monitor that does something in an epoch, after its first update."""

    def __init__(self, epoch: int, act) -> None:
        self.epoch, self.act = epoch, act

    def line(self, text):
        pass

    def examples(self, epoch, learned, total, train_perplexity):
        if epoch == self.epoch and learned < total:
            self.act()


def shared_memory_training(splits: Path, folder: Path, monitor) -> SharedMemoryTraining:
    settings = Settings(ARCHITECTURE, 1, 0.001, 1e-8, 1e-4, K=1000, precision="float32")
    data = [read_split(splits / f"{name}.safetensors") for name in ("train", "valid")]
    return SharedMemoryTraining(settings, *data, SingleRank(), 1, folder, monitor, processes=2)


@pytest.mark.parametrize("epoch, remedy", [(1, "to start anew"), (2, "to continue after epoch 1 from")])
def test_an_interrupted_epoch_on_shared_memory_starts_anew(splits, tmp_path, epoch, remedy):
    training = shared_memory_training(
        splits, tmp_path, Interference(epoch, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    )
    with pytest.raises(Interrupted, match=remedy):
        training.run(3, 0)
    assert training.checkpoint.exists() == (epoch > 1)
    assert not multiprocessing.active_children()
    again = shared_memory_training(splits, tmp_path, Interference(0, None))
    assert (again.progress.epoch, again.progress.position) == (epoch, 0)


def test_a_killed_process_on_shared_memory_ends_the_training(splits, tmp_path):
    def kill():
        for process in multiprocessing.active_children():
            process.kill()

    with pytest.raises(InputError, match=r"process 2 of 2 ended by SIGKILL in epoch \d+; .* after epoch"):
        shared_memory_training(splits, tmp_path, Interference(2, kill)).run(50, 0)
