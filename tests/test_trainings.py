"""The table of what the trainings took."""

import csv

from typer.testing import CliRunner

from nplm.cli import app

HEADER = (
    "epoch,train_perplexity,valid_perplexity,tokens_per_second,ranks,threads,precision,seconds_training,"
    "seconds_communication,peak_memory_mb,strategy,device,best\n"
)


def history(folder, name, lines, header=HEADER):
    path = folder / name / "history.csv"
    path.parent.mkdir()
    path.write_text(header + lines)
    return path


def tabulated(folder, *paths):
    arguments = [word for path in paths for word in ("--history", str(path))]
    result = CliRunner().invoke(app, ["tabulate-trainings", *arguments, "--output-directory", str(folder)])
    assert result.exit_code == 0, result.output
    with open(folder / "trainings.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_a_training_is_summed_up_over_its_epochs(tmp_path):
    path = history(
        tmp_path,
        "MLP9",
        "1,500,400,1000,2,1,bfloat16,10,1,300,output-parallel,cpu,0\n"
        "2,300,350,3000,2,1,bfloat16,20,2,310,output-parallel,cpu,1\n"
        "3,200,360,2000,1,1,bfloat16,30,0,305,output-parallel,cpu,0\n",
    )
    [row] = tabulated(tmp_path, path)
    assert row["network"] == "MLP9"
    assert (row["epochs"], row["chosen_epoch"], row["train_ppl"], row["valid_ppl"]) == ("3", "2", "300.00", "350.00")
    assert (row["seconds"], row["communication"], row["tokens_per_second"]) == ("60", "5.0", "2000")
    assert row["ranks"] == "2, 1", "the ranks were changed on the way"
    assert row["peak_memory_mb"] == "310"


def test_a_history_without_the_newer_columns_has_empty_cells(tmp_path):
    header = "epoch,train_perplexity,valid_perplexity,seconds_training\n"
    rows = tabulated(tmp_path, history(tmp_path, "old", "1,500,400,10\n", header))
    newer = ("communication", "strategy", "peak_memory_mb", "tokens_per_second")
    assert {rows[0][column] for column in newer} == {""}


def test_one_rank_communicates_with_nobody(tmp_path):
    line = "1,500,400,1000,1,1,bfloat16,10,1,300,output-parallel,cpu,1\n"
    assert tabulated(tmp_path, history(tmp_path, "alone", line))[0]["communication"] == ""


def test_every_training_has_its_row_in_the_page_to_read(tmp_path):
    lines = "1,500,400,1000,2,1,float32,10,1,300,shared-memory,cpu,1\n"
    tabulated(tmp_path, *(history(tmp_path, name, lines) for name in ("one", "two")))
    text = (tmp_path / "trainings.md").read_text()
    assert "| one " in text and "| two " in text and "shared-memory" in text
