"""trackway.toml: the project's over the home's, under environment and arguments; strict, and clear when wrong."""

import os
from pathlib import Path

import pytest

import trackway
from trackway.errors import BadSetting
from trackway.recording import settings, settings_file
from trackway.recording.settings import home_at
from trackway.store.home import Home


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Path:
    """A folder with a folder in it, the inner one being the working folder."""
    inner = tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return inner.parent


def test_the_nearest_file_above_is_the_projects(project: Path, home: Path) -> None:
    """From the working folder upwards, the first one found counts; paths in it are meant from where it is."""
    (project / "trackway.toml").write_text('store = "episodes/mine.db"\n')

    assert settings.store_for(None, Home(home)).key == f"sqlite:{(project / 'episodes' / 'mine.db').resolve()}"
    (project / "src" / "trackway.toml").write_text("")
    assert settings.store_for(None, Home(home)).key == f"sqlite:{(home / 'store.db').resolve()}"


def test_argument_environment_project_home_default(project: Path, home: Path, monkeypatch) -> None:
    """Each is asked in this order, and the first that says something holds."""

    def key(store: str | None = None) -> str:
        return Path(settings.store_for(store, Home(home)).key.removeprefix("sqlite:")).name

    assert key() == "store.db"
    home.mkdir()
    (home / "trackway.toml").write_text('store = "home.db"')
    assert key() == "home.db"
    (project / "trackway.toml").write_text('store = "project.db"')
    assert key() == "project.db"
    monkeypatch.setenv("TRACKWAY_STORE", "/nowhere/environment.db")
    assert key() == "environment.db"
    assert key("argument.db") == "argument.db"


def test_a_project_may_have_its_own_home(project: Path, monkeypatch) -> None:
    """``home`` in the project's file, unless TRACKWAY_HOME says otherwise; the home's own file cannot say it."""
    (project / "trackway.toml").write_text('home = ".trackway"')
    assert home_at(None).path.name == "trackway"
    monkeypatch.delenv("TRACKWAY_HOME")

    assert home_at(None).path == project / ".trackway"
    (project / ".trackway").mkdir()
    (project / ".trackway" / "trackway.toml").write_text('home = "elsewhere"')
    with pytest.raises(BadSetting, match="cannot say where the home is"):
        trackway.open_store()


def test_recording_can_be_switched_off_by_file(project: Path, home: Path, monkeypatch) -> None:
    """``disabled = true`` records nothing; the environment has the last word."""
    (project / "trackway.toml").write_text("disabled = true")
    with trackway.record("t") as episode:
        episode.user("x")
    assert not home.exists()
    monkeypatch.setenv("TRACKWAY_DISABLED", "0")
    with trackway.record("t") as episode:
        episode.user("x")
    assert [each.task for each in trackway.open_store().episodes()] == ["t"]


def test_rules_of_both_files_add_up(project: Path, home: Path, monkeypatch) -> None:
    """A project adds to what its user hides; it cannot take anything away."""
    home.mkdir()
    monkeypatch.setenv("MY_TOKEN", "hunter2+x")
    (home / "trackway.toml").write_text("[redact]\nknown = true\nenv = ['MY_TOKEN', 'NOT_SET']\n")
    (project / "trackway.toml").write_text(
        "[redact]\nknown = false\nfields = ['password']\n[redact.patterns]\ncustomer = 'CUST-\\d+'\n"
    )
    with trackway.record("t", redact={"mine": "own"}) as episode:
        episode.user("CUST-12 hunter2+x AKIAIOSFODNN7EXAMPLE own")
        episode.note("login", {"Password": "swordfish", "user": "me"})
    events = {event.kind: event for event in trackway.open_store().events("last")}

    assert events["user"].redacted == {"customer": 1, "my_token": 1, "aws-key": 1, "mine": 1}
    assert events["note"].redacted == {"field": 1}
    assert events["note"].detail["user"] == "me"


def test_redaction_by_environment_and_not_at_all(project: Path, monkeypatch) -> None:
    """TRACKWAY_REDACT=1 hides known secrets too; 0 leaves the code's rules alone; False in the code hides nothing."""
    (project / "trackway.toml").write_text("[redact]\npatterns.word = 'word'\n")
    secret = "AKIAIOSFODNN7EXAMPLE word"

    def recorded(**named: object) -> str:
        with trackway.record("t", **named) as episode:
            episode.user(secret)
        return next(event.content for event in trackway.open_store().events("last") if event.kind == "user")

    assert recorded().startswith("AKIA")
    assert recorded(redact=False) == secret
    monkeypatch.setenv("TRACKWAY_REDACT", "1")
    assert "AKIA" not in recorded()
    monkeypatch.setenv("TRACKWAY_REDACT", "0")
    assert recorded() == secret
    assert recorded(redact=True).startswith("[redacted:aws-key:")
    assert recorded(redact=True).endswith(" word")


