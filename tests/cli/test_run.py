"""`flambeau run` is `python`, but for where `import torch` leads."""

import os
import subprocess
import sys

SHOW_PROCESS = """\
import sys, os, atexit
print(__name__, os.path.samefile(__file__, sys.argv[0]), sys.argv[1:], __spec__ is None)
print(os.path.samefile(sys.path[0], os.path.dirname(os.path.abspath(sys.argv[0]))))
print(sys.modules["__main__"].__dict__ is globals())
atexit.register(lambda: print("at exit", HERE))
HERE = 1
"""


def test_a_script_sees_the_process_that_python_would_give_it(flambeau, script, tmp_path):
    name = script(SHOW_PROCESS, "sub/show.py")
    words = [name, "one", "--two", "-m", "--", "three"]
    theirs = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    ours = flambeau("run", *words)
    assert ours.stdout == theirs.stdout
    assert ours.returncode == 0, ours.stderr


def test_a_module_runs_by_name(flambeau, script):
    script("import sys; print(__name__, sys.argv[1:], __spec__.name)", "tool/__main__.py")
    assert flambeau("run", "-m", "tool", "-x").stdout == "__main__ ['-x'] tool.__main__\n"


def test_a_folder_runs_its_main(flambeau, script):
    script("import beside; print(__name__, beside.x)", "tool/__main__.py")
    script("x = 3", "tool/beside.py")
    assert flambeau("run", "tool").stdout == "__main__ 3\n"


def test_exit_codes_are_the_scripts(flambeau, script):
    assert flambeau("run", script("raise SystemExit(7)")).returncode == 7
    assert flambeau("run", script("import sys; sys.exit('no')")).returncode == 1
    assert flambeau("run", script("1 / 0")).returncode == 1
    interrupted = flambeau("run", script("raise KeyboardInterrupt"))
    assert interrupted.returncode == -2
    assert flambeau("run", script("def f(:\n")).returncode == 1


def test_a_missing_script_names_the_nearest_file(flambeau, script):
    script("", "train.py")
    done = flambeau("run", "trian.py")
    assert done.returncode == 2
    assert done.stderr == (
        "flambeau run: the script must exist; got 'trian.py'. "
        "The nearest name there is 'train.py'.\n"
    )
    assert flambeau("run", os.path.join("nowhere", "x.py")).returncode == 2


def test_a_folder_without_a_program_says_so(flambeau, script):
    script("", "tool/beside.py")
    done = flambeau("run", "tool")
    assert done.returncode == 1
    assert done.stderr == "flambeau run: a folder must hold __main__.py; got 'tool'.\n"


def test_a_missing_module_says_so(flambeau):
    done = flambeau("run", "-m", "no_such_module.x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "flambeau run: the module must exist; got 'no_such_module.x'.\n"


def test_a_traceback_shows_the_scripts_lines_only(flambeau, script):
    code = """\
        from torch.core import errors, nearest
        def inner():
            raise errors.ShapeError("add: sizes must fit; got a=2, b=3.")
        inner()
    """
    done = flambeau("run", script("\n".join(line[8:] for line in code.splitlines())))
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert [line.rpartition("in ")[2] for line in frames] == ["<module>", "inner"]
    assert done.stderr.endswith("ShapeError: add: sizes must fit; got a=2, b=3.\n")


def test_our_frames_show_on_demand(flambeau, script):
    done = flambeau("run", script("1 / 0"), FLAMBEAU_TRACEBACK="full")
    assert "_run_path" in done.stderr


def test_a_syntax_error_looks_as_under_python(flambeau, script, tmp_path):
    name = script("def f(:\n")
    theirs = subprocess.run([sys.executable, name], capture_output=True, text=True, cwd=tmp_path)
    assert flambeau("run", name).stderr == theirs.stderr


def test_classes_of_the_script_pickle(flambeau, script):
    code = "import pickle\nclass A: x = 1\nprint(pickle.loads(pickle.dumps(A())).x)"
    assert flambeau("run", script(code)).stdout == "1\n"


def test_no_command_and_an_unknown_one_end_with_2(flambeau):
    assert flambeau().returncode == 2
    assert flambeau("rnu").returncode == 2
    assert "run an unmodified PyTorch script" in flambeau("--help").stdout


SPAWN = """\
import multiprocessing, torch
def work(queue):
    import torch.core.errors
    queue.put(torch.__name__)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
"""


def test_spawned_processes_import_flambeau_as_well(flambeau, script):
    name = script(SPAWN, "spawning.py")
    assert flambeau("run", name).stdout == "flambeau\n"
    assert flambeau("run", "-m", "spawning").stdout == "flambeau\n"