@pytest.mark.parametrize(("text", "said"), [
    ("[redcat]\n", "redcat"), ("[redact]\nkown = true", "kown"), ("store = 3", "str"), ("= nonsense", "line 1"),
    ("[retention]\nmax_age = 'soon'", "max_age"), ("[redact.patterns]\nx = '('", "pattern 'x'"), ("\xff", "utf-8"),
    ("[prices]\nx = 3", "x"),
])  # fmt: skip
def test_a_file_that_cannot_be_understood_is_an_error(project: Path, text: str, said: str) -> None:
    """Which file, what in it, and what to do: a misspelt rule would hide nothing."""
    (project / "trackway.toml").write_bytes(text.encode("latin-1"))

    with pytest.raises(BadSetting) as caught:
        trackway.record("t")

    assert str(project / "trackway.toml") in str(caught.value)
    assert said in str(caught.value)
    assert "docs/settings.md" in caught.value.hint


def test_a_changed_file_is_read_again(project: Path, home: Path) -> None:
    """A program that runs for days sees what was changed meanwhile."""
    file = project / "trackway.toml"
    for limit in (10, 20_000):
        file.write_text(f"[retention]\nmax_episodes = {limit}\n")
        assert settings_file.load(Home(home)).retention.max_episodes == limit


def test_settings_named_by_the_environment(project: Path, tmp_path: Path, home: Path, monkeypatch) -> None:
    """TRACKWAY_SETTINGS names the project's file; empty, there is none; one that is missing is an error."""
    (project / "trackway.toml").write_text("nonsense")
    monkeypatch.setenv("TRACKWAY_SETTINGS", "")
    assert settings_file.load(Home(home)).files == ()
    named = tmp_path / "named.toml"
    monkeypatch.setenv("TRACKWAY_SETTINGS", str(named))
    with pytest.raises(BadSetting, match="no file"):
        settings_file.load(Home(home))
    named.write_text("disabled = true")
    assert settings.is_disabled(Home(home))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_another_users_file_is_not_read(project: Path, monkeypatch, capsys) -> None:
    """A file somebody else left in a shared folder does not decide where my episodes go; that is said."""
    file = project / "trackway.toml"
    file.write_text("nonsense")
    os.chown(file, 12345, 12345)
    monkeypatch.setattr(os, "getuid", lambda: 54321)

    assert settings_file.project_file() is None
    assert "belongs to somebody else" in capsys.readouterr().err


@pytest.mark.parametrize("make", ["fifo", "folder", "endless", "huge"])
def test_what_is_no_settings_file_is_not_read(project: Path, home: Path, make: str) -> None:
    """A pipe, a folder, a device and a huge file of that name neither hang nor fill the memory."""
    file = project / "trackway.toml"
    if make == "fifo":
        os.mkfifo(file)
    elif make == "folder":
        file.mkdir()
    elif make == "endless":
        file.symlink_to("/dev/zero")
    else:
        with file.open("wb") as there:
            there.truncate(1 << 40)
        with pytest.raises(BadSetting, match="no settings file"):
            settings_file.load(Home(home))
        return

    assert settings_file.load(Home(home)).files == ()


def test_a_file_that_windows_wrote_is_read(project: Path, home: Path) -> None:
    """A byte-order mark and its line ends are no reason to refuse it."""
    (project / "trackway.toml").write_bytes("\ufeff[retention]\r\nmax_episodes = 3\r\n".encode())

    assert settings_file.load(Home(home)).retention.max_episodes == 3


def test_a_projects_file_that_surprises_is_said(project: Path, tmp_path: Path, capsys) -> None:
    """Where it switches recording off or sends it elsewhere, one line says so; inside the project, none."""
    (project / "trackway.toml").write_text('store = "mine.db"')
    trackway.Recorder().close()
    assert capsys.readouterr().err == ""
    (project / "trackway.toml").write_text(f'disabled = true\nstore = "{tmp_path}/else.db"')
    trackway.Recorder().close()
    said = capsys.readouterr().err
    assert "says that nothing is recorded" in said
    assert f"store is {tmp_path}/else.db" in said
